"""Held runs start when there is room: in their turn, not before their time, and while paused a backfill's only."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from unit.decision.builders import NOON, make_planning

from horarium.core.decision.decide import NO_RELEASE, ActiveRun, BufferedRun, Release, plan_release
from horarium.core.decision.facts import SharedFacts
from horarium.core.document.planning import Planning
from horarium.core.document.states import Status
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.instant import MINUTE, SECOND

P = OverlapPolicy
SERIAL = make_planning(overlap=P.BUFFER_ALL)
PAIR = make_planning(overlap=Overlap(P.BUFFER_ALL, max_concurrency=2))
FREE = make_planning(overlap=P.ALLOW_ALL)
CANCEL = make_planning(overlap=Overlap(P.CANCEL_OTHER, cancel_grace_seconds=30))
KEYED = make_planning(overlap=P.ALLOW_ALL, concurrency_key="k", concurrency_limit=2)

A, B, C = BufferedRun("a", NOON), BufferedRun("b", NOON + MINUTE), BufferedRun("c", NOON + 2 * MINUTE)
NOW = NOON + 10 * MINUTE
LATER = NOW + 5 * SECOND


def asked(run_id: str, seconds_ago: float) -> ActiveRun:
    return ActiveRun(run_id, NOW - int(seconds_ago * SECOND))


def timed(run_id: str, minute: int, release_at: int) -> BufferedRun:
    return BufferedRun(run_id, NOON + minute * MINUTE, release_at)


def filled(run_id: str, minute: int) -> BufferedRun:
    return BufferedRun(run_id, NOON + minute * MINUTE, backfilled=True)


@dataclass(frozen=True)
class Case:
    name: str
    planning: Planning
    held: list[BufferedRun]
    active: list[ActiveRun]
    expected: Release
    status: Status = Status.ACTIVE
    keys: dict[str, int] = field(default_factory=dict)


X, Y = ActiveRun("x"), ActiveRun("y")
CASES = [
    Case("nothing held", SERIAL, [], [], NO_RELEASE),
    Case("nothing held, something active", CANCEL, [], [asked("x", 99)], NO_RELEASE),
    Case("room for one", SERIAL, [A, B], [], Release(("a",))),
    Case("nominal order, whatever the rows' order", SERIAL, [C, B, A], [], Release(("a",))),
    Case("no room", SERIAL, [A], [X], NO_RELEASE),
    Case("room for two", PAIR, [C, A, B], [], Release(("a", "b"))),
    Case("room for one of two", PAIR, [A, B], [X], Release(("a",))),
    Case("more active than allowed", PAIR, [A], [X, Y, ActiveRun("z")], NO_RELEASE),
    Case("any number", FREE, [A, B, C], [X, Y], Release(("a", "b", "c"))),
    Case("paused", SERIAL, [A], [], NO_RELEASE, Status.PAUSED),
    Case("paused, with the grace over", CANCEL, [A], [asked("x", 99)], NO_RELEASE, Status.PAUSED),
    Case("finished", SERIAL, [A], [], Release(("a",)), Status.FINISHED),
    Case("after its last run was born", SERIAL, [A], [], Release(("a",)), Status.DELETED),
    Case("a backfill goes before the clock's", SERIAL, [A, filled("f", 9)], [], Release(("f",))),
    Case("a backfill keeps its own order", PAIR, [filled("g", 1), A, filled("f", 9)], [], Release(("f", "g"))),
    Case("a backfill and then the clock's", FREE, [A, filled("f", 9)], [], Release(("f", "a"))),
    Case("paused, with a backfill", PAIR, [A, B, filled("f", 9)], [], Release(("f",)), Status.PAUSED),
    Case("paused, with a backfill and no room", SERIAL, [filled("f", 9)], [X], NO_RELEASE, Status.PAUSED),
    Case("one by one without a limit", FREE, [filled("f", 1), filled("g", 2)], [], Release(("f",))),
    Case("one by one behind what is active", FREE, [filled("f", 1), A], [X], Release(("a",))),
    Case("as many as the key has room for", KEYED, [filled("f", 1), filled("g", 2)], [X], Release(("f", "g"))),
    Case("its time has come", SERIAL, [timed("a", 0, NOW)], [], Release(("a",))),
    Case("its time has not come", SERIAL, [timed("a", 0, NOW + 1)], [], NO_RELEASE),
    Case(
        "only one has its time",
        FREE,
        [timed("a", 0, NOW), timed("b", 1, LATER), timed("c", 2, LATER + 1)],
        [],
        Release(("a",)),
    ),
    Case(
        "behind one that waits for its time",
        SERIAL,
        [timed("a", 0, LATER), B, C],
        [],
        Release(("b",)),
    ),
    Case("still stopping", CANCEL, [A], [asked("x", 29)], NO_RELEASE),
    Case("the grace is over", CANCEL, [A], [asked("x", 30)], Release(("a",), ("x",))),
    Case("stopped by itself", CANCEL, [A], [], Release(("a",))),
    Case("nobody asked it to stop", CANCEL, [A], [X], NO_RELEASE),
    Case(
        "one is over, one still stopping",
        CANCEL,
        [A],
        [asked("x", 40), asked("y", 10)],
        Release((), ("x",)),
    ),
    # A trigger by hand may choose `cancel_other` for a schedule that has another policy.
    Case("still stopping for a caller's policy", SERIAL, [A], [asked("x", 29)], NO_RELEASE),
    Case("the grace of a caller's policy is over", SERIAL, [A], [asked("x", 30)], Release(("a",), ("x",))),
    Case("a key with room", KEYED, [A, B], [], Release(("a",)), keys={"k": 1}),
    Case("a key without room", KEYED, [A, B], [], NO_RELEASE, keys={"k": 2}),
    Case("a key that nobody has", KEYED, [A, B, C], [], Release(("a", "b")), keys={"other": 9}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_held_runs_are_released_as_the_row_says(case: Case) -> None:
    shared = SharedFacts(active_by_key=dict(case.keys))
    assert plan_release(case.planning, case.status, case.held, case.active, shared, NOW) == case.expected


def test_released_runs_take_their_keys() -> None:
    shared = SharedFacts(active_by_key={"k": 1})
    plan_release(KEYED, Status.ACTIVE, [A, B], [], shared, NOW)
    assert shared.active_by_key == {"k": 2}


def test_schedules_released_together_share_a_key() -> None:
    shared = SharedFacts()
    released = [plan_release(KEYED, Status.ACTIVE, [A, B], [], shared, NOW).release for _ in range(2)]
    assert released == [("a", "b"), ()]


def test_terminated_runs_give_their_key_to_the_one_that_waited() -> None:
    planning = make_planning(overlap=P.CANCEL_OTHER, concurrency_key="k", concurrency_limit=1)
    shared = SharedFacts(active_by_key={"k": 1})
    found = plan_release(planning, Status.ACTIVE, [A], [asked("x", 30)], shared, NOW)
    assert found == Release(("a",), ("x",))
    assert shared.active_by_key == {"k": 1}
