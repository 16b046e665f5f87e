"""The agenda: what was decided and what is coming, across the schedules of a namespace."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.forecast import agenda as forecast_agenda
from horarium.features.forecast import rows as forecast_rows
from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.wire import Role
from horarium.testing import TestService


def add(http: httpx.Client, schedule_id: str, cron: str, **fields: Any) -> None:
    document = {
        "schedule_id": schedule_id,
        "spec": {"cron_expressions": [cron]},
        "action": {"workflow_type": "w"},
        **fields,
    }
    assert http.post("/api/schedules", json=document).status_code == 201


def look(http: httpx.Client, **query: Any) -> dict[str, Any]:
    answer = http.get("/api/agenda", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def shown(agenda: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (row["at"][11:16], row["schedule_id"], row["decision"], row["reason"], row["predicted"])
        for row in agenda["rows"]
    ]


@pytest.mark.archived
def test_past_and_future_are_one_list_with_reasons(http: httpx.Client, horarium: TestService) -> None:
    # The clock stands at midnight of Sunday, 1 March.
    add(http, "hourly", "0 * * * *", timeout_seconds=36_000)
    add(http, "workdays", "30 1,3 * * *", calendars=["weekends-only"])
    add(http, "resting", "15 3 * * *", paused=True)
    horarium.advance(hours=2)
    got = look(http, **{"from": "2026-03-01T00:30:00Z", "to": "2026-03-01T04:00:00Z", "bucket_seconds": 7_200})
    assert shown(got) == [
        ("01:00", "hourly", "dispatch", None, False),
        ("01:30", "workdays", "dispatch", None, False),
        ("02:00", "hourly", "skip", "overlap_policy_skip", False),
        ("03:00", "hourly", "skip", "overlap_policy_skip", True),
        ("03:15", "resting", "skip", "status_not_triggerable", True),
        ("03:30", "workdays", "dispatch", None, True),
    ]
    assert (got["rows"][0]["state"], got["truncated"]) == ("running", False)
    assert got["rows"][0]["run_id"] == http.get("/api/schedules/hourly/runs").json()["runs"][0]["run_id"]
    assert got["buckets"] == [
        {"at": "2026-03-01T00:30:00Z", "starts": 2, "skips": 1},
        {"at": "2026-03-01T02:30:00Z", "starts": 1, "skips": 2},
    ]
    assert [row.get("certainty") for row in got["rows"]] == [None, None, None, "unknown", "certain", "unknown"]
    coming = look(http, to="2026-03-01T03:10:00Z")
    assert shown(coming) == [("02:00", "hourly", "skip", "overlap_policy_skip", False), *shown(got)[3:4]]
    tomorrow = look(http, **{"from": "2026-03-02T01:10:00Z", "to": "2026-03-02T02:00:00Z"})
    assert shown(tomorrow) == [("01:30", "workdays", "skip", "calendar", True)]


def test_what_began_before_the_window_and_goes_on_is_told_beside_the_rows(
    http: httpx.Client, horarium: TestService
) -> None:
    add(http, "long", "0 1 * * *", timeout_seconds=36_000, labels={"team": "night"})
    add(http, "other", "30 2 * * *")
    horarium.advance(hours=2)
    window = {"from": "2026-03-01T01:30:00Z", "to": "2026-03-01T03:00:00Z"}
    got = look(http, **window, label="team=night")
    assert shown(got) == []
    assert [(row["at"][11:16], row["state"]) for row in got["under_way"]] == [("01:00", "running")]
    assert list(got["schedules"]) == ["long"]
    assert got["buckets"] == []  # it started elsewhere
    for others in (
        {**window, "text": "other"},
        {**window, "reason": "missed"},
        {**window, "from": "2026-03-01T00:30:00Z"},  # there it is a row
        {"from": "2026-03-01T02:10:00Z", "to": "2026-03-01T03:00:00Z"},  # nobody knows how long it will go on
    ):
        assert "under_way" not in look(http, **others)


def test_a_backfill_and_a_row_of_missed_ones_are_one_row_each(http: httpx.Client, horarium: TestService) -> None:
    add(http, "minutely", "* * * * *", catchup_policy="skip")
    horarium.settle()
    horarium.sleep(hours=1)
    horarium.settle()
    got = look(http, **{"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T00:59:00Z"})
    (row,) = got["rows"]
    assert (row["decision"], row["reason"], row["count"]) == ("skip", "missed", 58)
    assert got["buckets"] == [{"at": "2026-03-01T00:00:00Z", "starts": 0, "skips": 58}]
    window = {"start_time": "2026-03-01T00:01:00Z", "end_time": "2026-03-01T00:02:00Z"}
    http.post("/api/schedules/minutely/backfill", json={**window, "overlap_policy": "allow_all"})
    assert shown(look(http, **{"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T00:02:00Z"})) == [
        ("00:01", "minutely", "dispatch", None, False)
    ]


def test_a_crowded_window_is_cut_and_says_so(http: httpx.Client) -> None:
    for number in range(4):
        add(http, f"s{number}", "* * * * *")
    month = {"from": "2026-03-01T00:00:00Z", "to": "2026-04-01T00:00:00Z"}
    got = look(http, **month, limit=5)
    assert ([row[0] for row in shown(got)], got["truncated"]) == (["00:01"] * 4 + ["00:02"], True)
    assert len(look(http, **month, limit=5_000)["rows"]) == 5_000


@pytest.mark.both_databases
def test_a_list_that_is_cut_begins_as_the_whole_one_does(http: httpx.Client) -> None:
    """Those that are due late for their jitter begin early all the same; others have one time, or have none yet."""
    for number in range(4):
        add(http, f"b-{number}", "0 10 * * *")
        add(http, f"a-{number}", "1 10 * * *")
        add(http, f"jittered-{number}", "0 9 * * *", jitter_seconds=86_000)
    add(http, "resting", "30 9 * * *")
    assert http.post("/api/schedules/resting/pause", json={}).status_code == 200
    for window in ({}, {"from": "2026-03-02T09:30:00Z", "to": "2026-03-04T00:00:00Z"}):
        whole = look(http, **window)
        assert not whole["truncated"]
        for limit in range(1, len(whole["rows"])):
            cut = look(http, **window, limit=limit)
            assert (cut["rows"], cut["truncated"]) == (whole["rows"][:limit], True)


def test_windows_that_make_no_sense_are_refused(http: httpx.Client) -> None:
    for query, field in (
        ({"from": "2026-03-02T00:00:00Z", "to": "2026-03-02T00:00:00Z"}, "to"),
        ({"to": "2026-04-02T00:00:01Z"}, "to"),
        ({"from": "soon"}, "from"),
        ({"limit": "0"}, "limit"),
        ({"limit": "5001"}, "limit"),
        ({"bucket_seconds": "0"}, "bucket_seconds"),
    ):
        answer = http.get("/api/agenda", params=query)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), query


def test_the_last_day_of_all_has_an_agenda(http: httpx.Client) -> None:
    """A day later there is no year that could be shown."""
    got = look(http, **{"from": "9999-12-31T12:00:00Z"})
    assert (got["rows"], got["end"]) == ([], "9999-12-31T23:59:59.999999Z")


@pytest.mark.archived
def test_a_lane_view_asks_for_the_lanes_that_it_shows(http: httpx.Client, horarium: TestService) -> None:
    add(http, "night", "0 * * * *", name="Night shift", labels={"team": "data"}, timezone="Europe/Istanbul")
    add(http, "day", "30 * * * *", labels={"team": "web"})
    add(http, "resting", "45 * * * *", paused=True)
    add(http, "never", "0 0 1 1 *")
    horarium.advance(hours=1)
    (run,) = horarium.runs("night")
    horarium.advance(seconds=90)
    horarium.finish(run)
    window = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T02:00:00Z"}
    day = ["day", "day"]

    def lanes(**query: Any) -> list[str]:
        return sorted(row["schedule_id"] for row in look(http, **window, **query)["rows"])

    assert lanes() == sorted(["night", *day, "resting"])
    assert lanes(schedule_id=["night", "never", "nobody"]) == ["night"]
    assert lanes(text="SHIFT") == ["night"]
    assert lanes(label="team=web") == day
    assert lanes(label=["team=web", "team=data"]) == ["night"]
    assert lanes(status="paused") == ["resting"]
    assert lanes(schedule_id="night", status="paused") == []
    got = look(http, **window, schedule_id=["night", "never", "nobody"])
    assert got["schedules"] == {
        "night": {"name": "Night shift", "timezone": "Europe/Istanbul", "status": "active"},
        "never": {"name": "", "timezone": "UTC", "status": "active"},
    }
    (row,) = got["rows"]
    assert (row["state"], row["started_at"], row["finished_at"]) == (
        "succeeded",
        "2026-03-01T01:00:00Z",
        "2026-03-01T01:01:30Z",
    )


def test_many_lanes_are_told_as_few_are(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few the histories are read one by one, of many the window."""
    for number in range(3):
        add(http, f"s{number}", "0 * * * *", labels={"odd": str(number % 2)})
    horarium.advance(hours=2)
    window = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T04:00:00Z", "label": "odd=0"}
    few = look(http, **window)
    assert {row["schedule_id"] for row in few["rows"]} == {"s0", "s2"}
    monkeypatch.setattr(forecast_agenda, "_FEW", 0)
    assert look(http, **window) == few
    monkeypatch.setattr(forecast_agenda, "_MOST_SCANNED", 3)
    cut = look(http, **window)
    assert cut["truncated"]
    assert cut["rows"] == [row for row in few["rows"] if row["at"] == "2026-03-01T01:00:00Z"]


def test_a_history_that_is_too_long_says_so(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(http, "hourly", "0 * * * *", overlap_policy="allow_all")
    horarium.advance(hours=4)
    monkeypatch.setattr(forecast_rows, "MOST_OF_ONE", 2)
    window = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T04:30:00Z", "schedule_id": "hourly"}
    got = look(http, **window)
    assert ([row["at"][11:13] for row in got["rows"]], got["truncated"]) == (["03", "04"], True)
    near = look(http, **{**window, "from": "2026-03-01T03:30:00Z"})
    assert ([row["at"][11:13] for row in near["rows"]], near["truncated"]) == (["04"], False)


def test_a_reason_shows_what_was_decided_for_it(http: httpx.Client, horarium: TestService) -> None:
    add(http, "busy", "0 * * * *", timeout_seconds=36_000)
    add(http, "weekdays", "0 * * * *", calendars=["weekdays"])
    horarium.advance(hours=2)
    got = look(http, **{"from": "2026-03-01T00:00:00Z", "reason": "overlap_policy_skip"})
    assert shown(got) == [("02:00", "busy", "skip", "overlap_policy_skip", False)]
    assert len(look(http, **{"from": "2026-03-01T00:00:00Z", "reason": "calendar"})["rows"]) == 2


SENSELESS_FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"schedule_id": [f"s{number}" for number in range(101)]}, "schedule_id"),
    ({"schedule_id": ["a", " "]}, "schedule_id"),
    ({"text": ""}, "text"),
    ({"text": "x" * 201}, "text"),
    ({"text": "a\x00"}, "query"),
    ({"label": "team"}, "label"),
    ({"label": [f"l{number}=1" for number in range(21)]}, "label"),
    ({"status": "asleep"}, "status"),
    ({"reason": "weather"}, "reason"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_filters_that_make_no_sense_are_refused(http: httpx.Client) -> None:
    for query, field in SENSELESS_FILTERS:
        answer = http.get("/api/agenda", params=query)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), (query, field)


def test_a_tenant_sees_its_own(http: httpx.Client, horarium: TestService) -> None:
    add(http, "hourly", "0 * * * *")
    horarium.advance(hours=1)
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    root = Caller("root", Role.ADMIN, "other")
    secret = tenant_service.issue_token(horarium.resources, root, name="looks", role="viewer").secret
    theirs = horarium.http(token=secret)
    for query in ({}, {"schedule_id": "hourly"}, {"text": "hour"}, {"status": "active"}):
        got = look(theirs, **{"from": "2026-03-01T00:00:00Z", **query})
        assert (got["rows"], got["schedules"]) == ([], {})
