"""A service that is told to stop ends, although another process keeps the SQLite file locked."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from horarium.platform.database import Database, open_database
from horarium.platform.database.errors import StoreUnavailable

_PATIENCE = 60.0
_UP = [sys.executable, "-m", "horarium", "up", "--port", "0", "--data-dir", "."]
_SCHEDULE = {"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "x"}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{tmp_path}/x.db")) as opened:
        yield opened


def test_a_write_behind_a_lock_ends_when_waiting_is_over(database: Database, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        database.stop_waiting(0)
        begun = time.process_time()
        for _ in range(100):  # none of them waits, so they cost no more than their statements
            with pytest.raises(StoreUnavailable, match="stopping"):
                database.write(lambda connection: None)
        assert time.process_time() - begun < _PATIENCE
        assert database.read(lambda connection: 1) == 1
        other.execute("ROLLBACK")
    assert database.write(lambda connection: 1) == 1  # it is the lock that is not waited for


def test_a_locked_service_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """Many writes wait in line, each of which would wait for the lock anew."""
    (tmp_path / "horarium.toml").write_text("shutdown_seconds = 5\n")
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(_UP, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ThreadPoolExecutor(20) as pool,
    ):
        assert process.stdout is not None
        try:
            ready = re.search(r"http://[0-9.:]+", process.stdout.readline())
            assert ready is not None
            token = (tmp_path / "admin.token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}

            def writes(number: int) -> httpx.Response | None:
                document = {**_SCHEDULE, "schedule_id": f"s{number}"}
                try:
                    return httpx.post(f"{ready[0]}/api/schedules", json=document, headers=headers, timeout=_PATIENCE)
                except httpx.TransportError:
                    return None  # it came when the door was closed

            assert httpx.get(f"{ready[0]}/api/schedules", headers=headers, timeout=_PATIENCE).status_code == 200
            with closing(sqlite3.connect(tmp_path / "horarium.db", isolation_level=None, timeout=_PATIENCE)) as other:
                other.execute("BEGIN IMMEDIATE")
                asked = [pool.submit(writes, number) for number in range(20)]
                time.sleep(1)
                process.send_signal(signal.SIGTERM)
                assert process.wait(_PATIENCE) == 0
            for each in asked:
                answer = each.result()
                if answer is not None:
                    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
                    assert answer.headers["retry-after"] == "1"
        finally:
            process.kill()
