"""Pushes over HTTP: an agent says that there is news of its run, and may do nothing else by what it was handed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from horarium.core.lifecycle.outcome import push_token
from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.database.wakeups import PUSHED
from horarium.platform.ids import new_id
from horarium.platform.wire import Role
from horarium.testing import TestService

HEADER = "X-A2A-Notification-Token"
# What the published library sends; none of it is read.
TOLD = {"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}}}


class Heard:
    """What whoever follows runs is told, here or in another process."""

    def __init__(self, horarium: TestService) -> None:
        self.runs: list[str] = []
        database = horarium.resources.database
        self._listener = database.listen([PUSHED, "end"], self._end, lambda _channel, said: self.runs.append(said))
        self._database = database
        self._ended = threading.Event()

    def _end(self, _channel: str) -> None:
        self._ended.set()

    def all_of_it(self) -> list[str]:
        """Whatever was said before is heard before what is said now."""
        self._database.write(lambda connection: self._database.notify(connection, "end"))
        assert self._ended.wait(60)
        return self.runs

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def heard(horarium: TestService) -> Iterator[Heard]:
    found = Heard(horarium)
    yield found
    found.close()


@pytest.fixture
def handed(horarium: TestService) -> dict[str, Any]:
    """What an agent was handed with its first attempt."""
    horarium.create(
        schedule_id="hook",
        cron_expressions=["0 * * * *"],
        action={"kind": "http", "url": "https://target.test/hook"},
        retry_policy={"max_retries": 5, "backoff_ms": 0},
    )
    horarium.advance(hours=1)
    sent = horarium.launcher.deliveries[-1]
    assert sent.report_token is not None
    return {"run_id": sent.run_id, "token": push_token(sent.report_token), "report_token": sent.report_token}


def push(horarium: TestService, run_id: str, token: str | None, bearer: str | None = None) -> httpx.Response:
    with horarium.http(token=bearer) as client:
        headers = {} if token is None else {HEADER: token}
        return client.post(f"/api/runs/{run_id}/pushes", json=TOLD, headers=headers)


def test_a_push_wakes_whoever_follows_the_run_and_changes_nothing(
    horarium: TestService, handed: dict[str, Any], heard: Heard
) -> None:
    before = horarium.runs()
    answer = push(horarium, handed["run_id"], handed["token"])
    assert (answer.status_code, answer.content) == (204, b"")
    assert horarium.runs() == before
    assert heard.all_of_it() == [handed["run_id"]]


def test_its_body_is_not_read(horarium: TestService, handed: dict[str, Any], heard: Heard) -> None:
    for body in (b"", b"{", b"\xff" * 1_000, b"[" * 5_000):
        with horarium.http(token=None) as client:
            headers = {HEADER: handed["token"], "content-type": "text/odd", "content-encoding": "gzip"}
            answer = client.post(f"/api/runs/{handed['run_id']}/pushes", content=body, headers=headers)
        assert answer.status_code == 204
    with horarium.http(token=None) as client:
        huge = client.post(
            f"/api/runs/{handed['run_id']}/pushes", content=b"x" * 5_000_000, headers={HEADER: handed["token"]}
        )
    assert huge.status_code == 413
    assert set(heard.all_of_it()) == {handed["run_id"]}


def test_a_push_that_nobody_was_handed_is_refused(horarium: TestService, handed: dict[str, Any], heard: Heard) -> None:
    run_id, token = handed["run_id"], handed["token"]
    other = push_token(horarium.resources.tokens.make(new_id(), 0))
    for wrong in (other, token[:-2] + "..", token.replace("hpt_0.", "hpt_1."), handed["report_token"], "", "x" * 5_000):
        assert push(horarium, run_id, wrong).status_code == 401, wrong[:40]
    assert push(horarium, run_id, None).status_code == 401
    assert push(horarium, "no-id-at-all", token).status_code == 401
    assert heard.all_of_it() == []


def test_a_push_token_opens_no_other_door(horarium: TestService, handed: dict[str, Any]) -> None:
    for shown in ({"token": handed["token"]}, {"token": None}):
        with horarium.http(**shown) as client:
            client.headers[HEADER] = handed["token"]
            path = f"/api/runs/{handed['run_id']}"
            assert client.get(path).status_code == 401
            said = {"state": "succeeded", "report_token": handed["token"]}
            for verb in ("report", "cancel", "heartbeat"):
                assert client.post(f"{path}/{verb}", json=said).status_code == 401
    assert horarium.runs()[0].state.value == "running"


def test_what_comes_too_late_wakes_nobody(horarium: TestService, handed: dict[str, Any], heard: Heard) -> None:
    horarium.fail(horarium.runs()[-1])
    assert push(horarium, handed["run_id"], handed["token"]).status_code == 204
    sent = horarium.launcher.deliveries[-1]
    assert (sent.run_id, sent.attempt) == (handed["run_id"], 1)
    assert sent.report_token is not None
    horarium.finish(horarium.runs()[-1])
    assert push(horarium, handed["run_id"], push_token(sent.report_token)).status_code == 204
    assert heard.all_of_it() == []


def test_whoever_may_work_may_say_it_too_and_only_of_its_own(
    horarium: TestService, handed: dict[str, Any], heard: Heard
) -> None:
    run_id = handed["run_id"]
    admin = Caller("root", Role.ADMIN)
    viewer = tenant_service.issue_token(horarium.resources, admin, name="v", role="viewer").secret
    agent = tenant_service.issue_token(horarium.resources, admin, name="a", role="agent", subject="another").secret
    assert push(horarium, run_id, None, viewer).status_code == 403
    assert push(horarium, run_id, None, agent).status_code == 404
    with horarium.http() as client:
        assert client.post(f"/api/runs/{run_id}/pushes").status_code == 204
    assert heard.all_of_it() == [run_id]
