"""What the last occurrences of a schedule came to, fired or not: the strip beside its name in a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from horarium.instant import SECOND, Instant
from horarium.schedule.event import EventType
from horarium.schedule.run import Origin, RunState

MOST_RECENT: Final = 30


class Happened(StrEnum):
    """Decision about an occurrence."""

    FIRED = "fired"
    HELD = "held"
    SKIPPED = "skipped"
    MISSED = "missed"


HAPPENED: Final[Mapping[EventType, Happened]] = MappingProxyType(
    {
        EventType.TRIGGERED: Happened.FIRED,
        EventType.BUFFERED: Happened.HELD,
        EventType.TRIGGER_SKIPPED: Happened.SKIPPED,
        EventType.MISSED: Happened.MISSED,
    }
)
"""The events of history that are decisions."""


class Recent(NamedTuple):
    """One decision, with what became of its run; `at` is the time of its occurrence, or when it was made by hand.

    `state` None = it had no run, or retention has removed it. `covers`: of how many occurrences it was the decision.
    """

    at: Instant
    outcome: Happened
    reason: str | None = None
    run_id: bytes | None = None
    origin: Origin = Origin.SCHEDULED
    state: RunState | None = None
    due: Instant | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    covers: int = 1

    @property
    def duration_seconds(self) -> float | None:
        """None = it has not started, or not ended; a clock that was set back makes it none at all."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0, self.finished_at - self.started_at) / SECOND

    @property
    def late_seconds(self) -> float | None:
        """Start delay in seconds."""
        return None if self.started_at is None or self.due is None else max(0, self.started_at - self.due) / SECOND


def in_order(decisions: Iterable[Recent]) -> tuple[Recent, ...]:
    """Oldest first; at one instant, what was done by hand last. Of an occurrence that was skipped and then backfilled
    the run wins.
    """
    by_occurrence: dict[tuple[Instant, bool], Recent] = {}
    for each in decisions:
        key = (each.at, each.origin is Origin.MANUAL)
        if each.run_id is not None or key not in by_occurrence:
            by_occurrence[key] = each
    return tuple(by_occurrence[key] for key in sorted(by_occurrence))
