"""When more is due than a batch holds, every namespace gets its part, and a backlog is not before what is recent."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import START, World, insert_all, new_schedule
from sqlalchemy import Connection

from horarium.features.schedules import due_rows
from horarium.features.schedules.due_rows import ClaimTurn, Plannings, claim_in_turn
from horarium.instant import MINUTE, SECOND, Instant
from horarium.platform.database import Database
from horarium.platform.database.tables import positions

NOW = START + 60 * MINUTE
OLD, NEW = NOW - 30 * MINUTE, NOW - 5 * SECOND


def add(world: World, namespace: str, due: Iterable[Instant]) -> None:
    """A schedule for each instant, due at it."""
    wanted = list(due)
    before = len(_rows(world, namespace))
    news = [new_schedule(f"s{before + n}", now=START, namespace=namespace) for n in range(len(wanted))]
    uids = insert_all(world.database, news, now=START)

    def move(connection: Connection) -> None:
        for uid, at in zip(uids, wanted, strict=True):
            connection.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(next_due=at))

    world.write(move)


def _rows(world: World, namespace: str) -> list[bytes]:
    mine = sa.select(positions.c.schedule_uid).where(positions.c.namespace == namespace)
    return world.database.read(lambda c: list(c.execute(mine).scalars()))


FIRST = ClaimTurn([], more=True)


def take(world: World, limit: int, before: ClaimTurn = FIRST, *, keep: bool = False) -> ClaimTurn:
    """Claims, and unless told otherwise decides: what was taken is due no more."""

    def work(connection: Connection) -> ClaimTurn:
        turn = claim_in_turn(connection, Plannings(), NOW, limit, before)
        if not keep:
            uids = [claim.schedule_uid for claim in turn.claims]
            later = sa.update(positions).where(positions.c.schedule_uid.in_(uids)).values(next_due=NOW + MINUTE)
            connection.execute(later)
        return turn

    return world.write(work)


def counted(turn: ClaimTurn) -> dict[str, int]:
    return dict(Counter(claim.namespace for claim in turn.claims))


def ages(turn: ClaimTurn) -> dict[str, int]:
    return dict(Counter("recent" if claim.next_due > NOW - MINUTE else "old" for claim in turn.claims))


def test_a_namespace_with_a_herd_leaves_the_others_their_part(database: Database) -> None:
    world = World(database)
    add(world, "crowd", [OLD] * 60)
    add(world, "one", [NEW])
    add(world, "two", [OLD, NEW, NEW])
    turn = take(world, 12)
    assert counted(turn) == {"crowd": 8, "one": 1, "two": 3}
    assert (turn.after, turn.more) == ("", True)


def test_what_has_just_come_due_has_half_of_the_room_beside_a_backlog(database: Database) -> None:
    world = World(database)
    add(world, "default", [OLD - n * SECOND for n in range(30)] + [NEW + n for n in range(30)])
    turn = take(world, 10)
    assert ages(turn) == {"recent": 5, "old": 5}
    assert [claim.next_due for claim in turn.claims[:5]] == [NEW + n for n in range(5)]
    assert [claim.next_due for claim in turn.claims[5:]] == [OLD - n * SECOND for n in (29, 28, 27, 26, 25)]


@pytest.mark.parametrize(
    ("old", "recent", "expected"),
    [
        (30, 0, {"old": 10}),
        (0, 30, {"recent": 10}),
        (30, 2, {"old": 8, "recent": 2}),
        (3, 30, {"old": 3, "recent": 7}),
        (4, 3, {"old": 4, "recent": 3}),
    ],
)
def test_room_that_one_side_does_not_need_goes_to_the_other(
    database: Database, old: int, recent: int, expected: dict[str, int]
) -> None:
    world = World(database)
    add(world, "default", [OLD] * old + [NEW] * recent)
    assert ages(take(world, 10)) == expected


def test_exactly_a_minute_ago_is_old(database: Database) -> None:
    world = World(database)
    add(world, "default", [NOW - MINUTE, NOW - MINUTE + 1, NOW, NOW + 1])
    turn = take(world, 10)
    assert [claim.next_due for claim in turn.claims] == [NOW - MINUTE + 1, NOW, NOW - MINUTE]
    assert not turn.more


def test_step_by_step_everything_is_taken_once(database: Database) -> None:
    world = World(database)
    sizes = {"a": 23, "b": 1, "c": 7, "d": 0, "e": 16}
    for name, size in sizes.items():
        add(world, name, [(OLD, NEW)[n % 2] for n in range(size)] + [NOW + MINUTE])
    found: Counter[str] = Counter()
    turn = FIRST
    while turn.more:
        turn = take(world, 6, turn)
        found.update(counted(turn))
    assert found == {name: size for name, size in sizes.items() if size}
    assert take(world, 6).claims == []


def test_namespaces_that_find_no_place_in_a_batch_come_first_in_the_next(database: Database) -> None:
    world = World(database)
    for name in ("A", "b", "C", "d", "e"):
        add(world, name, [OLD] * 3)
    rounds = []
    turn = FIRST
    for _ in range(3):
        turn = take(world, 2, turn, keep=True)
        rounds += list(counted(turn))
        assert turn.more
    # Five names, two at once: nobody has a second turn before everybody had the first.
    assert (len(set(rounds[:5])), len(rounds)) == (5, 6)


def test_a_look_goes_on_where_the_last_one_ended(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Namespaces without due schedules are passed over, a bounded number at a time, and nothing due is left."""
    monkeypatch.setattr(due_rows, "_LOOKS", 3)
    monkeypatch.setattr(due_rows, "_NAMESPACES", due_rows._NAMESPACES.replace("1000", "3"))
    world = World(database)
    for number in range(8):
        add(world, f"idle-{number}", [NOW + MINUTE])
    add(world, "zone", [OLD] * 3)
    first = take(world, 2)
    assert (counted(first), first.after) == ({"zone": 2}, "idle-2")  # found by the ordinary claim
    second = take(world, 2, first)
    assert (counted(second), second.after) == ({"zone": 1}, "idle-5")
    third = take(world, 2, second)
    assert (third.claims, third.more) == ([], False)


def test_only_active_schedules_are_claimed(database: Database) -> None:
    world = World(database)
    add(world, "default", [OLD, NEW])
    world.write(lambda c: c.execute(sa.update(positions).values(status="paused")))
    assert take(world, 10) == ClaimTurn([], more=False)


def test_a_herd_is_looked_for_now_and_then_only(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_rows, "_BATCHES_A_LOOK", 3)
    world = World(database)
    add(world, "herd", [NEW] * 40)
    looks: list[int] = []
    real = due_rows._look

    def look(*arguments: Any) -> Any:
        looks.append(len(batches))
        return real(*arguments)

    monkeypatch.setattr(due_rows, "_look", look)
    batches: list[ClaimTurn] = [FIRST]
    while batches[-1].more:
        if len(batches) == 3:
            add(world, "new", [NEW] * 2)
        batches.append(take(world, 4, batches[-1]))
    assert sum(len(turn.claims) for turn in batches) == 42
    assert looks[:3] == [1, 5, 9]
    assert [len(counted(turn)) for turn in batches[1:6]] == [1, 1, 1, 1, 2]  # the new one waits for the second look


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_two_tickers_never_take_the_same(database: Database, open_another: Callable[[], Database]) -> None:
    world, other = World(database), open_another()
    add(world, "a", [OLD] * 20 + [NEW] * 20)
    add(world, "b", [OLD] * 4)
    held, done = threading.Event(), threading.Event()
    theirs: list[bytes] = []

    def hold(connection: Connection) -> None:
        turn = claim_in_turn(connection, Plannings(), NOW, 12, FIRST)
        theirs.extend(claim.schedule_uid for claim in turn.claims)
        held.set()
        assert done.wait(60)

    holder = threading.Thread(target=lambda: other.write(hold))
    holder.start()
    assert held.wait(60)
    try:
        ours = [claim.schedule_uid for claim in take(world, 100, keep=True).claims]
    finally:
        done.set()
        holder.join()
    assert (len(theirs), len(ours)) == (12, 32)
    assert not set(theirs) & set(ours)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_small_namespace_is_found_without_reading_past_a_large_one(database: Database) -> None:
    """The planner could as well take the index of due times, and leave out what belongs to others."""
    world = World(database)
    add(world, "large", [OLD] * 300)
    add(world, "small", [NEW])

    def plans(connection: Connection) -> list[str]:
        connection.exec_driver_sql("ANALYZE positions")
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        claim: Any = (["small"], [0], [NOW], [5], [])
        names = ("", NOW, 5)
        return [
            "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", arguments))
            for statement, arguments in (
                (due_rows._TURN_POSTGRES, claim),
                (due_rows._NAMESPACES.format(mark="%s"), names),
            )
        ]

    for plan in world.write(plans):
        assert "positions_due_by_namespace" in plan
        assert "positions_due on" not in plan
