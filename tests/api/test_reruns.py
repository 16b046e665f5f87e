"""A run is done once more: the same occurrence, input and definition, asked today's questions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.wire import Role
from horarium.testing import TestService

NIGHTLY = {
    "schedule_id": "nightly",
    "spec": {"cron_expressions": ["0 2 * * *"]},
    "action": {"kind": "http", "url": "https://example.org/one"},
    "inputs_rotation": [{"part": "a"}, {"part": "b"}],
}


def ran(http: httpx.Client, horarium: TestService, **fields: Any) -> str:
    """The id of a run that has failed."""
    assert http.post("/api/schedules", json={**NIGHTLY, **fields}).status_code == 201
    horarium.advance(hours=3)
    (run,) = http.get("/api/schedules/nightly/runs").json()["runs"]
    http.post(f"/api/runs/{run['run_id']}/terminate")
    found: str = run["run_id"]
    return found


def again(http: httpx.Client, run_id: str, **said: Any) -> dict[str, Any]:
    answer = http.post(f"/api/runs/{run_id}/rerun", json=said)
    found: dict[str, Any] = answer.json()
    return {"status_code": answer.status_code, **found}


@pytest.mark.archived
def test_a_rerun_has_what_the_first_one_had_and_a_key_of_its_own(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium)
    moved = {"action": {"kind": "http", "url": "https://example.org/two"}}
    assert http.patch("/api/schedules/nightly", json=moved).json()["outcome"] == "updated"
    done = again(http, first, reason="the target was down")
    assert (done["outcome"], done["rerun_of"], done["schedule_id"]) == ("triggered", first, "nightly")
    old, new = (http.get(f"/api/runs/{each}").json() for each in (first, done["run_id"]))
    same = ("nominal", "inputs", "revision", "rotation_index_used")
    assert [new[name] for name in same] == [old[name] for name in same]
    assert (new["origin"], new["rerun_of"], old["reruns"]) == ("manual", first, [done["run_id"]])
    assert new["key"] != old["key"]
    horarium.settle()
    sent = [delivery.action.target["url"] for delivery in horarium.launcher.deliveries]
    assert sent == ["https://example.org/one"] * 2
    schedule = http.get("/api/schedules/nightly").json()
    assert (schedule["rotation_index"], schedule["next_fire_at"]) == (1, "2026-03-02T02:00:00Z")
    told = http.get("/api/schedules/nightly/history").json()["events"][-1]["payload"]
    assert (told["rerun_of"], told["workflow_run_id"], told["occurrence_time"]) == (
        first, done["run_id"], "2026-03-01T02:00:00Z",
    )  # fmt: skip
    assert told["command_context"]["reason"] == "the target was down"
    assert horarium.verify() == []


def test_a_rerun_takes_other_inputs_which_are_a_write(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium)
    done = again(http, first, inputs={"part": "c"}, overlap_policy="allow_all")
    old, new = (http.get(f"/api/runs/{each}").json() for each in (first, done["run_id"]))
    assert (old["inputs"], new["inputs"], new["rerun_of"]) == ({"part": "a"}, {"part": "c"}, first)
    wrong = again(http, first, inputs={"part": {"$secret": 7}})
    assert (wrong["status_code"], list(wrong["errors"])) == (422, ["inputs.part"])
    operator = tenant_service.issue_token(horarium.resources, horarium.caller, name="o", role=Role.OPERATOR).secret
    refused = horarium.http(token=operator).post(f"/api/runs/{first}/rerun", json={"inputs": {"part": "d"}})
    assert (refused.status_code, refused.json()["reason"]) == (403, "forbidden")
    assert horarium.verify() == []


def test_the_same_key_is_the_same_rerun(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium)
    asked = [http.post(f"/api/runs/{first}/rerun", headers={"Idempotency-Key": "k"}).json() for _ in range(2)]
    assert (asked[0], len(horarium.runs("nightly"))) == (asked[1], 2)


def test_todays_questions_are_asked(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium)
    http.post("/api/schedules/nightly/pause")
    paused = again(http, first)
    assert (paused["outcome"], paused["run_id"], paused["reason"]) == ("skipped", None, "status_not_triggerable")
    assert again(http, first, even_if_paused=True)["outcome"] == "triggered"
    http.post("/api/schedules/nightly/resume")
    busy = again(http, first)
    assert (busy["outcome"], busy["reason"]) == ("skipped", "overlap_policy_skip")
    assert again(http, first, overlap_policy="buffer_all")["outcome"] == "buffered"
    http.patch("/api/schedules/nightly", json={"budget": {"max_daily_runs": 1}})
    spent = again(http, first, overlap_policy="allow_all")
    assert (spent["outcome"], spent["reason"]) == ("skipped", "daily_limit_reached")
    assert horarium.verify() == []


def test_an_approval_is_asked_for_anew(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium)
    http.patch("/api/schedules/nightly", json={"approval_policy": {"requires_approval": True}})
    assert again(http, first)["state"] == "awaiting_approval", "the schedule asks for it now"
    horarium.settle()
    assert len(horarium.launcher.deliveries) == 1


def test_what_cannot_be_done_once_more_says_why(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium)
    done = again(http, first)
    assert (again(http, done["run_id"])["status_code"], again(http, done["run_id"])["reason"]) == (409, "run_not_ended")
    start = {"workflow_id": "report", "idempotency_key": "k"}
    unscheduled = http.post("/api/run-launcher/start", json=start).json()["run_id"]
    assert again(http, unscheduled)["reason"] == "run_not_repeatable"
    assert again(http, "nonsense")["status_code"] == 404
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    root = Caller("root", Role.ADMIN, "other")
    secret = tenant_service.issue_token(horarium.resources, root, name="ops", role="operator").secret
    assert again(horarium.http(token=secret), first)["status_code"] == 404
    http.delete("/api/schedules/nightly")
    gone = again(http, first)
    assert (gone["status_code"], gone["reason"]) == (409, "run_not_repeatable")


def test_a_run_names_the_zone_of_its_schedule(http: httpx.Client, horarium: TestService) -> None:
    first = ran(http, horarium, spec={"cron_expressions": ["0 5 * * *"], "timezone": "Europe/Istanbul"})
    (listed,) = http.get("/api/runs").json()["runs"]
    assert (listed["run_id"], listed["timezone"]) == (first, "Europe/Istanbul")
    assert http.get(f"/api/runs/{first}").json()["timezone"] == "Europe/Istanbul"
