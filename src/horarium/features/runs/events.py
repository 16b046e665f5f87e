"""Events and logs of a run and its steps, and push notifications of agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horarium.core.decision.record import FIRST_STORED_EVENT
from horarium.core.document.states import FINAL, Origin, RunEventType, make_lineage_payload
from horarium.core.lifecycle.outcome import Fence
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.resources import Resources
from horarium.features.runs import merged_event_rows, update_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.merged_event_rows import EventPlace
from horarium.features.runs.rows import RunEventRow, RunRow
from horarium.features.runs.service import RunView, find_held, find_run, view
from horarium.features.runs.update_rows import LogLineRow, NewLines
from horarium.instant import Instant, from_rfc3339, to_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.wakeups import PUSHED
from horarium.platform.ids import id_text, parse_id
from horarium.platform.run_log import RunLog, Stream
from horarium.platform.wire import Permission

MAX_EVENTS = 1_000
_MAX_EVENT_NUMBER = 2**63 - 1
_OF_A_SCHEDULE = frozenset({Origin.SCHEDULED, Origin.MANUAL, Origin.BACKFILL})


@dataclass(frozen=True, slots=True)
class RunEventEntry:
    run_id: bytes
    node_id: str | None
    sequence: int
    event_type: str
    recorded_at: Instant
    payload: Mapping[str, Any]

    @property
    def place(self) -> EventPlace:
        return EventPlace(self.recorded_at, self.run_id, self.sequence)


@dataclass(frozen=True, slots=True)
class EventPage:
    """`token_after` makes the token of what follows one of these events."""

    events: tuple[RunEventEntry, ...]
    more: bool
    merged: bool

    def token_after(self, event: RunEventEntry) -> str:
        if not self.merged:
            return str(event.sequence)
        return f"{event.recorded_at}.{id_text(event.run_id)}.{event.sequence}"


def events(
    resources: Resources,
    caller: Caller,
    run_id: str,
    *,
    own: bool = False,
    after_sequence: int = 0,
    next_page_token: str | None = None,
    limit: int = 500,
) -> EventPage:
    """With those of its steps, unless only its own are asked for: numbers, such as `after_sequence`, are a run's own.

    The first ones - why the run exists, that it does, and that it was held - are read off its row.
    """
    caller.require(Permission.LOOK)
    if not 0 <= after_sequence <= _MAX_EVENT_NUMBER or not 1 <= limit <= MAX_EVENTS:
        raise InvalidDefinition({"limit": ["must be between 1 and 1000, and the sequence must not be negative"]})

    def look(connection: Connection) -> EventPage:
        (run,) = view(resources, connection, [find_run(connection, caller, run_id)], whole=False)
        if own or after_sequence or run.row.workflow_version is None:
            after = after_sequence if next_page_token is None else _read_number(next_page_token)
            return _own(connection, run, after, limit)
        place = None if next_page_token is None else _read_place(next_page_token)
        return _merged(connection, run, place, limit)

    return resources.database.read(look)


def _own(connection: Connection, run: RunView, after: int, limit: int) -> EventPage:
    stored = runs_read.events(connection, run.row.run_id, after_sequence=after, limit=limit + 1)
    told = [_event(run.row, each) for each in stored]
    first = _first_events(run, is_held=_began_held(run.row, stored))
    found = [event for event in first if event.sequence > after] + told
    return EventPage(tuple(found[:limit]), len(found) > limit, merged=False)


def _merged(connection: Connection, run: RunView, after: EventPlace | None, limit: int) -> EventPage:
    row = run.row
    is_root = row.parent_run_id is None
    stored = merged_event_rows.merged_events(connection, row.run_id, is_root=is_root, after=after, limit=limit + 1)
    # Steps are of the occurrence and of the revision that their root is of.
    born = _created(Origin.STEP, row)
    told = [
        RunEventEntry(
            each.run_id,
            each.node_id,
            each.sequence,
            each.event_type,
            each.recorded_at,
            born if each.payload is None else each.payload,
        )
        for each in stored
    ]
    first = _first_events(run, is_held=_began_held(row, runs_read.events(connection, row.run_id, limit=1)))
    found = sorted([event for event in first if after is None or event.place > after] + told, key=_place)
    return EventPage(tuple(found[:limit]), len(found) > limit, merged=True)


def _place(event: RunEventEntry) -> EventPlace:
    return event.place


def _event(row: RunRow, stored: RunEventRow) -> RunEventEntry:
    return RunEventEntry(
        row.run_id, row.node_id, stored.sequence, stored.event_type, stored.recorded_at, stored.payload
    )


def _read_number(token: str) -> int:
    if not (token.isascii() and token.isdecimal() and len(token) < 19):
        raise _no_token()
    return int(token)


def _read_place(token: str) -> EventPlace:
    recorded_at, _, rest = token.partition(".")
    run_id, _, sequence = rest.partition(".")
    return EventPlace(_read_number(recorded_at), parse_id(run_id, "next_page_token"), _read_number(sequence))


def _no_token() -> InvalidDefinition:
    return InvalidDefinition({"next_page_token": ["is not a valid page token"]})


def _began_held(row: RunRow, stored: Sequence[RunEventRow]) -> bool:
    """Then the number of the first event that others have stored was passed over: see `first_stored_event`."""
    is_passed = row.next_event > FIRST_STORED_EVENT and not (stored and stored[0].sequence == FIRST_STORED_EVENT)
    return is_passed and row.origin in _OF_A_SCHEDULE


def _first_events(run: RunView, *, is_held: bool) -> list[RunEventEntry]:
    row, definition = run.row, run.definition
    created = _created(row.origin, row) | (row.requested_by or {})
    if row.origin not in _OF_A_SCHEDULE or row.schedule_uid is None:
        return [_first(row, 1, RunEventType.RUN_CREATED, created)]
    lineage = make_lineage_payload(
        schedule_id=row.schedule_id,
        schedule_ulid=id_text(row.schedule_uid),
        cron_expression=next(iter(definition.spec.cron_expressions), None) if definition else None,
        timezone=(definition.spec.timezone or "UTC") if definition else None,
        overlap_policy=definition.overlap.policy.value if definition else None,
        trigger_number=row.trigger_number,
        occurrence_time=to_rfc3339(row.nominal),
    )
    first = [
        _first(row, 1, RunEventType.SCHEDULE_TRIGGERED, lineage),
        _first(row, 2, RunEventType.RUN_CREATED, created),
    ]
    held = _first(row, FIRST_STORED_EVENT, RunEventType.RUN_HELD, {})
    return [*first, held] if is_held else first


def _created(origin: Origin, row: RunRow) -> dict[str, Any]:
    return {"origin": origin.value, "nominal": to_rfc3339(row.nominal), "revision": row.revision}


def _first(row: RunRow, sequence: int, kind: RunEventType, payload: Mapping[str, Any]) -> RunEventEntry:
    return RunEventEntry(row.run_id, row.node_id, sequence, kind.value, row.created_at, payload)


MAX_LINES = 5_000
"""In one request."""
_MAX_LINE_NUMBER = 2**62


@dataclass(frozen=True, slots=True)
class Logs:
    """`ended`: no more lines will come."""

    run_id: bytes
    lines: Sequence[LogLineRow]
    ended: bool


@dataclass(frozen=True, slots=True)
class ReportedLine:
    """`at` None = now."""

    stream: Stream
    text: str
    at: Instant | None = None


def read_logs(resources: Resources, caller: Caller, run_id: str, *, after: int = 0) -> Logs:
    """The lines with a number greater than `after`, in order."""
    caller.require(Permission.LOOK)
    if not 0 <= after <= _MAX_LINE_NUMBER:
        raise InvalidDefinition({"after": ["must be a line number or 0"]})

    def look(connection: Connection) -> Logs:
        # The run first: what it said last is written before its end can be seen.
        row = find_run(connection, caller, run_id)
        return Logs(row.run_id, update_rows.read_lines(connection, row.run_id, after=after), row.state in FINAL)

    return resources.database.read(look)


def add_logs(
    resources: Resources,
    caller: Caller,
    run_id: str,
    lease_epoch: int,
    said: Sequence[ReportedLine],
    *,
    dropped: int = 0,
) -> int:
    """Store log lines and return their number. Raises RunNotHeld for anyone but the holder of the run."""
    caller.require(Permission.WORK)
    most = resources.settings.run_log_bytes
    log = RunLog(resources.clock.now, most)
    log.skip(dropped)
    for line in said:
        log.write(line.stream, f"{line.text}\n", line.at)
    batch = log.peek(last=True)

    def work(connection: Connection) -> int:
        held = find_held(connection, caller, run_id, lease_epoch)
        new = NewLines(held.run_id, lease_epoch, held.attempt, batch)
        # A run that is being changed at this moment keeps nothing: its worker comes again.
        kept = update_rows.append_lines(connection, [new], most=most) if batch.lines else set()
        return len(batch.lines) if kept else 0

    return resources.database.write(work)


def parse_lines(given: object) -> list[ReportedLine]:
    """Raises InvalidDefinition with the field that is wrong."""
    if not isinstance(given, list | tuple) or len(given) > MAX_LINES:
        raise InvalidDefinition({"lines": [f"must be an array of at most {MAX_LINES} lines"]})
    return [_line(f"lines[{place}]", each) for place, each in enumerate(given)]


def _line(where: str, given: object) -> ReportedLine:
    said = {"text": given} if isinstance(given, str) else given
    if not isinstance(said, Mapping) or not isinstance(said.get("text"), str):
        raise InvalidDefinition({where: ["must be a string or an object with the key text"]})
    unknown = next((name for name in said if name not in ("text", "stream", "at")), None)
    if unknown is not None:
        raise InvalidDefinition({f"{where}.{unknown[:100]}": ["unknown field"]})
    stream, at = said.get("stream"), said.get("at")
    try:
        named = Stream.LOG if stream is None else Stream(stream)
    except ValueError:
        raise InvalidDefinition({f"{where}.stream": [f"must be one of {', '.join(Stream)}"]}) from None
    try:
        moment = None if at is None else from_rfc3339(at if isinstance(at, str) else "", field="at")
    except InvalidSpec:
        raise InvalidDefinition({f"{where}.at": ["must be a time such as 2026-03-08T07:00:00Z"]}) from None
    return ReportedLine(named, said["text"], moment)


def push(resources: Resources, caller: Caller, run_id: str, token: str | None = None) -> None:
    """Raises RunNotFound. What comes too late, or from an attempt that is over, wakes nobody."""
    caller.require(Permission.WORK)
    row = resources.database.glance(lambda connection: find_run(connection, caller, run_id))
    fence = None if token is None else resources.tokens.fence_of_push(token, row.run_id)
    if wakes(row, fence):
        name = id_text(row.run_id)
        resources.database.write(lambda connection: resources.database.notify(connection, PUSHED, name))


def wakes(row: RunRow, fence: Fence | None) -> bool:
    """A task that has stopped to ask goes on under the same name, and may go on to use what it was handed first."""
    if row.state in FINAL:
        return False
    return fence is None or (fence.attempt == row.attempt and fence.gates_passed <= row.gates_passed)
