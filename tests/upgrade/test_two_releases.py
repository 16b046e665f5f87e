"""Programs of this release and of the next one share a database: each occurrence runs once through the upgrade."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import sqlalchemy as sa
from later_release import HEAD, LATER, become_later, later_source
from upgrade.programs import OWN_SOURCE, Process, run, started

from horarium.features.cluster.verification import verify
from horarium.platform.caller import internal
from horarium.platform.clock import SystemClock
from horarium.platform.database import Connection, Database, open_database, schema
from horarium.platform.database.processes import process_rows
from horarium.platform.database.schema import SchemaState, read_state
from horarium.platform.database.tables import history, runs
from horarium.platform.settings import Settings
from horarium.serve.service import open_service

SCHEDULES = 4


class Target:
    """Counts what it is handed, by key."""

    def __init__(self, url: str, taken: list[str]) -> None:
        self.url = url
        self._taken = taken

    @property
    def keys(self) -> Counter[str]:
        return Counter(self._taken)

    def await_more(self, schedules: int = SCHEDULES) -> None:
        """Of the fires that are decided from now on, one for each schedule."""
        before = len(self._taken)
        until(lambda: len(self._taken) >= before + schedules)


@pytest.fixture
def target() -> Iterator[Target]:
    taken: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(self.headers["Idempotency-Key"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield Target(f"http://127.0.0.1:{server.server_port}/", taken)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def older(empty_url: str) -> Iterator[Database]:
    """The first program makes its tables."""
    database = open_database(empty_url)
    yield database
    database.close()


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_releases_work_side_by_side_and_the_older_one_goes_on_after_the_migration(
    older: Database, empty_url: str, tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = later_source(tmp_path)

    def old() -> AbstractContextManager[Process]:
        return started(OWN_SOURCE, tmp_path, empty_url, "up", "--port", "0")

    with old() as first:
        assert older.read(read_state) == SchemaState(HEAD, HEAD)
        for number in range(SCHEDULES):
            _create(first, f"s{number}", target)
        target.await_more()
        with started(source, tmp_path, empty_url, "worker") as new:
            until(lambda: older.read(_known_schemas) == {HEAD, LATER})
            target.await_more()
            run(source, tmp_path, empty_url, "migrate")
            assert older.read(read_state) == SchemaState(LATER, HEAD)
            target.await_more()
            assert new.stop() == 0
        target.await_more()
        assert first.http.get("/readyz").status_code == 200
        assert not older.write(lambda c: schema.may_use(c, LATER, SystemClock().now()))
        assert first.stop() == 0

    with old() as again:  # a way back
        target.await_more()
        _create(again, "later", target)
        until(lambda: again.http.get("/api/schedules/later").json()["fires_count"] > 0)
        assert again.http.get("/readyz").status_code == 200
        for name in [*(f"s{number}" for number in range(SCHEDULES)), "later"]:
            again.send(f"/api/schedules/{name}/pause", {})
        until(lambda: older.read(_states) == {"succeeded"})
        older.write(lambda c: schema.set_oldest_code(c, LATER))
        until(lambda: again.http.get("/healthz").status_code == 503)
        assert again.stop() == 0
    become_later(monkeypatch, tmp_path)
    _nothing_lost_and_nothing_twice(older, empty_url, target)
    assert "Traceback" not in (tmp_path / f"{OWN_SOURCE.parent.name}.log").read_text()


def until(happens: Callable[[], bool]) -> None:
    """Asked seldom: what is asked works for it."""
    limit = time.monotonic() + 120
    while not happens():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.1)


def _create(by: Process, schedule_id: str, target: Target) -> None:
    fields = {
        "schedule_id": schedule_id,
        "intervals": [{"every": "PT1S"}],
        "overlap_policy": "allow_all",
        "catchup_policy": "fire_all",
        "action": {"kind": "http", "url": target.url},
    }
    by.send("/api/schedules", fields)


def _known_schemas(connection: Connection) -> set[str | None]:
    return {row.process.about.schema for row in process_rows(connection)}


def _states(connection: Connection) -> set[str]:
    return set(connection.execute(sa.select(runs.c.state).distinct()).scalars())


def _nothing_lost_and_nothing_twice(database: Database, url: str, target: Target) -> None:
    twice = {key: count for key, count in target.keys.items() if count > 1}
    born = database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(runs)).scalar_one())
    assert (twice, len(target.keys)) == ({}, born)
    decided = sa.select(history.c.schedule_uid, history.c.nominal).where(history.c.nominal.is_not(None))
    occurrences = Counter(tuple(row) for row in database.read(lambda c: c.execute(decided).all()))
    assert set(occurrences.values()) == {1}
    with open_service(Settings(database=url), migrates=False, key=b"k" * 32) as service:
        assert list(verify(service.resources, internal("test"))) == []
