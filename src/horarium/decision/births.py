"""What is settled for a run when it is born: who works, whose policies hold, and what that makes of its columns.

A team that takes turns sends another agent with each birth, and each agent may have policies and a budget of its own:
so what is known beforehand is a bundle for each who may work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from horarium.policy.approval import WhileWaiting, run_needs_approval
from horarium.policy.limits import Budget
from horarium.policy.queue import OwnQueue, QueuePolicy
from horarium.schedule.assignee import Assignee, AssigneeType, Team, TeamStrategy, resolve_agent
from horarium.schedule.effective import Effective
from horarium.schedule.planning import Planning


class Bundle(NamedTuple):
    """Policies for runs of one agent. `effective` None = only those of the schedule apply.

    `text` is stored with the run; `budget` is that of a member of a team, in addition to the team's.
    `native_scheduler`: the agent schedules its own work.
    """

    effective: Effective | None
    text: str | None
    budget: Budget = Budget()
    native_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class BirthPolicies:
    """Policies for new runs of one schedule.

    `bundles` are by the working member of a team, or under None where there is no team. `workflow_version` is that of
    its stored workflow, if any; `queue` is its assignment's policy of overlap and priority.
    """

    assignee: Assignee | None
    bundles: Mapping[str | None, Bundle]
    team: Team | None = None
    workflow_version: int | None = None
    queue: QueuePolicy | None = None

    @property
    def takes_turns(self) -> bool:
        return self.team is not None and self.team.strategy is TeamStrategy.ROUND_ROBIN

    def member(self, turn: int) -> str | None:
        """Choose the working member of a team that was given `turn` runs before."""
        return None if self.team is None else resolve_agent(self.team, turn)

    def waits(self) -> bool:
        """Tell whether any policy requires approval, for any member."""
        return any(self.needs_approval(bundle.effective) for bundle in self.bundles.values())

    def needs_approval(self, effective: Effective | None) -> bool:
        """Return whether these policies require an approval of the run; None requires nothing."""
        has_steps = self.workflow_version is not None
        return effective is not None and run_needs_approval(effective.approval, has_assignee=False, has_steps=has_steps)

    def while_waiting(self) -> WhileWaiting | None:
        """First policy for runs that await approval; None = there is none."""
        said = (bundle.effective for bundle in self.bundles.values())
        found = (None if each is None else each.approval.while_waiting for each in said)
        return next((each for each in found if each is not None), None)

    def keep_own_time(self) -> bool:
        """Tell whether all agents that may work schedule themselves.

        If one member of a team does not, those who do have their turns as well: a skipped occurrence uses up no turn,
        and the team would stop at the first of them.
        """
        return all(bundle.native_scheduler for bundle in self.bundles.values())

    def bundle(self, member: str | None) -> Bundle:
        return self.bundles[member]


class Settled(NamedTuple):
    """The columns of a run that depend on whose policies hold; all others are those of its planning."""

    needs_approval: bool
    reserve: Decimal
    attempt_ms: int | None
    runtime_seconds: int | None
    priority: int
    assignee: Assignee | None
    member: str | None
    effective: str | None
    workflow_version: int | None


def payer(assignee: Assignee) -> str:
    """Under which name money and runs of a day are counted: no id has a blank in it, so a team is never an agent."""
    return assignee.id if assignee.type is AssigneeType.AGENT else f"{assignee.type.value} {assignee.id}"


def payers(assignee: Assignee | None, member: str | None) -> tuple[str, ...]:
    """Everybody whose budget a run is counted against, beside its schedule's."""
    of_assignee = () if assignee is None else (payer(assignee),)
    return of_assignee if member is None else (*of_assignee, member)


def settle(planning: Planning, policies: BirthPolicies, member: str | None) -> Settled:
    """Settle policies for a new run. The schedule's are the minimum: an approval that it requires stays required."""
    bundle = policies.bundle(member)
    effective = bundle.effective
    if effective is None:
        return Settled(
            planning.needs_approval,
            planning.reserve,
            planning.attempt_ms,
            planning.runtime_seconds,
            planning.priority,
            policies.assignee,
            member,
            None,
            policies.workflow_version,
        )
    return Settled(
        planning.needs_approval or policies.needs_approval(effective),
        reserve_of(planning, effective),
        _attempt_ms(planning, effective),
        effective.limits.runtime_seconds,
        planning.priority,
        policies.assignee,
        member,
        bundle.text,
        policies.workflow_version,
    )


def reserve_of(planning: Planning, effective: Effective | None) -> Decimal:
    """Cost limit of a run, which is reserved for it."""
    if effective is None:
        return planning.reserve
    return Decimal(effective.limits.cost) if effective.limits.cost is not None else Decimal(0)


def _attempt_ms(planning: Planning, effective: Effective) -> int | None:
    """The time of an attempt, where the retry policy allows less of it than the action."""
    allowed = effective.retry.timeout_ms
    return None if allowed is None or allowed >= planning.timeout_seconds * 1_000 else allowed


def under_policies(planning: Planning, policies: BirthPolicies) -> Planning:
    """With what an assignment says of overlap and priority, and whoever has a word of runs that wait for a yes."""
    if policies.queue is not None:
        planning = under_queue(planning, policies.queue)
    return under_waiting(planning, policies.while_waiting())


@lru_cache(maxsize=65_536)
def under_waiting(planning: Planning, waiting: WhileWaiting | None) -> Planning:
    return planning if waiting in (None, planning.while_waiting) else replace(planning, while_waiting=waiting)


@lru_cache(maxsize=65_536)
def under_queue(planning: Planning, queue: QueuePolicy) -> Planning:
    """With the assignment's overlap and priority where the schedule has defaults."""
    own = OwnQueue(planning.overlap, planning.catchup, planning.priority)
    found = own.under(queue)
    if found == own:
        return planning
    return replace(planning, overlap=found.overlap, priority=found.priority)
