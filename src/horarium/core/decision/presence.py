"""Presence of tickers without a break, and the state of a process by the age of its last heartbeat.

A presence lasts while two readings are at most the gap apart. A larger distance, in either direction, ends it: the
process was suspended, its machine slept, or the clock was set. The wall clock does not tell these apart, and in each
case no ticker could decide the occurrences in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from horarium.instant import SECOND, Instant

# ── Presence of tickers ───────────────────────────────────────────────────────────────────────────────


PRESENCE_BEAT_SECONDS = 5
"""Between two recorded beats of the tickers."""
GAP_SECONDS = 30
"""The longest distance between two readings of one presence; `Breaks` are the shorter ones that matter."""
_REMEMBERED_SECONDS = 3_600
_MOST_BREAKS = 20
_BUSY_SHARE = 0.25
"""Share of a processor that a busy process takes at least, also on a crowded machine."""

Break = tuple[Instant, Instant]
"""The last reading before a time without a ticker, and the first one after it."""


@dataclass(frozen=True, slots=True)
class Presence:
    """`at` is the last reading, `since` the first one without a break before it."""

    since: Instant
    at: Instant
    breaks: tuple[Break, ...] = ()

    def covers(self, found: Break) -> bool:
        """Return whether this presence shows that a ticker was there during a break that another one recorded."""
        begin, end = found
        return self.since <= begin and end <= self.at and not any(b < end and begin < e for b, e in self.breaks)


def extend_presence(
    before: Presence | None, now: Instant, gap_seconds: float = GAP_SECONDS, worked_seconds: float = 0.0
) -> Presence:
    """Continue a presence to `now`, or begin another one after a break.

    `worked_seconds`: processor time that the process took since the last reading. One that worked was slow, not away.
    """
    if before is None or abs(now - before.at) > gap_seconds * SECOND:
        return Presence(now, now)
    breaks = before.breaks
    if now - before.at > max(PRESENCE_BEAT_SECONDS, worked_seconds / _BUSY_SHARE) * SECOND:
        breaks = (*breaks, (before.at, now))[-_MOST_BREAKS:]
    return Presence(min(before.since, now), now, breaks)


def short_breaks(
    recorded_at: Instant | None, noted: object, own: Presence, *, accompanied: bool = False
) -> tuple[Break, ...]:
    """Return the breaks of the last hour that are shorter than the gap, as far as this process and the record tell.

    `noted` is what an earlier beat found. A process that begins sees a break since the last record; one that was there
    meanwhile takes it back with its next beat. Where another ticker seems to be alive (`accompanied`), this process
    adds none: what the other was too slow to decide was not missed.
    """
    if recorded_at is None:
        return ()
    found = [each for each in _read_breaks(noted) if not own.covers(each)]
    for begin, end in () if accompanied else ((recorded_at, own.since), *own.breaks):
        if recorded_at < end:
            found.append((max(begin, recorded_at), end))
    oldest = own.at - _REMEMBERED_SECONDS * SECOND
    kept = {each for each in found if oldest < each[1] <= own.at}  # later ones are from a clock that was ahead
    return tuple(sorted(kept))[-_MOST_BREAKS:]


def alive_since(since: Instant | None, breaks: Iterable[Break], grace_seconds: int) -> Instant | None:
    """Return since when a ticker has been there, not counting breaks that are no longer than a schedule's grace."""
    if since is None:
        return None
    return max([since, *(end for begin, end in breaks if end - begin > grace_seconds * SECOND)])


def _read_breaks(noted: object) -> Iterator[Break]:
    for each in noted if isinstance(noted, list) else ():
        match each:
            case [int(begin), int(end)]:
                yield begin, end
            case _:  # damaged
                pass


def join_presences(
    recorded: Presence | None, now: Instant, own_since: Instant | None = None, gap_seconds: float = GAP_SECONDS
) -> Presence:
    """Join what is recorded for all processes with the presence of one of them, which lasts until `now`.

    `own_since`: that process kept count in its memory, and was present from then on although it could not write. A
    record that lies ahead of `now` by more than the gap was written by a clock that ran ahead, and proves nothing.
    """
    begin, gap = now if own_since is None else own_since, gap_seconds * SECOND
    if recorded is None or recorded.at - now > gap or begin - recorded.at > gap:
        return Presence(begin, now)
    since = recorded.since if own_since is None else min(recorded.since, own_since)
    return Presence(since, max(recorded.at, now))


def clock_was_ahead(recorded_at: Instant | None, now: Instant, gap_seconds: float = GAP_SECONDS) -> bool:
    """Return whether the record was written by a clock that ran ahead of the present one."""
    return recorded_at is not None and recorded_at - now > gap_seconds * SECOND


def decided_ahead_until(recorded_at: Instant | None, noted: object, now: Instant) -> Instant | None:
    """Return up to when occurrences are already decided because the clock was ahead; None = it was not.

    `noted` is what an earlier beat found. The last decision may be one beat younger than the last record.
    """
    ends = [noted] if isinstance(noted, int) and not isinstance(noted, bool) else []
    if recorded_at is not None and clock_was_ahead(recorded_at, now):
        ends.append(recorded_at + PRESENCE_BEAT_SECONDS * SECOND)
    return max((end for end in ends if end > now), default=None)


# ── State of processes ────────────────────────────────────────────────────────────────────────────────


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
