"""Telemetry of a process: one object that feeds the log and the metrics, so that nothing is counted twice.

The log has short lines, and under load one line a second. A logger is created and passed on; nothing is configured
for the whole process. Telemetry inside a larger transaction is deferred until the commit.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, Protocol, TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from horarium.core.decision.facts import Decision, Fire, Hold, Missed, Skip
from horarium.core.document.states import Origin, Reason, RunState
from horarium.core.recurrence.zone import tzdata_version
from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.platform.clock import Clock
from horarium.platform.telemetry.metrics import Metrics

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_USUAL_NAMESPACE = "default"
_TIME = 8  # hh:mm:ss at the end of the first part of an RFC 3339 time


def make_logger(
    *, level: str = "info", format: str = "console", stream: TextIO | None = None, clock: Clock | None = None
) -> FilteringBoundLogger:
    """`console` is for people, `json` for programs; with a clock each line says when."""
    processors: list[Processor] = [structlog.processors.add_log_level]
    if clock is not None:
        processors.append(_Stamp(clock))
    processors.append(structlog.processors.format_exc_info)
    processors.append(structlog.processors.JSONRenderer(default=str) if format == "json" else render_line)
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(stream or sys.stderr),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
    )
    return logger


class _Stamp:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, _logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["time"] = to_rfc3339(self._clock.now())
        return event


def render_line(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    """`02:00:00  fired  nightly-report  nominal 02:00:00Z  +0.012 s`; what has no place of its own is `name=value`."""
    rest = dict(event)
    time, level = rest.pop("time", None), str(rest.pop("level", "info"))
    failure = rest.pop("exception", None)
    parts = [] if time is None else [_clock_face(str(time))]
    parts += [level.upper()] if level in ("warning", "error", "critical") else []
    parts.append(_printable(rest.pop("event", "")))
    for name in ("schedule_id", "run_id"):
        if rest.get(name) is not None:
            parts.append(_printable(_in_namespace(rest) + str(rest.pop(name))))
    if rest.get("nominal") is not None:
        parts.append("nominal " + _clock_face(str(rest.pop("nominal"))) + "Z")
    if rest.get("late_seconds") is not None:
        parts.append(f"{rest.pop('late_seconds'):+.3f} s")
    parts += [f"{name}={_printable(value)}" for name, value in rest.items() if value is not None]
    line = "  ".join(parts)
    return line if failure is None else f"{line}\n{failure}"


def _in_namespace(event: MutableMapping[str, Any]) -> str:
    """Take the namespace out: it stands before the first name, unless it is the usual one."""
    namespace = event.pop("namespace", None)
    return "" if namespace in (None, _USUAL_NAMESPACE) else f"{namespace}/"


def _clock_face(rfc3339: str) -> str:
    return rfc3339.partition("T")[2][:_TIME] or rfc3339


def _printable(value: object) -> str:
    """One line stays one line, whatever a schedule is called."""
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]


def outcome_of(decision: Decision) -> str:
    match decision:
        case Fire():
            return "fired"
        case Hold():
            return "held"
        case Skip():
            return "skipped"
        case Missed():
            return "missed"


class DecisionLog:
    """One line a decision while there are few; above `per_second` the rest of that second is summed up in one."""

    def __init__(self, logger: FilteringBoundLogger, clock: Clock, per_second: int) -> None:
        self._logger = logger
        self._clock = clock
        self._per_second = per_second
        self._second = int(clock.monotonic())
        self._lines = 0
        self._unsaid: Counter[str] = Counter()

    def decided(self, namespace: str, schedule_id: str, decision: Decision, now: Instant) -> None:
        self._turn()
        if self._lines >= self._per_second:
            self._unsaid[outcome_of(decision)] += 1
            return
        self._lines += 1
        self._logger.info(outcome_of(decision), **_decision_fields(namespace, schedule_id, decision, now))

    def flush(self) -> None:
        """Say what has not been said; at the end of a second and when the service stops."""
        if self._unsaid:
            self._logger.info("decisions", **dict(sorted(self._unsaid.items())))
            self._unsaid.clear()

    def _turn(self) -> None:
        second = int(self._clock.monotonic())
        if second != self._second:
            self.flush()
            self._second, self._lines = second, 0


def _decision_fields(namespace: str, schedule_id: str, decision: Decision, now: Instant) -> dict[str, Any]:
    told: dict[str, Any] = {"namespace": namespace, "schedule_id": schedule_id}
    match decision:
        case Fire() | Hold():
            told |= {"nominal": to_rfc3339(decision.nominal), "late_seconds": (now - decision.due) / SECOND}
            if decision.covers is not None:
                told["covers"] = decision.covers.count
        case Skip():
            told |= {"nominal": to_rfc3339(decision.nominal), "reason": decision.reason.value}
        case Missed():
            told |= {
                "nominal": to_rfc3339(decision.first),
                "last": to_rfc3339(decision.last),
                "count": decision.count,
                "reason": decision.reason.value,
            }
    return told


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

    def created(self, origin: Origin) -> None:
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

    def partitions_changed(self, *, made: int, dropped: int) -> None:
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

    def created(self, origin: Origin) -> None:
        self._later.append(partial(self._told.created, origin))

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
