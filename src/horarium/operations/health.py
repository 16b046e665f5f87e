"""Whether the service is ready to do its work, and what only its database can tell the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from horarium.errors import HorariumError
from horarium.instant import SECOND, Instant
from horarium.operations.resources import Resources
from horarium.recurrence.zone import tzdata_version
from horarium.store.database import Connection
from horarium.store.errors import SchemaTooNew, shown
from horarium.store.history import audit
from horarium.store.migrate import check_schema
from horarium.store.processes import process_rows
from horarium.store.runs import open_runs, step_changes
from horarium.store.schedules import due
from horarium.store.schedules import health as schedule_health
from horarium.store.schema_state import Fit

_TICKER = "ticker"


@dataclass(frozen=True, slots=True)
class Check:
    """One question about readiness; `detail` is a sentence, `remedy` what to do where it fails."""

    name: str
    passed: bool
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Readiness:
    checks: tuple[Check, ...]
    tzdata: str

    @property
    def ready(self) -> bool:
        return all(check.passed for check in self.checks)


def ready(resources: Resources) -> Readiness:
    """Never raises: a database that cannot be reached is one more reason not to be ready."""
    checks = [_schema(resources)]
    if checks[0].passed:
        try:
            checks += resources.database.read(
                lambda connection: [
                    _tick(resources, connection),
                    _undecided(resources, connection),
                    _outcomes(connection, resources.settings.failing_after),
                ]
            )
        except HorariumError as wrong:
            checks.append(Check("database", False, shown(wrong), "look at the database"))
    return Readiness(tuple(checks), tzdata_version())


def observe(resources: Resources) -> None:
    """Tells the metrics what only the database knows; asked now and then."""
    now = resources.clock.now()

    def look(connection: Connection) -> tuple[Instant | None, int, Mapping[str, int], int, int]:
        return (
            due.earliest_due(connection),
            audit.count_broken(connection),
            open_runs.depth_by_state(connection),
            step_changes.pending(connection),
            open_runs.approvals_waiting(connection),
        )

    earliest, broken, depth, changes, approvals = resources.database.read(look)
    late = 0.0 if earliest is None else max(0, now - earliest) / SECOND
    resources.telemetry.looked(
        oldest_undecided_seconds=late,
        broken=broken,
        queue_depth=depth,
        workflow_changes=changes,
        approvals=approvals,
    )


def _schema(resources: Resources) -> Check:
    """Tables of the release before are good enough, and so are newer ones that fit."""
    try:
        found = check_schema(resources.database)
    except SchemaTooNew as wrong:
        return Check("migrated", False, shown(wrong), "upgrade this program")
    except HorariumError as wrong:
        return Check("migrated", False, shown(wrong), "run horarium migrate")
    return Check("migrated", True, found.sentence, "run horarium migrate" if found.fit is Fit.OLDER else None)


def _tick(resources: Resources, connection: Connection) -> Check:
    limit = resources.settings.ready_tick_age_seconds
    at = _completed(connection).get(_TICKER)
    if at is None:
        return Check("ticking", False, "no ticker has completed a step yet", "start horarium up or horarium worker")
    age = max(0, resources.clock.now() - at) / SECOND
    detail = f"a ticker completed a step {age:.1f} s ago"
    remedy = None if age <= limit else "no ticker completes its steps; look at its log"
    return Check("ticking", age <= limit, detail, remedy)


def _undecided(resources: Resources, connection: Connection) -> Check:
    limit = resources.settings.ready_undecided_seconds
    earliest = due.earliest_due(connection)
    late = 0.0 if earliest is None else max(0, resources.clock.now() - earliest) / SECOND
    detail = f"the oldest undecided occurrence has waited {late:.1f} s"
    remedy = None if late <= limit else "more is due than is decided; start another worker"
    return Check("deciding", late <= limit, detail, remedy)


def _outcomes(connection: Connection, failing_after: int) -> Check:
    """What runs come to is the business of those who wrote them: it never makes the service unready."""
    failing, broken = schedule_health.count_failing(connection, failing_after), audit.count_broken(connection)
    detail = f"failing schedules: {failing}; schedules that are broken: {broken}"
    return Check("outcomes", True, detail)


def _completed(connection: Connection) -> dict[str, Instant]:
    """The newest completed step of each loop, in whatever process."""
    newest: dict[str, Instant] = {}
    for row in process_rows(connection):
        for loop, at in row.process.completed.items():
            newest[loop] = max(at, newest.get(loop, at))
    return newest
