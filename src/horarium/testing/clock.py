"""A clock that stands still until it is told to move."""

from __future__ import annotations

from datetime import datetime

from horarium.instant import SECOND, Instant, from_datetime, from_rfc3339, to_rfc3339

When = Instant | str | datetime
"""Microseconds since the epoch, an RFC 3339 text, or an aware datetime."""

DEFAULT_START = "2026-01-01T00:00:00Z"


def instant_of(moment: When, *, field: str = "time") -> Instant:
    match moment:
        case str():
            return from_rfc3339(moment, field=field)
        case datetime():
            return from_datetime(moment, field=field)
        case _:
            return moment


class FakeClock:
    """`now` may be set anywhere, as the clock of a machine may be; `monotonic` only ever counts what was advanced."""

    def __init__(self, start: When = DEFAULT_START) -> None:
        self._now = instant_of(start, field="start")
        self._elapsed = 0

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed / SECOND

    def advance(self, seconds: float) -> Instant:
        if seconds < 0:
            raise ValueError(f"seconds must not be negative: {seconds}; use `set` to move the clock back")
        moved = round(seconds * SECOND)
        self._now += moved
        self._elapsed += moved
        return self._now

    def set(self, moment: When) -> Instant:
        """Forward this is time that passes; backward it is a step of the machine's clock."""
        wanted = instant_of(moment)
        self._elapsed += max(0, wanted - self._now)
        self._now = wanted
        return wanted

    def __repr__(self) -> str:
        return f"FakeClock({to_rfc3339(self._now)!r})"
