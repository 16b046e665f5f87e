"""Whether an installation is healthy: every check with what it found, and what to do about it.

Looking changes nothing: no directory, no file and no table is made here.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import httpx

from horarium.clock import Clock
from horarium.decision.process_state import GONE_AFTER_SECONDS, silent_seconds
from horarium.errors import HorariumError
from horarium.instant import DAY, MINUTE, SECOND, to_rfc3339
from horarium.operations.health import ahead_until
from horarium.recurrence.zone import tzdata_version
from horarium.schedule.position import Status
from horarium.serve.address import address_file
from horarium.serve.admin import token_file
from horarium.serve.application import load_application
from horarium.serve.launchers import CELERY_REMEDY, has_celery, unreachable_brokers
from horarium.serve.process import AddressTaken, listen
from horarium.serve.tls import IN_THE_CLEAR_REMEDY, expiry_of, in_the_clear, open_tls
from horarium.settings import Origin, Settings, as_up_takes_them, origins
from horarium.store import leases, namespaces, partition_upkeep, tokens
from horarium.store.database import Connection, Database, open_database
from horarium.store.database.sqlite import database_path
from horarium.store.errors import DATABASE_REMEDY, SchemaMissing, SchemaTooNew, SchemaTooOld
from horarium.store.history import horizon
from horarium.store.history.horizon import FEED_LAG_SECONDS
from horarium.store.migrate import SchemaReport, check_schema
from horarium.store.runs import open_runs, step_changes
from horarium.store.schedules import lists as schedule_lists
from horarium.store.schema_state import Fit
from horarium.store.subscriptions import rows as subscriptions

_OLDEST_PYTHON = (3, 11)
_MOST_OFFSET = SECOND
_ASK_SECONDS = 2.0
_LONG_WAIT = 5 * MINUTE
_MOST_SHOWN = 5
_SOON = 14 * DAY
_RENEW = "replace the certificate file; the service reloads it without a restart"
_SAID_BY: Mapping[Origin, str] = {
    "flag": "set by an option",
    "environment": "set by the environment",
    "file": "set by the file",
    "default": "by default",
    "up": "set by `up` because it listens on loopback; `server` and `worker` do not",
}


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Level
    found: str
    remedy: str = ""


def examine(settings: Settings, clock: Clock) -> Iterator[Check]:
    yield _python()
    yield Check("tzdata", Level.OK, f"version {tzdata_version()}")
    yield _data_dir(settings)
    yield _port(settings)
    yield _targets(settings)
    yield _tls(settings, clock)
    if settings.app is not None:
        yield _application(settings.app)
    yield from _brokers(settings)
    yield from _database(settings, clock)


def _python() -> Check:
    good = sys.version_info >= _OLDEST_PYTHON
    level = Level.OK if good else Level.FAILURE
    return Check("python", level, platform.python_version(), "" if good else "install Python 3.11 or newer")


def _data_dir(settings: Settings) -> Check:
    path = settings.data_dir
    if not path.exists():
        return Check("data directory", Level.WARNING, f"{path} does not exist yet", "`horarium up` creates it")
    if not path.is_dir() or not os.access(path, os.W_OK | os.X_OK):
        return Check("data directory", Level.FAILURE, f"{path} is not writable", "choose another --data-dir")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Check("data directory", Level.WARNING, f"{path} is readable by other users", f"chmod 700 {path}")
    return Check("data directory", Level.OK, f"{path} is writable")


def _port(settings: Settings) -> Check:
    where = f"{settings.host} port {settings.port}"
    try:
        listen(settings.host, settings.port).close()
    except AddressTaken as taken:
        if _is_ours(settings):
            return Check("port", Level.OK, f"Horarium responds at {where}")
        return Check(
            "port", Level.FAILURE, taken.message, "choose another --port, or stop the process that listens there"
        )
    return Check("port", Level.OK, f"{where} is free")


def _targets(settings: Settings) -> Check:
    """Report what schedules may call in addition to the public Internet, and which setting allows it."""
    as_up = as_up_takes_them(settings)
    came_from = origins(as_up)
    told = [
        f"{name} targets are {'open' if getattr(as_up, setting) else 'closed'} ({_SAID_BY[came_from[setting]]})"
        for name, setting in (("loopback", "allow_loopback_targets"), ("private", "allow_private_targets"))
    ]
    return Check("targets", Level.OK, "; ".join(told))


def _tls(settings: Settings, clock: Clock) -> Check:
    if (problem := in_the_clear(settings)) is not None:
        return Check("tls", Level.WARNING, problem, IN_THE_CLEAR_REMEDY)
    if settings.tls_cert is None:
        return Check("tls", Level.OK, "a proxy terminates TLS" if settings.behind_proxy else "not needed on loopback")
    try:
        open_tls(settings)
        until = expiry_of(settings.tls_cert)
    except HorariumError as wrong:
        return Check("tls", Level.FAILURE, wrong.message, "check the files and that the process can read them")
    left = until - clock.now()
    found = f"{settings.tls_cert} expires at {to_rfc3339(until)}"
    if left <= 0:
        return Check("tls", Level.FAILURE, f"{settings.tls_cert} expired at {to_rfc3339(until)}", _RENEW)
    return Check("tls", Level.WARNING if left < _SOON else Level.OK, found, _RENEW if left < _SOON else "")


def _is_ours(settings: Settings) -> bool:
    """Nothing secret is said, so nobody has to vouch; one who asks for a certificate lets us no further."""
    if settings.tls_client_ca is not None and not settings.tls_client_optional:
        return address_file(settings).exists()
    return any(_answers(f"{scheme}://{settings.host}:{settings.port}/livez") for scheme in ("http", "https"))


def _answers(url: str) -> bool:
    try:
        answer = httpx.get(url, timeout=_ASK_SECONDS, trust_env=False, verify=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return answer.is_success and "x-durable-workflow-control-plane-version" in answer.headers


def _application(name: str) -> Check:
    try:
        found = load_application(name)
    except HorariumError as wrong:
        return Check("application", Level.FAILURE, wrong.message, "check --app and the working directory")
    return Check("application", Level.OK, f"{name}: {len(found.tasks)} tasks, {len(found.templates)} schedules")


def _brokers(settings: Settings) -> Iterator[Check]:
    """Nothing to say where none is configured; each is given a few seconds."""
    if not settings.celery_connections:
        return
    if not has_celery():
        yield Check("celery", Level.FAILURE, "celery_connections is set, but Celery is not installed", CELERY_REMEDY)
        return
    for name, wrong in sorted(unreachable_brokers(settings).items()):
        if wrong is None:
            yield Check("broker", Level.OK, f"{name} answers")
        else:
            yield Check(
                "broker", Level.FAILURE, f"{name}: {wrong}", "check celery_connections and that the broker is running"
            )


# ── what only the database knows ─────────────────────────────────────────────────────────────────────


def _database(settings: Settings, clock: Clock) -> Iterator[Check]:
    url = settings.database_url
    if url.startswith("sqlite:") and not database_path(url).exists():
        yield Check("database", Level.WARNING, f"{database_path(url)} does not exist yet", "`horarium up` creates it")
        return
    try:
        if url.startswith("sqlite:") and stat.S_IMODE(database_path(url).stat().st_mode) & 0o077:
            path = database_path(url)
            yield Check("database file", Level.WARNING, f"{path} is readable by other users", f"chmod 600 {path}*")
        with _opened(settings) as database:
            yield Check("database", Level.OK, f"{database.url} answers")
            yield from _inside(settings, database, clock)
    except HorariumError as wrong:
        yield Check("database", Level.FAILURE, wrong.message, "check --database and that its server is running")


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    database = open_database(settings.database_url, pool_size=1)
    try:
        yield database
    finally:
        database.close()


def _inside(settings: Settings, database: Database, clock: Clock) -> Iterator[Check]:
    try:
        yield _tables(check_schema(database))
    except SchemaTooNew as wrong:
        yield Check("tables", Level.FAILURE, wrong.message, "install the same version as the other processes")
        return
    except SchemaMissing as wrong:
        yield Check("tables", Level.FAILURE, wrong.message, "horarium migrate")
        return
    except SchemaTooOld as wrong:
        yield Check("tables", Level.FAILURE, wrong.message, "set database to a new database")
        return
    except HorariumError as wrong:
        yield Check("tables", Level.FAILURE, wrong.message, DATABASE_REMEDY)
        return
    checks: tuple[Callable[[Settings, Database, Clock], Check], ...] = (_clock, _token, _broken, _leases)
    for check in checks:
        yield check(settings, database, clock)
    yield from _weeks(database, clock)
    yield from _unclaimed(database, clock)
    yield from _unnoticed(database, clock)
    yield _feed(database, clock)
    yield from _parked(database)


def _tables(found: SchemaReport) -> Check:
    match found.fit:
        case Fit.OLDER:
            return Check(
                "tables",
                Level.WARNING,
                found.sentence,
                "run `horarium migrate` once all processes support the new schema",
            )
        case Fit.NEWER:
            return Check("tables", Level.WARNING, found.sentence, "install the same version as the other processes")
        case _:
            return Check("tables", Level.OK, "up to date")


def _clock(_settings: Settings, database: Database, clock: Clock) -> Check:
    offset = database.clock_offset(clock)
    until = database.read(ahead_until)
    if until is not None and until > clock.now() + offset:
        found = f"The clock was ahead earlier; occurrences until {to_rfc3339(until)} are already decided"
        return Check("clock", Level.WARNING, found, "wait until then, trigger a schedule, or start a backfill")
    found = f"{offset / SECOND:+.3f} s from the database"
    if abs(offset) > _MOST_OFFSET:
        return Check(
            "clock", Level.WARNING, found, "synchronise the clocks with NTP; until then the engine corrects the offset"
        )
    return Check("clock", Level.OK, found)


def _token(settings: Settings, database: Database, clock: Clock) -> Check:
    path = token_file(settings)
    if settings.token is not None:
        return Check("admin token", Level.OK, "set by the settings")
    if not path.exists():
        return Check("admin token", Level.WARNING, f"{path} does not exist", "`horarium up` creates one")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Check("admin token", Level.FAILURE, f"{path} is readable by other users", f"chmod 600 {path}")
    secret, now = path.read_text("utf-8").strip(), clock.now()
    if database.read(lambda connection: tokens.find_by_secret(connection, secret, now=now)) is None:
        return Check(
            "admin token",
            Level.FAILURE,
            f"the token in {path} is not valid for this database",
            f"rm {path}; horarium up",
        )
    return Check("admin token", Level.OK, str(path))


def _broken(_settings: Settings, database: Database, _clock: Clock) -> Check:
    def count(connection: Connection) -> int:
        everywhere = namespaces.all_namespaces(connection)
        return sum(schedule_lists.count_by_status(connection, each.namespace)[Status.BROKEN] for each in everywhere)

    broken = database.read(count)
    if broken:
        return Check(
            "schedules", Level.FAILURE, f"{broken} broken", "run GET /api/schedules?status=broken for the reasons"
        )
    return Check("schedules", Level.OK, "no broken schedules")


def _weeks(database: Database, clock: Clock) -> Iterator[Check]:
    """PostgreSQL alone keeps what grows in tables of a week each."""
    now = clock.now() + database.clock_offset(clock)
    weeks = database.read(lambda connection: partition_upkeep.look(connection, now))
    if weeks is None:
        return
    if not weeks.may_make:
        found = "the database role cannot create the weekly partitions; rows go into the default partitions"
        yield Check(
            "partitions", Level.WARNING, found, "make the role the owner of the tables and GRANT it CREATE ON SCHEMA"
        )
    elif weeks.missing:
        found = "a weekly partition for this week or the next is missing; rows go into the default partitions"
        yield Check(
            "partitions",
            Level.WARNING,
            found,
            "start `horarium up` or `horarium worker`; it creates them within minutes",
        )
    else:
        until = "some time" if weeks.until is None else to_rfc3339(weeks.until)
        yield Check("partitions", Level.OK, f"weekly partitions exist until {until}")


def _unclaimed(database: Database, clock: Clock) -> Iterator[Check]:
    """Nothing to say where nobody waits: most installations have no queues."""
    before = clock.now() - _LONG_WAIT
    for each in database.read(
        lambda connection: open_runs.unclaimed(connection, born_before=before, limit=_MOST_SHOWN)
    ):
        found = f"{each.runs} runs have waited for more than {_LONG_WAIT // MINUTE} minutes"
        where = f"for a worker that handles {each.workflow!r} on queue {each.queue!r} in namespace {each.namespace!r}"
        yield Check("queue", Level.WARNING, f"{found} {where}", "start a worker that handles it")


def _unnoticed(database: Database, clock: Clock) -> Iterator[Check]:
    """A workflow takes note of its steps within a second or so, where an engine runs."""
    before = clock.now() - MINUTE
    waiting = database.read(lambda connection: step_changes.pending(connection, made_before=before))
    if waiting:
        found = f"{waiting} finished steps have waited for more than a minute for their workflows to advance"
        yield Check(
            "workflows", Level.WARNING, found, "start `horarium up` or `horarium worker`; if one runs, check its log"
        )


def _feed(database: Database, clock: Clock) -> Check:
    now = clock.now() + database.clock_offset(clock)
    lag = database.read(lambda connection: horizon.lag(connection, now))
    if lag.seconds <= FEED_LAG_SECONDS:
        return Check("feed", Level.OK, f"{lag.seconds:.1f} s behind committed changes")
    found = f"{lag.seconds:.0f} s behind committed changes; streams and subscriptions are delayed"
    pids = ", ".join(map(str, lag.pids)) or "…"
    return Check("feed", Level.WARNING, found, f"end the transactions of these PostgreSQL server processes: {pids}")


def _parked(database: Database) -> Iterator[Check]:
    """Nothing to say where all can be read."""
    parked, skipped = database.read(subscriptions.count_problems)
    if parked:
        found = f"{parked} cannot be read and receive no events"
        yield Check(
            "subscriptions",
            Level.FAILURE,
            found,
            "edit the subscriptions that have parked_at: `horarium subscription list`",
        )
    if skipped:
        found = f"{skipped} events could not be read and were skipped"
        yield Check("subscriptions", Level.WARNING, found, "show the last one with `horarium subscription show NAME`")


def _leases(_settings: Settings, database: Database, clock: Clock) -> Check:
    now = clock.now() + database.clock_offset(clock)
    rows = database.read(leases.all_leases)
    stale = [row for row in rows if silent_seconds(row.beat_at, now) > GONE_AFTER_SECONDS]
    if not rows:
        return Check("engine", Level.WARNING, "No engine has run yet", "start `horarium up` or `horarium worker`")
    if len(stale) == len(rows):
        last = to_rfc3339(max(row.beat_at for row in rows))
        return Check(
            "engine", Level.WARNING, f"No engine has run since {last}", "start `horarium up` or `horarium worker`"
        )
    lost = f"; {len(stale)} stopped without a final heartbeat" if stale else ""
    return Check("engine", Level.OK, f"{len(rows) - len(stale)} active{lost}")
