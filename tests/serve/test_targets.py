"""Which addresses a tenant's URL may lead to: what the settings open, whatever address the process has bound."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from launchers.far_ends import FixedClock, HttpFarEnd, answer, request_for

from horarium.cli.main import main
from horarium.core.lifecycle.outcome import Finished, Refused
from horarium.features.schedules import service as schedule_service
from horarium.instant import HOUR
from horarium.launchers.ssrf import AddressGuard
from horarium.launchers.tasks import TaskRegistry
from horarium.launchers.webhook import Delivered, WebhookMessage, WebhookSender
from horarium.platform.caller import internal
from horarium.platform.clock import SystemClock
from horarium.platform.settings import Settings
from horarium.serve.launchers import address_policy, make_registry
from horarium.serve.service import open_service
from horarium.testing import FakeClock

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_listening_on_loopback_does_not_open_loopback_to_launches_and_subscriptions(host: str) -> None:
    closed, opened = Settings(host=host), Settings(host=host, allow_loopback_targets=True)

    async def call(settings: Settings) -> tuple[type, type, int]:
        async with HttpFarEnd({"/": answer("200 OK")}) as far:
            registry, _ = make_registry(settings, FixedClock(), TaskRegistry())
            sender = WebhookSender(FixedClock(), AddressGuard(address_policy(settings)), timeout_seconds=60)
            launched = await registry.get("http").launch(request_for("http", {"url": far.url("/")}))
            told = await sender.send(WebhookMessage(far.url("/"), "1", b"{}", _SECRET, "default"))
            await registry.close()
            sender.close()
            return type(launched), type(told), len(far.received)

    launched, told, received = asyncio.run(call(closed))
    assert (launched, told is Delivered, received) == (Refused, False, 0)
    assert asyncio.run(call(opened)) == (Finished, Delivered, 2)


def test_a_tenants_url_to_a_port_of_this_machine_is_refused_by_a_pass_of_the_engine(
    tmp_path: Path, service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HORARIUM_DATABASE", service_url)
    settings = Settings(log_level="error", database=service_url)
    monkeypatch.setenv("HORARIUM_HOST", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as private:
        private.setblocking(False)
        action = {"kind": "http", "url": f"http://127.0.0.1:{private.getsockname()[1]}/shutdown"}
        document = {"schedule_id": "probe", "cron_expressions": ["@every PT1H"], "action": action}
        early = FakeClock(SystemClock().now() - 2 * HOUR)
        with open_service(settings, clock=early) as service:
            schedule_service.create(service.resources, internal("test"), document)
        assert main(["tick"]) == 0
        with pytest.raises(BlockingIOError):  # nobody has called
            private.accept()
    with open_service(settings) as service:
        [run] = _runs(service)
    assert (run["state"], "loopback" in run["error"]) == ("launch_failed", True)


def _runs(service: Any) -> list[dict[str, Any]]:
    def look(connection: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in connection.exec_driver_sql("SELECT state, error FROM runs").mappings()]

    found: list[dict[str, Any]] = service.database.read(look)
    return found


@pytest.mark.parametrize(
    ("arguments", "environment", "opened"),
    [
        (["up"], {}, True),
        (["up", "--host", "::1"], {}, True),
        (["up", "--host", "0.0.0.0"], {}, False),
        (["up", "--behind-proxy"], {}, False),
        (["up"], {"HORARIUM_BEHIND_PROXY": "true"}, False),
        (["up"], {"HORARIUM_ALLOW_LOOPBACK_TARGETS": "false"}, False),
        (["up", "--behind-proxy"], {"HORARIUM_ALLOW_LOOPBACK_TARGETS": "true"}, True),
        (["server"], {}, False),
        (["server", "--behind-proxy"], {}, False),
        (["worker"], {}, False),
        (["worker"], {"HORARIUM_ALLOW_LOOPBACK_TARGETS": "true"}, True),
    ],
)
def test_only_up_on_one_machine_opens_loopback_by_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environment: dict[str, str],
    opened: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    given: list[Settings] = []
    monkeypatch.setattr("horarium.serve.process.run", lambda settings, _parts, **_rest: given.append(settings))
    assert main(arguments) == 0
    assert [address_policy(settings).allow_loopback for settings in given] == [opened]
