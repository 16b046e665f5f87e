"""What is to come, and why something did or did not happen; and that looking writes nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.instant import MINUTE, from_rfc3339
from horarium.testing import TestService


@pytest.fixture(autouse=True)
def nightly(horarium: TestService) -> None:
    horarium.create(
        schedule_id="nightly",
        cron_expressions=["0 2 * * *"],
        workflow_type="report",
        calendars=["weekdays"],
        inputs_rotation=[{"n": 0}, {"n": 1}],
        overlap_policy="allow_all",
        jitter_seconds=60,
    )


def preview(http: httpx.Client, **params: Any) -> list[dict[str, Any]]:
    answer = http.get("/api/schedules/nightly/preview", params=params)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["rows"]
    return rows


def explain(http: httpx.Client, at: str) -> dict[str, Any]:
    answer = http.get("/api/schedules/nightly/explain", params={"at": at})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_each_row_says_what_would_happen_and_why(http: httpx.Client) -> None:
    """1 March 2026 is a Sunday."""
    rows = preview(http, n=3)
    assert [(row["tick_at"], row["decision"], row["reason"], row["inputs"]) for row in rows] == [
        ("2026-03-01T02:00:00Z", "skip", "calendar", None),
        ("2026-03-02T02:00:00Z", "dispatch", None, {"n": 0}),
        ("2026-03-03T02:00:00Z", "dispatch", None, {"n": 1}),
    ]
    tick_at, due = (from_rfc3339(rows[0][name]) for name in ("tick_at", "due"))
    assert tick_at <= due <= tick_at + MINUTE
    assert "2026-03-01" in str(rows[0]["detail"])


@pytest.mark.parametrize(
    "begin",
    ["2026-04-01T02:00:00Z", "2026-04-01T05:00:00+03:00", "2026-04-01 02:00:00Z"],
    ids=["utc", "offset", "blank"],
)
def test_it_may_begin_anywhere_and_includes_its_beginning(http: httpx.Client, begin: str) -> None:
    assert preview(http, n=1, **{"from": begin})[0]["tick_at"] == "2026-04-01T02:00:00Z"


def test_a_plus_sign_that_nobody_encoded_is_understood(http: httpx.Client) -> None:
    rows = http.get("/api/schedules/nightly/preview?n=1&from=2026-04-01T05:00:00+03:00").json()["rows"]
    assert rows[0]["tick_at"] == "2026-04-01T02:00:00Z"


def test_it_ends_after_a_month(http: httpx.Client) -> None:
    assert len(preview(http, n=200)) == 31


@pytest.mark.parametrize(
    "params", [{"n": 0}, {"n": 201}, {"n": "many"}, {"from": "soon"}, {"from": "x" * 4_000}], ids=str
)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_bad_numbers_and_times_are_refused(http: httpx.Client, params: dict[str, Any]) -> None:
    assert http.get("/api/schedules/nightly/preview", params=params).status_code == 422


def test_the_future_is_a_prediction(http: httpx.Client) -> None:
    weekday, sunday = explain(http, "2026-03-02T02:00:00Z"), explain(http, "2026-03-08T02:00:00Z")
    assert (weekday["source"], weekday["fires"], weekday["outcome"]) == ("prediction", True, "fires")
    assert (sunday["fires"], sunday["outcome"], sunday["reason"]) == (False, "skips", "calendar")
    assert {finding["question"] for finding in sunday["findings"]} >= {"spec", "calendar", "overlap"}
    assert (sunday["previous"], sunday["following"]) == ("2026-03-07T02:00:00Z", "2026-03-09T02:00:00Z")


def test_a_pause_that_will_have_ended_stands_against_nothing(http: httpx.Client) -> None:
    assert http.post("/api/schedules/nightly/pause", json={"until": "36h"}).status_code == 200
    rows = preview(http, n=3)
    assert [row["decision"] for row in rows] == ["skip", "skip", "dispatch"]
    told = [explain(http, row["tick_at"]) for row in rows]
    assert [each["reason"] for each in told] == [row["reason"] for row in rows]


def test_a_moment_that_is_no_occurrence_says_so(http: httpx.Client) -> None:
    found = explain(http, "2026-03-02T02:00:01Z")
    assert (found["on_spec"], found["outcome"], found["following"]) == (False, "nothing", "2026-03-03T02:00:00Z")


def test_the_past_is_what_was_recorded_whatever_we_would_decide_today(
    http: httpx.Client, horarium: TestService
) -> None:
    horarium.advance(days=2)
    http.delete("/api/schedules/nightly/calendars")
    sunday, monday = explain(http, "2026-03-01T02:00:00Z"), explain(http, "2026-03-02T02:00:00Z")
    assert (sunday["source"], sunday["outcome"], sunday["fires"], sunday["reason"]) == (
        "history", "skipped", False, "calendar",
    )  # fmt: skip
    assert (monday["source"], monday["outcome"], monday["fires"]) == ("history", "fired", True)
    assert monday["recorded"]["payload"]["workflow_run_id"]


def answers(explanation: dict[str, Any]) -> dict[str, Any]:
    return {each["question"]: each["holds"] for each in explanation["findings"]}


@pytest.mark.both_databases
def test_the_guards_of_the_past_are_those_that_were_asked_then(http: httpx.Client, horarium: TestService) -> None:
    """Since then the calendar was taken off, the schedule paused, and its spec changed."""
    horarium.advance(days=2)
    http.patch("/api/schedules/nightly", json={"calendars": [], "cron_expressions": ["30 4 * * *"]})
    http.post("/api/schedules/nightly/pause")
    sunday, monday = explain(http, "2026-03-01T02:00:00Z"), explain(http, "2026-03-02T02:00:00Z")
    asked = answers(sunday)
    assert (asked["spec"], asked["status_not_triggerable"], asked["calendar"]) == (True, True, False)
    assert (asked["condition_failed"], asked["overlap"]) == (None, None)
    [seen] = [each["detail"] for each in sunday["findings"] if each["question"] == "calendar"]
    assert seen["date"] == "2026-03-01"
    assert (answers(monday)["calendar"], answers(monday)["overlap"]) == (True, True)
    assert from_rfc3339(sunday["as_of"]) < from_rfc3339(monday["as_of"]) < horarium.clock.now()


def test_where_history_is_trimmed_the_guards_are_those_of_now(http: httpx.Client, horarium: TestService) -> None:
    """Nothing was decided while it was paused: history has nothing to show either."""
    http.post("/api/schedules/nightly/pause")
    horarium.advance(days=2)
    http.post("/api/schedules/nightly/resume")
    monday = explain(http, "2026-03-02T02:00:00Z")
    assert (monday["source"], monday["recorded"]) == ("prediction", None)
    assert monday["sentence"].endswith("use the current definition.")
    assert from_rfc3339(monday["as_of"]) == horarium.clock.now()


def test_what_one_run_covered_is_told_as_covered(http: httpx.Client, horarium: TestService) -> None:
    http.delete("/api/schedules/nightly/calendars")
    horarium.advance(hours=3)
    horarium.sleep(days=3)
    horarium.settle()
    first, second = explain(http, "2026-03-02T02:00:00Z"), explain(http, "2026-03-03T02:00:00Z")
    assert [(each["outcome"], each["fires"]) for each in (first, second)] == [("fired", True), ("covered", False)]
    between = explain(http, "2026-03-03T09:00:00Z")
    assert (between["outcome"], between["recorded"]) == ("nothing", None)


def test_a_deleted_schedule_still_explains_itself(http: httpx.Client, horarium: TestService) -> None:
    horarium.advance(days=1)
    http.delete("/api/schedules/nightly")
    assert explain(http, "2026-03-01T02:00:00Z")["outcome"] == "skipped"


@pytest.mark.parametrize("at", ["then", "", None], ids=["word", "empty", "missing"])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_moment_is_needed(http: httpx.Client, at: str | None) -> None:
    params = {} if at is None else {"at": at}
    answer = http.get("/api/schedules/nightly/explain", params=params)
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["at"])


def test_looking_writes_nothing(http: httpx.Client, horarium: TestService) -> None:
    before = http.get("/api/schedules/nightly").json(), horarium.history("nightly")
    preview(http, n=200)
    explain(http, "2026-03-01T02:00:00Z")
    assert (http.get("/api/schedules/nightly").json(), horarium.history("nightly")) == before
