"""What the operator configures is for those whom the operator names; here a tenant tries to use it all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from launchers.far_ends import FixedClock, HttpFarEnd, answer, request_for

from horarium import Client, Horarium
from horarium.audience import EVERYBODY, Audience
from horarium.client.inprocess import InProcess
from horarium.core.lifecycle.outcome import Finished, Refused
from horarium.errors import InvalidDefinition
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.settings import Settings, load_settings
from horarium.serve.launchers import make_registry
from horarium.serve.maintenance import one_pass
from horarium.serve.service import Service, open_service
from horarium.testing import Accepted, service

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_FOR_B = {"namespaces": ["default", "b"]}


def make_app(called: list[str], **given: Any) -> Horarium:
    app = Horarium(log_level="error", **given)

    @app.task(name="payroll.run")
    def _payroll() -> None:
        called.append("payroll.run")

    @app.task(name="shared.task", namespaces=["*"])
    def _shared() -> None:
        called.append("shared.task")

    return app


# ── a whole service, and a tenant of it ──────────────────────────────────────────────────────────────


@contextmanager
def tenant(service: Service, name: str) -> Iterator[Client]:
    """Somebody who has all the rights that there are in one namespace."""
    transport = InProcess(service.api)
    try:
        house = Client("http://here.invalid", token=service.secret, transport=transport)
        house.create_namespace(name)
        token = Client("http://here.invalid", token=service.secret, namespace=name, transport=transport).issue_token(
            name="mallory", role="admin"
        )
        yield Client("http://here.invalid", token=token.secret, namespace=name, transport=transport)
    finally:
        transport.close()


def test_a_tenant_cannot_use_the_operators_tasks_and_commands(tmp_path: Path) -> None:
    called: list[str] = []
    touched = tmp_path / "touched"
    commands = {"backup": {"argv": ["/bin/sh", "-c", f"echo x > {touched}"]}}
    settings = Settings(data_dir=tmp_path, log_level="error", commands=commands, token="hor_operator")
    attempts: dict[str, Any] = {
        "task": {"kind": "python", "task": "payroll.run"},
        "no-task": {"kind": "python", "task": "unheard.of"},
        "command": {"kind": "command", "command": "backup"},
        "no-command": {"kind": "command", "command": "unheard-of"},
        "work": {"workflow_type": "payroll.run", "task_queue": "mine"},
        "shared": {"workflow_type": "shared.task"},
    }
    with open_service(settings, application=make_app(called)) as service, tenant(service, "b") as mallory:
        warned: dict[str, tuple[str, ...]] = {}
        for name, action in attempts.items():
            created = mallory.create_schedule(schedule_id=name, cron_expressions=["0 0 1 1 *"], action=action)
            warned[name] = tuple(created.warnings)
            mallory.trigger_schedule(name)
        asyncio.run(one_pass(service, everything=True))
        runs = {run.schedule_id: mallory.get_run(run.run_id) for run in mallory.iter_runs()}
        claimed = mallory.claim_runs("mine", worker="mallory")
    assert (called, touched.exists()) == (["shared.task"], False)
    # The words are those for what does not exist, and nothing that others have is listed.
    for name, foreign in (("task", "payroll.run"), ("command", "backup")):
        unknown = attempts[f"no-{name}"][name]
        assert warned[name] == tuple(text.replace(unknown, foreign) for text in warned[f"no-{name}"]) != ()
        assert runs[name].state == runs[f"no-{name}"].state == "launch_failed"
        assert runs[name].error == str(runs[f"no-{name}"].error).replace(unknown, foreign)
    assert "payroll" not in str(runs["no-task"].error)
    assert "shared.task" in str(runs["no-task"].error)
    # A name that happens to be that of a task for others waits for the tenant's own worker.
    assert [run.schedule_id for run in claimed] == ["work"]
    assert runs["shared"].state == "succeeded"


# ── who is in an audience ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "namespace", "signed"),
    [
        (_SECRET, "default", True),
        (_SECRET, "b", False),
        ({"secret": _SECRET, **_FOR_B}, "b", True),
        ({"secret": _SECRET, **_FOR_B}, "c", False),
        ({"secret": _SECRET, "namespaces": ["*"]}, "c", True),
        ({"secret": _SECRET, "namespaces": []}, "default", False),
    ],
)
def test_a_signing_secret_signs_for_its_namespaces_only(given: Any, namespace: str, signed: bool) -> None:
    settings = Settings(webhook_secrets={"ours": given}, allow_loopback_targets=True)

    async def call() -> tuple[Any, Any, int]:
        async with HttpFarEnd({"/": answer("200 OK")}) as far:
            registry, _ = make_registry(settings, FixedClock(), TaskRegistry())
            said = [
                await registry.launch(request_for("http", {"url": far.url("/"), "secret": name}, namespace=namespace))
                for name in ("ours", "none")
            ]
            await registry.close()
            return said[0], said[1], len(far.received)

    ours, unknown, received = asyncio.run(call())
    assert received == signed
    assert isinstance(unknown, Refused)
    assert ours == (Finished(None) if signed else Refused(unknown.error.replace("none", "ours")))


@pytest.mark.parametrize(
    ("settings", "namespace", "runs"),
    [
        ({}, "default", True),
        ({}, "b", False),
        ({"default_namespace": "b"}, "b", True),
        ({"default_namespace": "b"}, "default", False),
    ],
    ids=["usual", "other", "own", "no longer usual"],
)
def test_what_says_nothing_is_for_the_default_namespace(settings: Any, namespace: str, runs: bool) -> None:
    tasks = TaskRegistry()
    tasks.add(lambda: None, name="report")
    registry, _ = make_registry(Settings(commands={"x": {"argv": ["true"]}}, **settings), FixedClock(), tasks)
    assert registry.knows("python", "report", namespace) is runs
    assert registry.knows("command", "x", namespace) is runs
    assert (registry.kind_of_target("workflow:report", namespace) == "python") is runs


def test_an_application_says_for_whom_its_tasks_are() -> None:
    app = Horarium(namespaces=["a"])
    app.task(name="usual")(lambda: None)
    app.task(name="own", namespaces=["b"])(lambda: None)

    @app.schedule("0 0 * * *", namespace="c")
    def scheduled() -> None: ...

    name = f"{__name__}.test_an_application_says_for_whom_its_tasks_are.<locals>.scheduled"
    assert app.tasks.offered() == {
        "usual": Audience(frozenset({"a"})),
        "own": Audience(frozenset({"b"})),
        name: Audience(frozenset({"a", "c"})),  # the code itself schedules it there
    }
    with pytest.raises(InvalidDefinition, match="must be the only entry"):
        app.task(namespaces=["*", "a"])
    with pytest.raises(ValueError, match="for other namespaces"):
        app.tasks.add(app.tasks.get("own").function, name="own", audience=EVERYBODY)  # type: ignore[union-attr]  # it is there


def test_a_bad_audience_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidDefinition) as refused:
        load_settings(
            {"commands": {"x": {"argv": ["true"], "namespaces": ["*", "a"]}}, "kind_namespaces": {"y": ["?"]}}
        )
    assert set(refused.value.errors) == {"commands.x.namespaces", "kind_namespaces.y"}


def test_a_kind_for_others_is_refused_as_one_that_does_not_exist() -> None:
    """Through HTTP, on a server whose operator keeps a kind for one namespace."""
    with service(answer=Accepted(), settings={"kind_namespaces": {"prompt": ["default"]}}) as running:
        running.http().post("/api/namespaces", json={"namespace": "b"})

        def ask(namespace: str, kind: str) -> tuple[int, str, str]:
            document = {"cron_expressions": ["0 0 * * *"], "action": {"kind": kind, "prompt": "p"}}
            said = running.http(namespace=namespace).post("/api/schedules", json=document)
            body = said.json()
            return said.status_code, body.get("reason", ""), str(body.get("errors", {}).get("action.kind"))

        assert ask("default", "prompt")[0] == 201
        status, reason, text = ask("b", "prompt")
        assert (status, reason) == (422, "kind_not_available")
        assert text == ask("b", "unheard_of")[2].replace("unheard_of", "prompt")
        assert text.count("prompt") == 1
