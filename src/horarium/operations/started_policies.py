"""What holds for a run that somebody starts without a schedule: the same policies and budgets as for any other."""

from __future__ import annotations

from dataclasses import replace

from horarium.decision.births import BirthPolicies, Settled, payer, payers, settle
from horarium.instant import DAY, Instant
from horarium.operations.drafts import Draft
from horarium.operations.errors import BudgetExceeded, Refused
from horarium.policy.limits import Budget, budget_allows, daily_allows
from horarium.schedule.effective import Effective
from horarium.schedule.kinds import WORKFLOW
from horarium.store import workflow_graphs
from horarium.store.counters import add_to_counters, assignee_owner, lock_counters, to_credits, to_millionths
from horarium.store.database import Connection
from horarium.store.policies import move_turns
from horarium.store.schedules.birth_policies import Birth, gather_policies


def settle_start(connection: Connection, draft: Draft, run_id: bytes, now: Instant) -> Settled | None:
    """None where only its own definition says anything. Raises BudgetExceeded, and Refused for rows nobody can read.

    The turn of a team moves, and the run is counted for those who work; its own cost is counted when it ends.
    """
    definition, planning = draft.definition, draft.planning
    namespace, name = definition.namespace, planning.workflow
    stored = planning.kind == WORKFLOW.name and name is not None
    newest = workflow_graphs.newest_versions(connection, [(namespace, name or "")]) if stored else {}
    version = newest.get((namespace, name or ""))
    if planning.assigned is None and planning.assignment is None and version is None:
        return None
    own = Effective(definition.approval, definition.retry, definition.failure, definition.limits)
    birth = Birth(run_id, namespace, replace(planning, own_policies=own), version)
    gathered = gather_policies(connection, [birth], lock=True)
    policies = gathered.policies[run_id]
    if not isinstance(policies, BirthPolicies):
        raise Refused(f"the run cannot be started: {policies.why}")
    team = None if policies.team is None else (namespace, policies.team.team_id)
    member = policies.member(0 if team is None else gathered.turns[team])
    settled = settle(planning, policies, member)
    if team is not None:
        move_turns(connection, {team: 1})
    budgets = {} if policies.assignee is None else {payer(policies.assignee): gathered.budgets[run_id]}
    if member is not None:
        budgets[member] = policies.bundle(member).budget
    _count(connection, namespace, settled, budgets, now)
    return settled


def _count(connection: Connection, namespace: str, settled: Settled, budgets: dict[str, Budget], now: Instant) -> None:
    day, reserve = now // DAY, settled.reserve
    owners = {who: assignee_owner(namespace, who) for who in payers(settled.assignee, settled.member)}
    counted = lock_counters(connection, [(kind, owner, day) for owner in owners.values() for kind in ("runs", "spent")])
    for who, owner in owners.items():
        spent, runs = to_credits(counted["spent", owner, day]), counted["runs", owner, day]
        limit, most = budgets[who].spending_limit_credits, budgets[who].max_daily_runs
        if not budget_allows(limit, spent=spent, reserve=reserve):
            raise BudgetExceeded(
                f"the daily budget of {who} is {limit} credits, of which {spent} are spent or reserved"
            )
        if not daily_allows(most, runs_today=runs):
            raise BudgetExceeded(f"the daily limit of {who} is {most} runs, of which {runs} are used")
    changes = {("runs", owner, day): 1 for owner in owners.values()}
    add_to_counters(
        connection, {**changes, **{("spent", owner, day): to_millionths(reserve) for owner in owners.values()}}
    )
