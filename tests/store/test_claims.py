"""Runs are handed out from every namespace and target, the best first, under a lease with a fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import World
from store.rows import NOW, add_run, run_row

from horarium.core.document.states import RunState
from horarium.features.runs import claim_rows
from horarium.features.runs.work_rows import ReadyTarget, RunWork
from horarium.instant import SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import runs

HERE = ReadyTarget("default", "x")


def add(database: Database, state: str = "ready", **given: Any) -> bytes:
    return add_run(database, state, **{"target": "x", **given})


def found(database: Database, limit: int = 10, *, now: int = NOW, of: ReadyTarget = HERE) -> list[bytes]:
    return [each.run_id for each in database.write(lambda c: claim_rows.candidates(c, [(of, limit)], now))]


def take(database: Database, *, now: int = NOW, limit: int = 10, owner: str = "me") -> list[RunWork]:
    def work(connection: Any) -> list[RunWork]:
        chosen = [each.run_id for each in claim_rows.candidates(connection, [(HERE, limit)], now)]
        return claim_rows.take(connection, chosen, owner=owner, now=now, lease_seconds=30)

    return database.write(work)


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def test_who_has_something_ready_is_told_in_turn(database: Database) -> None:
    for namespace in ("b", "a", "c", "a"):
        add(database, namespace=namespace)
    add(database, "queued", namespace="d")

    def look(after: str, limit: int) -> list[str]:
        return database.glance(lambda c: claim_rows.ready_namespaces(c, after=after, limit=limit))

    assert look("", 10) == ["a", "b", "c"]
    assert look("a", 10) == ["b", "c", "a"]
    assert look("c", 10) == ["a", "b", "c"]
    assert look("b", 2) == ["c", "a"]
    assert look("zzz", 2) == ["a", "b"]


def test_which_targets_have_something_ready_is_told_for_each_namespace(database: Database) -> None:
    for namespace, target in [("a", "y"), ("a", "x"), ("a", "x"), ("b", "x"), ("b", "z"), ("b", "")]:
        add(database, namespace=namespace, target=target)
    add(database, "running", namespace="a", target="w")

    def look(limit: int, **asked: str) -> list[tuple[str, str]]:
        return [(each[0], each[1]) for each in database.glance(lambda c: claim_rows.ready_targets(c, asked, limit))]

    assert sorted(look(9, a="", b="x", c="")) == [("a", "x"), ("a", "y"), ("b", "z")]
    assert look(1, a="") == [("a", "x")]
    assert look(1, a="x") == [("a", "y")]


def test_nothing_ready_is_nothing_found(database: Database) -> None:
    assert database.glance(lambda c: claim_rows.ready_namespaces(c, after="", limit=9)) == []
    assert database.write(lambda c: claim_rows.candidates(c, [], NOW)) == []
    assert database.write(lambda c: claim_rows.take(c, [], owner="me", now=NOW, lease_seconds=30)) == []


# ── candidates ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.READY}))
def test_only_ready_runs_are_candidates(database: Database, state: RunState) -> None:
    add(database, state.value)
    assert found(database) == []


@pytest.mark.parametrize(
    "given",
    [{"ready_at": NOW + 1}, {"stop_requested_at": NOW - 1}, {"namespace": "other"}, {"target": "other"}],
    ids=["not yet", "unwanted", "of another", "for another"],
)
def test_what_must_wait_or_stop_or_is_for_others_is_no_candidate(database: Database, given: dict[str, Any]) -> None:
    add(database, **given)
    assert found(database) == []


def test_priority_goes_before_age_and_the_limit_holds(database: Database) -> None:
    ids = [
        add(database, priority=priority, ready_at=NOW - age)
        for priority, age in [(0, 9), (5, 1), (0, 1), (5, 2), (-1, 99)]
    ]
    assert found(database) == [ids[3], ids[1], ids[0], ids[2], ids[4]]
    assert found(database, 2) == [ids[3], ids[1]]


def test_each_target_has_places_of_its_own(database: Database) -> None:
    for number in range(6):
        add(database, target="xy"[number % 2])
    asked = [(HERE, 2), (ReadyTarget("default", "y"), 1)]
    targets = [each.target for each in database.write(lambda c: claim_rows.candidates(c, asked, NOW))]
    assert sorted(targets) == ["x", "x", "y"]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_many_who_claim_at_once_never_share_a_run(database: Database, open_another: Callable[[], Database]) -> None:
    expected = {add(database) for _ in range(60)}
    claimed: list[list[RunWork]] = []

    def grab(one: Database) -> None:
        while works := take(one, limit=7):
            assert len(works) <= 7
            claimed.append(works)

    threads = [threading.Thread(target=grab, args=(open_another(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = [work.run_id for works in claimed for work in works]
    assert len(seen) == len(set(seen))
    # Rows that another claim held were passed over; nobody may be left behind by all.
    assert set(seen) | {work.run_id for work in take(database, limit=60)} == expected


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_what_one_claim_holds_the_others_pass_over_without_waiting(
    database: Database, open_another: Callable[[], Database]
) -> None:
    best, rest = add(database, priority=1), add(database)
    holder, other = database, open_another()

    def hold(connection: Any) -> None:
        assert [each.run_id for each in claim_rows.candidates(connection, [(HERE, 1)], NOW)] == [best]
        with other.engine.connect() as waiting:
            waiting.execute(sa.text("SET lock_timeout = '5s'"))
            assert [each.run_id for each in claim_rows.candidates(waiting, [(HERE, 2)], NOW)] == [rest]

    holder.write(hold)


# ── taking ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_taken_has_a_lease_and_a_deadline(database: Database) -> None:
    run_id = add(database, timeout_seconds=86_400)
    (work,) = take(database)
    assert (work.run_id, work.state, work.lease_epoch, work.launches) == (run_id, "launching", 1, 1)
    assert (work.deadline, work.ends_by, work.started_at) == (NOW + 86_400 * SECOND, None, NOW)
    row = run_row(database, run_id)
    assert (row.lease_owner, row.lease_until, row.state) == ("me", NOW + 30 * SECOND, "launching")


@pytest.mark.parametrize(
    ("given", "deadline", "ends_by"),
    [
        ({"timeout_seconds": 2**31 - 1}, (2**31 - 1) * SECOND, None),
        ({"timeout_seconds": 60, "attempt_ms": 250}, SECOND // 4, None),
        ({"timeout_seconds": 60, "runtime_seconds": 90}, 60 * SECOND, NOW + 90 * SECOND),
        ({"timeout_seconds": 60, "runtime_seconds": 9}, 9 * SECOND, NOW + 9 * SECOND),
        ({"timeout_seconds": 60, "runtime_seconds": 9, "ends_by": NOW + SECOND}, SECOND, NOW + SECOND),
        ({"timeout_seconds": 60, "deadline": NOW - 5}, 60 * SECOND, None),
        ({"timeout_seconds": 60, "deadline": NOW + 7, "kind": "celery"}, 7, None),
    ],
    ids=["longest", "of the policy", "whole run later", "whole run sooner", "whole run begun", "anew", "of a broker"],
)
def test_how_long_an_attempt_may_take(
    database: Database, given: dict[str, Any], deadline: int, ends_by: int | None
) -> None:
    add(database, **given)
    (work,) = take(database)
    assert (work.deadline, work.ends_by) == (NOW + deadline, ends_by)


def test_what_is_worked_on_here_runs_at_once(database: Database) -> None:
    here, there = add(database), add(database)

    def work(connection: Any) -> list[RunWork]:
        return claim_rows.take(connection, [here, there], here=[here], owner="me", now=NOW, lease_seconds=30)

    assert {each.run_id: each.state for each in database.write(work)} == {here: "running", there: "launching"}


def test_what_is_no_longer_ready_is_not_taken(database: Database) -> None:
    gone = add(database, "cancelled")
    assert database.write(lambda c: claim_rows.take(c, [gone], owner="me", now=NOW, lease_seconds=30)) == []


def test_a_taken_run_of_a_schedule_counts_as_active(database: Database) -> None:
    world = World(database)
    world.add()
    world.clock.move(60)
    world.tick()
    (run,) = world.runs()
    world.write(lambda c: claim_rows.take(c, [run.run_id], owner="me", now=world.clock.now(), lease_seconds=30))
    world.account()


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────


def renew(database: Database, works: list[RunWork], until: int) -> dict[tuple[bytes, int], claim_rows.Renewed]:
    return database.write(lambda c: claim_rows.renew(c, works, until))


def test_renewing_keeps_what_is_ours_and_tells_what_is_unwanted(database: Database) -> None:
    kept, unwanted = add(database), add(database)
    works = take(database)
    database.write(lambda c: c.execute(sa.update(runs).where(runs.c.run_id == unwanted).values(stop_requested_at=1)))
    answer = renew(database, works, NOW + 99)
    assert {key: each.stop_requested for key, each in answer.items()} == {(kept, 1): False, (unwanted, 1): True}
    assert run_row(database, kept).lease_until == NOW + 99


def test_nobody_renews_the_lease_of_another(database: Database) -> None:
    """A process that woke up late must not keep alive what a dead one has taken over."""
    run_id = add(database)
    (first,) = take(database)
    database.write(lambda c: c.execute(sa.update(runs).values(state="ready", lease_until=None)))
    (second,) = take(database, now=NOW + 60 * SECOND, owner="you")
    assert renew(database, [first], NOW + 999 * SECOND) == {}
    assert run_row(database, run_id).lease_until == NOW + 90 * SECOND
    assert list(renew(database, [first, second], NOW + 120 * SECOND)) == [(run_id, 2)]
    assert run_row(database, run_id).lease_until == NOW + 120 * SECOND


def test_a_run_without_lease_cannot_be_renewed(database: Database) -> None:
    add(database)
    (work,) = take(database)
    database.write(lambda c: c.execute(sa.update(runs).values(state="running", lease_until=None)))
    assert renew(database, [work], NOW + 99) == {}


# ── the pull queue ───────────────────────────────────────────────────────────────────────────────────


def claim_queue(
    database: Database,
    queue: str = "q",
    *,
    now: int = NOW,
    limit: int = 10,
    **asked: Any,
) -> list[RunWork]:
    return database.write(
        lambda c: claim_rows.claim_queued(
            c, namespace="default", queue=queue, owner="worker", now=now, lease_seconds=30, limit=limit, **asked
        )
    )


def test_a_worker_gets_the_oldest_of_its_queue_in_its_namespace(database: Database) -> None:
    later = NOW + SECOND
    ids = [add_run(database, "queued", queue="q", deadline=later) for _ in range(3)]
    add_run(database, "queued", queue="other", deadline=later)
    add_run(database, "queued", queue="q", deadline=later, namespace="theirs")
    add_run(database, "queued", queue="q", deadline=NOW)
    add_run(database, "queued", queue="q", deadline=later, stop_requested_at=NOW)
    works = claim_queue(database, limit=2)
    assert {work.run_id for work in works} == set(ids[:2])
    assert {(work.state, work.lease_epoch, work.started_at) for work in works} == {("running", 1, NOW)}
    assert [work.run_id for work in claim_queue(database)] == [ids[2]]
    assert claim_queue(database) == []


def test_a_worker_gets_the_highest_priority_first(database: Database) -> None:
    later = NOW + SECOND
    ids = [add(database, "queued", queue="q", deadline=later, priority=priority) for priority in (0, -5, 7)]
    assert [claim_queue(database, limit=1)[0].run_id for _ in range(3)] == [ids[2], ids[0], ids[1]]


def queue_up(database: Database, workflow: str | None, **given: Any) -> bytes:
    return add_run(database, "queued", **{"queue": "q", "deadline": NOW + SECOND, "workflow": workflow, **given})


def test_a_worker_gets_the_types_that_it_knows_in_the_order_of_all(database: Database) -> None:
    """Whoever waits for somebody who knows it keeps nobody else waiting."""
    for _ in range(5):
        queue_up(database, "foreign", priority=9)
        queue_up(database, None, priority=9)
    a1, b1, a2, b2 = (queue_up(database, each) for each in "abab")
    first = queue_up(database, "b", priority=7)
    queue_up(database, "a", namespace="theirs")
    queue_up(database, "a", queue="other")
    queue_up(database, "a", deadline=NOW)
    queue_up(database, "a", stop_requested_at=NOW)
    assert [claim_queue(database, limit=1, types=["a", "b"])[0].run_id for _ in range(2)] == [first, a1]
    assert {work.run_id for work in claim_queue(database, limit=2, types=["a", "b", "none such"])} == {b1, a2}
    assert claim_queue(database, types=["a", "none such"]) == []
    assert [work.run_id for work in claim_queue(database, types=["b", "'; --", '"'])] == [b2]
    assert len(claim_queue(database, limit=100)) == 10


@pytest.mark.parametrize("types", [None, ["a"]], ids=["any type", "by type"])
def test_an_agent_gets_what_is_assigned_to_it_or_to_nobody(database: Database, types: list[str] | None) -> None:
    mine, theirs, anybodys = (queue_up(database, "a", assignee=each) for each in ("ada", "bob", None))
    works = claim_queue(database, types=types, agent="ada", claimed_by="ada")
    assert {(work.run_id, work.claimed_by) for work in works} == {(mine, "ada"), (anybodys, "ada")}
    assert claim_queue(database, types=types, agent="") == []
    assert [work.run_id for work in claim_queue(database, types=types)] == [theirs]


def test_who_claimed_a_run_is_forgotten_when_it_is_handed_over_anew(database: Database) -> None:
    add(database, claimed_by="ada")
    assert [work.claimed_by for work in take(database)] == [None]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_workers_that_ask_at_once_get_different_runs(database: Database) -> None:
    ids = {queue_up(database, each) for each in "ab" * 20}
    ready = threading.Barrier(4)
    got: list[bytes] = []

    def ask() -> None:
        ready.wait()
        while len(got) < len(ids):
            got.extend(work.run_id for work in claim_queue(database, limit=3, types=["a", "b"]))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(got), set(got)) == (len(ids), ids)


def test_a_claim_by_type_looks_at_its_own_index(database: Database) -> None:
    queue_up(database, "a")
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if "ORDER BY priority DESC" in statement and not plans:
            plans.append("")
            words = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
            plans.extend(str(tuple(row)) for row in cursor.connection.execute(f"{words} {statement}", parameters))

    def claim(connection: Any) -> None:
        if connection.dialect.name == "postgresql":  # which reads a small table whole, and rightly
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            connection.exec_driver_sql("SET LOCAL enable_sort = off")
        sa.event.listen(connection, "before_cursor_execute", explain)
        claim_rows.claim_queued(
            connection, namespace="default", queue="q", owner="w", now=NOW, lease_seconds=30, limit=1, types=["a"]
        )

    database.write(claim)
    assert "runs_queued_by_type" in "".join(plans)
    assert "TEMP B-TREE" not in "".join(plans)
