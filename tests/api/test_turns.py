"""A tenant whose requests are slow waits for itself."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from world import START, serving

from horarium.features.forecast import agenda
from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.wire import Role
from horarium.testing import service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def test_slow_requests_of_one_tenant_leave_threads_and_connections_to_others(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, begun, look = threading.Event(), threading.Semaphore(0), agenda.look

    def slow(*given: Any, **also: Any) -> Any:
        begun.release()
        assert go.wait(60)
        return look(*given, **also)

    monkeypatch.setattr(agenda, "look", slow)
    with service(at=START, database=database_url, settings={"pool_size": 4}) as horarium:
        tenant_service.create_namespace(horarium.resources, horarium.caller, "hostile")
        names = [("hostile", f"token-{number}") for number in range(3)] + [("default", "quiet")]
        secrets = [
            tenant_service.issue_token(
                horarium.resources, Caller("root", Role.ADMIN, home), name=name, role="viewer"
            ).secret
            for home, name in names
        ]
        *hostile, quiet = ({"Authorization": f"Bearer {secret}"} for secret in secrets)
        with serving(horarium.parts) as url, ThreadPoolExecutor(45) as crowd:
            asked = [
                crowd.submit(httpx.get, f"{url}/api/agenda", headers=hostile[n % 3], timeout=60) for n in range(42)
            ]
            for _ in range(2):  # all that a namespace may have
                assert begun.acquire(timeout=60)
            assert httpx.get(f"{url}/api/schedules", headers=quiet, timeout=60).status_code == 200
            assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
            assert not begun.acquire(blocking=False)
            go.set()
            assert {each.result(60).status_code for each in asked} == {200}


def test_a_large_body_is_read_off_the_loop(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from horarium.platform.http import requests

    loops: list[bool] = []
    parsed = requests._parsed

    def watched(*given: Any) -> Any:
        loops.append(threading.current_thread().name == "horarium-testing")
        return parsed(*given)

    monkeypatch.setattr(requests, "_parsed", watched)
    with service(at=START, database=database_url) as horarium:
        http = horarium.http()
        for size in (10, 1_500_000):
            assert http.post("/api/schedules", json={"note": "x" * size}).status_code == 422
    assert loops == [True, False]


def test_large_bodies_of_one_token_are_read_in_turn(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from horarium.platform.http import requests

    go, begun, parsed = threading.Event(), threading.Semaphore(0), requests._parsed

    def slow(request: Any, kind: str, raw: bytes) -> Any:
        begun.release()
        assert go.wait(60)
        return parsed(request, kind, raw)

    monkeypatch.setattr(requests, "_parsed", slow)
    with service(at=START, database=database_url, settings={"pool_size": 4}) as horarium:
        secret = tenant_service.issue_token(horarium.resources, horarium.caller, name="hostile", role="owner").secret
        said: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {secret}"},
            "json": {"note": "x" * 20_000},
            "timeout": 60,
        }
        with serving(horarium.parts) as url, ThreadPoolExecutor(5) as crowd:
            asked = [crowd.submit(httpx.post, f"{url}/api/schedules", **said) for _ in range(5)]
            assert begun.acquire(timeout=60)  # all that a token may have of four connections
            assert horarium.http().get("/api/schedules").status_code == 200
            assert not begun.acquire(timeout=0.2)
            go.set()
            assert {each.result(60).status_code for each in asked} == {422}
