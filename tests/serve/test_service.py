"""How the settings reach the parts of a service."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from horarium.platform.settings import Settings
from horarium.serve.service import open_service
from horarium.testing import service


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("given", "shown"),
    [({}, "30s"), ({"statement_timeout_seconds": 0}, "0"), ({"statement_timeout_seconds": 2.5}, "2500ms")],
    ids=["default", "none", "given"],
)
def test_statements_of_the_service_have_a_timeout(
    empty_url: str, tmp_path: Path, given: dict[str, Any], shown: str
) -> None:
    settings = Settings(database=empty_url, data_dir=tmp_path, **given)
    with open_service(settings) as opened:
        timeout = opened.database.read(lambda connection: connection.exec_driver_sql("SHOW statement_timeout").scalar())
    assert timeout == shown


def test_a_request_that_finds_no_connection_free_is_told_to_come_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.platform.database.transactions._POOL_SECONDS", 0.05)
    taken, over = threading.Event(), threading.Event()

    def hold(_connection: Connection) -> None:
        taken.set()
        over.wait(30)

    with service(database=database_url, settings={"pool_size": 1}) as running:
        holder = threading.Thread(target=running.resources.database.read, args=[hold])
        holder.start()
        taken.wait(30)
        try:
            answer = running.http().get("/api/schedules")
        finally:
            over.set()
            holder.join()
        assert (answer.status_code, answer.json()["reason"]) == (503, "store_unavailable")
        assert "pool_size" in answer.json()["message"]
        assert answer.headers["Retry-After"] == "1"
        assert running.http().get("/api/schedules").status_code == 200
