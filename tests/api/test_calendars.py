"""Calendars over HTTP: one's own, the built-in ones, and rules."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.schedules import lists
from horarium.testing import TestService

OURS: dict[str, Any] = {
    "name": "ours",
    "kind": "skip_dates",
    "timezone": "Europe/Istanbul",
    "dates": ["2026-12-24", "2026-12-31"],
}


@pytest.fixture
def ours(http: httpx.Client) -> httpx.Response:
    return http.post("/api/calendars", json=OURS)


def test_a_calendar_is_made_read_and_listed(http: httpx.Client, ours: httpx.Response) -> None:
    assert (ours.status_code, ours.headers["etag"]) == (201, '"1"')
    read = http.get("/api/calendars/ours").json()
    assert {name: read[name] for name in OURS} == OURS
    assert (read["read_only"], read["version"], read["updated_at"]) == (False, 1, "2026-03-01T00:00:00Z")
    assert (read["covers"], read["covered_until"]) == (None, "2026-12-31"), "the year of its last date"
    names = [each["name"] for each in http.get("/api/calendars").json()["calendars"]]
    built_in = ["us-federal-holidays-2026", "tr-public-holidays-2026", "weekends-only"]
    assert names == ["ours", *built_in, "weekends", "weekdays"]


def test_a_calendar_without_a_zone_is_read_in_the_zone_of_each_schedule(
    horarium: TestService, http: httpx.Client
) -> None:
    """The evening of the second in New York is the third in UTC, and runs; that of the third is the fourth."""
    made = http.post("/api/calendars", json={"name": "third", "kind": "skip_dates", "dates": ["2026-03-03"]})
    assert made.json()["timezone"] is None
    daily: dict[str, Any] = {"cron_expressions": ["0 22 * * *"], "workflow_type": "w", "calendars": ["third"]}
    daily["overlap_policy"] = "allow_all"
    for name, zone in (("york", "America/New_York"), ("utc", "UTC"), ("tokyo", "Asia/Tokyo")):
        written = http.post("/api/schedules", json={**daily, "schedule_id": name, "timezone": zone}).json()
        assert "warnings" not in written
    horarium.advance_to("2026-03-04T23:00:00Z")
    fired = {name: [f"{run.nominal:%m-%dT%H}" for run in horarium.runs(name)] for name in ("york", "utc", "tokyo")}
    assert fired == {
        "york": ["03-01T03", "03-02T03", "03-03T03"],
        "utc": ["03-01T22", "03-02T22", "03-04T22"],
        "tokyo": ["03-01T13", "03-02T13", "03-04T13"],
    }
    moved = http.put("/api/calendars/third", json={"timezone": "Asia/Tokyo"}).json()
    assert moved["timezone"] == "Asia/Tokyo"
    assert http.put("/api/calendars/third", json={"timezone": None}).json()["timezone"] is None


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_whoever_attaches_a_calendar_of_another_zone_is_told(http: httpx.Client, ours: httpx.Response) -> None:
    daily = {"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "w", "calendars": ["ours"]}
    told = ["calendars: ours uses days of the time zone Europe/Istanbul, but the schedule uses UTC"]
    at = "/api/schedules/s"
    assert http.post("/api/schedules", json=daily).json()["warnings"] == told
    assert "warnings" not in http.patch(at, json={"note": "n", "labels": {"a": "b"}}).json()
    assert http.put(f"{at}/calendars", json=["ours", "weekdays"]).json()["warnings"] == told
    assert "warnings" not in http.patch(at, json={"spec": {"timezone": "Europe/Istanbul"}}).json()
    new_york = "calendars: us-federal-holidays-2026 uses days of the time zone America/New_York, but the schedule uses "
    assert http.put(f"{at}/calendars", json=["ours", "us-federal-holidays-2026"]).json()["warnings"] == [
        f"{new_york}Europe/Istanbul"
    ]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("us-federal-holidays-2026", {"date": "2026-01-01", "name": None}),
        ("holidays:US", {"date": "2026-01-01", "name": "New Year's Day"}),
        ("holidays:US@America/New_York", {"date": "2026-01-01", "name": "New Year's Day"}),
        ("weekends", {"date": "2026-01-03", "name": "Saturday"}),
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_everybody_has_can_be_read_with_its_days(http: httpx.Client, name: str, first: dict[str, Any]) -> None:
    read = http.get(f"/api/calendars/{name}", params={"year": 2026}).json()
    assert (read["read_only"], read["version"], read["days"][0]) == (True, None, first)
    assert "days" not in http.get(f"/api/calendars/{name}").json()


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_days_are_those_of_the_year(http: httpx.Client) -> None:
    days = http.get("/api/calendars/weekdays", params={"year": 2027}).json()["days"]
    assert (days[0]["date"], days[-1]["date"], len(days)) == ("2027-01-01", "2027-12-31", 261)
    assert http.get("/api/calendars/weekdays", params={"year": 5000}).status_code == 422


@pytest.mark.parametrize("name", ["nobodys", "holidays:XX", "holidays:US@Nowhere/City", "x" * 500, "a/b"])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_unknown_calendar_is_not_found(http: httpx.Client, name: str) -> None:
    answer = http.get(f"/api/calendars/{name}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "calendar_not_found")


def test_an_edit_replaces_what_it_says_and_keeps_the_rest(http: httpx.Client, ours: httpx.Response) -> None:
    answer = http.put("/api/calendars/ours", json={"dates": ["2026-05-01"]}, headers={"If-Match": '"1"'})
    assert (answer.json()["dates"], answer.json()["timezone"]) == (["2026-05-01"], "Europe/Istanbul")
    assert answer.headers["etag"] == '"2"'
    stale = http.put("/api/calendars/ours", json={"dates": []}, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["reason"], stale.json()["version"]) == (412, "precondition_failed", 2)


@pytest.mark.parametrize(
    "body",
    [{"dates": ["2026-02-30"]}, {"kind": "sometimes"}, {"timezone": "Mars"}, {"colour": "red"}, {"name": "other"}],
    ids=str,
)
def test_a_bad_edit_is_refused(http: httpx.Client, ours: httpx.Response, body: dict[str, Any]) -> None:
    answer = http.put("/api/calendars/ours", json=body)
    assert (answer.status_code, answer.json()["reason"]) == (422, "invalid_calendar")
    assert http.get("/api/calendars/ours").json()["version"] == 1


def test_a_name_that_is_taken_is_refused(http: httpx.Client, ours: httpx.Response) -> None:
    assert http.post("/api/calendars", json=OURS).json()["reason"] == "calendar_already_exists"
    builtin = http.post("/api/calendars", json={**OURS, "name": "weekends-only"})
    assert (builtin.status_code, builtin.json()["reason"]) == (422, "invalid_calendar")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_built_in_calendar_is_not_changed(http: httpx.Client, method: str) -> None:
    answer = http.request(method, "/api/calendars/weekends-only", json={"dates": []} if method == "PUT" else None)
    assert (answer.status_code, answer.json()["reason"]) == (409, "calendar_read_only")


@pytest.mark.parametrize("source", ["weekends-only", "holidays:TR", "holidays:US@America/New_York"])
def test_a_clone_is_one_s_own(http: httpx.Client, source: str) -> None:
    made = http.post(f"/api/calendars/{source}/clone", json={"name": "copy"})
    assert (made.status_code, made.json()["read_only"]) == (201, False)
    assert http.put("/api/calendars/copy", json={"dates": ["2027-01-01"]}).status_code == 200
    assert http.post(f"/api/calendars/{source}/clone", json={}).json()["errors"] == {"name": ["is required"]}


@pytest.mark.both_databases
def test_the_schedules_that_obey_a_calendar_are_listed(
    http: httpx.Client, ours: httpx.Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that only mention its name, wherever, are looked at and left out; a page of them goes on all the same."""
    daily = {"cron_expressions": ["0 2 * * *"], "workflow_type": "w"}
    obey: list[dict[str, Any]] = [{"calendars": ["ours"]}, {"calendars": ["weekdays", "ours"]}]
    mention: list[dict[str, Any]] = [
        {"input": {"calendars": ["ours"]}},
        {"name": "ours"},
        {"calendars": ["OURS", "ours-2"]},
        {"calendars": ["weekdays"]},
    ]
    for name in ("OURS", "ours-2"):
        http.post("/api/calendars", json={**OURS, "name": name}).raise_for_status()
    for number, more in enumerate([obey[0], *mention, obey[1]]):
        http.post("/api/schedules", json={**daily, "schedule_id": f"s{number}", **more}).raise_for_status()

    def listed(**filters: str) -> tuple[list[str], str | None]:
        answer = http.get("/api/schedules", params=filters).json()
        return sorted(each["schedule_id"] for each in answer["schedules"]), answer["next_page_token"]

    assert listed(calendar="ours") == (["s0", "s5"], None)
    assert listed(calendar="weekdays") == (["s4", "s5"], None)
    assert listed(calendar="ours", text="s5") == (["s5"], None)
    assert listed(calendar="o_rs%") == ([], None)
    http.post("/api/schedules/s0/pause", json={}).raise_for_status()
    assert listed(calendar="ours", health="paused") == (["s0"], None)
    monkeypatch.setattr(lists, "MOST_JUDGED", 2)
    seen, token = listed(calendar="ours", page_size="1")
    while token is not None:
        more_seen, token = listed(calendar="ours", page_size="1", next_page_token=token)
        seen += more_seen
    assert sorted(seen) == ["s0", "s5"]
    assert http.get("/api/schedules", params={"calendar": " "}).status_code == 422
    assert http.get("/api/schedules", params={"calendar": "c" * 257}).status_code == 422


@pytest.mark.both_databases
def test_a_calendar_in_use_is_not_deleted(http: httpx.Client, ours: httpx.Response, horarium: TestService) -> None:
    horarium.create(schedule_id="s", cron_expressions=["0 2 * * *"], workflow_type="x", calendars=["ours"])
    answer = http.delete("/api/calendars/ours")
    assert (answer.status_code, answer.json()["reason"], answer.json()["schedules"]) == (409, "calendar_in_use", ["s"])
    http.delete("/api/schedules/s/calendars")
    assert http.delete("/api/calendars/ours").json() == {"name": "ours", "outcome": "deleted"}
    assert http.get("/api/calendars/ours").status_code == 404


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_calendar_is_changed_by_its_owner_or_an_admin(horarium: TestService, http: httpx.Client) -> None:
    """Whoever empties the calendar of another lets the schedules of others run, or stops them."""

    def door(name: str) -> httpx.Client:
        return horarium.http(token=http.post("/api/tokens", json={"name": name, "role": "owner"}).json()["secret"])

    ada, mallory = door("ada"), door("mallory")
    assert ada.post("/api/calendars", json=OURS).json()["owner"] == "ada"
    brought = {"bundle": "b", "calendars": [{**OURS, "name": "brought"}]}
    assert ada.post("/api/apply", json=brought).status_code == 200
    emptied = {"bundle": "b", "calendars": [{**OURS, "name": "brought", "dates": ["2026-01-01"]}]}
    refused = [
        mallory.put("/api/calendars/ours", json={"dates": []}),
        mallory.delete("/api/calendars/ours"),
        mallory.put("/api/calendars/brought", json={"dates": []}),
        mallory.post("/api/apply", json=emptied),
        mallory.post("/api/apply", json={"bundle": "b", "prune": True}),
        mallory.post("/api/apply", json={"bundle": "mine", "adopt": True, "calendars": [OURS]}),
    ]
    assert {(each.status_code, each.json()["reason"]) for each in refused} == {(403, "forbidden")}
    assert http.get("/api/calendars/ours").json()["dates"] == OURS["dates"]
    assert mallory.post("/api/calendars/ours/clone", json={"name": "copy"}).json()["owner"] == "mallory"
    assert ada.put("/api/calendars/ours", json={"dates": ["2026-01-01"]}).json()["owner"] == "ada"
    assert http.delete("/api/calendars/ours").status_code == 200


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_calendar_from_before_owners_is_open_to_all_who_may_write(horarium: TestService, http: httpx.Client) -> None:
    http.post("/api/calendars", json=OURS)
    horarium.parts.database.write(lambda c: c.exec_driver_sql("UPDATE calendars SET owner = NULL"))
    bob = http.post("/api/tokens", json={"name": "bob", "role": "owner"}).json()["secret"]
    assert horarium.http(token=bob).put("/api/calendars/ours", json={"dates": []}).status_code in (200, 422)
    assert horarium.http(token=bob).delete("/api/calendars/ours").status_code == 200
