"""A bundle over HTTP: all or nothing, a plan that is true, and nobody else's things."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from api.bundling import DAYS, HOURLY, apply, changes, ids, refused

from horarium.core.decision import year
from horarium.core.document import document
from horarium.features.bundles import steps
from horarium.features.schedules import service as schedule_service
from horarium.instant import Instant
from horarium.testing import TestService


@pytest.mark.both_databases
def test_a_bundle_is_made_changed_and_left_alone(http: httpx.Client, horarium: TestService) -> None:
    bundle: dict[str, Any] = {
        "bundle": "billing",
        "calendars": [DAYS],
        "schedules": [{**HOURLY, "calendars": ["days"], "labels": {"a": "b"}}, {**HOURLY, "schedule_id": "other"}],
    }
    assert changes(http, **bundle, dry_run=True) == {"days": "create", "hourly": "create", "other": "create"}
    assert ids(http) == []
    made = apply(http, **bundle)
    assert made["dry_run"] is False
    assert [(row["kind"], row["change"], row["fires_added"], row["diff"]) for row in made["changes"]] == [
        ("calendar", "create", 0, []), ("schedule", "create", 168, []), ("schedule", "create", 168, []),
    ]  # fmt: skip
    assert set(changes(http, **bundle).values()) == {"unchanged"}
    assert http.get("/api/schedules/hourly").json()["version"] == 1
    assert ids(http, bundle="billing", label="a=b") == ["hourly"]
    assert ids(http, bundle="another") == []
    assert http.get("/api/calendars/days").json()["bundle"] == "billing"
    bundle["schedules"][0]["cron_expr"] = "0 */2 * * *"
    bundle["schedules"][0]["labels"] = {"a": "c"}
    plan = apply(http, **bundle, dry_run=True)["changes"][1]
    assert plan["diff"] == [
        {"path": "labels.a", "old": "b", "new": "c"},
        {"path": "spec.cron_expressions", "old": ["0 * * * *"], "new": ["0 */2 * * *"]},
    ]
    assert (plan["change"], plan["fires_added"], plan["fires_removed"]) == ("update", 0, 84)
    assert apply(http, **bundle)["changes"][1] == plan
    assert http.get("/api/schedules/hourly").json()["revision"] == 2
    horarium.advance(hours=3)
    assert (len(horarium.runs("hourly")), horarium.verify()) == (1, [])


@pytest.mark.both_databases
def test_what_another_bundle_owns_is_refused_until_it_is_adopted(http: httpx.Client) -> None:
    apply(http, bundle="billing", schedules=[HOURLY], calendars=[DAYS])
    for body in ({"schedules": [HOURLY]}, {"calendars": [DAYS]}):
        told = refused(http, bundle="crm", **body)
        assert (told["status"], told["reason"]) == (409, "owned_by_another_bundle")
        assert "'billing'" in told["message"]
    assert set(changes(http, bundle="crm", schedules=[HOURLY], calendars=[DAYS], adopt=True).values()) == {"update"}
    events = http.get("/api/schedules/hourly/history").json()["events"]
    assert events[-1]["payload"]["changed_fields"] == ["bundle"]
    assert changes(http, bundle="billing", prune=True) == {}
    assert ids(http, bundle="crm") == ["hourly"]


def test_prune_deletes_what_the_bundle_owns_and_nothing_else(http: httpx.Client) -> None:
    apply(http, bundle="billing", schedules=[HOURLY, {**HOURLY, "schedule_id": "old"}], calendars=[DAYS])
    apply(http, bundle="crm", schedules=[{**HOURLY, "schedule_id": "theirs"}])
    apply(http, schedules=[{**HOURLY, "schedule_id": "nameless"}])
    http.post("/api/schedules", json={**HOURLY, "schedule_id": "hand"})
    assert changes(http, bundle="billing", schedules=[HOURLY], calendars=[DAYS]) == {
        "hourly": "unchanged", "days": "unchanged",
    }  # fmt: skip
    told = apply(http, bundle="billing", schedules=[HOURLY], prune=True)["changes"]
    assert [(row["name"], row["change"], row["fires_removed"]) for row in told] == [
        ("hourly", "unchanged", 0), ("old", "delete", 168), ("days", "delete", 0),
    ]  # fmt: skip
    assert ids(http) == ["hand", "hourly", "nameless", "theirs"]
    assert http.get("/api/calendars/days").status_code == 404


def test_the_same_key_applies_once(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "deploy-7"}
    first, again = (http.post("/api/apply", json={"schedules": [HOURLY]}, headers=headers) for _ in range(2))
    assert first.json()["changes"][0]["change"] == "create"
    assert first.json() == again.json()
    dry = {"schedules": [{**HOURLY, "schedule_id": "dry"}], "dry_run": True}
    assert http.post("/api/apply", json=dry, headers={"Idempotency-Key": "dry"}).status_code == 200
    assert ids(http) == ["hourly"]


def test_five_hundred_ordinary_documents_fit_in_one_request(http: httpx.Client) -> None:
    schedules = [
        {
            "schedule_id": f"report-{number}",
            "spec": {"cron_expressions": [f"{number % 60} 2 * * 1-5"], "timezone": "Europe/Istanbul"},
            "action": {"workflow_type": "report", "task_queue": "reports", "input": [{"customer": number}]},
            "labels": {"team": "billing", "customer": str(number)},
            "note": "the report that this customer gets on each working day",
        }
        for number in range(500)
    ]
    assert len(changes(http, bundle="billing", schedules=schedules)) == 500
    assert ids(http, label="customer=77") == ["report-77"]


def test_fires_are_counted_when_nothing_is_locked_any_more(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle of many crons takes its time, and on SQLite nothing would fire meanwhile."""
    counts: list[tuple[int, int]] = []

    def count(*specs: Any, now: Instant) -> tuple[int, int]:
        horarium.resources.database.write(lambda connection: None)  # refused inside of another transaction
        counts.append(year.fires_moved(*specs, now=now))
        return counts[-1]

    monkeypatch.setattr(steps, "fires_moved", count)
    apply(http, bundle="b", schedules=[HOURLY], dry_run=True)
    apply(http, bundle="b", schedules=[HOURLY])
    apply(http, bundle="b", schedules=[{**HOURLY, "cron_expr": "30 * * * *"}])
    apply(http, bundle="b", schedules=[], prune=True)
    assert counts == [(168, 0), (168, 0), (168, 168), (0, 168)]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_bundle_is_read_and_compiled_before_the_writer_is_taken(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without a key; a dry run opens no write transaction at all."""
    held: list[float] = []
    compiled: list[str] = []
    horarium.resources.database.watch_writes(held.append)
    parse = document.parse_definition

    def noted(*given: Any, **options: Any) -> Any:
        compiled.append(threading.current_thread().name)
        return parse(*given, **options)

    monkeypatch.setattr(schedule_service, "parse_definition", noted)
    triggers = [{"schedule": {"spec": {"cron_expressions": [f"{n} 2 * * *"]}}} for n in range(20)]
    nodes = [{"id": "n", "action": {"kind": "http", "url": "http://example.com"}}]
    body = {"bundle": "b", "workflows": [{"workflow_id": "w", "nodes": nodes, "triggers": triggers}]}
    planned = http.post("/api/apply", json={**body, "dry_run": True})
    assert (planned.status_code, held) == (200, [])
    for key in ({}, {"Idempotency-Key": "k"}):
        held.clear()
        assert http.post("/api/apply", json=body, headers=key).status_code == 200
        assert len(held) == 1
    again = http.post("/api/apply", json=body, headers={"Idempotency-Key": "k"})
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(http.get("/api/schedules").json()["schedules"]) == 20
    assert len(compiled) >= 60
    assert not any(name.startswith("horarium-write") for name in compiled)
