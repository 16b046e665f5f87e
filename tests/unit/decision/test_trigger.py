"""A trigger by hand asks about permission and overlap, and is nobody's occurrence."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from unit.decision.builders import NOON, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.core.decision.decide import EndedRun, decide_rerun, decide_trigger, rerun_planning
from horarium.core.decision.facts import NO_FACTS, Covers, Facts, Fire, Hold, SharedFacts, Skip
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason, Status
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.instant import DAY, HOUR, SECOND

P, R = OverlapPolicy, Reason
NOW = NOON + 17 * SECOND + 3  # no occurrence, not even a whole second


@dataclass(frozen=True)
class Case:
    name: str
    planning: Planning
    expected: Fire | Hold | Reason
    facts: Facts = NO_FACTS
    position: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)


FIRED, HELD = Fire(NOW, NOW), Hold(NOW, NOW)
NEVER = compile_condition({"/x": {"eq": 1}})
CASES = [
    Case("a plain schedule", make_planning(), FIRED),
    Case("a finished schedule", make_planning(), FIRED, position={"status": Status.FINISHED}),
    Case("a paused schedule", make_planning(), R.STATUS_NOT_TRIGGERABLE, position={"status": Status.PAUSED}),
    Case(
        "a paused schedule all the same",
        make_planning(),
        FIRED,
        position={"status": Status.PAUSED},
        options={"even_if_paused": True},
    ),
    *(
        Case(
            f"a {status} schedule all the same",
            make_planning(),
            R.STATUS_NOT_TRIGGERABLE,
            position={"status": status},
            options={"even_if_paused": True},
        )
        for status in (Status.DELETED, Status.BROKEN)
    ),
    Case("outside the window", make_planning(spec=make_spec("* * * * *", end_at=NOON)), FIRED),
    Case("on a day that is skipped", make_planning(calendars=("gone",)), FIRED),
    Case("against the condition", make_planning(condition=NEVER), FIRED),
    Case("no run left", make_planning(max_runs=2), R.REMAINING_ACTIONS_EXHAUSTED, position={"runs_born": 2}),
    Case("no credits left", make_planning(budget=Budget(1)), R.BUDGET_EXCEEDED, Facts(spent_today=Decimal(1))),
    Case("no run left today", make_planning(budget=Budget(None, 1)), R.DAILY_LIMIT_REACHED, Facts(runs_today=1)),
    Case("a cyclic workflow", make_planning(workflow="w"), R.CYCLE_DETECTED, Facts(cycle=("a",))),
    Case("busy", make_planning(), R.OVERLAP_POLICY_SKIP, Facts(active=1)),
    Case(
        "busy, but allowed by the caller",
        make_planning(),
        FIRED,
        Facts(active=1),
        options={"overlap_policy": P.ALLOW_ALL},
    ),
    Case(
        "idle policy, made strict by the caller",
        make_planning(overlap=P.ALLOW_ALL),
        R.OVERLAP_POLICY_SKIP,
        Facts(active=1),
        options={"overlap_policy": P.SKIP},
    ),
    Case(
        "the caller's policy keeps the numbers",
        make_planning(overlap=Overlap(P.SKIP, max_concurrency=2)),
        R.MAX_CONCURRENT_REACHED,
        Facts(active=2),
        options={"overlap_policy": P.ALLOW_ALL},
    ),
    Case(
        "busy, to wait",
        make_planning(),
        HELD,
        Facts(active=1),
        options={"overlap_policy": P.BUFFER_ALL},
    ),
    Case(
        "busy, to replace",
        make_planning(overlap=P.TERMINATE_OTHER),
        Fire(NOW, NOW, terminate_active=True),
        Facts(active=1),
    ),
    Case(
        "busy, to cancel",
        make_planning(overlap=P.CANCEL_OTHER),
        Hold(NOW, NOW, cancel_active=True),
        Facts(active=1),
    ),
    Case("no free key", make_planning(concurrency_key="k"), HELD, shared={"active_by_key": {"k": 1}}),
    Case("a rotation", make_planning(rotation=3), Fire(NOW, NOW, 2), position={"rotation_index": 5}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_trigger_by_hand_is_decided_as_its_row_says(case: Case) -> None:
    position = make_position(**case.position)
    shared = SharedFacts(**case.shared)
    decision = decide_trigger(case.planning, position, case.facts, shared, now=NOW, **case.options)
    if isinstance(case.expected, Reason):
        assert isinstance(decision, Skip)
        assert (decision.nominal, decision.reason) == (NOW, case.expected)
    else:
        assert decision == case.expected


def test_jitter_does_not_keep_a_person_waiting() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", jitter_ms=600_000))
    assert decide_trigger(planning, make_position(), NO_FACTS, SharedFacts(), now=NOON) == Fire(NOON, NOON)


# ── once more ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("asks", ["frozen", "current", "ended", None])
def test_whoever_asks_for_an_approval_of_a_rerun_is_heard(asks: str | None) -> None:
    frozen, current = (make_planning(needs_approval=asks == who) for who in ("frozen", "current"))
    ended = EndedRun(NOON, None, None, needs_approval=asks == "ended")
    assert rerun_planning(frozen, current, ended).needs_approval is (asks is not None)


def test_a_rerun_does_the_old_work_under_todays_limits() -> None:
    frozen, current = make_planning(kind="http", queue="old"), make_planning(kind="pull", queue="new", max_runs=5)
    planning = rerun_planning(frozen, current, EndedRun(NOON, None, None, needs_approval=False))
    assert (planning.kind, planning.queue, planning.max_runs) == ("http", "old", 5)


def test_a_rerun_is_about_the_same_occurrence_and_due_now() -> None:
    ended = EndedRun(NOON - DAY, 3, Covers(NOON - DAY, NOON - HOUR, 9), needs_approval=False)
    planning, position = make_planning(), make_position(NOON)
    decided = decide_rerun(planning, position, Facts(), SharedFacts(), ended, now=NOON)
    assert decided == Fire(NOON - DAY, NOON, 3, ended.covers)
    skipped = decide_rerun(planning, position, Facts(active=1), SharedFacts(), ended, now=NOON)
    assert (type(skipped), skipped.nominal) == (Skip, NOON - DAY)
