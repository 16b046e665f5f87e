"""Who is told what was recorded: one object that feeds the log and the metrics, so nothing is counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.decision.plan import Decision, Fire, Hold, Missed, Skip
from horarium.instant import SECOND, Instant
from horarium.recurrence.zone import tzdata_version
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin, RunState
from horarium.telemetry.log import DecisionLog, make_logger
from horarium.telemetry.metrics import Metrics


class DecidedLike(Protocol):
    """Decisions of a tick about one schedule."""

    @property
    def namespace(self) -> str: ...
    @property
    def schedule_id(self) -> str: ...
    @property
    def decisions(self) -> Sequence[Decision]: ...


class TickLike(Protocol):
    """One committed step of the ticker; `parked` are namespace, schedule id and error."""

    @property
    def claimed(self) -> int: ...
    @property
    def decided(self) -> Sequence[DecidedLike]: ...
    @property
    def parked(self) -> Sequence[tuple[str, str, str]]: ...


class Telemetry:
    """Told after a commit, never before: what was rolled back did not happen."""

    def __init__(
        self,
        clock: Clock,
        *,
        logger: FilteringBoundLogger | None = None,
        metrics: Metrics | None = None,
        decisions_per_second: int = 50,
    ) -> None:
        self._clock = clock
        self.log = logger or make_logger(level="error")
        self.metrics = metrics or Metrics()
        self._decisions = DecisionLog(self.log, clock, decisions_per_second)
        self._last_tick = clock.monotonic()
        self.metrics.watch_last_tick(lambda: self._clock.monotonic() - self._last_tick)
        self.metrics.tzdata.info({"version": tzdata_version()})

    def tick(self, tick: TickLike, now: Instant) -> None:
        self._last_tick = self._clock.monotonic()
        self.metrics.ticks.inc()
        self.metrics.schedules_due.set(tick.claimed)
        for decided in tick.decided:
            self.decided(decided.namespace, decided.schedule_id, decided.decisions, now)
        for namespace, schedule_id, error in tick.parked:
            self.log.error("schedule_broken", namespace=namespace, schedule_id=schedule_id, error=error)

    def decided(
        self,
        namespace: str,
        schedule_id: str,
        decisions: Sequence[Decision],
        now: Instant,
        origin: Origin = Origin.SCHEDULED,
    ) -> None:
        """Also for triggers by hand and backfills."""
        for decision in decisions:
            self._count(decision, now, origin)
            self._decisions.decided(namespace, schedule_id, decision, now)

    def born(self, origin: Origin) -> None:
        """A run without a decision about an occurrence."""
        self.metrics.emitted.labels(origin.value).inc()

    def launched(self, *, fired_at: Instant, started_at: Instant) -> None:
        self.metrics.start_delay.observe((started_at - fired_at) / SECOND)

    def ended(self, state: RunState) -> None:
        self.metrics.ends.labels(state.value).inc()
        if state is RunState.LAUNCH_FAILED:
            self.metrics.failed_launch.inc()

    def lease_expired(self, count: int = 1) -> None:
        self.metrics.lease_expiries.inc(count)

    def kept_by_weeks(self, *, made: int, dropped: int) -> None:
        self.metrics.partitions_made.inc(made)
        self.metrics.partitions_dropped.inc(dropped)

    def flush(self) -> None:
        self._decisions.flush()

    def _count(self, decision: Decision, now: Instant, origin: Origin) -> None:
        match decision:
            case Fire() | Hold():
                self.metrics.emitted.labels(origin.value).inc()
                # Nobody planned a backfill or a trigger by hand for a certain moment.
                if isinstance(decision, Fire) and origin is Origin.SCHEDULED:
                    self._drifted((now - decision.due) / SECOND)
            case Skip():
                self.metrics.skipped.labels(decision.reason.value).inc()
                if decision.reason is Reason.OVERLAP_POLICY_SKIP:
                    self.metrics.skipped_overlap.inc()
            case Missed():
                self.metrics.missed.labels(decision.reason.value).inc(decision.count)

    def _drifted(self, seconds: float) -> None:
        if seconds < 0:
            self.metrics.fires_early.inc()
        self.metrics.drift.observe(max(seconds, 0.0))
