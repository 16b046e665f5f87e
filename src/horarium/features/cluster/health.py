"""Readiness of the service, and the metrics that are read from its database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from horarium.core.decision.presence import GAP_SECONDS
from horarium.errors import HorariumError
from horarium.features.history import entry_rows
from horarium.features.history.entry_rows import FEED_LAG_SECONDS
from horarium.features.resources import Resources
from horarium.features.runs import count_rows, open_rows, step_rows
from horarium.features.schedules import due_rows
from horarium.features.schedules import health_rows as schedule_health
from horarium.features.webhooks import rows as subscriptions
from horarium.instant import LAST, SECOND, Instant, to_rfc3339
from horarium.platform.database import Connection, processes
from horarium.platform.database.errors import DATABASE_REMEDY, SchemaMissing, SchemaTooNew, SchemaTooOld, shown
from horarium.platform.database.processes import AHEAD_UNTIL, TICKER, process_rows
from horarium.platform.database.schema import Fit, check_schema
from horarium.platform.settings import Settings
from horarium.platform.telemetry.metrics import Installation


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One question about readiness; `detail` is a sentence, `remedy` what to do where it fails.

    `blocks`: where it fails this process is not ready. Else the failure is only reported.
    """

    name: str
    passed: bool
    detail: str
    remedy: str | None = None
    blocks: bool = True


@dataclass(frozen=True, slots=True)
class Readiness:
    checks: tuple[CheckResult, ...]
    tzdata: str

    @property
    def ready(self) -> bool:
        return all(check.passed or not check.blocks for check in self.checks)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures from the tables of the engine. `ahead_until`: a clock that was ahead decided occurrences until then."""

    ticked_at: Instant | None
    earliest_due: Instant | None
    ahead_until: Instant | None
    others: tuple[CheckResult, ...]


def read_figures(resources: Resources) -> Figures:
    return resources.database.read(
        lambda connection: Figures(
            _ticked_at(connection, resources.clock.now()),
            due_rows.earliest_due(connection),
            ahead_until(connection),
            (
                _outcomes(connection, resources.settings.failing_after),
                _feed(resources, connection),
                _subscriptions(connection),
            ),
        )
    )


def figure_checks(figures: Figures, settings: Settings, now: Instant, *, decides: bool = True) -> list[CheckResult]:
    """Judge figures that may have been read a while ago: they grow old with the clock.

    Only a process that decides is unready because nothing is decided.
    """
    checks = [_tick(figures, settings, now), _undecided(figures, settings, now)]
    checks = [replace(check, blocks=decides) for check in checks]
    if figures.ahead_until is not None and figures.ahead_until > now:
        checks.append(_ahead(figures.ahead_until))
    return [*checks, *figures.others]


def read_installation(resources: Resources) -> Installation:
    """Read the gauges of the whole installation. Each query follows an index and ends at a bound."""
    now, failing_after = resources.clock.now(), resources.settings.failing_after

    def look(connection: Connection) -> Installation:
        earliest, ticked_at = due_rows.earliest_due(connection), _ticked_at(connection, now)
        return Installation(
            oldest_undecided_seconds=0.0 if earliest is None else max(0, now - earliest) / SECOND,
            newest_tick_age_seconds=inf if ticked_at is None else max(0, now - ticked_at) / SECOND,
            schedules_broken=schedule_health.count_broken(connection),
            schedules_failing=schedule_health.count_failing(connection, failing_after),
            queue_depth={state.value: count for state, count in count_rows.by_state(connection).items()},
            workflow_changes_pending=step_rows.count_pending(connection),
            approvals_waiting=open_rows.approvals_waiting(connection),
            feed_lag_seconds=entry_rows.lag(connection, now).seconds,
            subscriptions_parked=subscriptions.count_problems(connection)[0],
        )

    return resources.database.read(look)


def schema_check(resources: Resources) -> CheckResult:
    """Check that this program can use the schema: that of the previous release, its own, or a compatible newer one."""
    try:
        found = check_schema(resources.database)
    except SchemaTooNew as wrong:
        return CheckResult("migrated", False, shown(wrong), "upgrade this program")
    except SchemaMissing as wrong:
        return CheckResult("migrated", False, shown(wrong), "run horarium migrate")
    except SchemaTooOld as wrong:
        return CheckResult("migrated", False, shown(wrong), "set database to a new database")
    except HorariumError as wrong:
        return CheckResult("migrated", False, shown(wrong), DATABASE_REMEDY)
    return CheckResult("migrated", True, found.sentence, "run horarium migrate" if found.fit is Fit.OLDER else None)


def _tick(figures: Figures, settings: Settings, now: Instant) -> CheckResult:
    limit, at = settings.ready_tick_age_seconds, figures.ticked_at
    if at is None:
        return CheckResult(
            "ticking", False, "no ticker has completed a tick yet", "start horarium up or horarium worker"
        )
    age = max(0, now - at) / SECOND
    detail = f"the last tick completed {age:.1f} s ago"
    remedy = None if age <= limit else "the ticker makes no progress; check its log"
    return CheckResult("ticking", age <= limit, detail, remedy)


def _undecided(figures: Figures, settings: Settings, now: Instant) -> CheckResult:
    limit, earliest = settings.ready_undecided_seconds, figures.earliest_due
    late = 0.0 if earliest is None else max(0, now - earliest) / SECOND
    detail = f"the oldest undecided occurrence has waited {late:.1f} s"
    remedy = None if late <= limit else "start another worker, or check for database locks"
    return CheckResult("deciding", late <= limit, detail, remedy)


def _ahead(until: Instant) -> CheckResult:
    detail = f"The clock was ahead. Occurrences until {to_rfc3339(until)} are already decided and do not run again."
    remedy = "Schedules fire again after this time. To run earlier, trigger a schedule or start a backfill."
    return CheckResult("clock", False, detail, remedy, blocks=False)


def _outcomes(connection: Connection, failing_after: int) -> CheckResult:
    """Runs that fail are the business of their authors: they never make the service unready."""
    failing = schedule_health.count_failing(connection, failing_after)
    broken = schedule_health.count_broken(connection)
    detail = f"failing schedules: {failing}; broken schedules: {broken}"
    return CheckResult("outcomes", True, detail)


def _feed(resources: Resources, connection: Connection) -> CheckResult:
    """A feed that lags delays notifications; occurrences are decided all the same."""
    lag = entry_rows.lag(connection, resources.clock.now())
    late = lag.seconds > FEED_LAG_SECONDS
    holders = f", blocked by the database sessions {', '.join(map(str, lag.pids))}" if late and lag.pids else ""
    detail = f"the oldest event that is not yet visible has waited {lag.seconds:.1f} s{holders}"
    return CheckResult(
        "feed", not late, detail, "end the transactions of these sessions" if late else None, blocks=False
    )


def _subscriptions(connection: Connection) -> CheckResult:
    parked, skipped = subscriptions.count_problems(connection)
    detail = f"unreadable subscriptions: {parked}; events not delivered because of them: {skipped}"
    remedy = "edit the subscriptions that have parked_at; last_error contains the cause" if parked else None
    return CheckResult("subscriptions", not parked, detail, remedy, blocks=False)


def _ticked_at(connection: Connection, now: Instant) -> Instant | None:
    """Read the newest completed step of a ticker in any process.

    An instant that lies ahead was written before the clock was set back, and says nothing of the present.
    """
    steps = (row.process.completed.get(TICKER) for row in process_rows(connection))
    return max((at for at in steps if at is not None and at - now <= GAP_SECONDS * SECOND), default=None)


def ahead_until(connection: Connection) -> Instant | None:
    """Read until when occurrences were decided while a clock was ahead; it may have passed."""
    beat = processes.last_beat(connection, TICKER)
    until = None if beat is None else beat.info.get(AHEAD_UNTIL)
    return until if isinstance(until, int) and not isinstance(until, bool) and until <= LAST else None
