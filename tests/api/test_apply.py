"""A bundle over HTTP: all or nothing, a plan that is true, and nobody else's things."""

from __future__ import annotations

from typing import Any

import httpx

from horarium.testing import TestService

HOURLY: dict[str, Any] = {"schedule_id": "hourly", "cron_expr": "0 * * * *", "workflow_type": "w"}
DAYS: dict[str, Any] = {"name": "days", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-01-01"]}


def apply(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = http.post("/api/apply", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def changes(http: httpx.Client, **body: Any) -> dict[str, str]:
    return {row["name"]: row["change"] for row in apply(http, **body)["changes"]}


def refused(http: httpx.Client, **body: Any) -> dict[str, Any]:
    """The same words with and without a dry run."""
    real, dry = http.post("/api/apply", json=body), http.post("/api/apply", json={**body, "dry_run": True})
    assert real.status_code >= 400
    assert (real.status_code, real.json()) == (dry.status_code, dry.json())
    told: dict[str, Any] = real.json()
    return told


def ids(http: httpx.Client, **query: Any) -> list[str]:
    return sorted(row["schedule_id"] for row in http.get("/api/schedules", params=query).json()["schedules"])


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
        ({"workflows": [{"name": "w"}]}, "workflows"),
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


def test_the_same_key_applies_once(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "deploy-7"}
    first, again = (http.post("/api/apply", json={"schedules": [HOURLY]}, headers=headers) for _ in range(2))
    assert first.json()["changes"][0]["change"] == "create"
    assert first.json() == again.json()
    dry = {"schedules": [{**HOURLY, "schedule_id": "dry"}], "dry_run": True}
    assert http.post("/api/apply", json=dry, headers={"Idempotency-Key": "dry"}).status_code == 200
    assert ids(http) == ["hourly"]


def test_used_up_runs_do_not_begin_anew(http: httpx.Client) -> None:
    once = {**HOURLY, "max_runs": 1}
    apply(http, schedules=[once])
    http.post("/api/schedules/hourly/trigger")
    [told] = apply(http, schedules=[once])["changes"]
    assert (told["change"], told["exhausted"]) == ("unchanged", True)
    assert changes(http, schedules=[{**once, "max_runs": 2}]) == {"hourly": "create"}


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
