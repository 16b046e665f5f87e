"""What runs that wait for a yes are to the next occurrence: busy, out of date, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from unit.decision.builders import NOON, make_planning, make_question

from horarium.core.decision.decide import decide
from horarium.core.decision.facts import Facts, Fire, Hold, SharedFacts, Skip
from horarium.core.decision.guards import guards_for
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin
from horarium.core.policy.approval import WhileWaiting
from horarium.core.policy.queue import OverlapPolicy

W, P = WhileWaiting, OverlapPolicy


def planned(waiting: WhileWaiting, policy: OverlapPolicy, **more: Any) -> Planning:
    return make_planning(overlap=policy, needs_approval=True, while_waiting=waiting, **more)


# what the schedule says, its overlap policy, active runs, of them waiting, whether it is newer than those
ROWS = [
    (W.COUNT, P.SKIP, 1, 1, True, "skip"),
    (W.IGNORE, P.SKIP, 1, 1, True, "fire"),
    (W.IGNORE, P.SKIP, 2, 1, True, "skip"),
    (W.SUPERSEDE, P.SKIP, 0, 0, True, "fire"),
    (W.SUPERSEDE, P.SKIP, 1, 1, True, "fire, 1 superseded"),
    (W.SUPERSEDE, P.SKIP, 2, 1, True, "skip"),  # what really runs is in the way, and the question stays
    (W.SUPERSEDE, P.SKIP, 1, 1, False, "skip"),
    (W.SUPERSEDE, P.ALLOW_ALL, 3, 2, True, "fire, 2 superseded"),
    (W.SUPERSEDE, P.ALLOW_ALL, 3, 2, False, "fire"),
    (W.COUNT, P.BUFFER_ALL, 1, 1, True, "hold"),
    (W.IGNORE, P.BUFFER_ALL, 1, 1, True, "fire"),
    (W.SUPERSEDE, P.BUFFER_ALL, 2, 1, True, "hold"),
    (W.SUPERSEDE, P.TERMINATE_OTHER, 2, 1, True, "fire, all terminated"),
    (W.SUPERSEDE, P.TERMINATE_OTHER, 1, 1, True, "fire, 1 superseded"),
]


@pytest.mark.parametrize(("waiting", "policy", "active", "asking", "newer", "outcome"), ROWS, ids=str)
def test_what_waits_is_told_apart(
    waiting: WhileWaiting, policy: OverlapPolicy, active: int, asking: int, newer: bool, outcome: str
) -> None:
    planning = planned(waiting, policy)
    question = make_question(planning, Facts(active=active, waiting=asking))
    guards = guards_for(planning, Origin.SCHEDULED)
    decision = decide(guards, question, due=NOON, overlap=planning.overlap, supersedes=newer)
    match decision:
        case Skip():
            said = "skip"
        case Hold():
            said = "hold"
        case Fire(terminate_active=True):
            said = "fire, all terminated"
        case Fire(superseded=0):
            said = "fire"
        case Fire(superseded=count):
            said = f"fire, {count} superseded"
    assert said == outcome
    ended = active if "terminated" in outcome else getattr(decision, "superseded", 0)
    assert question.tally.active == active - ended + isinstance(decision, Fire)


def test_each_of_several_asks_in_the_place_of_the_one_before() -> None:
    planning = planned(W.SUPERSEDE, P.SKIP, concurrency_key="k", concurrency_limit=1)
    question = make_question(planning, Facts(), shared=SharedFacts(active_by_key={"k": 0}))
    guards = guards_for(planning, Origin.SCHEDULED)
    asked = [decide(guards, question, due=NOON, overlap=planning.overlap) for _ in range(3)]
    assert [each.superseded if isinstance(each, Fire) else None for each in asked] == [0, 1, 1]
    assert (question.tally.active, question.tally.waiting) == (1, 1)
    assert question.tally.shared.active_by_key == {"k": 1}
