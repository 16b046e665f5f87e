"""The words for how a schedule is doing."""

from __future__ import annotations

from enum import StrEnum


class HealthStatus(StrEnum):
    """Health of a schedule. The first status that applies is reported."""

    BROKEN = "broken"
    PAUSED = "paused"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    FAILING = "failing"
    STALE = "stale"  # no decision for two gaps of its spec
    LATE = "late"  # an occurrence has waited for its decision beyond its grace
    NEVER_RUN = "never_run"
    OK = "ok"


class WatchedStatus(StrEnum):
    """Health of a schedule for a monitor with three values."""

    OK = "ok"
    STALE = "stale"
    NEVER_RUN = "never_run"


UNWELL = frozenset({HealthStatus.BROKEN, HealthStatus.FAILING, HealthStatus.STALE, HealthStatus.LATE})
"""Those that a command says by its exit code."""

NEEDS_SOMEBODY = UNWELL | {HealthStatus.WAITING_FOR_APPROVAL}
"""Those that somebody is told of when they begin and when they end."""
