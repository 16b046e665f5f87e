"""Facts that a decision may read, the tally that moves with each decision, and the plan of decisions.

Facts are gathered once for a batch. Decisions are a closed union.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from horarium.core.decision.run_policies import CreationPolicies, payer, reserve_of
from horarium.core.document.assignee import Assignee
from horarium.core.document.calendar import CalendarDefinition
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position, Reason, Status
from horarium.core.policy.approval import WhileWaiting
from horarium.core.policy.limits import ROOM_WITHOUT_END, Budget, QuotaRoom
from horarium.instant import Instant

# ── Decisions ─────────────────────────────────────────────────────────────────────────────────────────


Detail: TypeAlias = Mapping[str, Any]
"""What a guard saw, for people and for `explain`; JSON values only."""


@dataclass(frozen=True, slots=True)
class Covers:
    """The missed occurrences that one run stands for, itself included."""

    first: Instant
    last: Instant
    count: int


class Fire(NamedTuple):
    """A run is born and may start; with `terminate_active` the active ones end in the same transaction.

    `superseded` are those that wait for a yes, and end because this one asks in their place. `member` is the agent of
    its team that works.
    """

    nominal: Instant
    due: Instant
    rotation_index: int | None = None
    covers: Covers | None = None
    terminate_active: bool = False
    superseded: int = 0
    member: str | None = None


class Hold(NamedTuple):
    """A run is born and waits: for its turn, for a concurrency key, or (`release_at`) for a time."""

    nominal: Instant
    due: Instant
    rotation_index: int | None = None
    covers: Covers | None = None
    cancel_active: bool = False
    release_at: Instant | None = None
    member: str | None = None


class Skip(NamedTuple):
    nominal: Instant
    reason: Reason
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """A range of occurrences that nobody will run, as one row: first, last and how many.

    `detail` is what a guard saw, where it saw the same each time.
    """

    first: Instant
    last: Instant
    count: int
    reason: Reason
    detail: Detail | None = None


Decision: TypeAlias = Fire | Hold | Skip | Missed
Birth: TypeAlias = Fire | Hold


class Plan(NamedTuple):
    """Decisions in nominal order, and the position after them. `more` says that due ones are left."""

    decisions: tuple[Decision, ...]
    position: Position
    more: bool = False


# ── Facts ─────────────────────────────────────────────────────────────────────────────────────────────


class Fact(StrEnum):
    """The kinds of facts: the store gathers one kind with one query for a whole batch."""

    RUNS = "runs"
    CALENDARS = "calendars"
    CONTEXT = "context"
    SPENDING = "spending"
    DAILY_RUNS = "daily_runs"
    GRAPH = "graph"
    KEYS = "keys"
    QUOTA = "quota"
    POLICIES = "policies"


class Signal(NamedTuple):
    """Result of the operator's signal provider for a schedule; with an `error` there is no value."""

    value: Any = None
    error: str | None = None


class OpenRunFacts(NamedTuple):
    """A root run that has not ended. `since` is its start, or its creation where it has not started.

    `is_held`: it waits in the buffer, with `release_at` not before then. `expires_at` is when the last approval
    request that it, or one of its steps, awaits expires. `stop_at` is when it was asked to stop.
    """

    run_id: str
    since: Instant
    nominal: Instant = 0
    is_held: bool = False
    is_waiting: bool = False
    backfilled: bool = False
    release_at: Instant | None = None
    expires_at: Instant | None = None
    stop_at: Instant | None = None


class RunTimes(NamedTuple):
    """The open runs of a schedule, oldest first, and the median duration of its last finished runs, if it has any."""

    open: tuple[OpenRunFacts, ...] = ()
    median: Instant | None = None


NO_SIGNAL = Signal()
_NONE: Mapping[str, Any] = MappingProxyType({})


class UnreadablePolicies(NamedTuple):
    """Somebody who has a word in the runs of a schedule cannot be read: it cannot be decided until that is mended."""

    why: str


class PoliciesUnreadable(ValueError):
    """A schedule cannot be decided: it is set aside, and the others go on."""


class Facts(NamedTuple):
    """Facts that the store read for one schedule; a fact that was not needed has its default.

    `active` are root runs that are neither final nor buffered, and `backfilled` the buffered ones of a backfill.
    `calendars` lacks names that do not exist. `context` holds the members that the condition reads; `signal_error`
    says why its signal is null, where it should not be. `cycle` are the nodes of a cycle in the schedule's workflow,
    and `workflow_owner` owns that, where it is not the schedule's owner. `waiting` are the active runs that await
    approval, where that matters to the schedule. `assignee_budget` is that of the assigned agent or team; `policies`
    None = only those of the schedule apply. `times` are for forecasts alone: no decision reads them.
    """

    active: int = 0
    held: int = 0
    active_run_ids: tuple[str, ...] = ()
    calendars: Mapping[str, CalendarDefinition] = _NONE
    context: Mapping[str, Any] = _NONE
    spent_today: Decimal = Decimal(0)
    runs_today: int = 0
    assignee_budget: Budget = Budget()
    cycle: tuple[str, ...] = ()
    signal_error: str | None = None
    backfilled: int = 0
    workflow_owner: str | None = None
    waiting: int = 0
    policies: CreationPolicies | UnreadablePolicies | None = None
    times: RunTimes = RunTimes()


NO_FACTS = Facts()


@dataclass(slots=True)
class SharedFacts:
    """Facts that several schedules of a batch share; each decision updates them for the next one.

    `room` is what the quotas of the namespace left when the batch began, and `births` how many runs have used it
    since. `turns` are the runs that each team was given before; the `payer` names the account for costs and runs.
    """

    active_by_key: dict[str, int] = field(default_factory=dict)
    spent_by_assignee: dict[str, Decimal] = field(default_factory=dict)
    runs_by_assignee: dict[str, int] = field(default_factory=dict)
    room: QuotaRoom = ROOM_WITHOUT_END
    births: int = 0
    turns: dict[str, int] = field(default_factory=dict)

    def copy(self) -> SharedFacts:
        return SharedFacts(
            dict(self.active_by_key),
            dict(self.spent_by_assignee),
            dict(self.runs_by_assignee),
            self.room,
            self.births,
            dict(self.turns),
        )

    def restore(self, before: SharedFacts) -> None:
        """As if what came after `before` had not happened."""
        self.active_by_key = before.active_by_key
        self.spent_by_assignee = before.spent_by_assignee
        self.runs_by_assignee = before.runs_by_assignee
        self.births = before.births
        self.turns = before.turns


class RunTally:
    """The counts of one schedule while its occurrences are decided in turn; lives for one plan only."""

    __slots__ = (
        "active", "assignee_budget", "backfilled", "held", "planning", "policies", "rotation_index", "runs_born",
        "runs_today", "shared", "spent", "status", "waiting",
    )  # fmt: skip

    def __init__(self, planning: Planning, position: Position, facts: Facts, shared: SharedFacts) -> None:
        """Raises PoliciesUnreadable."""
        if isinstance(facts.policies, UnreadablePolicies):
            raise PoliciesUnreadable(facts.policies.why)
        self.planning = planning
        self.policies = facts.policies
        self.assignee_budget = facts.assignee_budget
        self.status: Status = position.status
        self.active = facts.active
        self.held = facts.held
        self.backfilled = facts.backfilled
        self.waiting = facts.waiting
        self.spent = facts.spent_today
        self.runs_today = facts.runs_today
        self.runs_born = position.runs_born
        self.rotation_index = position.rotation_index
        self.shared = shared

    @property
    def assignee(self) -> Assignee | None:
        """Assignee from the schedule itself or from its assignment."""
        return self.planning.assigned if self.policies is None else self.policies.assignee

    def member(self) -> str | None:
        """Member of the team who works next; None without a team."""
        policies = self.policies
        if policies is None or policies.team is None:
            return None
        return policies.member(self.shared.turns.get(policies.team.team_id, 0))

    def reserve(self) -> Decimal:
        """Amount to reserve for the next run."""
        if self.policies is None:
            return self.planning.reserve
        return reserve_of(self.planning, self.policies.bundle(self.member()).effective)

    def budgets(self) -> list[tuple[str, Budget]]:
        """Accounts charged for the next run in addition to the schedule's, each with its budget."""
        assignee, member = self.assignee, self.member()
        found = [] if assignee is None else [(payer(assignee), self.assignee_budget)]
        if self.policies is not None and member is not None:
            found.append((member, self.policies.bundle(member).budget))
        return found

    def new_day(self) -> None:
        """Reset what counts per UTC day; only a forecast crosses a midnight."""
        self.spent, self.runs_today = Decimal(0), 0
        for who, _ in self.budgets():
            self.shared.spent_by_assignee[who] = Decimal(0)
            self.shared.runs_by_assignee[who] = 0

    @property
    def busy(self) -> int:
        """Active runs that count for overlap: what waits for a yes may be nothing to the next occurrence."""
        return self.active if self.planning.while_waiting is WhileWaiting.COUNT else self.active - self.waiting

    def bear(self, *, held: bool, terminated: bool = False, superseded: int = 0) -> int | None:
        """Count one more run; the place in the rotation that it uses. `superseded` waiting ones end in its favour."""
        planning, shared = self.planning, self.shared
        if held:
            self.held += 1
        else:
            ended = self.active if terminated else superseded
            self.active += 1 - ended
            self.waiting = 0 if terminated else self.waiting - superseded
            self.waiting += planning.needs_approval
            if planning.concurrency_key is not None:
                key = planning.concurrency_key
                shared.active_by_key[key] = max(0, shared.active_by_key.get(key, 0) - ended) + 1
        shared.births += 1
        self.runs_born += 1
        self.runs_today += 1
        reserve = self.reserve()
        self.spent += reserve
        if planning.assignee is not None or self.policies is not None:
            self._give(reserve)
        if planning.rotation == 0:
            return None
        used = self.rotation_index % planning.rotation
        self.rotation_index += 1
        return used

    def _give(self, reserve: Decimal) -> None:
        """Count it for those who work, and give the next turn to the next."""
        shared, policies = self.shared, self.policies
        for who, _ in self.budgets():
            shared.spent_by_assignee[who] = shared.spent_by_assignee.get(who, Decimal(0)) + reserve
            shared.runs_by_assignee[who] = shared.runs_by_assignee.get(who, 0) + 1
        if policies is not None and policies.takes_turns and policies.team is not None:
            team = policies.team.team_id
            shared.turns[team] = shared.turns.get(team, 0) + 1
