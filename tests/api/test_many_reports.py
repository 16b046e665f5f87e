"""Many reports in one request: each is answered as it would be alone, and none keeps the others from being heard."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.database.errors import DataError
from horarium.platform.database.statements import event_text
from horarium.platform.ids import id_text, new_id
from horarium.platform.wire import Role
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases

PATH = "/api/runs/reports"


@pytest.fixture
def handed(horarium: TestService) -> list[dict[str, Any]]:
    """The proofs that the targets of four runs were handed."""
    action = {"kind": "http", "url": "https://target.test/hook"}
    for number in range(4):
        horarium.create(schedule_id=f"hook-{number}", cron_expressions=["0 * * * *"], action=action)
    horarium.advance(hours=1)
    sent = sorted(horarium.launcher.deliveries, key=lambda each: str(each.schedule_id))
    return [{"run_id": each.run_id, "report_token": each.report_token} for each in sent]


def report(horarium: TestService, *reports: Any, bearer: str | None = None) -> httpx.Response:
    with horarium.http(token=bearer) as client:
        return client.post(PATH, json={"reports": list(reports)})


def told(answered: httpx.Response) -> list[Any]:
    """The outcome of each, or the reason why there is none."""
    assert answered.status_code == 200, answered.text
    return [each["outcome"] or each["reason"] for each in answered.json()["outcomes"]]


def states(horarium: TestService) -> dict[str, str]:
    return {run.run_id: run.state.value for run in horarium.runs()}


def test_each_has_an_outcome_of_its_own(horarium: TestService, handed: list[dict[str, Any]]) -> None:
    first, second, third, fourth = handed
    answered = report(
        horarium,
        {**first, "state": "succeeded", "result": {"rows": 3}},
        {**second, "state": "failed", "error": "ValueError: no", "error_class": "ValueError"},
        {**third, "state": "splendid"},
        {**fourth, "report_token": first["report_token"], "state": "succeeded"},
        {"run_id": id_text(new_id()), "state": "succeeded", "report_token": first["report_token"]},
        {"run_id": "no id", "state": "succeeded"},
        {**third, "state": "running"},
        "no report",
        {"state": "succeeded"},
    )
    wrong = "validation_failed"
    assert told(answered) == [
        *("recorded", "recorded", wrong, "unauthorized", "unauthorized", "run_not_found", "recorded", wrong, wrong)
    ]
    ended = [first["run_id"], second["run_id"], third["run_id"], fourth["run_id"]]
    assert [states(horarium)[each] for each in ended] == ["succeeded", "failed", "running", "running"]
    codes = [each["status"] for each in answered.json()["outcomes"]]
    assert codes == [200, 200, 422, 401, 401, 404, 200, 422, 422]


def test_those_about_one_run_are_taken_in_their_order(horarium: TestService, handed: list[dict[str, Any]]) -> None:
    reports = [{**each, "state": state} for state in ("running", "succeeded", "failed") for each in handed]
    answered = report(horarium, *reports)
    assert told(answered) == ["recorded"] * 8 + ["late"] * 4
    shown = [each["state"] for each in answered.json()["outcomes"]]
    assert shown == ["running"] * 4 + ["succeeded"] * 8
    for run in horarium.runs():
        assert run.started_at is not None


def test_a_request_made_again_changes_nothing(horarium: TestService, handed: list[dict[str, Any]]) -> None:
    reports = [{**each, "state": "succeeded", "result": number} for number, each in enumerate(handed)]
    assert told(report(horarium, *reports)) == ["recorded"] * 4
    before = [horarium.http().get(f"/api/runs/{each['run_id']}").json() for each in handed]
    assert told(report(horarium, *reports)) == ["unchanged"] * 4
    assert [horarium.http().get(f"/api/runs/{each['run_id']}").json() for each in handed] == before


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_whoever_has_a_token_speaks_in_its_own_namespace_only(
    horarium: TestService, handed: list[dict[str, Any]]
) -> None:
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    elsewhere = Caller("root", Role.ADMIN, "other")
    stranger = tenant_service.issue_token(horarium.resources, elsewhere, name="w", role="agent", subject="w").secret
    reports = [{**each, "state": "succeeded"} for each in handed[:2]]
    assert told(report(horarium, *reports, bearer=stranger)) == ["run_not_found"] * 2
    at_home = tenant_service.issue_token(
        horarium.resources, horarium.caller, name="w", role="agent", subject="w"
    ).secret
    assert told(report(horarium, *reports, bearer=at_home)) == ["recorded"] * 2
    unproven = [{"run_id": each["run_id"], "state": "succeeded"} for each in handed[2:]]
    assert told(report(horarium, *unproven, bearer=at_home)) == ["run_not_found"] * 2


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_whoever_shows_tokens_speaks_for_their_runs_in_every_namespace(
    horarium: TestService, handed: list[dict[str, Any]]
) -> None:
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    with horarium.http(namespace="other") as client:
        body = {"schedule_id": "far", "cron_expressions": ["0 * * * *"]}
        action = {"kind": "http", "url": "https://target.test/hook"}
        client.post("/api/schedules", json={**body, "action": action}).raise_for_status()
        client.post("/api/schedules/far/trigger").raise_for_status()
    horarium.settle()
    [far] = [each for each in horarium.launcher.deliveries if each.schedule_id == "far"]
    reports = [{"run_id": far.run_id, "report_token": far.report_token}, *handed]
    assert told(report(horarium, *({**each, "state": "succeeded"} for each in reports))) == ["recorded"] * 5


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("reports", [[], {}, None, "x", [{}] * 101])
def test_a_request_that_is_no_list_of_reports_is_refused(horarium: TestService, reports: Any) -> None:
    with horarium.http() as client:
        answered = client.post(PATH, json={"reports": reports})
    assert (answered.status_code, answered.json()["reason"]) == (422, "validation_failed")


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_nobody_is_let_in_without_a_token_of_ours(horarium: TestService, handed: list[dict[str, Any]]) -> None:
    forged = {**handed[0], "report_token": "hrt_0.bm90IG91cnMgYXQgYWxsLCBubywgbm8"}
    assert report(horarium, {**forged, "state": "succeeded"}).status_code == 401
    assert report(horarium, {"run_id": handed[0]["run_id"], "state": "succeeded"}).status_code == 401
    # One that is good lets in; what the other is worth is said of it.
    mixed = report(horarium, {**forged, "state": "succeeded"}, {**handed[1], "state": "succeeded"})
    assert told(mixed) == ["unauthorized", "recorded"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_result_that_speaks_of_other_runs_keeps_nobody_out(
    horarium: TestService, handed: list[dict[str, Any]]
) -> None:
    result = [{"run_id": id_text(new_id()), "report_token": "hrt_0.x"} for _ in range(30)]
    reports = [{**each, "state": "succeeded", "result": result} for each in handed]
    assert told(report(horarium, *reports)) == ["recorded"] * 4


def test_one_that_cannot_be_stored_leaves_the_others_alone(
    horarium: TestService, handed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def text(value: Any) -> str:
        if value == "poison":
            raise DataError("no such text")
        return event_text(value)

    monkeypatch.setattr("horarium.features.runs.update_rows.event_text", text)
    results = ["fine", "poison", "fine", "fine"]
    reports = [{**each, "state": "succeeded", "result": said} for each, said in zip(handed, results, strict=True)]
    assert told(report(horarium, *reports)) == ["recorded", "unstorable_report", "recorded", "recorded"]


def test_a_run_that_waits_for_approval_is_not_moved(horarium: TestService, handed: list[dict[str, Any]]) -> None:
    gate = {**handed[0], "state": "blocked", "gate": "publish"}
    others = [{**each, "state": "running"} for each in handed[1:]]
    assert told(report(horarium, gate, *others)) == ["blocked", *["recorded"] * 3]
    done = [{**each, "state": "succeeded"} for each in handed]
    assert told(report(horarium, *done)) == ["approval_required", *["recorded"] * 3]
    assert told(report(horarium, gate, others[0])) == ["unchanged", "late"]


def test_an_exception_of_a_celery_task_is_tried_again_as_it_is_alone(horarium: TestService) -> None:
    retry = {"max_retries": 1, "backoff_ms": 0, "retry_on": ["provider_error"]}
    for name in ("alone", "first", "second"):
        action = {"kind": "celery", "task": "proj.report"}
        horarium.create(schedule_id=name, cron_expressions=["0 * * * *"], action=action, retry_policy=retry)
    horarium.advance(hours=1)
    proofs = {each.schedule_id: (each.run_id, each.report_token) for each in horarium.launcher.deliveries}
    failed = {"state": "failed", "error": "ValueError: no", "error_class": "ValueError"}
    [(run_id, token), *others] = [proofs[name] for name in ("alone", "first", "second")]
    with horarium.http(token=token) as client:
        assert client.post(f"/api/runs/{run_id}/report", json=failed).json()["outcome"] == "retried"
    reports = [{"run_id": each, "report_token": proof, **failed} for each, proof in others]
    assert told(report(horarium, *reports)) == ["retried", "retried"]
