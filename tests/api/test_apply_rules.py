"""What a bundle may and may not do, over HTTP. The rules do not depend on the database: one is enough."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest
from api.bundling import DAYS, HOURLY, apply, changes, ids, refused

from horarium.testing import TestService


@pytest.fixture
def service_url(sqlite_template: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'horarium.db')}"


def test_one_bad_document_refuses_all_and_is_named(http: httpx.Client) -> None:
    bad = {**HOURLY, "schedule_id": "bad", "cron_expr": "61 * * * *"}
    told = refused(http, calendars=[DAYS], schedules=[HOURLY, bad, {**bad, "schedule_id": "worse"}])
    assert (told["status"], told["schedule_id"]) == (422, "bad")
    assert "schedule 'bad': cron_expr" in told["message"]
    assert "schedule 'worse': cron_expr" in told["message"]
    assert list(told["errors"]) == ["schedules.1.cron_expr", "schedules.2.cron_expr"]
    assert ids(http) == []
    assert http.get("/api/calendars/days").status_code == 404


def test_a_dry_run_refuses_what_the_real_one_refuses(http: httpx.Client) -> None:
    for document, field in (
        ({"calendars": ["none"]}, "calendars.0"),
        ({"namespace": "elsewhere"}, "namespace"),
        ({"workflow_assignment_id": "none"}, "workflow_assignment_id"),
        ({"exhausted": True}, "exhausted"),
    ):
        told = refused(http, schedules=[{**HOURLY, **document}])
        assert (told["status"], list(told["errors"])) == (422, [f"schedules.0.{field}"])
        assert told["schedule_id"] == "hourly"


def test_a_bad_bundle_names_the_field(http: httpx.Client) -> None:
    for body, field in (
        ({"schedules": [HOURLY, HOURLY]}, "schedules.1"),
        ({"workflows": [{"name": "w"}]}, "workflows.0"),
        ({"prune": True}, "bundle"),
        ({"bundle": "no name"}, "bundle"),
        ({"schedules": {}}, "schedules"),
        ({"schedule": []}, "schedule"),
        ({"dry_run": "yes"}, "dry_run"),
    ):
        answer = http.post("/api/apply", json=body)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field])


def test_what_was_made_by_hand_is_kept_until_it_is_adopted(http: httpx.Client) -> None:
    http.post("/api/schedules", json={**HOURLY, "note": "mine"})
    http.post("/api/calendars", json={**DAYS, "dates": []})
    bundle = {"bundle": "billing", "schedules": [HOURLY], "calendars": [DAYS]}
    assert set(changes(http, **bundle, prune=True).values()) == {"keep"}
    assert http.get("/api/schedules/hourly").json()["bundle"] is None
    adopted = apply(http, **bundle, adopt=True)["changes"]
    assert [row["change"] for row in adopted] == ["update", "update"]
    assert adopted[1]["diff"] == [
        {"path": "source", "old": None, "new": "template"}, {"path": "bundle", "old": None, "new": "billing"},
    ]  # fmt: skip
    shown = http.get("/api/schedules/hourly").json()
    assert (shown["bundle"], shown["source"], shown["note"]) == ("billing", "template", "mine")
    assert ids(http, source="template") == ["hourly"]
    assert set(changes(http, **bundle).values()) == {"unchanged"}


def test_a_calendar_that_others_need_is_not_pruned(http: httpx.Client) -> None:
    apply(http, bundle="billing", calendars=[DAYS])
    http.post("/api/schedules", json={**HOURLY, "calendars": ["days"]})
    told = refused(http, bundle="billing", prune=True)
    assert (told["status"], told["reason"]) == (409, "calendar_in_use")
    assert "calendar 'days'" in told["message"]


def test_another_tenants_schedules_are_not_reached(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/namespaces", json={"namespace": "other"})
    theirs = horarium.http(namespace="other")
    apply(theirs, bundle="billing", schedules=[{**HOURLY, "schedule_id": "theirs"}, HOURLY])
    assert changes(http, bundle="billing", schedules=[HOURLY], prune=True) == {"hourly": "create"}
    assert ids(theirs) == ["hourly", "theirs"]


def test_an_owners_schedule_is_changed_by_nobody_else(http: httpx.Client, horarium: TestService) -> None:
    def of(name: str) -> httpx.Client:
        issued = http.post("/api/tokens", json={"name": name, "role": "owner", "subject": name}).json()
        return horarium.http(token=issued["secret"])

    ada, bob = of("ada"), of("bob")
    apply(ada, bundle="billing", schedules=[HOURLY])
    told = refused(bob, bundle="billing", schedules=[{**HOURLY, "max_runs": 3}])
    assert (told["status"], told["schedule_id"]) == (403, "hourly")
    assert refused(bob, bundle="billing", prune=True)["status"] == 403


def test_used_up_runs_do_not_begin_anew(http: httpx.Client) -> None:
    once = {**HOURLY, "max_runs": 1}
    apply(http, schedules=[once])
    http.post("/api/schedules/hourly/trigger")
    [told] = apply(http, schedules=[once])["changes"]
    assert (told["change"], told["exhausted"]) == ("unchanged", True)
    assert changes(http, schedules=[{**once, "max_runs": 2}]) == {"hourly": "create"}
