"""Whether the service lives, is ready, and how its schedules are doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from sqlalchemy import Connection

from horarium.errors import HorariumError
from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller, Permission
from horarium.operations.desk import Desk
from horarium.operations.listings import next_fires
from horarium.recurrence.zone import tzdata_version
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.store import audit, due, leases, open_runs, schedule_lists
from horarium.store.migrate import check_schema
from horarium.store.schedule_lists import Cursor
from horarium.store.schedules import ScheduleRow

_PROCESS = "process:"
_TICKER = "ticker"
_PAGE = 200


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


@dataclass(frozen=True, slots=True)
class Subsystem:
    """A loop of some process, by when it last completed a step."""

    name: str
    last_completed_at: Instant
    seconds_ago: float


class ScheduleHealth(StrEnum):
    OK = "ok"
    STALE = "stale"  # an occurrence has waited too long for its decision
    NEVER_RUN = "never_run"
    PAUSED = "paused"
    FINISHED = "finished"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Examined:
    """`late_seconds`: how long its next occurrence has been due."""

    row: ScheduleRow
    health: ScheduleHealth
    expected_next: Instant | None
    late_seconds: float
    threshold_seconds: float


def ready(desk: Desk) -> Readiness:
    """Never raises: a database that cannot be reached is one more reason not to be ready."""
    checks = [_schema(desk)]
    if checks[0].passed:
        try:
            checks += desk.database.read(lambda connection: [_tick(desk, connection), _undecided(desk, connection)])
        except HorariumError as wrong:
            checks.append(Check("database", False, wrong.message, "look at the database"))
    return Readiness(tuple(checks), tzdata_version())


def observe(desk: Desk) -> None:
    """Tells the metrics what only the database knows; asked now and then."""
    now = desk.clock.now()

    def look(connection: Connection) -> tuple[Instant | None, int, Mapping[str, int]]:
        return due.earliest_due(connection), audit.count_broken(connection), open_runs.depth_by_state(connection)

    earliest, broken, depth = desk.database.read(look)
    late = 0.0 if earliest is None else max(0, now - earliest) / SECOND
    desk.telemetry.looked(oldest_undecided_seconds=late, broken=broken, queue_depth=depth)


def liveness(desk: Desk, caller: Caller) -> list[Subsystem]:
    """By completed steps, not by mere pulses: a loop that hangs grows old here."""
    caller.require(Permission.READ)
    now = desk.clock.now()
    newest = desk.database.read(_completed)
    return [Subsystem(name, at, max(0, now - at) / SECOND) for name, at in sorted(newest.items())]


def examine(desk: Desk, caller: Caller) -> list[Examined]:
    """Every schedule of the namespace, judged by its own spec: due and undecided for too long is stale."""
    caller.require(Permission.READ)
    found: list[Examined] = []
    after: Cursor | None = None
    while True:
        page, after = desk.database.read(partial(_examine_page, desk, caller, after))
        found += page
        if after is None:
            return found


def _schema(desk: Desk) -> Check:
    try:
        check_schema(desk.database)
    except HorariumError as wrong:
        return Check("migrated", False, wrong.message, "run horarium migrate")
    return Check("migrated", True, "the tables are those of this program")


def _tick(desk: Desk, connection: Connection) -> Check:
    limit = desk.settings.ready_tick_age_seconds
    at = _completed(connection).get(_TICKER)
    if at is None:
        return Check("ticking", False, "no ticker has completed a step yet", "start horarium up or horarium worker")
    age = max(0, desk.clock.now() - at) / SECOND
    detail = f"a ticker completed a step {age:.1f} s ago"
    remedy = None if age <= limit else "no ticker completes its steps; look at its log"
    return Check("ticking", age <= limit, detail, remedy)


def _undecided(desk: Desk, connection: Connection) -> Check:
    limit = desk.settings.ready_undecided_seconds
    earliest = due.earliest_due(connection)
    late = 0.0 if earliest is None else max(0, desk.clock.now() - earliest) / SECOND
    detail = f"the oldest undecided occurrence has waited {late:.1f} s"
    remedy = None if late <= limit else "more is due than is decided; start another worker"
    return Check("deciding", late <= limit, detail, remedy)


def _completed(connection: Connection) -> dict[str, Instant]:
    """The newest completed step of each loop, in whatever process."""
    newest: dict[str, Instant] = {}
    for lease in leases.all_leases(connection):
        if lease.name.startswith(_PROCESS):
            for loop, at in lease.info.items():
                if isinstance(at, int):
                    newest[loop] = max(at, newest.get(loop, at))
    return newest


def _examine_page(
    desk: Desk, caller: Caller, after: Cursor | None, connection: Connection
) -> tuple[list[Examined], Cursor | None]:
    page = schedule_lists.list_page(connection, caller.namespace, after=after, limit=_PAGE)
    compiled = desk.known.load(connection, [row.planning for row in page.rows])
    return [_examined(desk, row, compiled[row.planning]) for row in page.rows], page.after


def _examined(desk: Desk, row: ScheduleRow, planning: Planning | Exception) -> Examined:
    now, threshold = desk.clock.now(), desk.settings.ready_undecided_seconds
    ticking = row.status is Status.ACTIVE and row.next_due is not None
    late = max(0, now - row.next_due) / SECOND if ticking and row.next_due is not None else 0.0
    fires = () if isinstance(planning, Exception) else next_fires(row, planning, now, 1)
    health = _judged(row, broken=isinstance(planning, Exception), late=late > threshold)
    return Examined(row, health, fires[0].due if fires else None, late, threshold)


def _judged(row: ScheduleRow, *, broken: bool, late: bool) -> ScheduleHealth:
    if broken or row.status is Status.BROKEN:
        return ScheduleHealth.BROKEN
    if row.status is Status.PAUSED:
        return ScheduleHealth.PAUSED
    if late:
        return ScheduleHealth.STALE
    if row.last_fired_at is None and row.status is Status.ACTIVE:
        return ScheduleHealth.NEVER_RUN
    return ScheduleHealth.FINISHED if row.status is Status.FINISHED else ScheduleHealth.OK
