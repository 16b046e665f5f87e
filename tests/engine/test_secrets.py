"""Secrets on their way to a real HTTP target: sent to the host that may have them, masked in what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launchers.far_ends import HttpFarEnd, Received, answer
from world import FakeClock

from horarium.core.lifecycle.outcome import Accepted, Finished
from horarium.features.runs import service as run_service
from horarium.features.runs.rows import RunRow
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules import triggers
from horarium.features.secrets import service as secret_service
from horarium.launchers.http import HttpLauncher
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.platform.caller import Caller
from horarium.platform.ids import id_text
from horarium.platform.settings import Settings
from horarium.platform.wire import Role
from horarium.serve.service import Service, open_service

ADMIN = Caller("test", Role.ADMIN)
TOKEN = "canary-token-0001"
Fetched = tuple[list[Received], Any]


async def _repeats(received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return answer("401 Unauthorized", f"no such token: {received.headers['authorization']}")


async def _redirects(_received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return answer("302 Found", location="/elsewhere")


@pytest.fixture
def fetch(tmp_path: Path, service_url: str) -> Callable[..., Fetched]:
    """Calls a path of a far end with the secret in its header; what it received, and the run."""

    def act(path: str, hosts: list[str] | None) -> Fetched:
        clock = FakeClock()
        launcher = HttpLauncher(clock, guard=AddressGuard(AddressPolicy(allow_loopback=True)))
        settings = Settings(data_dir=tmp_path, database=service_url, log_level="error")

        async def talk(service: Service) -> Fetched:
            async with HttpFarEnd() as far_end:
                far_end.routes |= {"/repeats": _repeats, "/redirects": _redirects, "/ok": _ok}
                origin = f"http://127.0.0.1:{far_end.port}"
                _make(service, f"{origin}{path}", None if hosts is None else [h.format(origin=origin) for h in hosts])
                await service.engine.dispatcher.step()
                return far_end.received, _only_run(service)

        with open_service(settings, clock=clock, registry=Registry([launcher]), durable=False) as service:
            service.engine.stay_in_one_thread()
            return asyncio.run(talk(service))

    return act


async def _ok(received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return answer("200 OK", {"echo": received.headers["authorization"], "data": received.event["data"]["inputs"]})


def _make(service: Service, url: str, hosts: list[str] | None) -> None:
    secret_service.put(service.resources, ADMIN, "mine", TOKEN, hosts)
    named = {"$secret": "mine"}
    action = {"url": url, "headers": {"Authorization": named}, "input": {"key": named}}
    schedule_service.create(
        service.resources, ADMIN, {"schedule_id": "a", "cron_expressions": ["0 0 1 1 *"], "action": action}
    )
    triggers.trigger(service.resources, ADMIN, "a")


def test_the_target_is_sent_the_value_and_the_run_keeps_a_mask(fetch: Callable[..., Fetched]) -> None:
    [received], run = fetch("/ok", ["{origin}"])
    assert received.headers["authorization"] == TOKEN
    assert received.event["data"]["inputs"] == {"key": TOKEN}
    assert (run.state, run.result) == ("succeeded", {"echo": "***", "data": {"key": "***"}})


def test_an_error_that_repeats_the_header_is_masked(fetch: Callable[..., Fetched]) -> None:
    [_], run = fetch("/repeats", None)
    assert (run.state, run.error) == ("launch_failed", "HTTP 401: no such token: ***")


def test_a_redirect_takes_the_secret_nowhere(fetch: Callable[..., Fetched]) -> None:
    received, run = fetch("/redirects", ["{origin}"])
    assert [each.path for each in received] == ["/redirects"]
    assert run.state == "launch_failed"


@pytest.mark.parametrize("host", ["api.example.com", "127.0.0.1", "http://127.0.0.1", "https://127.0.0.1:1"])
def test_a_place_that_no_pin_names_is_not_called(fetch: Callable[..., Fetched], host: str) -> None:
    received, run = fetch("/ok", [host])
    assert received == []
    assert "only, not to http://127.0.0.1:" in run.error


def _only_run(service: Service) -> RunRow:
    """As a list does not show it, with its result."""
    [run] = run_service.list_runs(service.resources, ADMIN).runs
    return service.database.read(lambda connection: run_service.find_run(connection, ADMIN, id_text(run.row.run_id)))


def test_what_a_poll_brings_back_is_masked(tmp_path: Path, service_url: str) -> None:
    clock = FakeClock()
    told = Finished({"echo": f"key {TOKEN}"})
    launcher = RecordingLauncher(clock, kind="http", otherwise=Accepted("ref"), polls=[told])
    settings = Settings(data_dir=tmp_path, database=service_url, log_level="error")

    async def talk(service: Service) -> Any:
        _make(service, "https://api.example.com/", None)
        await service.engine.dispatcher.step()
        clock.move(10)
        await service.engine.follower.step()
        return _only_run(service)

    with open_service(settings, clock=clock, registry=Registry([launcher]), durable=False) as service:
        service.engine.stay_in_one_thread()
        run = asyncio.run(talk(service))
    assert (run.state, run.result) == ("succeeded", {"echo": "key ***"})
