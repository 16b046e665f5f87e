"""A draft says what a write would: its refusals by field, its document, its fires; and it writes nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.core.document.planning import compile_planning
from horarium.features.tenants import service as tenant_service
from horarium.testing import TestService

DOCUMENT: dict[str, Any] = {
    "schedule_id": "nightly",
    "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"},
    "action": {"workflow_type": "report"},
}


def draft(http: httpx.Client, document: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = http.post("/api/schedules/draft", json=document, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def times(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["tick_at"], row["decision"]) for row in rows]


KEPT: dict[str, dict[str, Any]] = {
    "plain": DOCUMENT,
    "another vocabulary": {"schedule_id": "nightly", "cron_expr": "0 2 * * *", "workflow_id": "report", "version": 3},
    "guards": {**DOCUMENT, "calendars": ["weekdays"], "pre_dispatch_condition": {"/last_24h_stats/failed": {"lt": 3}}},
    "a few runs": {**DOCUMENT, "max_runs": 2, "inputs_rotation": [{"n": 1}, {"n": 2}]},
    "paused": {**DOCUMENT, "paused": True},
    "hashed": {**DOCUMENT, "spec": {"cron_expressions": ["H H * * *"]}},
    "monthly": {**DOCUMENT, "spec": {"cron_expressions": ["0 0 1 * *"]}},
    "a secret to be": {
        **DOCUMENT,
        "action": {
            "kind": "http",
            "url": "https://api.example.com/hook",
            "headers": {"Authorization": "Bearer s3cret"},
        },
    },
}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_a_draft_says_is_what_is_kept(http: httpx.Client) -> None:
    for case, document in KEPT.items():
        name = f"case-{list(KEPT).index(case)}"
        named = {**document, "schedule_id": name}
        told = draft(http, named, n=3)
        assert (told["valid"], told["errors"]) == (True, {}), case
        assert "s3cret" not in str(told), case
        made = http.post("/api/schedules", json=named)
        assert made.status_code == 201, (case, made.text)
        assert set(made.json().get("warnings", ())) <= set(told["warnings"]), case
        [kept] = http.get(f"/api/schedules/{name}/revisions").json()["revisions"]
        assert told["document"] == kept["document"], case
        shown = http.get(f"/api/schedules/{name}/preview", params={"n": 3}).json()["rows"]
        assert times(told["fires"])[: len(shown)] == times(shown), case
        assert [row["inputs"] for row in told["fires"]][: len(shown)] == [row["inputs"] for row in shown], case


REFUSED: dict[str, dict[str, Any]] = {
    "empty": {},
    "a bad cron": {**DOCUMENT, "spec": {"cron_expressions": ["61 * * * *"]}},
    "a bad zone and a bad policy": {
        **DOCUMENT, "spec": {**DOCUMENT["spec"], "timezone": "Mars/Base"}, "overlap_policy": "sometimes",
    },
    "never": {**DOCUMENT, "spec": {"cron_expressions": ["0 0 30 2 *"]}},
    "who is not there": {**DOCUMENT, "calendars": ["nowhere"], "assignee_type": "agent", "assignee_id": "nobody"},
    "an assignment that is not there": {**DOCUMENT, "workflow_assignment_id": "nothing"},
    "an unknown field": {**DOCUMENT, "sepc": {}},
    "a secret where none may stand": {**DOCUMENT, "labels": {"a": {"$secret": "b"}}},
}  # fmt: skip


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_a_write_refuses_is_told_by_field(http: httpx.Client) -> None:
    for case, document in REFUSED.items():
        refused = http.post("/api/schedules", json=document)
        assert refused.status_code == 422, case
        told = draft(http, document)
        assert (told["valid"], told["errors"]) == (False, refused.json()["errors"]), case
    for params in ({"n": -1}, {"n": 51}, {"year": 1}, {"year": 10_000}, {"n": "many"}):
        assert http.post("/api/schedules/draft", json=DOCUMENT, params=params).status_code == 422, params


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_while_something_else_is_missing_the_spec_is_shown(http: httpx.Client) -> None:
    told = draft(http, {"spec": {"cron_expressions": ["30 2 * * *"], "timezone": "America/New_York"}}, n=2)
    assert not told["valid"]
    assert told["document"] is None
    assert times(told["fires"]) == [("2026-03-01T07:30:00Z", "dispatch"), ("2026-03-02T07:30:00Z", "dispatch")]
    assert told["words"].startswith("at 02:30 every day")
    assert any("DST on 2026-03-08: 02:30 does not exist" in each for each in told["warnings"])


def test_an_edit_tells_which_fires_come_and_go(http: httpx.Client, horarium: TestService) -> None:
    horarium.create(**DOCUMENT)
    later = {"cron_expressions": ["0 3 * * *", "0 12 2 3 *"], "timezone": "Europe/Istanbul"}
    told = draft(http, {"spec": later}, schedule_id="nightly", n=1)
    assert told["valid"], told["errors"]
    changes = told["changes"]
    assert changes["moved"][0] == {"from": "2026-03-01T23:00:00Z", "to": "2026-03-02T00:00:00Z"}
    assert changes["added"] == ["2026-03-02T09:00:00Z"]
    assert changes["removed"] == []
    assert told["document"]["action"]["workflow_type"] == "report"
    horarium.advance(hours=1)
    closed = draft(http, {"calendars": ["weekdays"]}, schedule_id="nightly")["changes"]
    assert closed["removed"][0] == "2026-03-06T23:00:00Z"  # a Saturday in Istanbul
    assert http.get("/api/schedules/nightly").json()["version"] == 1


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_taken_and_what_is_another_s_is_told(http: httpx.Client, horarium: TestService) -> None:
    horarium.create(**DOCUMENT)
    assert list(draft(http, DOCUMENT)["errors"]) == ["schedule_id"]
    assert http.post("/api/schedules/draft", json={}, params={"schedule_id": "nobody"}).status_code == 404
    renamed = draft(http, {"schedule_id": "other"}, schedule_id="nightly")
    assert list(renamed["errors"]) == ["schedule_id"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_without_an_id_none_is_made_up_and_nothing_is_remembered(http: httpx.Client) -> None:
    """Whoever may read can send as many as it likes."""
    before = compile_planning.cache_info().currsize
    nameless = {name: value for name, value in DOCUMENT.items() if name != "schedule_id"}
    told = draft(http, {**nameless, "spec": {"cron_expressions": ["H 2 * * *"]}})
    assert told["valid"]
    assert "schedule_id" not in told["document"]
    assert any("`H` depends on the schedule ID" in each for each in told["warnings"])
    assert compile_planning.cache_info().currsize == before


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_policies_of_the_next_run_are_told_with_their_origins(http: httpx.Client) -> None:
    own = draft(http, {**DOCUMENT, "retry_policy": {"max_retries": 3}})["policies"]
    assert own["origins"]["retry_policy"] == "schedule"
    assert own["origins"]["approval_policy.requires_approval"] == "default"
    put = http.put("/api/agents/scout", json={"policies": {"limits": {"cost": 2}}})
    assert put.is_success, put.text
    given = draft(http, {**DOCUMENT, "assignee_type": "agent", "assignee_id": "scout"})["policies"]
    assert given["origins"]["limits.cost"] == "agent"
    assert given["approval_policy"]["requires_approval"] is True


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_hostile_document_is_answered(http: httpx.Client) -> None:
    dense = {**DOCUMENT, "spec": {"cron_expressions": [f"{each} * * * * *" for each in range(60)]}}
    told = draft(http, {**dense, "calendars": ["weekdays"], "action": {"workflow_type": "w", "input": ["x" * 500_000]}})
    assert told["valid"]
    assert len(told["fires"]) == 10
    assert len(told["warnings"]) <= 60
    assert http.post("/api/schedules", json=dense).status_code == 201
    edited = draft(http, {"spec": {"cron_expressions": ["* * * * * *"]}}, schedule_id="nightly", n=0)
    assert edited["changes"]["bounded"]
    assert edited["fires"] == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_edit_by_merging_clears_what_is_null_as_a_patch_does(http: httpx.Client, horarium: TestService) -> None:
    horarium.create(**{**DOCUMENT, "note": "as it was", "action": {"kind": "pull", "queue": "q", "workflow_type": "a"}})
    patch = {
        "note": None,
        "action": {"kind": "http", "url": "https://api.example.com/", "queue": None, "workflow_type": None},
    }
    told = draft(http, patch, schedule_id="nightly", merge=True)
    assert told["valid"], told["errors"]
    assert http.patch("/api/schedules/nightly", json=patch).status_code == 200
    kept = http.get("/api/schedules/nightly/revisions", params={"page_size": 1}).json()["revisions"][0]["document"]
    assert told["document"]["action"] == kept["action"]
    assert "queue" not in kept["action"]
    assert told["document"].get("note") is None


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_who_asks_is_told_whether_they_may_write_it(http: httpx.Client, horarium: TestService) -> None:
    """What the document says plays no part: `valid` is about that."""
    assert http.post("/api/schedules", json={**DOCUMENT, "owner": "ada"}).status_code == 201
    may = {}
    for name, role in (("ada", "owner"), ("bob", "owner"), ("eve", "viewer"), ("max", "operator")):
        issued = tenant_service.issue_token(horarium.resources, horarium.caller, name=name, role=role, subject=name)
        own = horarium.http(token=issued.secret)
        new = draft(own, {**DOCUMENT, "schedule_id": "another"})
        edit = draft(own, {"max_runs": 3}, schedule_id="nightly", merge=True)
        done = own.patch("/api/schedules/nightly", json={"note": name}).status_code
        assert edit["may_write"] is (done == 200)
        assert draft(own, {"spec": {"cron_expressions": ["x"]}})["may_write"] is new["may_write"]
        may[name] = (new["may_write"], edit["may_write"], new["valid"], edit["valid"])
    assert may == {
        "ada": (True, True, True, True),
        "bob": (True, False, True, False),
        "eve": (False, False, True, False),
        "max": (False, False, True, False),
    }
