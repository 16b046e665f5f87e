"""What is settled at a birth: who works, who pays, and what becomes of the columns of the run."""

from __future__ import annotations

from decimal import Decimal

import pytest
from unit.decision.builders import make_planning, make_position

from horarium.core.decision.decide import decide_trigger
from horarium.core.decision.facts import (
    Facts,
    Fire,
    PoliciesUnreadable,
    RunTally,
    SharedFacts,
    Skip,
    UnreadablePolicies,
)
from horarium.core.decision.run_policies import CreationPolicies, PolicyBundle, payers, settle, under_queue
from horarium.core.document.assignee import Assignee, AssigneeType, TeamDefinition, TeamStrategy
from horarium.core.document.effective_policies import Effective
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason
from horarium.core.policy.approval import ApprovalPolicy, RetryPolicy
from horarium.core.policy.limits import Budget, RunLimits
from horarium.core.policy.queue import Overlap, OverlapPolicy, QueuePolicy

ADA, DESK = Assignee(AssigneeType.AGENT, "ada"), Assignee(AssigneeType.TEAM, "desk")
ROUND = TeamDefinition("desk", ("ada", "bob"), strategy=TeamStrategy.ROUND_ROBIN)
NONE = Budget()
PARALLEL = Overlap(OverlapPolicy.ALLOW_ALL)


def of_team(ada: Budget = NONE, bob: Budget = NONE, cost: int | None = None) -> CreationPolicies:
    effective = Effective(ApprovalPolicy(requires_approval=False), limits=RunLimits(cost=cost))
    return CreationPolicies(
        DESK, {"ada": PolicyBundle(effective, "a", ada), "bob": PolicyBundle(effective, "b", bob)}, ROUND
    )


def trigger(planning: Planning, facts: Facts, shared: SharedFacts) -> Fire | Skip:
    decided = decide_trigger(planning, make_position(), facts, shared, now=0)
    assert isinstance(decided, Fire | Skip)
    return decided


def test_a_team_takes_turns_and_each_run_names_its_member() -> None:
    shared, facts = SharedFacts(turns={"desk": 1}), Facts(policies=of_team())
    planning = make_planning(assignee="desk", assignee_type=AssigneeType.TEAM, overlap=PARALLEL)
    fires = [trigger(planning, facts, shared) for _ in range(3)]
    assert [each.member for each in fires if isinstance(each, Fire)] == ["bob", "ada", "bob"]
    assert shared.turns == {"desk": 4}
    assert shared.runs_by_assignee == {"team desk": 3, "ada": 1, "bob": 2}


@pytest.mark.parametrize(
    ("budget", "facts", "reason", "of"),
    [
        (Budget(max_daily_runs=1), Facts(policies=of_team()), Reason.DAILY_LIMIT_REACHED, "team desk"),
        (Budget(3), Facts(policies=of_team(cost=2)), Reason.BUDGET_EXCEEDED, "team desk"),
        (Budget(), Facts(policies=of_team(bob=Budget(max_daily_runs=0))), Reason.DAILY_LIMIT_REACHED, "bob"),
        (Budget(), Facts(policies=of_team(bob=Budget(1), cost=2)), Reason.BUDGET_EXCEEDED, "bob"),
    ],
    ids=["runs of the team", "money of the team", "runs of the member", "money of the member"],
)
def test_the_budgets_of_team_and_member_both_hold(budget: Budget, facts: Facts, reason: Reason, of: str) -> None:
    shared = SharedFacts()
    planning = make_planning(assignee="desk", assignee_type=AssigneeType.TEAM, overlap=PARALLEL)
    first, second = (trigger(planning, facts._replace(assignee_budget=budget), shared) for _ in range(2))
    assert isinstance(first, Fire)
    assert isinstance(second, Skip)
    assert (second.reason, (second.detail or {})["of"]) == (reason, of)
    # The turn of one who may not work is not used up: nobody else does the work in its place.
    assert shared.turns == {"desk": 1}


def test_a_team_and_an_agent_of_one_name_do_not_share_a_purse() -> None:
    assert payers(Assignee(AssigneeType.TEAM, "ada"), "ada") == ("team ada", "ada")
    assert payers(ADA, None) == ("ada",)
    assert payers(None, None) == ()


def test_what_cannot_be_read_is_the_trouble_of_one_schedule() -> None:
    with pytest.raises(PoliciesUnreadable, match="the agent ada cannot be read"):
        RunTally(
            make_planning(),
            make_position(),
            Facts(policies=UnreadablePolicies("the agent ada cannot be read")),
            SharedFacts(),
        )


@pytest.mark.parametrize(
    ("written", "effective", "waits"),
    [(False, False, False), (False, True, True), (True, False, True), (True, True, True)],
)
def test_an_approval_that_was_asked_for_at_write_stays_asked_for(written: bool, effective: bool, waits: bool) -> None:
    bundle = PolicyBundle(Effective(ApprovalPolicy(requires_approval=effective)), "text")
    settled = settle(make_planning(needs_approval=written), CreationPolicies(ADA, {None: bundle}), None)
    assert (settled.needs_approval, settled.assignee, settled.effective) == (waits, ADA, "text")


def test_limits_and_timeouts_are_those_that_hold_now() -> None:
    effective = Effective(limits=RunLimits(runtime_seconds=60, cost=3), retry=RetryPolicy(timeout_ms=500))
    planning = make_planning(reserve=Decimal(9), runtime_seconds=90, timeout_seconds=10)
    settled = settle(planning, CreationPolicies(ADA, {None: PolicyBundle(effective, "t")}, workflow_version=4), None)
    assert (settled.reserve, settled.runtime_seconds, settled.attempt_ms) == (Decimal(3), 60, 500)
    assert settled.workflow_version == 4


def test_without_others_a_run_has_what_its_schedule_says() -> None:
    planning = make_planning(reserve=Decimal(9), runtime_seconds=90)
    settled = settle(planning, CreationPolicies(None, {None: PolicyBundle(None, None)}, workflow_version=2), None)
    assert (settled.reserve, settled.runtime_seconds) == (Decimal(9), 90)
    assert (settled.effective, settled.workflow_version) == (None, 2)


@pytest.mark.parametrize(
    ("own", "queue", "overlap", "priority"),
    [
        (make_planning(), QueuePolicy(OverlapPolicy.ALLOW_ALL, 2, 5), Overlap(OverlapPolicy.ALLOW_ALL, 2), 5),
        (make_planning(priority=7), QueuePolicy(priority=5), Overlap(), 7),
        (make_planning(overlap=PARALLEL), QueuePolicy(OverlapPolicy.SKIP, 2), PARALLEL, 0),
        (make_planning(), QueuePolicy(), Overlap(), 0),
    ],
    ids=["nothing of its own", "its own priority", "its own overlap", "nothing at all"],
)
def test_a_queue_policy_holds_where_the_schedule_has_none(
    own: Planning, queue: QueuePolicy, overlap: Overlap, priority: int
) -> None:
    under = under_queue(own, queue)
    assert (under.overlap, under.priority) == (overlap, priority)
    assert under is under_queue(own, queue)
