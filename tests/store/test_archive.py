"""What moves to the archive, what stays, and how it is found there; on PostgreSQL, which alone has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from run_rows import add_approval
from sqlalchemy import Connection
from store.test_retention import CUTOFF, NOW, OLD, YOUNG, count, make_run, make_schedule, put

from horarium.core.document.states import Origin, RunEventType, RunState, Status
from horarium.core.policy.limits import RetentionSubject
from horarium.features.cluster import verify_rows
from horarium.features.runs import archive_rows, merged_event_rows, open_rows, retention_rows, update_rows
from horarium.features.runs import rows as run_rows
from horarium.features.runs import rows as runs_rows
from horarium.features.runs.archive_rows import MovedRuns
from horarium.features.runs.retention_rows import Found
from horarium.features.runs.rows import RunFilter
from horarium.features.schedules.due_rows import Plannings
from horarium.features.tenants import removal_rows
from horarium.instant import DAY
from horarium.platform.database import Database, bytes_stored
from horarium.platform.database.bytes_stored import CountPosition
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.limits import Cutoffs
from horarium.platform.database.partitions import week_of
from horarium.platform.database.tables import (
    namespaces,
    run_events,
    runs,
    runs_archive,
    schedules,
    step_changes,
    unwanted_tasks,
)
from horarium.platform.ids import new_id

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)


def move(database: Database) -> MovedRuns:
    return database.write(lambda c: archive_rows.move_some(c, finished_before=CUTOFF, after=b"", looks=100))


def put_step(database: Database, root: bytes, node: str = "a", **given: Any) -> bytes:
    step = {"parent_run_id": root, "root_run_id": root, "node_id": node, "origin": "step"}
    return make_run(database, None, **(step | given))


def archived(database: Database) -> set[bytes]:
    return set(database.read(lambda c: c.execute(sa.select(runs_archive.c.run_id)).scalars().all()))


def settled_tree(database: Database, schedule_id: str = "s") -> tuple[bytes, bytes]:
    """A root and its step, which may move."""
    uid = make_schedule(database, schedule_id)
    root = make_run(database, uid, origin="manual")
    step = put_step(database, root)
    make_run(database, uid, at=YOUNG, origin="manual")
    return root, step


def test_a_tree_that_is_over_and_overtaken_moves_whole(database: Database) -> None:
    root, step = settled_tree(database)
    before = database.read(lambda c: c.execute(sa.select(runs).where(runs.c.run_id.in_([root, step]))).all())
    assert move(database) == MovedRuns(2, None, frozenset({week_of(OLD)}))
    assert archived(database) == {root, step}
    after = database.read(lambda c: c.execute(sa.select(runs_archive)).all())
    assert sorted(map(tuple, after), key=str) == sorted(map(tuple, before), key=str)
    assert move(database) == MovedRuns(0, None)


def _pending(database: Database, root: bytes, step: bytes) -> None:
    add_approval(database, step)


def _noted(database: Database, root: bytes, step: bytes) -> None:
    row = {"change_id": new_id(), "run_id": root, "cost": 0, "tokens": 0, "tool_calls": 0, "finish": False}
    put(database, step_changes, [row])


def _unwanted(database: Database, root: bytes, step: bytes) -> None:
    row = {"run_id": step, "reference": "t", "namespace": "default", "agent_id": "a", "tries": 0, "next_at": NOW}
    put(database, unwanted_tasks, [row])


def _open(database: Database, root: bytes, step: bytes) -> None:
    put_step(database, root, "b", state="running", finished_at=None)


def _young(database: Database, root: bytes, step: bytes) -> None:
    database.write(lambda c: c.execute(sa.update(runs).where(runs.c.run_id == root).values(finished_at=YOUNG)))


@pytest.mark.parametrize("hold", [_pending, _noted, _unwanted, _open, _young])
def test_a_tree_stays_while_somebody_has_something_to_do_with_it(
    database: Database, hold: Callable[[Database, bytes, bytes], None]
) -> None:
    hold(database, *settled_tree(database))
    assert move(database).rows == 0
    assert archived(database) == set()


def test_a_tree_in_somebody_s_hand_stays(database: Database, open_another: Callable[[], Database]) -> None:
    _, step = settled_tree(database)
    other = open_another()

    def hold(connection: Connection) -> MovedRuns:
        connection.execute(sa.select(runs.c.run_id).where(runs.c.run_id == step).with_for_update())
        return move(other)

    assert database.write(hold).rows == 0
    assert move(database).rows == 2


def test_the_newest_of_a_workflow_stays_though_its_schedule_is_gone(database: Database) -> None:
    uid = make_schedule(database, status=Status.DELETED)
    make_run(database, uid, workflow="report")
    plain = make_run(database, uid, origin="manual")
    move(database)
    assert archived(database) == {plain}


def test_one_at_a_time_moves(database: Database, open_another: Callable[[], Database]) -> None:
    settled_tree(database)
    settled_tree(database, "other")
    other = open_another()

    def one(connection: Connection) -> MovedRuns:
        return archive_rows.move_some(connection, finished_before=CUTOFF, after=b"", looks=100)

    assert database.write(lambda c: (one(c).rows, other.write(one).rows)) == (4, 0)


def test_whoever_reads_a_tree_does_not_see_that_it_moved(database: Database) -> None:
    root, step = settled_tree(database)
    leaf = put_step(database, root, "leaf", parent_run_id=step)
    again = make_run(database, None, rerun_of=root, origin="manual", assignee="ada", result="[1]")
    make_run(database, None, origin="manual", assignee="ada")
    told = {"event_type": "node.started", "recorded_at": OLD, "payload": "{}"}
    put(database, run_events, [{"run_id": each, "sequence": 3, **told} for each in (root, step, leaf)])

    def seen(connection: Connection) -> list[object]:
        everything = RunFilter(with_steps=True)
        filters = [
            everything,
            RunFilter(parent=root),
            RunFilter(root=root),
            RunFilter(assignee="ada"),
            RunFilter(states={RunState.SUCCEEDED}, origins={Origin.MANUAL}),
        ]
        pages: list[object] = [run_rows.page_of_namespace(connection, "default", each, limit=2) for each in filters]
        newest = run_rows.page_of_namespace(connection, "default", everything, limit=1, whole=True)
        return [
            *pages,
            newest,
            run_rows.page_of_namespace(connection, "default", everything, limit=9, before=newest.before),
            run_rows.find_all(connection, [root, leaf, new_id()]),
            run_rows.reruns(connection, root, 9),
            run_rows.steps(connection, root),
            run_rows.result_of(connection, "default", again),
            run_rows.namespace_of(connection, leaf),
            run_rows.sizes(connection, [root, step]),
            [
                merged_event_rows.merged_events(connection, run, is_root=run == root, after=None, limit=9)
                for run in (root, step)
            ],
            runs_rows.steps_of(connection, root, "default", "gone", 1),
            verify_rows.last_of_page(connection, verify_rows.Scope(), b"", 2),
        ]

    before = database.read(seen)
    roots = Found(tuple(sorted((root, again))), None)
    assert database.write(lambda c: archive_rows.move(c, roots)).rows == 4
    assert archived(database) == {root, step, leaf, again}
    assert database.read(seen) == before


# ── what is done to them there ───────────────────────────────────────────────────────────────────────


def test_an_event_finds_its_run_in_the_archive(database: Database) -> None:
    root, _ = settled_tree(database)
    move(database)
    database.write(lambda c: update_rows.add_event(c, root, RunEventType.RUN_LATE_REPORT, NOW, {"attempt": 1}))
    assert [event.sequence for event in database.read(lambda c: run_rows.events(c, root))] == [3]
    found = database.read(lambda c: run_rows.find(c, "default", root))
    assert found is not None
    assert found.next_event == 4


def test_a_key_in_the_archive_is_taken(database: Database) -> None:
    uid = make_schedule(database)
    old = make_run(database, uid, external_key="k")
    new = make_run(database, uid, at=YOUNG)
    move(database)
    assert archived(database) == {old}
    with pytest.raises(UniqueConflict, match="runs_by_callers_key"):
        database.write(lambda c: open_rows.set_callers_part(c, new, external_key="k", inputs=None))
    database.write(lambda c: open_rows.set_callers_part(c, new, external_key="other", inputs=None))


def test_a_key_is_taken_by_a_run_that_moves_meanwhile(database: Database, open_another: Callable[[], Database]) -> None:
    """Whoever wants the key has looked for it before; the run that has it moves while the row is written."""
    uid = make_schedule(database)
    make_run(database, uid, external_key="k")
    new = make_run(database, uid, at=YOUNG)
    other = open_another()

    def take(connection: Connection) -> None:
        assert run_rows.find_by_callers_key(connection, "else", "k") is None
        move(other)
        open_rows.set_callers_part(connection, new, external_key="k", inputs=None)

    with pytest.raises(UniqueConflict, match="runs_by_callers_key"):
        database.write(take)


def test_days_of_one_s_own_are_kept_in_the_archive_too(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = make_schedule(database)
    old, new = make_run(database, uid), make_run(database, uid, at=OLD + 3)
    make_run(database, uid, at=YOUNG)
    put(database, run_events, [{"run_id": old, "sequence": 3, "event_type": "x", "recorded_at": OLD, "payload": "{}"}])
    move(database)
    assert archived(database) == {old, new}
    never = Cutoffs(RetentionSubject.RUNS, None, NOW, NOW)

    def look(after: bytes = b"") -> list[bytes]:
        page = database.read(
            lambda c: archive_rows.archived_of_own_days(c, finished_before=never, after=after, looks=1)
        )
        return [*page.ids, *([] if page.after is None else look(page.after))]

    assert look() == []
    database.write(lambda c: c.execute(sa.update(namespaces).values(keep_runs_days=9)))
    assert look() == [old, new]
    monkeypatch.setattr(archive_rows, "_NAMESPACES", 1)
    others = [{"namespace": name, "description": "", "created_at": 0, "keep_runs_days": 9} for name in ("a", "z")]
    put(database, namespaces, others)
    assert look() == [old, new]
    database.write(lambda c: archive_rows.delete_archived(c, [old]))
    assert (archived(database), count(database, run_events)) == ({new}, 0)


def test_what_was_left_long_after_its_time_goes(database: Database) -> None:
    settled_tree(database)
    move(database)

    def look(before: int) -> int:
        cutoffs = Cutoffs(RetentionSubject.RUNS, before, NOW, before)
        return len(
            database.read(lambda c: archive_rows.archived_left_over(c, finished_before=cutoffs, after=b"", looks=9)).ids
        )

    assert (look(CUTOFF), look(OLD + archive_rows.LEFT_AFTER + DAY)) == (0, 1)


def test_a_namespace_goes_with_what_it_has_in_the_archive(database: Database) -> None:
    settled_tree(database)
    move(database)
    database.write(lambda c: removal_rows.mark_deleted(c, "default", now=NOW))
    known = Plannings()
    steps = 0
    while (
        database.write(lambda c: removal_rows.remove_some(c, known, "default", now=NOW))
        is not removal_rows.RemovalStep.DONE
    ):
        steps += 1
        assert steps < 100
    assert (count(database, runs), count(database, runs_archive)) == (0, 0)


def test_a_schedule_is_not_purged_while_a_run_of_it_is_in_the_archive(database: Database) -> None:
    uid = make_schedule(database, status=Status.DELETED)
    make_run(database, uid)
    move(database)
    gone = {"deleted_at": OLD}
    database.write(lambda c: c.execute(sa.update(schedules).values(gone)))
    look = retention_rows.deleted_schedules
    assert database.read(lambda c: look(c, deleted_before=CUTOFF, after=b"", looks=9)).ids == ()
    database.write(lambda c: c.execute(sa.delete(runs_archive)))
    assert database.read(lambda c: look(c, deleted_before=CUTOFF, after=b"", looks=9)).ids == (uid,)


def test_bytes_in_the_archive_count(database: Database) -> None:
    def counted(place: CountPosition = bytes_stored.BEGIN) -> int:
        piece = database.read(lambda c: bytes_stored.count_some(c, place))
        return piece.bytes.get("default", 0) + (0 if piece.after is None else counted(piece.after))

    settled_tree(database)
    before = counted()
    assert move(database).rows == 2
    assert counted() == before
