"""What a run says while it is worked on: kept for whoever holds it, read by whoever may read the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.instant import Instant, from_rfc3339
from horarium.job.run_log import RunLog, Stream
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.operations.runs import find_held, find_run
from horarium.schedule.run import FINAL
from horarium.store.database import Connection
from horarium.store.runs import logs
from horarium.store.runs.logs import KeptLine, NewLines
from horarium.wire.roles import Permission

MAX_LINES = 5_000
"""In one request."""
_MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True)
class Logs:
    """`ended`: no more lines will come."""

    run_id: bytes
    lines: Sequence[KeptLine]
    ended: bool


@dataclass(frozen=True, slots=True)
class SaidLine:
    """`at` None = now."""

    stream: Stream
    text: str
    at: Instant | None = None


def read_logs(resources: Resources, caller: Caller, run_id: str, *, after: int = 0) -> Logs:
    """The lines with a number greater than `after`, in order."""
    caller.require(Permission.LOOK)
    if not 0 <= after <= _MAX_NUMBER:
        raise InvalidDefinition({"after": ["must be a line number or 0"]})

    def look(connection: Connection) -> Logs:
        # The run first: what it said last is written before its end can be seen.
        row = find_run(connection, caller, run_id)
        return Logs(row.run_id, logs.read(connection, row.run_id, after=after), row.state in FINAL)

    return resources.database.read(look)


def add_logs(
    resources: Resources, caller: Caller, run_id: str, lease_epoch: int, said: Sequence[SaidLine], *, dropped: int = 0
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
        kept = logs.append(connection, [new], most=most) if batch.lines else set()
        return len(batch.lines) if kept else 0

    return resources.database.write(work)


def parse_lines(given: object) -> list[SaidLine]:
    """Raises InvalidDefinition with the field that is wrong."""
    if not isinstance(given, list | tuple) or len(given) > MAX_LINES:
        raise InvalidDefinition({"lines": [f"must be an array of at most {MAX_LINES} lines"]})
    return [_line(f"lines[{place}]", each) for place, each in enumerate(given)]


def _line(where: str, given: object) -> SaidLine:
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
    return SaidLine(named, said["text"], moment)
