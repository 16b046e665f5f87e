"""Telemetry that waits for a commit: what an operation tells while a larger transaction is open is told after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from horarium.core.decision.facts import Decision
from horarium.core.document.states import Origin, RunState
from horarium.instant import Instant
from horarium.telemetry.telemetry import Telemetry


class Deferred(Telemetry):
    """`forget` when the transaction begins again, `tell` when it is committed."""

    def __init__(self, told: Telemetry) -> None:
        self.log = told.log
        self.metrics = told.metrics
        self._told = told
        self._later: list[Callable[[], None]] = []

    def decided(
        self,
        namespace: str,
        schedule_id: str,
        decisions: Sequence[Decision],
        now: Instant,
        origin: Origin = Origin.SCHEDULED,
    ) -> None:
        self._later.append(partial(self._told.decided, namespace, schedule_id, list(decisions), now, origin))

    def born(self, origin: Origin) -> None:
        self._later.append(partial(self._told.born, origin))

    def launched(self, *, fired_at: Instant, started_at: Instant) -> None:
        self._later.append(partial(self._told.launched, fired_at=fired_at, started_at=started_at))

    def ended(self, state: RunState) -> None:
        self._later.append(partial(self._told.ended, state))

    def forget(self) -> None:
        self._later.clear()

    def tell(self) -> None:
        for each in self._later:
            each()
        self._later.clear()
