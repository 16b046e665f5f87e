"""Says once of each stored row that cannot be read that it is one, however often somebody looks at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from horarium.telemetry.telemetry import Telemetry

# A memo, not a store: whoever damages a million rows has other troubles than to be told twice.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Damages:
    _told: set[tuple[str, str]] = field(default_factory=set)

    def tell(self, telemetry: Telemetry, what: str, name: str, why: str, **about: str) -> None:
        """Log a row under its `name`; `about` are the namespace, schedule and run that it belongs to."""
        if (what, name) in self._told:
            return
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told.add((what, name))
        telemetry.metrics.unreadable_rows.inc()
        telemetry.log.error("stored_row_unreadable", what=what, name=name, **about, why=why)
