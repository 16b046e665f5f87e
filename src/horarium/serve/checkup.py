"""Checks of the health of an installation: the result of each, and what to do about it.

A check changes nothing: it creates no directory, file or table.
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

from horarium.core.decision.presence import GONE_AFTER_SECONDS, silent_seconds
from horarium.core.document.states import Status
from horarium.core.recurrence.zone import tzdata_version
from horarium.errors import HorariumError
from horarium.features.cluster.health import ahead_until
from horarium.features.history import entry_rows
from horarium.features.history.entry_rows import FEED_LAG_SECONDS
from horarium.features.runs import open_rows, step_rows
from horarium.features.schedules import list_rows as schedule_lists
from horarium.features.tenants import rows as tenant_rows
from horarium.features.webhooks import rows as subscriptions
from horarium.instant import DAY, MINUTE, SECOND, to_rfc3339
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database, open_database, partition_upkeep, processes
from horarium.platform.database.errors import DATABASE_REMEDY, SchemaMissing, SchemaTooNew, SchemaTooOld
from horarium.platform.database.schema import Fit, SchemaReport, check_schema
from horarium.platform.database.sqlite import database_path
from horarium.platform.settings import Origin, Settings, as_up_takes_them, origins
from horarium.serve.data_dir import address_file, token_file
from horarium.serve.launchers import CELERY_REMEDY, has_celery, load_application, unreachable_brokers
from horarium.serve.process import AddressTaken, listen
from horarium.serve.sockets import IN_THE_CLEAR_REMEDY, expiry_of, in_the_clear, open_tls

_OLDEST_PYTHON = (3, 11)
_MOST_OFFSET = SECOND
_ASK_SECONDS = 2.0
_LONG_WAIT = 5 * MINUTE
_MOST_SHOWN = 5
_SOON = 14 * DAY
_RENEW = "replace the certificate file; the service reloads it without a restart"
_ORIGIN_WORDS: Mapping[Origin, str] = {
    "flag": "set by an option",
    "environment": "set by the environment",
    "file": "set by the file",
    "default": "by default",
    "up": "set by `up` because it listens on loopback; `server` and `worker` do not",
}


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    level: Grade
    found: str
    remedy: str = ""


def examine(settings: Settings, clock: Clock) -> Iterator[Probe]:
    yield _python()
    yield Probe("tzdata", Grade.OK, f"version {tzdata_version()}")
    yield _data_dir(settings)
    yield _port(settings)
    yield _targets(settings)
    yield _tls(settings, clock)
    if settings.app is not None:
        yield _application(settings.app)
    yield from _brokers(settings)
    yield from _database(settings, clock)


def _python() -> Probe:
    good = sys.version_info >= _OLDEST_PYTHON
    level = Grade.OK if good else Grade.FAILURE
    return Probe("python", level, platform.python_version(), "" if good else "install Python 3.11 or newer")


def _data_dir(settings: Settings) -> Probe:
    path = settings.data_dir
    if not path.exists():
        return Probe("data directory", Grade.WARNING, f"{path} does not exist yet", "`horarium up` creates it")
    if not path.is_dir() or not os.access(path, os.W_OK | os.X_OK):
        return Probe("data directory", Grade.FAILURE, f"{path} is not writable", "choose another --data-dir")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Probe("data directory", Grade.WARNING, f"{path} is readable by other users", f"chmod 700 {path}")
    return Probe("data directory", Grade.OK, f"{path} is writable")


def _port(settings: Settings) -> Probe:
    where = f"{settings.host} port {settings.port}"
    try:
        listen(settings.host, settings.port).close()
    except AddressTaken as taken:
        if _is_ours(settings):
            return Probe("port", Grade.OK, f"Horarium responds at {where}")
        return Probe(
            "port", Grade.FAILURE, taken.message, "choose another --port, or stop the process that listens there"
        )
    return Probe("port", Grade.OK, f"{where} is free")


def _targets(settings: Settings) -> Probe:
    """Report what schedules may call in addition to the public Internet, and which setting allows it."""
    as_up = as_up_takes_them(settings)
    came_from = origins(as_up)
    told = [
        f"{name} targets are {'open' if getattr(as_up, setting) else 'closed'} ({_ORIGIN_WORDS[came_from[setting]]})"
        for name, setting in (("loopback", "allow_loopback_targets"), ("private", "allow_private_targets"))
    ]
    return Probe("targets", Grade.OK, "; ".join(told))


def _tls(settings: Settings, clock: Clock) -> Probe:
    if (problem := in_the_clear(settings)) is not None:
        return Probe("tls", Grade.WARNING, problem, IN_THE_CLEAR_REMEDY)
    if settings.tls_cert is None:
        return Probe("tls", Grade.OK, "a proxy terminates TLS" if settings.behind_proxy else "not needed on loopback")
    try:
        open_tls(settings)
        until = expiry_of(settings.tls_cert)
    except HorariumError as wrong:
        return Probe("tls", Grade.FAILURE, wrong.message, "check the files and that the process can read them")
    left = until - clock.now()
    found = f"{settings.tls_cert} expires at {to_rfc3339(until)}"
    if left <= 0:
        return Probe("tls", Grade.FAILURE, f"{settings.tls_cert} expired at {to_rfc3339(until)}", _RENEW)
    return Probe("tls", Grade.WARNING if left < _SOON else Grade.OK, found, _RENEW if left < _SOON else "")


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


def _application(name: str) -> Probe:
    try:
        found = load_application(name)
    except HorariumError as wrong:
        return Probe("application", Grade.FAILURE, wrong.message, "check --app and the working directory")
    return Probe("application", Grade.OK, f"{name}: {len(found.tasks)} tasks, {len(found.templates)} schedules")


def _brokers(settings: Settings) -> Iterator[Probe]:
    """Nothing to say where none is configured; each is given a few seconds."""
    if not settings.celery_connections:
        return
    if not has_celery():
        yield Probe("celery", Grade.FAILURE, "celery_connections is set, but Celery is not installed", CELERY_REMEDY)
        return
    for name, wrong in sorted(unreachable_brokers(settings).items()):
        if wrong is None:
            yield Probe("broker", Grade.OK, f"{name} answers")
        else:
            yield Probe(
                "broker", Grade.FAILURE, f"{name}: {wrong}", "check celery_connections and that the broker is running"
            )


# ── what only the database knows ─────────────────────────────────────────────────────────────────────


def _database(settings: Settings, clock: Clock) -> Iterator[Probe]:
    url = settings.database_url
    if url.startswith("sqlite:") and not database_path(url).exists():
        yield Probe("database", Grade.WARNING, f"{database_path(url)} does not exist yet", "`horarium up` creates it")
        return
    try:
        if url.startswith("sqlite:") and stat.S_IMODE(database_path(url).stat().st_mode) & 0o077:
            path = database_path(url)
            yield Probe("database file", Grade.WARNING, f"{path} is readable by other users", f"chmod 600 {path}*")
        with _opened(settings) as database:
            yield Probe("database", Grade.OK, f"{database.url} answers")
            yield from _inside(settings, database, clock)
    except HorariumError as wrong:
        yield Probe("database", Grade.FAILURE, wrong.message, "check --database and that its server is running")


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    database = open_database(settings.database_url, pool_size=1)
    try:
        yield database
    finally:
        database.close()


def _inside(settings: Settings, database: Database, clock: Clock) -> Iterator[Probe]:
    try:
        yield _tables(check_schema(database))
    except SchemaTooNew as wrong:
        yield Probe("tables", Grade.FAILURE, wrong.message, "install the same version as the other processes")
        return
    except SchemaMissing as wrong:
        yield Probe("tables", Grade.FAILURE, wrong.message, "horarium migrate")
        return
    except SchemaTooOld as wrong:
        yield Probe("tables", Grade.FAILURE, wrong.message, "set database to a new database")
        return
    except HorariumError as wrong:
        yield Probe("tables", Grade.FAILURE, wrong.message, DATABASE_REMEDY)
        return
    checks: tuple[Callable[[Settings, Database, Clock], Probe], ...] = (_clock, _token, _broken, _leases)
    for check in checks:
        yield check(settings, database, clock)
    yield from _weeks(database, clock)
    yield from _unclaimed(database, clock)
    yield from _unnoticed(database, clock)
    yield _feed(database, clock)
    yield from _parked(database)


def _tables(found: SchemaReport) -> Probe:
    match found.fit:
        case Fit.OLDER:
            return Probe(
                "tables",
                Grade.WARNING,
                found.sentence,
                "run `horarium migrate` once all processes support the new schema",
            )
        case Fit.NEWER:
            return Probe("tables", Grade.WARNING, found.sentence, "install the same version as the other processes")
        case _:
            return Probe("tables", Grade.OK, "up to date")


def _clock(_settings: Settings, database: Database, clock: Clock) -> Probe:
    offset = database.clock_offset(clock)
    until = database.read(ahead_until)
    if until is not None and until > clock.now() + offset:
        found = f"The clock was ahead earlier; occurrences until {to_rfc3339(until)} are already decided"
        return Probe("clock", Grade.WARNING, found, "wait until then, trigger a schedule, or start a backfill")
    found = f"{offset / SECOND:+.3f} s from the database"
    if abs(offset) > _MOST_OFFSET:
        return Probe(
            "clock", Grade.WARNING, found, "synchronise the clocks with NTP; until then the engine corrects the offset"
        )
    return Probe("clock", Grade.OK, found)


def _token(settings: Settings, database: Database, clock: Clock) -> Probe:
    path = token_file(settings)
    if settings.token is not None:
        return Probe("admin token", Grade.OK, "set by the settings")
    if not path.exists():
        return Probe("admin token", Grade.WARNING, f"{path} does not exist", "`horarium up` creates one")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Probe("admin token", Grade.FAILURE, f"{path} is readable by other users", f"chmod 600 {path}")
    secret, now = path.read_text("utf-8").strip(), clock.now()
    if database.read(lambda connection: tenant_rows.find_token_by_secret(connection, secret, now=now)) is None:
        return Probe(
            "admin token",
            Grade.FAILURE,
            f"the token in {path} is not valid for this database",
            f"rm {path}; horarium up",
        )
    return Probe("admin token", Grade.OK, str(path))


def _broken(_settings: Settings, database: Database, _clock: Clock) -> Probe:
    def count(connection: Connection) -> int:
        everywhere = tenant_rows.all_namespaces(connection)
        return sum(schedule_lists.count_by_status(connection, each.namespace)[Status.BROKEN] for each in everywhere)

    broken = database.read(count)
    if broken:
        return Probe(
            "schedules", Grade.FAILURE, f"{broken} broken", "run GET /api/schedules?status=broken for the reasons"
        )
    return Probe("schedules", Grade.OK, "no broken schedules")


def _weeks(database: Database, clock: Clock) -> Iterator[Probe]:
    """PostgreSQL alone keeps what grows in tables of a week each."""
    now = clock.now() + database.clock_offset(clock)
    weeks = database.read(lambda connection: partition_upkeep.look(connection, now))
    if weeks is None:
        return
    if not weeks.may_make:
        found = "the database role cannot create the weekly partitions; rows go into the default partitions"
        yield Probe(
            "partitions", Grade.WARNING, found, "make the role the owner of the tables and GRANT it CREATE ON SCHEMA"
        )
    elif weeks.missing:
        found = "a weekly partition for this week or the next is missing; rows go into the default partitions"
        yield Probe(
            "partitions",
            Grade.WARNING,
            found,
            "start `horarium up` or `horarium worker`; it creates them within minutes",
        )
    else:
        until = "some time" if weeks.until is None else to_rfc3339(weeks.until)
        yield Probe("partitions", Grade.OK, f"weekly partitions exist until {until}")


def _unclaimed(database: Database, clock: Clock) -> Iterator[Probe]:
    """Nothing to say where nobody waits: most installations have no queues."""
    before = clock.now() - _LONG_WAIT
    for each in database.read(
        lambda connection: open_rows.unclaimed(connection, born_before=before, limit=_MOST_SHOWN)
    ):
        found = f"{each.runs} runs have waited for more than {_LONG_WAIT // MINUTE} minutes"
        where = f"for a worker that handles {each.workflow!r} on queue {each.queue!r} in namespace {each.namespace!r}"
        yield Probe("queue", Grade.WARNING, f"{found} {where}", "start a worker that handles it")


def _unnoticed(database: Database, clock: Clock) -> Iterator[Probe]:
    """A workflow takes note of its steps within a second or so, where an engine runs."""
    before = clock.now() - MINUTE
    waiting = database.read(lambda connection: step_rows.count_pending(connection, made_before=before))
    if waiting:
        found = f"{waiting} finished steps have waited for more than a minute for their workflows to advance"
        yield Probe(
            "workflows", Grade.WARNING, found, "start `horarium up` or `horarium worker`; if one runs, check its log"
        )


def _feed(database: Database, clock: Clock) -> Probe:
    now = clock.now() + database.clock_offset(clock)
    lag = database.read(lambda connection: entry_rows.lag(connection, now))
    if lag.seconds <= FEED_LAG_SECONDS:
        return Probe("feed", Grade.OK, f"{lag.seconds:.1f} s behind committed changes")
    found = f"{lag.seconds:.0f} s behind committed changes; streams and subscriptions are delayed"
    pids = ", ".join(map(str, lag.pids)) or "…"
    return Probe("feed", Grade.WARNING, found, f"end the transactions of these PostgreSQL server processes: {pids}")


def _parked(database: Database) -> Iterator[Probe]:
    """Nothing to say where all can be read."""
    parked, skipped = database.read(subscriptions.count_problems)
    if parked:
        found = f"{parked} cannot be read and receive no events"
        yield Probe(
            "subscriptions",
            Grade.FAILURE,
            found,
            "edit the subscriptions that have parked_at: `horarium subscription list`",
        )
    if skipped:
        found = f"{skipped} events could not be read and were skipped"
        yield Probe("subscriptions", Grade.WARNING, found, "show the last one with `horarium subscription show NAME`")


def _leases(_settings: Settings, database: Database, clock: Clock) -> Probe:
    now = clock.now() + database.clock_offset(clock)
    rows = database.read(processes.all_leases)
    stale = [row for row in rows if silent_seconds(row.beat_at, now) > GONE_AFTER_SECONDS]
    if not rows:
        return Probe("engine", Grade.WARNING, "No engine has run yet", "start `horarium up` or `horarium worker`")
    if len(stale) == len(rows):
        last = to_rfc3339(max(row.beat_at for row in rows))
        return Probe(
            "engine", Grade.WARNING, f"No engine has run since {last}", "start `horarium up` or `horarium worker`"
        )
    lost = f"; {len(stale)} stopped without a final heartbeat" if stale else ""
    return Probe("engine", Grade.OK, f"{len(rows) - len(stale)} active{lost}")
