"""The list shows the last occurrences of each schedule where that is asked for, fired or not, in one look."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.core.decision.statuses import MOST_RECENT
from horarium.core.lifecycle.outcome import Refused
from horarium.features.forecast import lane_rows
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases


def add(http: httpx.Client, name: str, cron: str = "0 * * * *", **fields: Any) -> None:
    spec, action = {"cron_expressions": [cron]}, {"workflow_type": "w", "timeout_seconds": 36_000}
    document = {"schedule_id": name, "spec": spec, "action": action, **fields}
    assert http.post("/api/schedules", json=document).status_code == 201


def strips(http: httpx.Client, **query: Any) -> dict[str, list[dict[str, Any]]]:
    answer = http.get("/api/schedules", params={"include": "recent", **query})
    assert answer.status_code == 200, answer.text
    return {each["schedule_id"]: each["recent"] for each in answer.json()["schedules"]}


def shown(strip: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["at"][11:16], each["outcome"], each["reason"], each["state"], each["count"]) for each in strip]


@pytest.mark.archived
def test_every_row_has_its_last_occurrences(http: httpx.Client, horarium: TestService) -> None:
    # The clock stands at midnight of Sunday, 1 March.
    add(http, "busy")
    add(http, "buffering", overlap_policy="buffer_one")
    add(http, "workdays", calendars=["weekdays"])
    add(http, "daily", "0 12 * * *")
    horarium.advance(hours=2)
    (run,) = horarium.runs("busy")
    horarium.advance(seconds=30)
    horarium.finish(run)
    horarium.advance(hours=1)
    found = strips(http)
    assert shown(found["busy"]) == [
        ("01:00", "fired", None, "succeeded", 1),
        ("02:00", "skipped", "overlap_policy_skip", None, 1),
        ("03:00", "fired", None, "running", 1),
    ]
    first = found["busy"][0]
    assert (first["run_id"], first["origin"], first["late_seconds"]) == (run.run_id, "scheduled", 0)
    assert first["duration_seconds"] == 3_630
    assert shown(found["buffering"]) == [
        ("01:00", "fired", None, "running", 1),
        ("02:00", "held", None, "held", 1),
        ("03:00", "skipped", "buffer_full", None, 1),
    ]
    assert shown(found["workdays"]) == [(f"0{hour}:00", "skipped", "calendar", None, 1) for hour in (1, 2, 3)]
    assert found["daily"] == []


def test_what_was_held_and_let_go_is_shown_once(http: httpx.Client, horarium: TestService) -> None:
    add(http, "buffering", overlap_policy="buffer_one")
    horarium.advance(hours=2)
    horarium.finish(horarium.runs("buffering")[0])
    horarium.settle()
    assert shown(strips(http)["buffering"]) == [
        ("01:00", "fired", None, "succeeded", 1),
        ("02:00", "held", None, "running", 1),
    ]


def test_missed_ones_are_one_entry_and_what_is_done_by_hand_stands_among_them(
    http: httpx.Client, horarium: TestService
) -> None:
    add(http, "minutely", "* * * * *", catchup_policy="skip", overlap_policy="allow_all")
    horarium.settle()
    horarium.sleep(hours=1)
    horarium.settle()
    http.post("/api/schedules/minutely/trigger", json={})
    window = {"start_time": "2026-03-01T00:01:00Z", "end_time": "2026-03-01T00:02:00Z"}
    http.post("/api/schedules/minutely/backfill", json=window)
    strip = strips(http)["minutely"]
    # The row of missed ones began where the backfill has a run now.
    assert [(each["at"][11:16], each["outcome"], each["origin"]) for each in strip] == [
        ("00:01", "fired", "backfill"),
        ("00:59", "fired", "scheduled"),
        ("01:00", "fired", "scheduled"),
        ("01:00", "fired", "manual"),
    ]


def test_a_row_of_missed_ones_says_how_many(http: httpx.Client, horarium: TestService) -> None:
    add(http, "minutely", "* * * * *", catchup_policy="skip", overlap_policy="allow_all")
    horarium.settle()
    horarium.sleep(hours=1)
    horarium.settle()
    assert shown(strips(http)["minutely"])[0] == ("00:01", "missed", "missed", None, 58)


@pytest.mark.parametrize("answer", [Refused("no")])
def test_there_are_thirty_at_most_and_the_newest_of_them(http: httpx.Client, horarium: TestService) -> None:
    add(http, "minutely", "* * * * *")
    horarium.advance(minutes=MOST_RECENT + 3)
    strip = strips(http)["minutely"]
    assert [each["at"][14:16] for each in strip] == [f"{minute:02}" for minute in range(4, MOST_RECENT + 4)]
    assert {each["state"] for each in strip} == {"launch_failed"}


def test_who_edits_all_day_hides_no_more_than_the_oldest(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lane_rows.MOST_LOOKED_AT > 2 * MOST_RECENT
    add(http, "edited")
    horarium.advance(hours=1)
    for number in range(5):
        http.patch("/api/schedules/edited", json={"labels": {"n": str(number)}})
    assert len(strips(http)["edited"]) == 1


def test_only_who_asks_for_them_is_shown_them(http: httpx.Client) -> None:
    add(http, "s")
    (row,) = http.get("/api/schedules").json()["schedules"]
    assert "recent" not in row
    assert row["words"] == "every hour on the hour (UTC)"
    assert http.get("/api/schedules/s").json()["words"] == row["words"]
    answer = http.get("/api/schedules", params={"include": "everything"})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["include"])


def test_a_row_that_was_read_with_them_can_be_sent_back(http: httpx.Client, horarium: TestService) -> None:
    add(http, "s")
    horarium.advance(hours=1)
    (row,) = http.get("/api/schedules", params={"include": "recent"}).json()["schedules"]
    assert http.put("/api/schedules/s", json=row).json()["outcome"] == "unchanged"
