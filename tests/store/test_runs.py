"""Runs are handed out under a lease, answered under its fence, and found again when their holder is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import START, World
from sqlalchemy import Connection

from horarium.ids import new_id
from horarium.instant import SECOND
from horarium.schedule.event import RunEventType
from horarium.schedule.run import FINAL, RunState
from horarium.store import runs as store
from horarium.store.database import Database
from horarium.store.runs import Work
from horarium.store.tables import approvals, run_events, runs

NOW = START


def add(database: Database, state: str = "ready", **given: Any) -> bytes:
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in runs.columns if not column.nullable}
    row |= {"run_id": new_id(), "namespace": "default", "origin": "manual", "state": state, "kind": "http"}
    row |= {"timeout_seconds": 3_600, "ready_at": NOW, "delivery": "at_least_once", "next_event": 3} | given
    database.write(lambda c: c.execute(sa.insert(runs).values(**row)))
    return bytes(row["run_id"])


def claim(database: Database, *, now: int = NOW, limit: int = 10, owner: str = "me", full: Any = ()) -> list[Work]:
    return database.write(
        lambda c: store.claim_ready(c, owner=owner, now=now, lease_seconds=30, limit=limit, full=full)
    )


def claim_queue(database: Database, queue: str = "q", *, now: int = NOW, limit: int = 10) -> list[Work]:
    return database.write(
        lambda c: store.claim_queued(
            c, namespace="default", queue=queue, owner="worker", now=now, lease_seconds=30, limit=limit
        )
    )


def row(database: Database, run_id: bytes) -> Any:
    return database.read(lambda c: c.execute(sa.select(runs).where(runs.c.run_id == run_id)).one())


def again(database: Database, work: Work, **given: Any) -> bool:
    values: dict[str, Any] = {"ready_at": NOW + 5, "attempt": 1, "launches": 0, "busy_since": None, "error": "why"}
    return database.write(lambda c: store.try_again(c, work, **(values | given)))


def wait(database: Database, work: Work, *, queued: bool = False, reference: str | None = "ref") -> bool:
    return bool(database.write(lambda c: store.wait_for_reports(c, [(work, reference, queued)], NOW + 3)))


# ── the claim ────────────────────────────────────────────────────────────────────────────────────────


def test_a_claim_is_a_lease_with_a_deadline(database: Database) -> None:
    run_id = add(database, timeout_seconds=86_400)
    (work,) = claim(database)
    assert (work.run_id, work.state, work.lease_epoch, work.launches) == (run_id, "launching", 1, 1)
    assert work.deadline == NOW + 86_400 * SECOND
    found = row(database, run_id)
    assert (found.lease_owner, found.lease_until, found.state) == ("me", NOW + 30 * SECOND, "launching")


def test_the_longest_timeout_has_a_deadline_too(database: Database) -> None:
    add(database, timeout_seconds=2**31 - 1)
    assert claim(database)[0].deadline == NOW + (2**31 - 1) * SECOND


def test_a_deadline_once_set_stays(database: Database) -> None:
    add(database)
    (work,) = claim(database)
    again(database, work)
    (second,) = claim(database, now=NOW + 100 * SECOND)
    assert (second.deadline, second.lease_epoch, second.launches) == (work.deadline, 2, 1)


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.READY}))
def test_only_ready_runs_are_claimed(database: Database, state: RunState) -> None:
    add(database, state.value)
    assert claim(database) == []


@pytest.mark.parametrize(
    "given",
    [{"ready_at": NOW + 1}, {"stop_requested_at": NOW - 1}],
    ids=["not yet", "unwanted"],
)
def test_what_must_wait_or_stop_is_not_claimed(database: Database, given: dict[str, Any]) -> None:
    add(database, **given)
    assert claim(database) == []


def test_priority_goes_before_age_and_the_limit_holds(database: Database) -> None:
    ids = [
        add(database, priority=priority, ready_at=NOW - age)
        for priority, age in [(0, 9), (5, 1), (0, 1), (5, 2), (-1, 99)]
    ]
    assert {work.run_id for work in claim(database, limit=3)} == {ids[1], ids[3], ids[0]}
    assert {work.run_id for work in claim(database, limit=3)} == {ids[2], ids[4]}


def test_a_kind_without_a_free_hand_is_passed_over(database: Database) -> None:
    add(database, kind="http")
    other = add(database, kind="python")
    assert [work.run_id for work in claim(database, full=["http", "pull"])] == [other]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_many_who_claim_at_once_never_share_a_run_nor_pass_their_limit(
    database: Database, open_another: Callable[[], Database]
) -> None:
    expected = {add(database) for _ in range(60)}
    claimed: list[list[Work]] = []

    def grab(one: Database) -> None:
        while works := claim(one, limit=7):
            assert len(works) <= 7
            claimed.append(works)

    threads = [threading.Thread(target=grab, args=(open_another(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [work.run_id for works in claimed for work in works]
    assert len(found) == len(set(found))
    # Rows that another claim held were passed over; nobody may be left behind by all.
    assert set(found) | {work.run_id for work in claim(database, limit=60)} == expected


# ── answers under the fence ──────────────────────────────────────────────────────────────────────────


def test_accepted_runs_wait_for_their_report(database: Database) -> None:
    run_id = add(database)
    (work,) = claim(database)
    assert wait(database, work)
    found = row(database, run_id)
    assert (found.state, found.reference, found.started_at) == ("running", "ref", NOW + 3)
    assert (found.lease_owner, found.lease_until, found.deadline) == (None, None, work.deadline)


@pytest.mark.parametrize(("own", "queue"), [(None, "ref"), ("mine", "mine")], ids=["named by target", "own"])
def test_queued_runs_wait_on_their_queue(database: Database, own: str | None, queue: str) -> None:
    run_id = add(database, queue=own)
    (work,) = claim(database)
    assert wait(database, work, queued=True)
    found = row(database, run_id)
    assert (found.state, found.queue, found.started_at) == ("queued", queue, None)


def test_a_retry_goes_back_with_its_numbers(database: Database) -> None:
    run_id = add(database)
    (work,) = claim(database)
    assert again(database, work, attempt=2, launches=1, busy_since=NOW, error="x\x00" + "y" * 5_000)
    found = row(database, run_id)
    assert (found.state, found.ready_at, found.attempt, found.launches) == ("ready", NOW + 5, 2, 1)
    assert (found.busy_since, found.lease_owner, found.lease_until) == (NOW, None, None)
    assert (found.error[:3], len(found.error)) == ("x�y", 4_000)


def test_work_in_this_process_is_running_under_its_lease(database: Database) -> None:
    run_id = add(database)
    (work,) = claim(database)
    database.write(lambda c: store.mark_running(c, [work], NOW + 1))
    found = row(database, run_id)
    assert (found.state, found.lease_owner, found.started_at) == ("running", "me", NOW + 1)
    database.write(lambda c: store.mark_running(c, [], NOW + 2))
    assert row(database, run_id) == found


ANSWERS: dict[str, Callable[[Database, Work], bool]] = {
    "wait_for_report": wait,
    "try_again": again,
}


@pytest.mark.parametrize("answer", sorted(ANSWERS))
def test_an_answer_from_an_older_lease_changes_nothing(database: Database, answer: str) -> None:
    run_id = add(database)
    (first,) = claim(database)
    again(database, first)
    (second,) = claim(database, now=NOW + 60 * SECOND, owner="you")
    before = row(database, run_id)
    assert not ANSWERS[answer](database, first)
    assert row(database, run_id) == before
    assert ANSWERS[answer](database, second)


@pytest.mark.parametrize("answer", sorted(ANSWERS))
@pytest.mark.parametrize("state", ["succeeded", "cancelled", "terminated"])
def test_an_answer_after_the_end_changes_nothing(database: Database, answer: str, state: str) -> None:
    run_id = add(database)
    (work,) = claim(database)
    database.write(lambda c: c.execute(sa.update(runs).values(state=state)))
    assert not ANSWERS[answer](database, work)
    assert row(database, run_id).state == state


def test_an_acceptance_still_counts_while_nobody_else_has_begun(database: Database) -> None:
    run_id = add(database)
    (work,) = claim(database)
    again(database, work)  # as the janitor does when the lease has run out
    assert wait(database, work)
    assert row(database, run_id).state == "running"


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────


def renew(database: Database, works: list[Work], until: int) -> dict[bytes, store.Renewed]:
    return database.write(lambda c: store.renew(c, works, until))


def test_renewing_keeps_what_is_ours_and_tells_what_is_unwanted(database: Database) -> None:
    kept, unwanted = add(database), add(database)
    works = claim(database)
    database.write(lambda c: c.execute(sa.update(runs).where(runs.c.run_id == unwanted).values(stop_requested_at=1)))
    answer = renew(database, works, NOW + 99)
    assert {run_id: each.stop_requested for run_id, each in answer.items()} == {kept: False, unwanted: True}
    assert row(database, kept).lease_until == NOW + 99


def test_nobody_renews_the_lease_of_another(database: Database) -> None:
    """A process that woke up late must not keep alive what a dead one has taken over."""
    run_id = add(database)
    (first,) = claim(database)
    again(database, first)
    (second,) = claim(database, now=NOW + 60 * SECOND, owner="you")
    assert renew(database, [first], NOW + 999 * SECOND) == {}
    assert row(database, run_id).lease_until == NOW + 90 * SECOND
    assert list(renew(database, [first, second], NOW + 120 * SECOND)) == [run_id]
    assert row(database, run_id).lease_until == NOW + 120 * SECOND


def test_a_run_without_lease_cannot_be_renewed(database: Database) -> None:
    add(database)
    (work,) = claim(database)
    wait(database, work)
    assert renew(database, [work], NOW + 99) == {}


def test_what_was_not_begun_goes_back_untouched(database: Database) -> None:
    launching, running, ended = add(database), add(database), add(database)
    works = {work.run_id: work for work in claim(database)}
    database.write(lambda c: store.mark_running(c, [works[running]], NOW))
    database.write(lambda c: c.execute(runs.update().where(runs.c.run_id == ended).values(state="cancelled")))
    database.write(lambda c: store.release_leases(c, list(works.values())))
    for run_id in (launching, running):
        found = row(database, run_id)
        assert (found.state, found.launches, found.lease_owner, found.lease_until) == ("ready", 0, None, None)
        assert found.started_at is None
    assert row(database, ended).state == "cancelled"


def test_lost_leases_are_found_the_longest_lost_first(database: Database) -> None:
    first, second = add(database), add(database)
    claim(database, limit=1)
    claim(database, now=NOW + SECOND, limit=1)
    lost = database.read(lambda c: store.lost_leases(c, NOW + 30 * SECOND, 10))
    assert lost == []  # exactly at its end a lease still holds
    lost = database.read(lambda c: store.lost_leases(c, NOW + 40 * SECOND, 10))
    assert [work.run_id for work in lost] == [first, second]
    limited = database.read(lambda c: store.lost_leases(c, NOW + 40 * SECOND, 1))
    assert [work.run_id for work in limited] == [first]


def test_a_lease_that_was_renewed_since_is_not_lost(database: Database) -> None:
    add(database)
    (work,) = claim(database)
    later = NOW + 40 * SECOND
    assert database.write(lambda c: store.has_lost_lease(c, work, later))
    renew(database, [work], later + SECOND)
    assert not database.write(lambda c: store.has_lost_lease(c, work, later))


# ── what time overtakes ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", sorted(RunState))
def test_deadlines_end_what_has_been_handed_out(database: Database, state: RunState) -> None:
    run_id = add(database, state.value, deadline=NOW)
    late = database.read(lambda c: store.past_deadline(c, NOW, 10))
    handed_out = state in {RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING}
    assert [work.run_id for work in late] == ([run_id] if handed_out else [])
    assert database.read(lambda c: store.past_deadline(c, NOW - 1, 10)) == []


@pytest.mark.parametrize("state", sorted(RunState))
def test_the_unwanted_are_found_by_who_can_end_them(database: Database, state: RunState) -> None:
    add(database, state.value, stop_requested_at=NOW)
    add(database, state.value)
    here = database.read(lambda c: store.asked_to_stop(c, 10))
    there = database.read(lambda c: store.taken_and_unwanted(c, 10))
    assert len(here) == (state in {RunState.HELD, RunState.AWAITING_APPROVAL, RunState.READY})
    assert len(there) == (state in {RunState.QUEUED, RunState.RUNNING})


def test_what_somebody_holds_is_his_to_stop(database: Database) -> None:
    add(database, "running", stop_requested_at=NOW, lease_until=NOW + 1)
    assert database.read(lambda c: store.taken_and_unwanted(c, 10)) == []


def test_unanswered_approvals_are_closed_once(database: Database) -> None:
    run_id, approval_id = add(database, "awaiting_approval"), new_id()
    base = {"namespace": "default", "input_hash": "x", "gates": "[]", "requested_at": 1}
    rows = [
        base | {"approval_id": approval_id, "run_id": run_id, "decision": "pending", "expires_at": NOW},
        base | {"approval_id": new_id(), "run_id": new_id(), "decision": "pending", "expires_at": NOW + 1},
        base | {"approval_id": new_id(), "run_id": new_id(), "decision": "approved", "expires_at": NOW - 1},
    ]
    database.write(lambda c: c.execute(sa.insert(approvals), rows))
    (late,) = database.read(lambda c: store.unanswered_approvals(c, NOW, 10))
    assert (late.approval_id, late.run_id) == (approval_id, run_id)
    assert database.write(lambda c: store.expire_approval(c, approval_id, NOW))
    assert not database.write(lambda c: store.expire_approval(c, approval_id, NOW))


# ── the pull queue and following ─────────────────────────────────────────────────────────────────────


def test_a_worker_gets_the_oldest_of_its_queue_in_its_namespace(database: Database) -> None:
    later = NOW + SECOND
    ids = [add(database, "queued", queue="q", deadline=later) for _ in range(3)]
    add(database, "queued", queue="other", deadline=later)
    add(database, "queued", queue="q", deadline=later, namespace="theirs")
    add(database, "queued", queue="q", deadline=NOW)
    add(database, "queued", queue="q", deadline=later, stop_requested_at=NOW)
    works = claim_queue(database, limit=2)
    assert {work.run_id for work in works} == set(ids[:2])
    assert {(work.state, work.lease_epoch, work.started_at) for work in works} == {("running", 1, NOW)}
    assert [work.run_id for work in claim_queue(database)] == [ids[2]]
    assert claim_queue(database) == []


def test_only_targets_that_can_be_asked_are_followed(database: Database) -> None:
    followed = add(database, "running", kind="a2a")
    add(database, "running", kind="http")
    add(database, "running", kind="a2a", ready_at=NOW + 1)
    add(database, "running", kind="a2a", lease_until=NOW + 1)
    add(database, "queued", kind="a2a")
    assert database.write(lambda c: store.to_follow(c, [], NOW, 10)) == []
    (work,) = database.write(lambda c: store.to_follow(c, ["a2a"], NOW, 10))
    assert work.run_id == followed
    database.write(lambda c: store.ask_later(c, work, NOW + 9))
    assert {each.run_id for each in database.write(lambda c: store.to_follow(c, ["a2a"], NOW + 5, 10))} != {followed}


def test_a_single_run_is_found_with_and_without_lock(database: Database) -> None:
    run_id = add(database)
    for lock in (False, True):
        work = database.write(lambda c, lock=lock: store.find_work(c, run_id, lock=lock))
        assert work is not None
        assert work.run_id == run_id
    assert database.read(lambda c: store.find_work(c, new_id())) is None
    assert database.read(lambda c: store.current_state(c, run_id)) == "ready"
    assert database.read(lambda c: store.current_state(c, new_id())) is None


def test_the_events_of_a_run_are_numbered_without_gaps(database: Database) -> None:
    run_id = add(database)

    def write(connection: Connection) -> None:
        for number in range(3):
            store.add_event(connection, run_id, RunEventType.RUN_RETRIED, NOW, {"n": number})

    database.write(write)
    stored = database.read(lambda c: c.execute(sa.select(run_events).order_by(run_events.c.sequence)).all())
    assert [(each.sequence, each.payload) for each in stored] == [(3, '{"n":0}'), (4, '{"n":1}'), (5, '{"n":2}')]


def test_the_world_of_runs_is_closed_under_its_states() -> None:
    """If a state is added, the tables above must say what becomes of it."""
    assert set(RunState) - FINAL == {
        RunState.HELD,
        RunState.AWAITING_APPROVAL,
        RunState.READY,
        RunState.LAUNCHING,
        RunState.QUEUED,
        RunState.RUNNING,
    }


def test_a_claimed_schedule_run_counts_as_active(database: Database) -> None:
    world = World(database)
    world.add()
    world.clock.move(60)
    world.tick()
    claim(database, now=world.clock.now())
    world.account()
