"""Lines of runs: numbered, kept for whoever has the lease, the last of them, and gone with the run."""

from __future__ import annotations

from store.rows import NOW, add_run

from horarium.features.runs import update_rows
from horarium.features.runs.retention_rows import delete_runs
from horarium.features.runs.update_rows import NewLines
from horarium.platform.database import Database
from horarium.platform.run_log import Batch, LogLine, Stream


def said(run_id: bytes, *texts: str, epoch: int = 0, attempt: int = 0, dropped: int = 0) -> NewLines:
    lines = tuple(LogLine(NOW + place, Stream.STDOUT, text) for place, text in enumerate(texts))
    return NewLines(run_id, epoch, attempt, Batch(dropped, lines, 0))


def append(database: Database, *new: NewLines, most: int = 65_536) -> set[bytes]:
    return database.write(lambda c: update_rows.append_lines(c, new, most=most))


def kept(database: Database, run_id: bytes, after: int = 0) -> list[tuple[int, int, str]]:
    found = database.read(lambda c: update_rows.read_lines(c, run_id, after=after))
    return [(line.number, line.attempt, line.text) for line in found]


def test_lines_are_numbered_over_all_attempts(database: Database) -> None:
    one, other = add_run(database, "running"), add_run(database, "running")
    assert append(database, said(one, "a", "b"), said(other, "x")) == {one, other}
    append(database, said(one, "c", "ç\ufffd'\"\\", attempt=1, dropped=3))
    assert kept(database, one) == [(1, 0, "a"), (2, 0, "b"), (6, 1, "c"), (7, 1, "ç\ufffd'\"\\")]
    assert kept(database, one, after=1) == [(2, 0, "b"), (6, 1, "c"), (7, 1, "ç\ufffd'\"\\")]
    assert kept(database, one, after=7) == []
    assert kept(database, other) == [(1, 0, "x")]


def test_who_has_lost_the_lease_is_not_heard(database: Database) -> None:
    run_id = add_run(database, "running", lease_epoch=2)
    assert append(database, said(run_id, "late", epoch=1)) == set()
    assert append(database, said(b"\0" * 16, "of nobody")) == set()
    assert append(database, said(run_id, "mine", epoch=2)) == {run_id}
    assert kept(database, run_id) == [(1, 0, "mine")]


def test_the_last_lines_are_kept(database: Database) -> None:
    run_id = add_run(database, "running")
    for first in range(0, 400, 20):
        texts = (f"line {number:03} {'x' * 50}" for number in range(first, first + 20))
        append(database, said(run_id, *texts), most=8_192)
    numbers = [number for number, _, _ in kept(database, run_id)]
    assert numbers == list(range(numbers[0], 401))
    assert 60 < len(numbers) < 100
    append(database, said(run_id, "the end"), most=100)
    assert kept(database, run_id) == [(401, 0, "the end")]


def test_lines_go_with_their_run(database: Database) -> None:
    gone, stays = add_run(database, "succeeded"), add_run(database, "succeeded")
    append(database, said(gone, "a"), said(stays, "b"))
    assert database.write(lambda c: delete_runs(c, [gone])).whole
    assert (kept(database, gone), kept(database, stays)) == ([], [(1, 0, "b")])
