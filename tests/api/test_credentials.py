"""Credentials in a definition, as whoever may read schedules meets them: never in plain, and kept by every edit."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api.bundling import apply

from horarium.features.bundles import registrations
from horarium.features.secrets import service as secret_service
from horarium.features.secrets.rows import reseal_all
from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller, internal
from horarium.platform.database import Connection, installation
from horarium.platform.database.installation import Sealer
from horarium.platform.wire import Role
from horarium.testing import Accepted, Finished, RunFailed, TestService

# What the databases do with it is shown in `test_nothing_shown.py`, on both.
pytestmark = pytest.mark.parametrize("dialect", ["sqlite"])

PLAIN = "Bearer canary-plain-0001"
OTHER = "Bearer canary-other-0002"
NAME = "schedule.calls.authorization"
REFERENCE = {"$secret": NAME}


def calls(authorization: object = PLAIN, **action: Any) -> dict[str, Any]:
    headers = {"Authorization": authorization, "X-Team": "red"}
    return {
        "schedule_id": "calls",
        "cron_expressions": ["0 * * * *"],
        "action": {"url": "https://api.example.com/x", "headers": headers, **action},
    }


def sent(horarium: TestService) -> list[Any]:
    return [each.action.target["headers"]["Authorization"] for each in horarium.launcher.deliveries]


@pytest.fixture
def answer() -> Finished:
    return Finished()


def test_a_plain_credential_is_sent_and_never_shown(http: httpx.Client, horarium: TestService) -> None:
    made = http.post("/api/schedules", json=calls())
    assert made.status_code == 201
    assert "warnings" not in made.json()
    horarium.advance(hours=1)
    assert sent(horarium) == [PLAIN]
    shown = http.get("/api/schedules/calls")
    assert shown.json()["action"]["headers"] == {"Authorization": REFERENCE, "X-Team": "red"}
    for path in ("/api/schedules/calls/history", "/api/schedules", "/api/runs"):
        assert "canary" not in http.get(path).text


def test_what_was_read_may_be_written_back_and_edited(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/schedules", json=calls())
    read = http.get("/api/schedules/calls").json()
    assert http.put("/api/schedules/calls", json=read).json()["outcome"] == "unchanged"
    read["action"]["headers"]["X-Team"] = "blue"
    assert http.put("/api/schedules/calls", json=read).json()["outcome"] == "updated"
    patch = {"action": {"headers": {"X-Team": "green"}}}
    assert http.patch("/api/schedules/calls", json=patch).json()["outcome"] == "updated"
    horarium.advance(hours=1)
    assert sent(horarium) == [PLAIN]


def test_the_same_value_again_changes_nothing_and_another_only_the_secret(
    http: httpx.Client, horarium: TestService
) -> None:
    http.post("/api/schedules", json=calls())
    again = http.put("/api/schedules/calls", json=calls())
    assert again.json()["outcome"] == "unchanged"
    other = http.put("/api/schedules/calls", json=calls(OTHER)).json()
    assert (other["outcome"], other["changed_fields"], other["version"]) == ("updated", ["secrets"], 2)
    assert http.get("/api/schedules/calls").json()["revision"] == 1
    last = horarium.history("calls")[-1]
    assert last.payload["changed_fields"] == ["secrets"]
    assert "canary" not in str(last)
    horarium.advance(hours=1)
    assert sent(horarium) == [OTHER]


def test_a_bundle_that_says_the_same_is_unchanged_and_its_plan_shows_no_value(
    http: httpx.Client, horarium: TestService
) -> None:
    assert [row["change"] for row in apply(http, bundle="b", schedules=[calls()])["changes"]] == ["create"]
    assert [row["change"] for row in apply(http, bundle="b", schedules=[calls()])["changes"]] == ["unchanged"]
    changed = [calls(OTHER)]
    [plan] = apply(http, bundle="b", schedules=changed, dry_run=True)["changes"]
    assert plan["diff"] == [{"path": f"secrets.{NAME}", "old": "***", "new": "***"}]
    assert [row["change"] for row in apply(http, bundle="b", schedules=[calls()])["changes"]] == ["unchanged"]
    [done] = apply(http, bundle="b", schedules=changed)["changes"]
    assert (done["change"], done["diff"]) == ("update", plan["diff"])
    horarium.advance(hours=1)
    assert sent(horarium) == [OTHER]


def test_code_that_registers_the_same_credential_at_each_start_changes_nothing(horarium: TestService) -> None:
    caller = internal("application", "default")
    for _ in range(2):
        registrations.register(horarium.resources, caller, "shop", "r1", {"calls": calls()})
    assert [each.event_type.value for each in horarium.history("calls")] == ["ScheduleCreated"]


def test_an_upsert_without_an_id_finds_its_schedule_though_the_credential_is_another(
    http: httpx.Client, horarium: TestService
) -> None:
    document = calls()
    del document["schedule_id"]
    made = http.post("/api/schedules/upsert", json=document).json()
    document["action"]["headers"]["Authorization"] = OTHER
    again = http.post("/api/schedules/upsert", json=document).json()
    assert (again["schedule_id"], again["outcome"]) == (made["schedule_id"], "updated")


def test_generated_secrets_end_with_their_schedule(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/schedules", json=calls())
    http.post("/api/schedules", json={**calls(), "schedule_id": "calls.more"})
    names = [each.name for each in secret_service.list_secrets(horarium.resources, horarium.caller).secrets]
    assert names == ["schedule.calls.authorization", "schedule.calls.more.authorization"]
    assert http.delete("/api/schedules/calls").status_code == 200
    names = [each.name for each in secret_service.list_secrets(horarium.resources, horarium.caller).secrets]
    assert names == ["schedule.calls.more.authorization"]


# ── references ───────────────────────────────────────────────────────────────────────────────────────


def test_an_unset_secret_warns_at_write_and_fails_the_launch_by_name(http: httpx.Client, horarium: TestService) -> None:
    document = calls({"$secret": "mine"}, input={"deep": [{"$secret": "other"}]})
    warnings = http.post("/api/schedules", json=document).json()["warnings"]
    assert [each.partition(":")[0] for each in warnings] == ["action.headers.Authorization", "action.input.deep.0"]
    assert "'mine' is not set" in warnings[0]
    horarium.advance(hours=1)
    secret_service.put(horarium.resources, horarium.caller, "mine", "canary-mine-0001")
    secret_service.put(horarium.resources, horarium.caller, "other", "canary-other-0001")
    horarium.advance(hours=1)
    first, second = horarium.runs("calls")
    assert (first.state, first.error) == ("launch_failed", "Secret 'mine' does not exist")
    assert second.state == "succeeded"
    assert second.inputs == {"deep": [{"$secret": "other"}]}
    [delivery] = horarium.launcher.deliveries
    assert delivery.inputs == {"deep": ["canary-other-0001"]}
    assert "canary" not in repr(delivery)


def test_a_secret_goes_only_to_the_hosts_that_it_names(http: httpx.Client, horarium: TestService) -> None:
    secret_service.put(horarium.resources, horarium.caller, "mine", "canary-mine-0001", ["other.example.com"])
    [warning] = http.post("/api/schedules", json=calls({"$secret": "mine"})).json()["warnings"]
    assert "may be sent to other.example.com only, not to api.example.com" in warning
    horarium.advance(hours=1)
    secret_service.put(horarium.resources, horarium.caller, "mine", "canary-mine-0001", ["API.example.com."])
    horarium.advance(hours=1)
    first, second = horarium.runs("calls")
    assert (first.state, second.state) == ("launch_failed", "succeeded")
    assert "only, not to api.example.com" in str(first.error)


@pytest.mark.parametrize("url", ["https://api.example.com/x", "https://api+x.example.com/x"])
def test_a_generated_secret_cannot_be_sent_elsewhere_by_somebody_who_names_it(
    http: httpx.Client, horarium: TestService, url: str
) -> None:
    """Whoever may write in a namespace sees the name; the value must not come with it."""
    http.post("/api/schedules", json=calls(url=url))
    thief = Caller("thief", Role.OWNER, "default")
    issued = tenant_service.issue_token(
        horarium.resources, horarium.caller, name="t", role="owner", subject=thief.principal
    )
    document = {
        "schedule_id": "thief",
        "cron_expressions": ["0 * * * *"],
        "action": {"url": "https://evil.example.com/", "headers": {"X-Take": REFERENCE}, "input": {"take": REFERENCE}},
    }
    made = horarium.http(token=issued.secret).post("/api/schedules", json=document)
    assert "only, not to evil.example.com" in made.json()["warnings"][0]
    horarium.advance(hours=1)
    [run] = horarium.runs("thief")
    assert run.state == "launch_failed"
    assert sent(horarium) == [PLAIN]


def test_another_tenants_secret_is_not_there(http: httpx.Client, horarium: TestService) -> None:
    assert http.post("/api/namespaces", json={"name": "tenant"}).status_code == 201
    secret_service.put(horarium.resources, Caller("o", Role.ADMIN, "tenant"), "mine", "canary-mine-0001")
    [warning] = http.post("/api/schedules", json=calls({"$secret": "mine"})).json()["warnings"]
    assert "is not set" in warning
    horarium.advance(hours=1)
    [run] = horarium.runs("calls")
    assert (run.state, run.error) == ("launch_failed", "Secret 'mine' does not exist")


def test_inputs_of_a_trigger_may_name_secrets_where_those_of_the_schedule_may(
    http: httpx.Client, horarium: TestService
) -> None:
    secret_service.put(horarium.resources, horarium.caller, "mine", "canary-mine-0001")
    http.post("/api/schedules", json=calls())
    http.post("/api/schedules", json={"schedule_id": "task", "cron_expressions": ["0 0 * * *"], "callable": "t"})
    inputs = {"inputs": {"a": {"$secret": "mine"}}}
    refused = http.post("/api/schedules/task/trigger", json=inputs)
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["inputs.a"])
    assert http.post("/api/schedules/calls/trigger", json={"inputs": {"a": {"$secret": 3}}}).status_code == 422
    run_id = http.post("/api/schedules/calls/trigger", json=inputs).json()["run_id"]
    horarium.settle()
    assert horarium.launcher.deliveries[-1].inputs == {"a": "canary-mine-0001"}
    assert http.get(f"/api/runs/{run_id}").json()["inputs"] == inputs["inputs"]


@pytest.mark.parametrize(
    "answer", [lambda request: RunFailed(f"HTTP 500: you sent {request.action.target['headers']['Authorization']}")]
)
def test_what_a_target_echoes_is_masked(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/schedules", json={**calls(), "retry_policy": {"max_retries": 0}})
    horarium.advance(hours=1)
    [run] = horarium.runs("calls")
    assert (run.state, run.error) == ("failed", "HTTP 500: you sent ***")
    for path in (f"/api/runs/{run.run_id}/events", "/api/schedules/calls", "/api/schedules/calls/history"):
        assert "canary" not in http.get(path).text


@pytest.mark.parametrize("answer", [Accepted()])
@pytest.mark.parametrize(
    "said",
    [
        {"state": "failed", "error": f"bad token {PLAIN.split()[1]}", "result": {"echo": PLAIN}},
        {"state": "failed", "error": "no", "error_class": PLAIN},
        {"state": "blocked", "gate": PLAIN},
    ],
)
def test_what_a_target_reports_is_masked(http: httpx.Client, horarium: TestService, said: dict[str, Any]) -> None:
    http.post("/api/schedules", json=calls())
    horarium.advance(hours=1)
    [run] = horarium.runs("calls")
    token = horarium.launcher.deliveries[0].report_token
    assert http.post(f"/api/runs/{run.run_id}/report", json={**said, "report_token": token}).status_code == 200
    assert "canary" not in http.get(f"/api/runs/{run.run_id}").text
    assert "canary" not in http.get(f"/api/runs/{run.run_id}/events").text


@pytest.mark.parametrize("answer", [Accepted()])
def test_a_process_with_the_key_from_before_keeps_no_report_that_it_could_not_mask(
    http: httpx.Client, horarium: TestService
) -> None:
    """A `server` alone is not seen by `rekey`, and may go on with the old key."""
    http.post("/api/schedules", json=calls())
    horarium.advance(hours=1)
    [run] = horarium.runs("calls")
    old = horarium.resources.sealer
    assert old is not None
    old.fingerprint = "old"

    def rekey(connection: Connection) -> None:
        installation.set_key_fingerprint(connection, "old")
        reseal_all(connection, old, Sealer(b"new", "new"))

    horarium.resources.database.write(rekey)
    said = {"state": "failed", "error": PLAIN, "report_token": horarium.launcher.deliveries[0].report_token}
    answered = http.post(f"/api/runs/{run.run_id}/report", json=said)
    assert (answered.status_code, answered.json()["reason"]) == (503, "secret_key_replaced")
    assert horarium.runs("calls")[0].state == "running"


def test_a_secret_sealed_with_another_key_fails_the_launch_clearly(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/schedules", json=calls())
    horarium.resources.database.write(
        lambda connection: connection.exec_driver_sql("UPDATE secrets SET sealed = 'AAAA'")
    )
    horarium.advance(hours=1)
    [run] = horarium.runs("calls")
    assert run.state == "launch_failed"
    assert "cannot be decrypted with this installation's key" in str(run.error)
    assert http.put("/api/schedules/calls", json=calls()).json()["outcome"] == "updated"
    horarium.advance(hours=1)
    assert sent(horarium) == [PLAIN]
