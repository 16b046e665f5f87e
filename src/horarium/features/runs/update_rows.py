"""SQL that updates runs, and writes and reads their events and logs.

There is one UPDATE for each kind of change. The caller holds the lock on the rows. `transition_rows.py` updates the
schedule.

The row of a run numbers its events, and no other module writes them. A page has the events of a run and of all its
steps, in the order of recording. A row has several log lines, and only the last lines are stored. They are numbered
from 1 over all attempts of a run; a missing number is a line that was dropped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection, Table, bindparam, func, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from horarium.core.decision.run_policies import payers
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import agent_in, connection_in
from horarium.core.document.reader import CELERY
from horarium.core.document.states import CommandContext, NoticeType, RunEventType, RunState, final_event
from horarium.core.lifecycle.live_run import is_left_behind, is_to_be_ended
from horarium.core.lifecycle.outcome import (
    Admit,
    Begin,
    Block,
    Change,
    End,
    Nothing,
    Progress,
    RetryLater,
    WaitForTarget,
)
from horarium.features.agents import task_rows
from horarium.features.agents.task_rows import UnwantedTask
from horarium.features.approvals import rows as approval_rows
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.runs.work_rows import RunWork
from horarium.instant import DAY, SECOND, Instant, rfc3339_or_none, to_rfc3339
from horarium.platform.database import run_archive, statements
from horarium.platform.database.statements import (
    RowInsert,
    RowUpdate,
    event_text,
    from_text,
    object_from_text,
    storable_text,
)
from horarium.platform.database.tables import run_events, run_logs, runs, runs_archive
from horarium.platform.ids import created_at, id_text
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


# Of what a target said, characters: on the run, and in the feed.
MAX_ERROR = 4_000
_MAX_EVENT_ERROR = 1_000

BY_ITSELF: Mapping[bytes, CommandContext] = MappingProxyType({})
_UNAPPROVED = frozenset({RunState.REJECTED, RunState.EXPIRED})
_LEASE = "lease_epoch lease_owner lease_until"
_USED = "cost tokens tool_calls"
_EARLIER = "earlier_cost earlier_tokens earlier_tool_calls"


def _update(names: str) -> RowUpdate:
    return RowUpdate(runs, ["run_id", "state", *names.split(), "next_event"])


# What each kind of change may touch.
_UPDATES: dict[type[Change], RowUpdate] = {
    End: _update(f"{_LEASE} attempt started_at finished_at result error error_class cause {_USED}"),
    WaitForTarget: _update(f"{_LEASE} reference queue started_at"),
    RetryLater: _update(
        f"{_LEASE} ready_at deadline ends_by attempt launches busy_since reference heard started_at error error_class "
        f"{_USED} {_EARLIER}"
    ),
    Begin: _update("reference started_at"),
    Progress: _update(f"started_at {_USED}"),
    Block: _update(f"{_LEASE} deadline needs_approval approval_id reference"),
    Admit: _update("ready_at approval_id inputs gates_passed launches busy_since heard"),
}


def cut_error(error: str | None) -> str | None:
    return None if error is None else storable_text(error, MAX_ERROR)


def write_changes(
    connection: Connection,
    changed: Sequence[tuple[RunWork, Change]],
    now: Instant,
    by: Mapping[bytes, CommandContext] = BY_ITSELF,
) -> None:
    """Each with its run as it was. `by` are those who asked for it, by run; what happens by itself has nobody."""
    by_kind: defaultdict[type[Change], list[tuple[Any, ...]]] = defaultdict(list)
    told: list[NewRunEvent] = []
    finished: list[tuple[RunWork, End]] = []
    freed = Counter[statements.Counter]()
    for run, change in changed:
        said = _events(run, change, by.get(run.run_id))
        values = _after(run, change, now)
        named = {**values, "run_id": run.run_id, "next_event": run.next_event + len(said)}
        by_kind[type(change)].append(tuple(named[name] for name in _UPDATES[type(change)].columns))
        told += [(run.run_id, run.next_event + place, *event) for place, event in enumerate(said)]
        if isinstance(change, End):
            freed.update(_freed(run, change))
            if run.parent_run_id is None:
                finished.append((run, change))
    for change_kind, rows in by_kind.items():
        _UPDATES[change_kind].run(connection, rows)
    append_events(connection, told, now=now)
    approval_rows.close_unanswered(connection, changed, now)
    history_rows.append_notices(connection, _finished_runs(connection, finished, now), now=now)
    statements.add_to_counters(connection, freed)
    task_rows.add_unwanted(connection, [task for each in changed if (task := _left_behind(*each)) is not None], now)


def _left_behind(run: RunWork, change: Change) -> UnwantedTask | None:
    """Work that an agent, or a worker behind a broker, still does for a run that has ended here."""
    if run.reference is None:
        return None
    if connection_in(run.target) is not None:
        ended = is_to_be_ended(change, running=run.state == RunState.RUNNING)
        return UnwantedTask(run.run_id, run.reference, run.namespace, run.target) if ended else None
    agent_id = agent_in(run.target)
    if agent_id is None or not is_left_behind(change):
        return None
    return UnwantedTask(run.run_id, run.reference, run.namespace, agent_id)


def _after(run: RunWork, change: Change, now: Instant) -> dict[str, Any]:
    """The columns that the change touches, as they will be."""
    match change:
        case End():
            return _ended(run, change, now)
        case RetryLater():
            return _again(run, change)
        case WaitForTarget(reference, queued):
            return {
                "state": (RunState.QUEUED if queued else RunState.RUNNING).value,
                **_released(run.lease_epoch),
                "reference": reference,
                "queue": reference if queued and run.queue is None and run.kind != CELERY.name else run.queue,
                "started_at": None if queued else run.started_at or now,
            }
        case Begin(reference, held):
            state = RunState.RUNNING if held else RunState.READY
            return {"state": state.value, "started_at": run.started_at or now, "reference": reference}
        case Progress(used):
            return {"state": RunState.RUNNING.value, "started_at": run.started_at or now, **used._asdict()}
        case Block():
            return {
                "state": RunState.AWAITING_APPROVAL.value,
                **_released(run.lease_epoch + 1),
                "deadline": None,
                "needs_approval": True,
                "approval_id": None,
                "reference": change.reference or run.reference,
            }
        case Admit():
            return _admitted(run, change)
        case Nothing():
            raise AssertionError("nothing has changed")


def _admitted(run: RunWork, admit: Admit) -> dict[str, Any]:
    begun = run.started_at is not None or run.launches > 0
    return {
        "state": RunState.READY.value,
        "ready_at": max(admit.ready_at, run.due) if not begun else admit.ready_at,
        "approval_id": admit.approval_id,
        "inputs": run.inputs if admit.inputs is None else event_text(admit.inputs),
        # What comes after a gate is another delivery than what came before it, and has a key of its own.
        "gates_passed": run.gates_passed + begun,
        "launches": 0,
        "busy_since": None,
        "heard": False,
    }


def _released(epoch: int) -> dict[str, Any]:
    return {"lease_epoch": epoch, "lease_owner": None, "lease_until": None}


def _ended(run: RunWork, end: End, now: Instant) -> dict[str, Any]:
    return {
        "state": end.state.value,
        # Whoever still works on it has lost its lease and may not answer any more.
        **_released(run.lease_epoch + 1),
        "attempt": run.attempt if end.attempt is None else end.attempt,
        "started_at": run.started_at,
        "finished_at": now,
        "result": None if end.result is None else event_text(end.result),
        "error": cut_error(end.error),
        "error_class": end.error_class,
        "cause": end.cause,
        **(end.used or run.used)._asdict(),
    }


def _again(run: RunWork, again: RetryLater) -> dict[str, Any]:
    used, earlier = again.used or run.used, run.earlier
    if again.known:
        earlier = used
    # What has not begun yet has neither a start nor an end of its time.
    unbegun = again.untouched and run.attempt == 0
    timed = again.timed or not unbegun
    # What was begun is gone on with, under its name and within its time, unless it is known to be over or lost.
    reference = run.reference if again.follows or again.untouched else None
    return {
        "state": RunState.READY.value,
        # After a known failure whoever still speaks for the attempt speaks of the past; while the outcome is
        # unknown the answer of the last holder would still be welcome.
        **_released(run.lease_epoch + 1 if again.known else run.lease_epoch),
        "ready_at": again.ready_at,
        "deadline": run.deadline if reference is not None or again.timed else None,
        "ends_by": run.ends_by if timed else None,
        "attempt": again.attempt,
        "launches": again.launches,
        "busy_since": again.busy_since,
        "reference": reference,
        # A later attempt is news to the target; one of which nobody knows whether it arrived may be not.
        "heard": not again.known and (run.heard or not again.untouched),
        "started_at": None if unbegun else run.started_at,
        "error": cut_error(again.error),
        "error_class": again.error_class,
        **used._asdict(),
        "earlier_cost": earlier.cost,
        "earlier_tokens": earlier.tokens,
        "earlier_tool_calls": earlier.tool_calls,
    }


def _events(run: RunWork, change: Change, by: CommandContext | None) -> list[tuple[RunEventType, dict[str, Any]]]:
    """Events for the run's stream; a step whose target replied at once has also started."""
    found = [] if (event := _event(run, change)) is None else [event]
    if by is not None:
        found = [(kind, said | by.to_payload()) for kind, said in found]
    if run.parent_run_id is None:
        return found
    if _began_unseen(run, change):
        found.insert(0, (RunEventType.NODE_STARTED, {}))
    step = _present({"node_id": run.node_id, "attempt": run.attempt, "assignee": run.assignee, "member": run.member})
    return [(kind, {**step, **said}) for kind, said in found]


def _began_unseen(run: RunWork, change: Change) -> bool:
    over = (isinstance(change, End) and change.state in _DONE) or (isinstance(change, RetryLater) and change.known)
    return over and run.state == RunState.LAUNCHING


_DONE = (RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT)


def _event(run: RunWork, change: Change) -> tuple[RunEventType, dict[str, Any]] | None:
    """Event of the run's stream for a change; most changes have one."""
    match change:
        case End():
            kind = final_event(change.state, is_step=run.parent_run_id is not None)
            return kind, _present({**_went_wrong(change), "cause": change.cause, **change.detail})
        case RetryLater() if change.known:
            return _kind(run, RunEventType.RUN_RETRIED), _present({"attempt": change.attempt, **_went_wrong(change)})
        case RetryLater() if change.told:
            return RunEventType.RUN_REDELIVERED, _present({"launches": change.launches, **_went_wrong(change)})
        case Block(gate):
            return _kind(run, RunEventType.RUN_BLOCKED), {"gate": gate}
        case Admit(approval_id, modified=modified):
            kind = RunEventType.RUN_MODIFIED if modified else RunEventType.RUN_APPROVED
            return kind, {"approval_id": id_text(approval_id)}
        case Progress(begins=True) | WaitForTarget(queued=False):
            return _kind(run, RunEventType.RUN_STARTED), {}
        case Begin(held=True) if run.state != RunState.RUNNING:
            return _kind(run, RunEventType.RUN_STARTED), {}
        case _:
            return None


_OF_STEPS = {
    RunEventType.RUN_STARTED: RunEventType.NODE_STARTED,
    RunEventType.RUN_RETRIED: RunEventType.NODE_RETRIED,
    RunEventType.RUN_BLOCKED: RunEventType.NODE_BLOCKED,
}


def _kind(run: RunWork, event: RunEventType) -> RunEventType:
    return event if run.parent_run_id is None else _OF_STEPS[event]


def _went_wrong(change: End | RetryLater) -> dict[str, Any]:
    return {"error": cut_error(change.error), "error_class": change.error_class}


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _finished_runs(connection: Connection, finished: Sequence[tuple[RunWork, End]], now: Instant) -> list[Notice]:
    asked = [run.approval_id for run, _ in finished if run.approval_id is not None]
    answers = approval_rows.outcomes(connection, asked)
    return [_finished(run, end, answers, now) for run, end in finished]


def _approval(run: RunWork, end: End, answers: Mapping[bytes, str]) -> str | None:
    """Outcome of the approval request; None = there was no request, or no decision yet."""
    if end.state in _UNAPPROVED:
        return end.state.value
    return None if run.approval_id is None else answers.get(run.approval_id)


def _finished(run: RunWork, end: End, answers: Mapping[bytes, str], now: Instant) -> Notice:
    """Notice about the end of a root run, whatever ended it."""
    started, error = run.started_at, end.error
    values = {
        "state": end.state.value,
        "error": None if error is None else storable_text(error, _MAX_EVENT_ERROR),
        "error_class": end.error_class,
        "cause": end.cause,
        "attempt": run.attempt if end.attempt is None else end.attempt,
        "origin": run.origin,
        "occurrence_time": to_rfc3339(run.nominal),
        "started_at": rfc3339_or_none(started),
        "finished_at": to_rfc3339(now),
        # A clock that was set back while it ran must not make it end before it began.
        "duration_seconds": None if started is None else max(0, now - started) / SECOND,
        "workflow": run.workflow,
        "version": run.workflow_version,
        "approval": _approval(run, end, answers),
    }
    return Notice(NoticeType.RUN_FINISHED, run.namespace, run.schedule_uid, run.run_id, values)


def _freed(run: RunWork, end: End) -> dict[statements.Counter, int]:
    """A step counts with its root, and a run of no schedule with whoever works."""
    if run.parent_run_id is not None:
        return {}
    changes: dict[statements.Counter, int] = {}
    if run.concurrency_key is not None and run.state != RunState.HELD:
        changes["key", statements.key_owner(run.namespace, run.concurrency_key), 0] = -1
    # What a run cost takes the place of what was reserved for it on the day of its birth.
    spent = (run.used if end.used is None else end.used).cost - run.reserved
    if spent:
        day = run.created_at // DAY
        if run.schedule_uid is not None:
            changes["spent", statements.schedule_owner(run.schedule_uid), day] = spent
        for who in _payers(run):
            changes["spent", statements.assignee_owner(run.namespace, who), day] = spent
    return changes


def _payers(run: RunWork) -> tuple[str, ...]:
    if run.assignee is None:
        return ()
    return payers(Assignee(AssigneeType(run.assignee_type or AssigneeType.AGENT), run.assignee), run.member)
