"""Whoever would start more than a thousand runs at once is told how many, and nothing happens until it is meant."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from engine.builders import multiply

from horarium.platform.client.errors import ConfirmNeeded
from horarium.platform.ids import parse_id
from horarium.testing import TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"])

NIGHTLY = {"cron_expressions": ["0 2 * * *"]}
MINUTELY = {"cron_expressions": ["* * * * *"]}
MANY = 1_001


def crowd(http: httpx.Client, horarium: TestService, name: str, held: int) -> dict[str, Any]:
    """Of the schedule of that name one run is active, and so many wait behind it."""
    document = {"schedule_id": name, "spec": NIGHTLY, "action": {"workflow_type": "w"}, "overlap_policy": "buffer_all"}
    assert http.post("/api/schedules", json=document).status_code == 201
    runs = [http.post(f"/api/schedules/{name}/trigger").json() for _ in range(2)]
    multiply(horarium.resources.database, parse_id(runs[1]["run_id"], "run_id"), held - 1)
    return document


@pytest.fixture
def crowded(http: httpx.Client, horarium: TestService) -> httpx.Client:
    crowd(http, horarium, "s", MANY)
    return http


def refused(answer: httpx.Response, count: int = MANY) -> None:
    assert answer.status_code == 409, answer.text
    body = answer.json()
    assert (body["reason"], body["count"], body["limit"]) == ("confirm_needed", count, 1_000)


def test_an_edit_that_lets_go_a_thousand_runs_must_be_meant(crowded: httpx.Client) -> None:
    opened = {"overlap_policy": "allow_all"}
    refused(crowded.patch("/api/schedules/s", json=opened))
    refused(crowded.put("/api/schedules/s", json=opened))
    whole = {"schedule_id": "s", "spec": NIGHTLY, "action": {"workflow_type": "w"}, **opened}
    refused(crowded.post("/api/schedules/upsert", json=whole))
    refused(crowded.post("/api/apply", json={"schedules": [whole], "adopt": True}))
    trigger = {"schedule_id": "s", "workflow_id": "w", "cron_expr": "0 2 * * *", **opened}
    refused(crowded.post("/schedules/upsert", json=trigger))
    shown = crowded.get("/api/schedules/s").json()
    assert (shown["overlap_policy"], shown["version"]) == ("buffer_all", 1)
    assert crowded.patch("/api/schedules/s", json={"note": "n"}).status_code == 200, "what starts nothing needs no word"
    assert crowded.patch("/api/schedules/s", params={"confirm": "true"}, json=opened).status_code == 200
    assert crowded.get("/api/runs", params={"state": "ready"}).json()["runs"]


def test_a_resume_that_lets_go_a_thousand_runs_must_be_meant(crowded: httpx.Client, horarium: TestService) -> None:
    crowded.post("/api/schedules/s/pause")
    opened = {"overlap_policy": "allow_all"}
    assert crowded.patch("/api/schedules/s", json=opened).status_code == 200, "while it is paused nothing starts"
    refused(crowded.post("/api/schedules/s/resume"))
    refused(crowded.post("/schedules/pause", json={"schedule_id": "s", "paused": False}))
    refused(crowded.patch("/api/schedules/s", json={"paused": False}))
    refused(crowded.post("/api/schedules/bulk", json={"action": "resume", "all": True}))
    assert crowded.get("/api/schedules/s").json()["status"] == "paused"
    client = horarium.client()
    with pytest.raises(ConfirmNeeded) as needed:
        client.resume_schedule("s")
    assert needed.value.count == MANY
    assert client.resume_schedule("s", confirm=True).outcome == "resumed"


def test_a_pause_whose_end_releases_a_thousand_runs_must_be_meant(crowded: httpx.Client, horarium: TestService) -> None:
    opened, end = {"overlap_policy": "allow_all"}, {"until": "4h"}
    assert crowded.post("/api/schedules/s/pause", json=end).status_code == 200, "one at a time is no storm"
    refused(crowded.patch("/api/schedules/s", json=opened))
    some = crowded.patch("/api/schedules/s", json={**opened, "max_concurrency": 600})
    assert some.status_code == 200, "some of them are no storm"
    refused(crowded.patch("/api/schedules/s", json={"max_concurrency": None}))
    assert crowded.patch("/api/schedules/s", json={"name": "n"}).status_code == 200, "it raises no number"
    crowded.post("/api/schedules/s/pause")
    assert crowded.patch("/api/schedules/s", json={"max_concurrency": None}).status_code == 200, (
        "without an end nothing starts"
    )
    refused(crowded.post("/api/schedules/s/pause", json=end))
    refused(crowded.post("/schedules/pause", json={"schedule_id": "s", "paused": True, **end}))
    refused(crowded.post("/api/schedules/bulk", json={"action": "pause", "all": True, **end}))
    assert crowded.get("/api/schedules/s").json()["paused_until"] is None
    assert crowded.post("/api/schedules/s/pause", json={"note": "n"}).status_code == 200
    client = horarium.client()
    with pytest.raises(ConfirmNeeded) as needed:
        client.pause_schedule("s", until="4h")
    assert needed.value.count == MANY
    assert client.pause_schedule("s", until="4h", confirm=True).paused_until is not None
    every = {"action": "pause", "all": True, "until": "5h"}
    meant = crowded.post("/api/schedules/bulk", params={"confirm": "true"}, json=every)
    assert [each["outcome"] for each in meant.json()["outcomes"]] == ["paused"]


def test_a_bundle_counts_what_all_its_edits_let_go_together(http: httpx.Client, horarium: TestService) -> None:
    edited = [{**crowd(http, horarium, name, 501), "overlap_policy": "allow_all"} for name in ("a", "b")]
    asked = {"schedules": edited, "adopt": True}
    refused(http.post("/api/apply", json=asked), 2 * 501)
    planned = http.post("/api/apply", json={**asked, "dry_run": True})
    assert (planned.status_code, planned.json()["starts_soon"]) == (200, 2 * 501)
    assert http.get("/api/schedules/a").json()["version"] == 1
    assert http.post("/api/apply", params={"confirm": "true"}, json=asked).status_code == 200


def test_a_bundle_and_a_bulk_trigger_of_a_thousand_must_be_meant(http: httpx.Client, horarium: TestService) -> None:
    def bundle(spec: dict[str, Any]) -> dict[str, Any]:
        action = {"workflow_type": "w"}
        return {"schedules": [{"schedule_id": f"s{n}", "spec": spec, "action": action} for n in range(MANY)]}

    refused(http.post("/api/apply", json=bundle(MINUTELY)))
    planned = http.post("/api/apply", json={**bundle(MINUTELY), "dry_run": True})
    assert (planned.status_code, planned.json()["starts_soon"]) == (200, MANY)
    assert http.get("/api/schedules").json()["schedules"] == []
    assert http.post("/api/apply", json=bundle(NIGHTLY)).status_code == 200, "at two o'clock is not at once"
    every: dict[str, Any] = {"action": "trigger", "all": True, "limit": 1}
    refused(http.post("/api/schedules/bulk", json=every))
    planned = http.post("/api/schedules/bulk", json={**every, "dry_run": True}).json()
    refused(http.post("/api/schedules/bulk", json={**every, "next_page_token": planned["next_page_token"]}))
    assert horarium.runs() == []
    meant = http.post("/api/schedules/bulk", params={"confirm": "true"}, json=every)
    assert [each["outcome"] for each in meant.json()["outcomes"]] == ["triggered"]
