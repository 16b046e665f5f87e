"""A whole service that publishes to Celery: what its doors take, what goes out, and what comes back."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from launchers.brokers import MEMORY, fake_redis, received
from world import FakeClock

from horarium import Client
from horarium.client.inprocess import InProcess
from horarium.instant import SECOND
from horarium.launchers.celery.launcher import Broker, CeleryLauncher
from horarium.launchers.registry import Registry
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.client.errors import ValidationFailed
from horarium.platform.settings import Settings
from horarium.serve import checkup, launchers
from horarium.serve.checkup import Grade, examine
from horarium.serve.maintenance import one_pass
from horarium.serve.service import Service, open_service

SPEC: Any = {"cron_expressions": ["0 0 1 1 *"]}
CONNECTIONS: Any = {
    "default": {"broker": MEMORY},
    "theirs": {"broker": MEMORY, "namespaces": ["other"]},
}


@contextmanager
def house(url: str, **given: Any) -> Iterator[tuple[Service, Client]]:
    """A service with two brokers, one of which is another tenant's, and a client of the default namespace."""
    folder = Path(url.removeprefix("sqlite:///")).parent
    settings = Settings(data_dir=folder, database=url, log_level="error", token="hor_x", celery_connections=CONNECTIONS)
    with open_service(settings, **{"clock": FakeClock(), "durable": False, **given}) as service:
        transport = InProcess(service.api)
        try:
            yield service, Client("http://here.invalid", token="hor_x", transport=transport)
        finally:
            transport.close()


def passes(service: Service) -> None:
    asyncio.run(one_pass(service, everything=True))


def celery(**fields: Any) -> Any:
    return {"kind": "celery", "task": "t.x", **fields}


# ── what the doors take ──────────────────────────────────────────────────────────────────────────────


def graph(of_workflow: str | None, **action: Any) -> dict[str, Any]:
    node = {"id": "a", "action": celery(**action)}
    return {"workflow_id": "w", "nodes": [node], **({} if of_workflow is None else {"connection": of_workflow})}


def test_a_connection_that_is_not_for_the_namespace_is_refused_at_every_door(service_url: str) -> None:
    with house(service_url) as (_, client):
        client.create_schedule(schedule_id="kept", spec=SPEC, action=celery())
        client.put_workflow("w", graph(None))

        def refused(name: str) -> dict[str, str]:
            bad = celery(connection=name)
            new: Any = {"schedule_id": "new", "spec": SPEC, "action": bad}
            doors: dict[str, Callable[[], object]] = {
                "create": lambda: client.create_schedule(new),
                "update": lambda: client.update_schedule("kept", action=bad),
                "apply": lambda: client.apply({"bundle": "b", "schedules": [new]}),
                "node": lambda: client.put_workflow("v", graph(None, connection=name)),
                "workflow": lambda: client.put_workflow("v", graph(name)),
                "for steps": lambda: client.create_schedule(
                    schedule_id="new", spec=SPEC, action={"workflow_id": "w", "connection": name}
                ),
            }
            found = {}
            for door, knock in doors.items():
                with pytest.raises(ValidationFailed) as wrong:
                    knock()
                found[door] = str(wrong.value.errors)
            return found

        unknown, foreign = refused("nowhere"), refused("theirs")
        assert foreign == {door: text.replace("nowhere", "theirs") for door, text in unknown.items()}
        assert all("is unknown; configured: default" in text for text in unknown.values())
        assert [each.schedule_id for each in client.iter_schedules()] == ["kept"]


def test_an_action_without_a_connection_needs_a_default_one(service_url: str) -> None:
    with house(service_url) as (_, client):
        client.create_namespace("other")
        theirs = Client("http://here.invalid", token="hor_x", namespace="other", transport=client._http._transport)
        with pytest.raises(ValidationFailed, match="no default connection is configured; configured: theirs"):
            theirs.create_schedule(schedule_id="s", spec=SPEC, action=celery())
        theirs.create_schedule(schedule_id="s", spec=SPEC, action=celery(connection="theirs"))


# ── what goes out and comes back ─────────────────────────────────────────────────────────────────────


def test_a_run_goes_out_once_is_nobody_elses_and_ends_by_the_reports_of_its_worker(service_url: str) -> None:
    with house(service_url) as (service, client):
        client.put_secret("key", "open-sesame-4711")
        action = celery(queue="reports", args=[1, {"$secret": "key"}], kwargs={"to": "ops"})
        client.create_schedule(schedule_id="s", spec=SPEC, priority=4, action=action)
        run_id = str(client.trigger_schedule("s").run_id)
        passes(service)
        run = client.get_run(run_id)
        assert (run.state, run.task_queue) == ("queued", "reports")
        assert [*client.claim_runs("reports", worker="puller").items] == []
        [message] = received("reports")
        assert message["body"][:2] == [[1, "open-sesame-4711"], {"to": "ops"}]
        assert (message["properties"]["priority"], message["headers"]["argsrepr"]) == (4, "***")
        token = message["headers"]["horarium"]["report_token"]
        client.report_run(run_id, "running", report_token=token)
        assert client.get_run(run_id).state == "running"
        client.report_run(run_id, "succeeded", result={"said": "open-sesame-4711"}, report_token=token)
        ended = client.get_run(run_id)
        assert (ended.state, ended.result) == ("succeeded", {"said": "***"})
        assert "open-sesame" not in str(client.describe_schedule("s"))


def test_a_task_that_raised_is_tried_again_under_another_id(service_url: str) -> None:
    with house(service_url) as (service, client):
        client.create_schedule(
            schedule_id="s",
            spec=SPEC,
            action=celery(queue="again", input={"n": 1}),
            retry_policy={"max_retries": 1, "backoff_ms": 0, "retry_on": ["provider_error"]},
        )
        run_id = str(client.trigger_schedule("s").run_id)
        for attempt, state in enumerate(("ready", "failed")):
            passes(service)
            [message] = received("again")
            told = message["headers"]["horarium"]
            assert told["attempt"] == attempt
            assert message["headers"]["id"].endswith(":1") == bool(attempt)
            client.report_run(
                run_id, "failed", error="ValueError: x", error_class="ValueError", report_token=told["report_token"]
            )
            assert client.get_run(run_id).state == state
        assert client.get_run(run_id).error_class == "ValueError"


def test_steps_of_a_workflow_go_where_node_schedule_and_workflow_say_in_this_order(service_url: str) -> None:
    nodes = [{"id": "own", "action": celery(queue="of-node")}, {"id": "bare", "action": celery(args=["x"])}]
    with house(service_url) as (service, client):
        client.put_workflow("w", {"workflow_id": "w", "nodes": nodes, "queue": "of-workflow"})
        client.create_schedule(
            schedule_id="said",
            spec=SPEC,
            action={"workflow_id": "w", "queue": "of-schedule"},
            overlap_policy="allow_all",
        )
        client.create_schedule(schedule_id="silent", spec=SPEC, action={"workflow_id": "w"})
        client.trigger_schedule("said")
        client.trigger_schedule("silent")
        passes(service)
    assert {name: len(received(name)) for name in ("of-node", "of-schedule", "of-workflow")} == {
        "of-node": 2,
        "of-schedule": 1,
        "of-workflow": 1,
    }


def test_whoever_terminates_a_run_ends_its_task_and_whoever_cancels_only_calls_it_back(service_url: str) -> None:
    with fake_redis() as redis:
        brokers = {"default": Broker(redis.url)}
        launcher = CeleryLauncher(brokers, FakeClock(), rest_seconds=0.02, answer_seconds=60.0)
        with house(service_url, registry=Registry([launcher])) as (service, client):
            client.create_schedule(schedule_id="s", spec=SPEC, action=celery(), overlap_policy="allow_all")
            killed, stopped = (str(client.trigger_schedule("s").run_id) for _ in range(2))
            passes(service)
            client.terminate_run(killed)
            client.cancel_run(stopped)

            async def follow() -> None:
                await service.registry.start()
                await service.engine.follower.step()
                await service.registry.close()

            asyncio.run(follow())
            assert [client.get_run(each).state for each in (killed, stopped)] == ["terminated", "cancelled"]
    told = [json.loads(each[2]) for each in redis.commands if each[0] == b"PUBLISH"]
    said = [json.loads(b64decode(each["body"]))["arguments"] for each in told]
    assert sorted(each["terminate"] for each in said) == [False, True]


# ── a broker that is away ────────────────────────────────────────────────────────────────────────────


def test_a_broker_that_is_away_is_tried_until_the_deadline_of_the_run(service_url: str) -> None:
    clock = FakeClock()
    launcher = CeleryLauncher({"default": Broker("redis://127.0.0.1:1/0")}, clock, rest_seconds=0.01)
    with house(service_url, registry=Registry([launcher]), clock=clock) as (service, client):
        client.create_schedule(schedule_id="s", spec=SPEC, action=celery(timeout_seconds=600))
        run_id = str(client.trigger_schedule("s").run_id)
        tries, began = 0, clock.now()
        while client.get_run(run_id).state == "ready":
            passes(service)
            tries += 1
            clock.move(40)
        ended = client.get_run(run_id)
    assert ended.state == "launch_failed"
    assert tries > 10, "not five times and no more"
    assert clock.now() - began <= 700 * SECOND


# ── without Celery ───────────────────────────────────────────────────────────────────────────────────


def test_connections_without_celery_are_a_problem_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launchers, "has_celery", lambda: False)
    monkeypatch.setattr(checkup, "has_celery", lambda: False)
    settings = Settings(data_dir=tmp_path, celery_connections=CONNECTIONS)
    registry, problems = launchers.make_registry(settings, FakeClock(), TaskRegistry())
    assert "celery" not in registry
    assert problems == (
        "celery: celery_connections is set, but Celery is not installed; pip install 'horarium[celery]'",
    )
    [found] = [each for each in examine(settings, FakeClock()) if each.name == "celery"]
    assert (found.level, found.remedy) == (Grade.FAILURE, "pip install 'horarium[celery]'")


def test_the_doctor_says_which_broker_cannot_be_reached_and_never_its_password(tmp_path: Path) -> None:
    away = {"broker": "redis://bob:hunter22@127.0.0.1:1/0"}
    settings = Settings(data_dir=tmp_path, celery_connections={"near": {"broker": MEMORY}, "far": away})
    found = {each.found.partition(":")[0]: each for each in examine(settings, FakeClock()) if each.name == "broker"}
    assert {name: each.level for name, each in found.items()} == {"far": Grade.FAILURE, "near answers": Grade.OK}
    assert "hunter22" not in str(found)
