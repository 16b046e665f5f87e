"""What is due is claimed, the most overdue first, by one ticker at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from engine.builders import START, World, new_schedule
from sqlalchemy import Connection

from horarium.core.document.states import Status
from horarium.features.schedules import due_rows
from horarium.features.schedules.due_rows import Claim, Plannings
from horarium.instant import MINUTE, SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import plannings, positions


def add_many(world: World, minutes: list[int]) -> dict[int, bytes]:
    """A schedule for each number, due that many minutes from now."""
    return {minute: world.add(f"in-{minute}", cron_expressions=[f"{minute} 0 * * *"]) for minute in minutes}


def claim(world: World, *, now: int, limit: int = 100, known: Plannings | None = None) -> list[Claim]:
    return world.write(lambda connection: due_rows.claim(connection, known or Plannings(), now, limit))


def change(world: World, uid: bytes, **values: object) -> None:
    world.write(lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(**values)))


def test_the_most_overdue_come_first_and_the_limit_holds(database: Database) -> None:
    world = World(database)
    uids = add_many(world, [7, 3, 9, 5])
    claims = claim(world, now=START + 8 * MINUTE, limit=2)
    assert [each.schedule_uid for each in claims] == [uids[3], uids[5]]
    assert [each.next_due for each in claims] == [START + 3 * MINUTE, START + 5 * MINUTE]


def test_what_is_due_exactly_now_is_due(database: Database) -> None:
    world = World(database)
    uid = world.add()
    assert claim(world, now=START + MINUTE - 1) == []
    assert [each.schedule_uid for each in claim(world, now=START + MINUTE)] == [uid]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE])
def test_only_active_schedules_are_claimed(database: Database, status: Status) -> None:
    world = World(database)
    change(world, world.add(), status=status.value)
    assert claim(world, now=START + MINUTE) == []
    assert database.read(due_rows.earliest_due) is None


def test_a_claim_carries_the_whole_position(database: Database) -> None:
    world = World(database)
    uid = world.add("nightly")
    counted = {
        "next_sequence": 5,
        "active": 2,
        "held": 1,
        "runs_born": 9,
        "fires_count": 8,
        "skipped_count": 3,
        "rotation_index": 4,
        "generation": 6,
        "revision": 7,
    }
    last = {"last_fired_at": 11, "last_run_id": uid, "last_skip_reason": "calendar", "last_skipped_at": 12}
    change(world, uid, last_dispatch_status="dispatched", **counted, **last)
    (found,) = claim(world, now=START + MINUTE)
    assert (found.namespace, found.schedule_id, found.revision, found.next_due) == (
        "default",
        "nightly",
        7,
        START + MINUTE,
    )
    position, counts = found.position, found.counts
    assert (position.decided_until, position.status, position.generation) == (START, Status.ACTIVE, 6)
    assert (position.runs_born, position.rotation_index) == (9, 4)
    assert (counts.next_sequence, counts.active, counts.held) == (5, 2, 1)
    assert (counts.fires_count, counts.skipped_count, counts.last_dispatch_status) == (8, 3, "dispatched")
    assert (counts.last_fired_at, counts.last_run_id, counts.last_skip_reason, counts.last_skipped_at) == (
        11,
        uid,
        "calendar",
        12,
    )
    assert found.due().uid == uid


def test_the_same_schedules_are_claimed_again_only_while_they_are_due(database: Database) -> None:
    world = World(database)
    uids = add_many(world, [1, 2, 3])
    change(world, uids[2], next_due=START + 40 * MINUTE)
    known = Plannings()
    again = world.write(lambda c: due_rows.claim_again(c, known, list(uids.values()), START + 5 * MINUTE))
    assert [each.schedule_uid for each in again] == [uids[1], uids[3]]


def test_the_earliest_due_time_is_found(database: Database) -> None:
    world = World(database)
    assert database.read(due_rows.earliest_due) is None
    add_many(world, [9, 4])
    assert database.read(due_rows.earliest_due) == START + 4 * MINUTE


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize("again", [False, True], ids=["claim", "claim_again"])
def test_what_one_ticker_holds_the_others_pass_over(
    database: Database, open_another: Callable[[], Database], again: bool
) -> None:
    world, other = World(database), open_another()
    uids = add_many(world, [1, 2, 3])
    now = START + 5 * MINUTE
    held, done = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        due_rows.claim(connection, Plannings(), now, 2)
        held.set()
        assert done.wait(60)

    holder = threading.Thread(target=lambda: other.write(hold))
    holder.start()
    assert held.wait(60)
    try:
        if again:
            found = world.write(lambda c: due_rows.claim_again(c, Plannings(), list(uids.values()), now))
        else:
            found = claim(world, now=now)
    finally:
        done.set()
        holder.join()
    assert [each.schedule_uid for each in found] == [uids[3]]


# ── planning texts ───────────────────────────────────────────────────────────────────────────────────


def count_statements(database: Database, work: Callable[[], object]) -> int:
    seen: list[str] = []

    def listen(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "FROM plannings" in statement:
            seen.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", listen)
    try:
        work()
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", listen)
    return len(seen)


def test_a_planning_text_is_read_once_and_shared(database: Database) -> None:
    world, known = World(database), Plannings()
    world.add("a")
    world.add("b")
    assert count_statements(database, lambda: claim(world, now=START + MINUTE, known=known)) == 1
    first, second = claim(world, now=START + MINUTE, known=known)
    assert first.planning is second.planning
    assert count_statements(database, lambda: claim(world, now=START + MINUTE, known=known)) == 0


def test_many_texts_are_read_in_pages(database: Database) -> None:
    now = START
    news = [new_schedule(f"s{n}", now=now, cron_expressions=[f"{n % 60} {n // 60} * * *"]) for n in range(501)]
    rows = [{"planning": new.schedule_uid, "text": new.revision.planning} for new in news]
    database.write(lambda c: c.execute(sa.insert(plannings), rows))
    loaded = database.read(lambda c: Plannings().load(c, [row["planning"] for row in rows]))
    assert len(loaded) == 501
    assert not any(isinstance(each, Exception) for each in loaded.values())


def test_the_memory_for_texts_is_bounded_and_still_right(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_rows, "_MAX_REMEMBERED", 2)
    world, known = World(database), Plannings()
    add_many(world, [1, 2, 3])
    for _ in range(3):
        found = claim(world, now=START + 5 * MINUTE, known=known)
        assert not any(isinstance(each.planning, Exception) for each in found)


@pytest.mark.parametrize("text", ["", "{", '{"spec": 1}', "[]", "null"], ids=repr)
def test_a_corrupt_text_is_the_trouble_of_its_schedule_alone(database: Database, text: str) -> None:
    world = World(database)
    good, bad = world.add("good"), world.add("bad")
    world.write(lambda c: c.execute(sa.insert(plannings).values(planning=bad, text=text)))
    change(world, bad, planning=bad)
    by_uid = {each.schedule_uid: each for each in claim(world, now=START + MINUTE)}
    assert not isinstance(by_uid[good].planning, Exception)
    unreadable = by_uid[bad].planning
    assert isinstance(unreadable, Exception)
    with pytest.raises(type(unreadable)):
        by_uid[bad].due()


def test_a_text_that_is_gone_is_an_error_of_its_schedule(database: Database) -> None:
    world = World(database)
    change(world, world.add(), planning=b"?" * 16)
    (found,) = claim(world, now=START + MINUTE + SECOND)
    assert isinstance(found.planning, LookupError)
