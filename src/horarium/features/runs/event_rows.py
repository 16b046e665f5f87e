"""SQL of the events and log lines of runs.

The row of a run hands out the numbers of its events, and no other module writes them. A page has the events of a run
and of all its steps, in the order of recording. Log lines are stored some to a row, of which the last are kept. They
are numbered from 1 over all attempts of a run; a missing number is a line that was dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection, Table, bindparam, func, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from horarium.core.document.event import RunEventType
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.columns import event_text, from_text, object_from_text
from horarium.platform.database.statements import RowInsert
from horarium.platform.database.tables import run_events, run_logs, runs, runs_archive
from horarium.platform.ids import created_at
from horarium.platform.run_log import Batch, LogLine

NewRunEvent: TypeAlias = tuple[bytes, int, RunEventType, Mapping[str, Any]]
"""The run, the number of the event, what happened, and the payload."""

_ROWS = RowInsert(run_events, ("run_id", "sequence", "event_type", "recorded_at", "payload"))


def _number(of: Table) -> ReturningUpdate[int]:
    own = update(of).where(of.c.run_id == bindparam("id")).values(next_event=of.c.next_event + 1)
    return own.returning(of.c.next_event - 1)


_NUMBER, _ARCHIVED_NUMBER = _number(runs), _number(runs_archive)


def append_events(connection: Connection, events: Iterable[NewRunEvent], *, now: Instant) -> None:
    """The caller has taken the numbers, in the statement that changes the runs."""
    rows = [(run_id, number, kind.value, now, event_text(payload)) for run_id, number, kind, payload in events]
    _ROWS.run(connection, rows)


def add_event(
    connection: Connection, run_id: bytes, event_type: RunEventType, now: Instant, payload: Mapping[str, Any]
) -> None:
    """One that changes nothing else of the run: it takes its number here."""
    number = connection.execute(_NUMBER, {"id": run_id}).scalar_one_or_none()
    if number is None and run_archive.has_archive(connection):
        number = connection.execute(_ARCHIVED_NUMBER, {"id": run_id}).scalar_one_or_none()
    if number is None:
        return  # it has just been deleted, and what was said of it with it
    append_events(connection, [(run_id, number, event_type, payload)], now=now)


def count_events(connection: Connection, run_id: bytes, event_type: RunEventType) -> int:
    """Count events of one type in a run's stream."""
    own = (run_events.c.run_id == run_id, run_events.c.event_type == event_type.value)
    return int(connection.execute(select(func.count()).select_from(run_events).where(*own)).scalar_one())


_MEMBER = (runs.c.run_id, runs.c.node_id, runs.c.created_at)


class EventPlace(NamedTuple):
    """Where an event stands among those of all steps: what was recorded at the same moment is told run by run."""

    recorded_at: Instant
    run_id: bytes
    sequence: int


@dataclass(frozen=True, slots=True)
class StreamRow:
    run_id: bytes
    node_id: str | None
    sequence: int
    event_type: str
    recorded_at: Instant
    payload: dict[str, Any] | None


def merged_events(
    connection: Connection, run_id: bytes, *, is_root: bool, after: EventPlace | None, limit: int
) -> list[StreamRow]:
    """Stored events of the run, and for all runs below it also their creation, which is read from their row.

    The payload of that event is the same for all of them and is left to the caller.
    """
    family = (_of_root if is_root else _below)(run_id)
    stored = sa.select(
        run_events.c.run_id,
        family.c.node_id,
        run_events.c.sequence,
        run_events.c.event_type,
        run_events.c.recorded_at,
        run_events.c.payload,
    ).join_from(family, run_events, run_events.c.run_id == family.c.run_id)
    births = sa.select(
        family.c.run_id,
        family.c.node_id,
        sa.literal(1, sa.Integer),
        sa.literal(RunEventType.RUN_CREATED.value, sa.Text),
        family.c.created_at,
        sa.null(),
    ).where(family.c.run_id != run_id)
    both = sa.union_all(stored, births).subquery("told")
    key = both.c.recorded_at, both.c.run_id, both.c.sequence
    statement = sa.select(both).order_by(*key).limit(limit)
    if after is not None:
        statement = statement.where(sa.tuple_(*key) > sa.tuple_(*(sa.literal(part) for part in after)))
    return [
        StreamRow(run_id, node_id, sequence, kind, at, None if payload is None else object_from_text(payload))
        for run_id, node_id, sequence, kind, at, payload in run_archive.rows_of_tree(connection, statement, run_id)
    ]


def _itself(run_id: bytes) -> sa.Select[Any]:
    return sa.select(*_MEMBER).where(runs.c.run_id == run_id)


def _of_root(run_id: bytes) -> sa.CTE:
    """Every step names its root, however deep it is; the condition of the index stands there as text."""
    below = sa.select(*_MEMBER).where(sa.text("root_run_id IS NOT NULL"), runs.c.root_run_id == run_id)
    return sa.union(_itself(run_id), below).cte("family")


def _below(run_id: bytes) -> sa.CTE:
    """From a run inside a workflow downwards, as deep as sub-workflows go."""
    family = _itself(run_id).cte("family", recursive=True)
    child = runs.alias("child")
    columns = sa.select(*(child.c[each.name] for each in _MEMBER))
    return family.union(columns.join_from(family, child, child.c.parent_run_id == family.c.run_id))


# What is kept goes row by row: so many rows hold all that may be kept.
_ROWS_OF_ALL = 8
_LEAST_ROW_BYTES = 1_024

_LINE_ROWS = RowInsert(run_logs, ("run_id", "sequence", "attempt", "bytes", "lines"))


class NewLines(NamedTuple):
    """Said by whoever has the lease of this epoch."""

    run_id: bytes
    epoch: int
    attempt: int
    batch: Batch


class LogLineRow(NamedTuple):
    number: int
    attempt: int
    at: Instant
    stream: str
    text: str


def append_lines(connection: Connection, said: Sequence[NewLines], *, most: int) -> set[bytes]:
    """The runs whose lines are kept: not those that somebody else has got, nor those that are locked just now."""
    ours = _lock(connection, said) if said else []
    append_locked_lines(connection, ours, most=most)
    return {each.run_id for each in ours}


def append_locked_lines(connection: Connection, ours: Sequence[NewLines], *, most: int) -> None:
    """For whoever has locked the runs, and seen that they are still those of whoever speaks."""
    if not ours:
        return
    ids = [each.run_id for each in ours]
    so_far = {row.run_id: row for row in connection.execute(_SO_FAR, {"ids": ids})}
    rows: list[tuple[bytes, int, int, int, str]] = []
    for each in ours:
        before = so_far.get(each.run_id)
        rows += _rows(each, before.sequence if before is not None else 0, most)
    _LINE_ROWS.run(connection, rows)
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
    some: list[LogLine] = []
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


def _row(said: NewLines, number: int, lines: Sequence[LogLine]) -> tuple[bytes, int, int, int, str]:
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


def read_lines(connection: Connection, run_id: bytes, *, after: int = 0) -> list[LogLineRow]:
    """In order, those with a number greater than `after`; they are never more than is kept."""
    rows = connection.execute(
        sa.select(run_logs.c.sequence, run_logs.c.attempt, run_logs.c.lines)
        .where(run_logs.c.run_id == run_id, run_logs.c.sequence > after)
        .order_by(run_logs.c.sequence)
    )
    kept: list[LogLineRow] = []
    for sequence, attempt, text in rows:
        try:
            kept += [line for line in _numbered(sequence, attempt, from_text(text)) if line.number > after]
        except (ValueError, TypeError) as wrong:
            # Those before it are missing, as what was dropped is; it says why.
            told = f"lines up to {sequence} cannot be read: {wrong}"
            kept.append(LogLineRow(sequence, attempt, kept[-1].at if kept else created_at(run_id), "stderr", told))
    return kept


def _numbered(last: int, attempt: int, lines: Any) -> list[LogLineRow]:
    """Raises TypeError or ValueError for what are no lines."""
    first = last - len(lines) + 1
    numbered = [LogLineRow(first + place, attempt, *line) for place, line in enumerate(lines)]
    if not all((type(each.at), type(each.stream), type(each.text)) == (int, str, str) for each in numbered):
        raise ValueError("a line is a time, a stream and a text")
    return numbered
