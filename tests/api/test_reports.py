"""Reports over HTTP: by a worker with a token of its own, or by the target with the token that came with the run."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.runs.reports import MAX_LATE
from horarium.platform.ids import id_text, new_id, parse_id
from horarium.testing import TestService


@pytest.fixture
def handed(horarium: TestService, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the target was handed with the run, after as many failures as a test asks for."""
    failures = getattr(request, "param", 0)
    horarium.create(
        schedule_id="hook",
        cron_expressions=["0 * * * *"],
        action={"kind": "http", "url": "https://target.test/hook"},
        retry_policy={"max_retries": 5, "backoff_ms": 0},
    )
    horarium.advance(hours=1)
    for _ in range(failures):
        horarium.fail(horarium.runs()[-1])
    sent = horarium.launcher.deliveries[-1]
    return {"run_id": sent.run_id, "token": sent.report_token, "url": sent.report_url, "attempt": sent.attempt}


def report(horarium: TestService, run_id: str, *, bearer: str | None, **said: Any) -> httpx.Response:
    with horarium.http(token=bearer) as client:
        return client.post(f"/api/runs/{run_id}/report", json={"state": "succeeded", **said})


def test_a_target_is_told_where_and_by_what_right_it_may_report(handed: dict[str, Any]) -> None:
    assert handed["url"] == f"http://127.0.0.1:8765/api/runs/{handed['run_id']}/report"
    assert (handed["attempt"], handed["token"][:6]) == (0, "hrt_0.")


@pytest.mark.parametrize("way", ["bearer", "body"])
def test_the_token_is_given_back_as_bearer_or_in_the_body(
    horarium: TestService, handed: dict[str, Any], way: str
) -> None:
    shown = {"bearer": handed["token"]} if way == "bearer" else {"bearer": None, "report_token": handed["token"]}
    answered = report(horarium, handed["run_id"], result={"rows": 3}, **shown)
    assert (answered.status_code, answered.json()["outcome"]) == (200, "recorded")
    [run] = horarium.runs()
    assert (run.state.value, run.result) == ("succeeded", {"rows": 3})


def test_it_says_nothing_in_a_namespace_that_its_bearer_asks_for(horarium: TestService, handed: dict[str, Any]) -> None:
    with horarium.http(token=handed["token"], namespace="elsewhere") as client:
        answered = client.post(f"/api/runs/{handed['run_id']}/report", json={"state": "succeeded"})
    assert answered.status_code == 200  # whose the run is, the run says


@pytest.mark.parametrize("wrong", ["another run", "signature", "attempt", "zeros", "no number", "large", "long"])
def test_a_token_that_is_not_of_this_run_is_refused(horarium: TestService, handed: dict[str, Any], wrong: str) -> None:
    token, run_id = handed["token"], handed["run_id"]
    forged = {
        "another run": horarium.resources.tokens.make(new_id(), 0),
        "signature": token[:-2] + ("AA" if token[-2:] != "AA" else "BB"),
        "attempt": token.replace("hrt_0.", "hrt_1."),
        "zeros": token.replace("hrt_0.", "hrt_00."),
        "no number": token.replace("hrt_0.", "hrt_x."),
        "large": "hrt_18446744073709551616.x",
        "long": token.replace("hrt_0.", f"hrt_{'9' * 500}."),
    }[wrong]
    assert report(horarium, run_id, bearer=forged).status_code == 401
    assert report(horarium, run_id, bearer=None, report_token=forged).status_code == 401
    assert horarium.runs()[0].state.value == "running"


def test_whoever_has_a_token_of_his_own_cannot_show_a_forged_one(horarium: TestService, handed: dict[str, Any]) -> None:
    with horarium.http() as client:
        said = {"state": "succeeded", "report_token": horarium.resources.tokens.make(new_id(), 0)}
        answered = client.post(f"/api/runs/{handed['run_id']}/report", json=said)
    assert answered.status_code == 403


@pytest.mark.parametrize("path", ["/api/runs", "/api/schedules", "/api/runs/{run_id}", "/api/feed"])
def test_it_opens_no_other_door(horarium: TestService, handed: dict[str, Any], path: str) -> None:
    with horarium.http(token=handed["token"]) as client:
        assert client.get(path.format(run_id=handed["run_id"])).status_code == 401
        for verb in ("cancel", "terminate", "heartbeat"):
            assert client.post(f"/api/runs/{handed['run_id']}/{verb}", json={}).status_code == 401


@pytest.mark.both_databases
def test_a_run_that_does_not_exist_has_no_token(horarium: TestService, handed: dict[str, Any]) -> None:
    gone = new_id()
    token = horarium.resources.tokens.make(gone, 0)
    assert report(horarium, id_text(gone), bearer=token).status_code == 401
    assert report(horarium, "no-id-at-all", bearer=token).status_code == 401


@pytest.mark.parametrize("handed", [1], indirect=True)
@pytest.mark.archived
def test_the_token_of_an_attempt_that_is_over_changes_nothing(horarium: TestService, handed: dict[str, Any]) -> None:
    first = horarium.launcher.deliveries[0].report_token
    assert handed["token"] != first
    late = report(horarium, handed["run_id"], bearer=first, state="failed")
    assert (late.status_code, late.json()["outcome"]) == (200, "late")
    [run] = horarium.runs()
    assert (run.state.value, run.attempt) == ("running", 1)
    assert report(horarium, handed["run_id"], bearer=handed["token"]).json()["outcome"] == "recorded"


@pytest.mark.parametrize("handed", [1], indirect=True)
def test_the_number_of_an_attempt_proves_nothing(horarium: TestService, handed: dict[str, Any]) -> None:
    with horarium.http() as client:
        path = f"/api/runs/{handed['run_id']}/report"
        for said in ({}, {"attempt": 1}):
            unproven = client.post(path, json={"state": "failed", **said})
            assert (unproven.status_code, unproven.json()["reason"]) == (403, "report_unproven")
        proven = client.post(path, json={"state": "succeeded", "report_token": handed["token"]})
        assert (proven.status_code, proven.json()["outcome"]) == (200, "recorded")


def test_a_redelivery_carries_the_same_token(horarium: TestService, handed: dict[str, Any]) -> None:
    run_id = parse_id(horarium.runs()[0].run_id, "run_id")
    assert horarium.resources.tokens.make(run_id, 0) == handed["token"]


def test_a_token_is_never_shown(horarium: TestService, handed: dict[str, Any]) -> None:
    with horarium.http() as client:
        shown = (
            client.get(f"/api/runs/{handed['run_id']}").text + client.get(f"/api/runs/{handed['run_id']}/events").text
        )
    assert handed["token"] not in shown
    assert handed["token"] not in repr(horarium.launcher.deliveries[-1])
    assert "key=" not in repr(horarium.resources.tokens)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.archived
def test_whoever_goes_on_reporting_after_the_end_fills_nothing(horarium: TestService, handed: dict[str, Any]) -> None:
    run_id, token = handed["run_id"], handed["token"]
    assert report(horarium, run_id, bearer=token).json()["outcome"] == "recorded"
    for _ in range(MAX_LATE + 2):
        late = report(horarium, run_id, bearer=token, state="failed", error="e" * 1_000)
        assert (late.status_code, late.json()["outcome"]) == (200, "late")
    events = horarium.http().get(f"/api/runs/{run_id}/events").json()["events"]
    assert [event["event_type"] for event in events].count("run.late_report") == MAX_LATE
