"""What runs have said: rows of some lines each, of which the last are kept.

Lines are numbered from 1 over all attempts of a run. A number that is missing is a line that was dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.ids import born_at
from horarium.instant import Instant
from horarium.job.run_log import Batch, Line
from horarium.store.database.json_text import event_text, from_text
from horarium.store.database.set_wise import Insert
from horarium.store.tables import run_logs, runs

# What is kept goes row by row: so many rows hold all that may be kept.
_ROWS_OF_ALL = 8
_LEAST_ROW_BYTES = 1_024

_ROWS = Insert(run_logs, ("run_id", "sequence", "attempt", "bytes", "lines"))


class NewLines(NamedTuple):
    """Said by whoever has the lease of this epoch."""

    run_id: bytes
    epoch: int
    attempt: int
    batch: Batch


class KeptLine(NamedTuple):
    number: int
    attempt: int
    at: Instant
    stream: str
    text: str


def append(connection: Connection, said: Sequence[NewLines], *, most: int) -> set[bytes]:
    """The runs whose lines are kept: not those that somebody else has got, nor those that are locked just now."""
    ours = _lock(connection, said) if said else []
    append_locked(connection, ours, most=most)
    return {each.run_id for each in ours}


def append_locked(connection: Connection, ours: Sequence[NewLines], *, most: int) -> None:
    """For whoever has locked the runs, and seen that they are still those of whoever speaks."""
    if not ours:
        return
    ids = [each.run_id for each in ours]
    so_far = {row.run_id: row for row in connection.execute(_SO_FAR, {"ids": ids})}
    rows: list[tuple[bytes, int, int, int, str]] = []
    for each in ours:
        before = so_far.get(each.run_id)
        rows += _rows(each, before.sequence if before is not None else 0, most)
    _ROWS.run(connection, rows)
    total = {run_id: row.bytes for run_id, row in so_far.items()}
    for run_id, _, _, size, _ in rows:
        total[run_id] = total.get(run_id, 0) + size
    for run_id, size in total.items():
        if size > most:
            _trim(connection, run_id, most)


_SO_FAR = (
    sa.select(
        run_logs.c.run_id,
        sa.func.max(run_logs.c.sequence).label("sequence"),
        sa.cast(sa.func.sum(run_logs.c.bytes), sa.BigInteger).label("bytes"),
    )
    .where(run_logs.c.run_id.in_(sa.bindparam("ids", expanding=True)))
    .group_by(run_logs.c.run_id)
)


def _lock(connection: Connection, said: Sequence[NewLines]) -> list[NewLines]:
    """Passes over what is locked: whoever changes runs may want others of ours next, and nobody waits for lines."""
    asked = sa.select(runs.c.run_id, runs.c.lease_epoch).where(runs.c.run_id.in_([each.run_id for each in said]))
    locked = asked.order_by(runs.c.run_id).with_for_update(skip_locked=True)
    epochs = {row.run_id: row.lease_epoch for row in connection.execute(locked)}
    return [each for each in said if epochs.get(each.run_id) == each.epoch]


def _rows(said: NewLines, before: int, most: int) -> Iterator[tuple[bytes, int, int, int, str]]:
    """Several rows where it is much, so that little goes when the oldest goes."""
    room = max(_LEAST_ROW_BYTES, most // _ROWS_OF_ALL)
    number = before + said.batch.dropped
    some: list[Line] = []
    size = 0
    for line in said.batch.lines:
        if some and size + len(line.text) > room:
            yield _row(said, number, some)
            some, size = [], 0
        some.append(line)
        size += len(line.text)
        number += 1
    if some:
        yield _row(said, number, some)


def _row(said: NewLines, number: int, lines: Sequence[Line]) -> tuple[bytes, int, int, int, str]:
    text = event_text([[line.at, line.stream, line.text] for line in lines])
    return said.run_id, number, said.attempt, len(text.encode()), text


def _trim(connection: Connection, run_id: bytes, most: int) -> None:
    """The newest row stays, however long it is."""
    newest = sa.select(run_logs.c.sequence, run_logs.c.bytes).where(run_logs.c.run_id == run_id)
    left, oldest = most, None
    for row in connection.execute(newest.order_by(run_logs.c.sequence.desc())).all():
        left -= row.bytes
        if left < 0 and oldest is not None:
            break
        oldest = row.sequence
    connection.execute(sa.delete(run_logs).where(run_logs.c.run_id == run_id, run_logs.c.sequence < oldest))


def read(connection: Connection, run_id: bytes, *, after: int = 0) -> list[KeptLine]:
    """In order, those with a number greater than `after`; they are never more than is kept."""
    rows = connection.execute(
        sa.select(run_logs.c.sequence, run_logs.c.attempt, run_logs.c.lines)
        .where(run_logs.c.run_id == run_id, run_logs.c.sequence > after)
        .order_by(run_logs.c.sequence)
    )
    kept: list[KeptLine] = []
    for sequence, attempt, text in rows:
        try:
            kept += [line for line in _numbered(sequence, attempt, from_text(text)) if line.number > after]
        except (ValueError, TypeError) as wrong:
            # Those before it are missing, as what was dropped is; it says why.
            told = f"lines up to {sequence} cannot be read: {wrong}"
            kept.append(KeptLine(sequence, attempt, kept[-1].at if kept else born_at(run_id), "stderr", told))
    return kept


def _numbered(last: int, attempt: int, lines: Any) -> list[KeptLine]:
    """Raises TypeError or ValueError for what are no lines."""
    first = last - len(lines) + 1
    numbered = [KeptLine(first + place, attempt, *line) for place, line in enumerate(lines)]
    if not all((type(each.at), type(each.stream), type(each.text)) == (int, str, str) for each in numbered):
        raise ValueError("a line is a time, a stream and a text")
    return numbered
