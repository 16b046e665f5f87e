"""The state of a process by the age of its last heartbeat, and notes for the operator about all processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from horarium.instant import SECOND, Instant

BEAT_SECONDS = 5
"""Seconds between two heartbeats."""
SILENT_AFTER_SECONDS = 12
"""Two heartbeats are missing: the process may be stuck, disconnected or dead."""
GONE_AFTER_SECONDS = 30
"""The process is considered dead."""
CLOCK_SECONDS = 1.0
"""Tolerated offset of a machine's clock, in seconds."""
_NAMES = 5


class ProcessState(StrEnum):
    ALIVE = "alive"
    DRAINING = "draining"  # it is stopping and takes no new work
    SILENT = "silent"
    GONE = "gone"


def silent_seconds(beat_at: Instant, now: Instant) -> float:
    """Return for how long a process has been silent.

    A beat that lies ahead by more than a missed one was written by a clock that ran ahead. It proves nothing: a process
    that is alive beats again at once when its clock is set back.
    """
    ahead = (beat_at - now) / SECOND
    return ahead if ahead > GONE_AFTER_SECONDS else max(0.0, -ahead)


def process_state(silent_seconds: float, *, draining: bool = False) -> ProcessState:
    """Return the state; a draining process without heartbeats is dead."""
    if silent_seconds > GONE_AFTER_SECONDS:
        return ProcessState.GONE
    if silent_seconds > SILENT_AFTER_SECONDS:
        return ProcessState.SILENT
    return ProcessState.DRAINING if draining else ProcessState.ALIVE


@dataclass(frozen=True, slots=True)
class Seen:
    """One process. `stuck` lists its loops without progress, `schema` is the newest revision that it supports."""

    name: str
    state: ProcessState
    version: str | None = None
    schema: str | None = None
    roles: frozenset[str] = frozenset()
    stuck: Sequence[str] = ()
    clock_offset_seconds: float | None = None
    silent_seconds: float = field(default=0.0)

    @property
    def is_there(self) -> bool:
        return self.state in (ProcessState.ALIVE, ProcessState.DRAINING)


def notes(processes: Sequence[Seen], schema: str | None) -> tuple[str, ...]:
    """Return a sentence for each problem; `schema` is the revision of the tables."""
    there = [each for each in processes if each.is_there]
    found = [
        _without(there, "ticker", "no process decides due occurrences"),
        _without(there, "dispatcher", "no process dispatches runs"),
        _different("versions", {each.name: each.version for each in there}),
        _schemas(there, schema),
    ]
    found += [_silence(each) for each in processes if each.state is ProcessState.SILENT]
    found += [f"{each.name}: {', '.join(each.stuck)} made no progress; check its log" for each in there if each.stuck]
    found += [_clock(each) for each in there]
    return tuple(each for each in found if each is not None)


def _without(there: Sequence[Seen], role: str, told: str) -> str | None:
    return None if any(role in each.roles for each in there) else f"{told}; start horarium up or horarium worker"


def _different(what: str, by_name: Mapping[str, str | None]) -> str | None:
    counted = Counter(value or "unknown" for value in by_name.values())
    if len(counted) < 2:
        return None
    return f"processes run different {what}: {', '.join(f'{value} ({counted[value]})' for value in sorted(counted))}"


def _schemas(there: Sequence[Seen], schema: str | None) -> str | None:
    others = [each.name for each in there if each.schema != schema]
    if not others:
        return None
    more = "" if len(others) <= _NAMES else f" and {len(others) - _NAMES} more"
    return f"the schema is at {schema or 'no revision'}; other revision expected by {', '.join(others[:_NAMES])}{more}"


def _silence(each: Seen) -> str:
    return f"{each.name} has sent no heartbeat for {each.silent_seconds:.0f} s; its runs move when their leases expire"


def _clock(each: Seen) -> str | None:
    offset = each.clock_offset_seconds
    if offset is None or abs(offset) <= CLOCK_SECONDS:
        return None
    where = "behind" if offset > 0 else "ahead of"
    return f"{each.name}: its clock is {abs(offset):.1f} s {where} the database clock, which it uses"
