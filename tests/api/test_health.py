"""Probes, metrics and what clients ask first."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from later_release import become_later
from world import FakeClock

from horarium.features.cluster import probes
from horarium.platform.database.errors import DATABASE_REMEDY, StoreUnavailable
from horarium.platform.http.middleware import THREADS
from horarium.serve.checkup import examine
from horarium.testing import TestService, service


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a look takes longer than probes wait for it."""
    monkeypatch.setattr(probes, "PATIENCE_SECONDS", 60.0)


def test_a_service_whose_ticker_has_not_ticked_is_healthy_and_not_ready(horarium: TestService) -> None:
    http = horarium.http(token=None)
    assert http.get("/livez").json() == {"status": "ok"}
    assert http.get("/healthz").status_code == 200
    answer = http.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "failing")
    [ticking] = [check for check in answer.json()["checks"] if check["name"] == "ticking"]
    assert ticking["remedy"]


def test_health_fails_where_no_thread_can_look_at_the_database(
    horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last answer must not stand for a look that cannot be made, and the database is not to blame."""
    http, start = horarium.http(token=None), threading.Thread.start
    assert http.get("/healthz").status_code == 200

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "horarium-probe":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(probes, "FRESH_SECONDS", 0.0)
    for path in ("/healthz", "/readyz"):
        answer = http.get(path)
        assert (answer.status_code, THREADS in answer.text, "not respond in time" in answer.text) == (503, True, False)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert http.get("/healthz").status_code == 200


def test_a_service_on_the_tables_of_the_release_before_is_well_and_says_what_is_off(
    horarium: TestService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_later(monkeypatch, tmp_path)
    answer = horarium.http(token=None).get("/healthz")
    [migrated] = [check for check in answer.json()["checks"] if check["name"] == "migrated"]
    assert (answer.status_code, migrated["passed"], migrated["remedy"]) == (200, True, "run horarium migrate")
    assert "until you migrate it: second thoughts" in migrated["detail"]


@pytest.mark.parametrize("trouble", ["the disk is full; nothing was written", "the database is down"])
def test_an_outage_of_the_database_is_not_answered_by_migrate(
    horarium: TestService, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    def fails(_database: object) -> NoReturn:
        raise StoreUnavailable(trouble)

    monkeypatch.setattr("horarium.features.cluster.health.check_schema", fails)
    answer = horarium.http(token=None).get("/readyz")
    [migrated] = [check for check in answer.json()["checks"] if check["name"] == "migrated"]
    assert (migrated["passed"], migrated["detail"], migrated["remedy"]) == (False, trouble, DATABASE_REMEDY)
    monkeypatch.setattr("horarium.serve.checkup.check_schema", fails)
    [tables] = [check for check in examine(horarium.parts.settings, FakeClock()) if check.name == "tables"]
    assert (tables.found, tables.remedy) == (trouble, DATABASE_REMEDY)


@pytest.mark.parametrize("opened", [False, True])
def test_metrics_are_for_tokens_of_the_default_namespace_unless_they_are_open(service_url: str, opened: bool) -> None:
    """They tell of all tenants, whatever address the service listens on."""
    with service(database=service_url, settings={"metrics_open": opened, "host": "127.0.0.1"}) as horarium:
        house = horarium.http()
        house.post("/api/namespaces", json={"namespace": "b"})

        def status(token: str | None, **where: str) -> int:
            return horarium.http(token=token, **where).get("/metrics").status_code

        def issued(role: str, namespace: str) -> str:
            asked = horarium.http(namespace=namespace).post("/api/tokens", json={"name": "t", "role": role})
            return str(asked.json()["secret"])

        assert status(issued("viewer", "default")) == 200
        closed = {None: 401, "hor_nonsense": 401, issued("admin", "b"): 403, issued("viewer", "b"): 403}
        assert {token: status(token) for token in closed} == (dict.fromkeys(closed, 200) if opened else closed)
        shown = house.get("/metrics")
        assert shown.headers["content-type"].startswith("text/plain")
        assert "horarium_runs_emitted_total" in shown.text


@pytest.mark.both_databases
def test_metrics_count_what_was_decided(http: httpx.Client, horarium: TestService) -> None:
    horarium.create(schedule_id="s", cron_expressions=["0 * * * *"], workflow_type="x")
    assert http.post("/api/schedules/s/trigger").json()["outcome"] == "triggered"
    assert 'horarium_runs_emitted_total{origin="manual"} 1.0' in http.get("/metrics").text
    assert 'horarium_queue_depth{state="ready"} 1.0' in http.get("/metrics").text


def test_the_cluster_tells_its_contract(http: httpx.Client) -> None:
    """The command line of Durable Workflow reads these before every command."""
    info = http.get("/api/cluster/info").json()
    assert info["control_plane"]["version"] == "2"
    assert info["control_plane"]["request_contract"]["schema"] == "durable-workflow.v2.control-plane-request.contract"
    assert http.get("/api/health").json()["status"] == "ok"


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_description_of_the_api_can_be_read(horarium: TestService) -> None:
    described = horarium.http().get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert "/api/schedules/{schedule_id}/trigger" in described["paths"]
