"""All views of a schedule say the same of an instant, and what they call certain is what happens.

Schedules, their histories and the instants are drawn from a seed. `HORARIUM_TEST_EFFORT` draws more of them.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import httpx
import pytest

from horarium.instant import to_datetime, to_rfc3339
from horarium.testing import Accepted, TestService, service

EFFORT = int(os.environ.get("HORARIUM_TEST_EFFORT", "1"))
SCHEDULES = 24
AHEAD_HOURS = 5

# The evenings before clocks change in Berlin, and an ordinary Thursday.
STARTS = ("2026-03-28T21:30:00Z", "2026-10-24T21:30:00Z", "2026-05-14T03:00:00Z")
CRONS = ("0 * * * *", "*/30 * * * *", "30 2 * * *", "15 0,1,2,3 * * *", "45 * * * *", "0 */2 * * *")
OVERLAPS = ("skip", "buffer_one", "buffer_all", "allow_all", "cancel_other", "terminate_other")


class Said(NamedTuple):
    """What a view says of an instant."""

    decision: str
    reason: str | None
    held: bool
    certainty: str


def draw(random: Random, number: int) -> dict[str, Any]:
    """The document of a schedule; each rule is there in one of some schedules."""

    def sometimes(share: float, **fields: Any) -> dict[str, Any]:
        return fields if random.random() < share else {}

    crons = random.sample(CRONS, 2 if random.random() < 0.15 else 1)
    return {
        "schedule_id": f"s{number:02}",
        "cron_expressions": crons,
        "timezone": random.choice(("UTC", "Europe/Berlin")),
        "overlap_policy": random.choice(OVERLAPS),
        "workflow_type": "report",
        "timeout_seconds": random.choice((60, 600, 5_400)),
        **sometimes(0.2, jitter_seconds=random.choice((5, 240))),
        **sometimes(0.25, calendars=[random.choice(("weekdays", "weekends-only", "holidays:DE"))]),
        **sometimes(0.15, max_runs=random.choice((2, 9, 40))),
        **sometimes(0.1, pre_dispatch_condition={"/last_24h_stats/total": {"lt": random.choice((3, 90))}}),
        **sometimes(0.1, budget={"max_daily_runs": random.choice((0, 4, 500))}),
        **sometimes(0.15, approval_policy={"requires_approval": True, "expires_after_seconds": 7_200}),
        **sometimes(0.15, inputs_rotation=[{"n": 0}, {"n": 1}, {"n": 2}]),
        **sometimes(0.1, concurrency_key=random.choice("ab")),
        **sometimes(0.1, max_buffered=1),
        **sometimes(0.1, paused=True),
        **sometimes(0.3, catchup_policy=random.choice(("skip", "fire_all", "spread"))),
    }


def live(horarium: TestService, random: Random, hours: int) -> None:
    """Let time pass; now and then a run that is still open ends."""
    for _ in range(hours * 2):
        horarium.advance(minutes=30)
        open_runs = [run for run in horarium.runs() if run.state == "running"]
        for run in random.sample(open_runs, min(3, len(open_runs))):
            horarium.finish(run)


def foreseen(http: httpx.Client, until: str) -> dict[tuple[str, str], Said]:
    """By schedule and instant, as the agenda says."""
    answer = http.get("/api/agenda", params={"to": until, "limit": 5_000})
    assert answer.status_code == 200, answer.text
    assert not answer.json()["truncated"]
    rows = [row for row in answer.json()["rows"] if row["predicted"]]
    return {(row["schedule_id"], row["at"]): said(row) for row in rows}


def said(row: dict[str, Any]) -> Said:
    return Said(row["decision"], row.get("reason"), row.get("held", False), row["certainty"])


def check_lanes(http: httpx.Client, until: str) -> None:
    """Lanes have the rows of the agenda, and buckets of half an hour count them by schedule."""
    size = timedelta(minutes=30)
    query: dict[str, Any] = {"to": until, "limit": 5_000}
    listed = http.get("/api/agenda", params=query).json()["rows"]
    answer = http.get(
        "/api/agenda", params={**query, "lanes": True, "bucket_seconds": int(size.total_seconds())}
    ).json()
    assert answer["rows"] == listed
    start = datetime.fromisoformat(answer["start"])
    expected: Counter[tuple[str, datetime, str]] = Counter()
    for row in listed:
        place = (datetime.fromisoformat(row["at"]) - start) // size
        expected[row["schedule_id"], start + place * size, lane_of(row)] += row.get("count", 1)
    counted = Counter(
        {
            (lane["schedule_id"], datetime.fromisoformat(bucket["at"]), kind): bucket[kind]
            for lane in answer["lanes"]
            for bucket in lane["buckets"]
            for kind in ("dispatched", "skipped", "held", "missed")
            if bucket.get(kind)
        }
    )
    assert counted == expected


def lane_of(row: dict[str, Any]) -> str:
    if row["decision"] == "dispatch":
        return "held" if row.get("held") else "dispatched"
    return "missed" if row["reason"] in ("missed", "catchup_cap") else "skipped"


def check_views(http: httpx.Client, random: Random, agenda: dict[tuple[str, str], Said], now: str, until: str) -> None:
    next_runs = {each["schedule_id"]: each["next_run_at"] for each in listed(http)}
    for name in sorted({name for name, _ in agenda}):
        rows = http.get(f"/api/schedules/{name}/preview", params={"n": 200}).json()["rows"]
        near = {(name, row["tick_at"]): said(row) for row in rows if now <= row["tick_at"] < until}
        assert near == {key: each for key, each in agenda.items() if key[0] == name}, name
        described = http.get(f"/api/schedules/{name}").json()
        first = next((row["due"] for row in rows if row["decision"] == "dispatch"), None)
        if first is not None:
            assert next_runs[name] == described["next_run_at"] == first, name
        if described["status"] == "active":
            assert described["next_fire_at"] == rows[0]["due"] == described["next_fire_times"][0], name
    for name, at in random.sample(sorted(agenda), 40):
        found = http.get(f"/api/schedules/{name}/explain", params={"at": at}).json()
        held = found.get("held", False)
        expected = agenda[name, at]
        explained = Said("dispatch" if found["fires"] else "skip", found["reason"], held, found["certainty"])
        assert explained == expected, (name, at, found["sentence"])


def check_years(http: httpx.Client, now: datetime) -> None:
    """The year view counts what the agenda lists: what was decided, and what is coming."""
    for name, zone in {each["schedule_id"]: each["spec"]["timezone"] for each in listed(http)}.items():
        for ahead in (-1, 0, 2):
            check_day(http, name, zone, now.astimezone(ZoneInfo(zone)).date() + timedelta(days=ahead))


def check_day(http: httpx.Client, name: str, zone: str, day: date) -> None:
    query = {"schedule_id": name, "from": str(day), "to": str(day + timedelta(days=1)), "timezone": zone}
    rows = http.get("/api/agenda", params=query).json()["rows"]
    counts = Counter[str | None]()
    for row in rows:
        counts[row["reason"] if row["decision"] == "skip" else None] += row.get("count", 1)
    year = http.get(f"/api/schedules/{name}/year", params={"year": day.year}).json()
    [shown] = [each for each in year["days"] if each["date"] == str(day)] or [{"fires": 0, "skips": 0, "reasons": {}}]
    assert shown["fires"] == counts.pop(None, 0), (name, day)
    assert shown["reasons"] == counts, (name, day)
    assert shown["skips"] == counts.total(), (name, day)


def listed(http: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http.get("/api/schedules", params={"page_size": 100}).json()["schedules"]
    return found


def decided(horarium: TestService, name: str) -> dict[str, Said]:
    """What history says of each instant."""
    found: dict[str, Said] = {}
    for event in horarium.history(name):
        payload = event.payload
        at = payload.get("occurrence_time")
        if at is None or payload.get("from_buffer"):
            continue
        kind = event.event_type
        if kind in ("ScheduleTriggered", "ScheduleBuffered"):
            found[at] = Said("dispatch", None, kind == "ScheduleBuffered", "")
        elif kind == "ScheduleTriggerSkipped":
            found[at] = Said("skip", payload["reason"], False, "")
    return found


@pytest.mark.parametrize("seed", range(2 * EFFORT))
def test_all_views_agree_and_what_is_certain_happens(seed: int) -> None:
    random = Random(seed)
    with service(at=STARTS[seed % len(STARTS)], answer=Accepted()) as horarium:
        documents = {each["schedule_id"]: each for each in (draw(random, number) for number in range(SCHEDULES))}
        for document in documents.values():
            horarium.create(document)
        live(horarium, random, 2)
        if seed % 2:
            horarium.sleep(minutes=130)
        http, until = horarium.http(), to_rfc3339(horarium.now + AHEAD_HOURS * 3_600_000_000)
        agenda = foreseen(http, until)
        check_lanes(http, until)
        check_views(http, random, agenda, to_rfc3339(horarium.now), until)
        check_years(http, to_datetime(horarium.now))
        live(horarium, random, AHEAD_HOURS)
        outcomes = {name: decided(horarium, name) for name in documents}
        certainties: Counter[str] = Counter()
        for (name, at), expected in agenda.items():
            certainties[expected.certainty] += 1
            if expected.certainty != "certain" or expected.reason == "status_not_triggerable":
                continue
            actual = outcomes[name].get(at)
            if actual is None and expected.reason == "remaining_actions_exhausted":
                continue  # the schedule is deleted with its last run
            assert actual == expected._replace(certainty=""), (name, at, documents[name])
        assert certainties["certain"] >= 0.3 * certainties.total(), certainties
        assert certainties.total() > certainties["certain"], certainties


def test_a_run_that_awaits_approval_is_foreseen_to_end_with_its_request() -> None:
    """All views say that hourly occurrences are skipped until the request expires, and run again after that."""
    with service(at="2026-05-14T03:30:00Z", answer=Accepted()) as horarium:
        gate = {"requires_approval": True, "expires_after_seconds": 86_400}
        horarium.create(
            schedule_id="gated", cron_expressions=["0 * * * *"], workflow_type="report", overlap_policy="skip",
            approval_policy=gate,
        )  # fmt: skip
        horarium.advance(hours=1)
        assert [run.state for run in horarium.runs("gated")] == ["awaiting_approval"]
        http = horarium.http()
        rows = http.get("/api/schedules/gated/preview", params={"n": 24}).json()["rows"]
        assert [each["decision"] for each in rows] == ["skip"] * 23 + ["dispatch"]
        assert {(each["reason"], each["certainty"]) for each in rows[:23]} == {("overlap_policy_skip", "likely")}
        assert rows[23]["tick_at"] == "2026-05-15T04:00:00Z"
        assert rows[23]["certainty"] == "likely"
        agenda = foreseen(http, "2026-05-15T04:00:01Z")
        assert agenda == {("gated", each["tick_at"]): said(each) for each in rows}
        check_lanes(http, "2026-05-15T04:00:01Z")
        for row in rows:
            explained = http.get("/api/schedules/gated/explain", params={"at": row["tick_at"]}).json()
            assert (explained["fires"], explained["reason"]) == (row["decision"] == "dispatch", row["reason"])
            assert explained["certainty"] == row["certainty"]
        assert http.get("/api/schedules/gated").json()["next_run_at"] == "2026-05-15T04:00:00Z"
        assert http.get("/api/schedules").json()["schedules"][0]["next_run_at"] == "2026-05-15T04:00:00Z"


def test_the_year_shows_what_was_decided(database_url: str) -> None:
    """Runs, skips, missed occurrences and those of a pause, before an edit of the times and after it."""
    with service(at="2026-05-14T00:30:00Z", answer=Accepted(), database=database_url) as horarium:
        horarium.create(
            schedule_id="busy", cron_expressions=["0 * * * *"], workflow_type="report", timeout_seconds=9_000,
            timezone="Asia/Kathmandu", catchup_policy="skip",
        )  # fmt: skip
        http = horarium.http()
        horarium.advance(hours=4)
        http.post("/api/schedules/busy/pause").raise_for_status()
        horarium.advance(hours=3)
        http.post("/api/schedules/busy/resume").raise_for_status()
        horarium.advance(hours=1)
        horarium.sleep(hours=3)
        horarium.settle()
        http.patch("/api/schedules/busy", json={"spec": {"cron_expressions": ["*/30 * * * *"]}}).raise_for_status()
        horarium.advance(hours=1)
        check_years(http, to_datetime(horarium.now))
        [day] = [each for each in http.get("/api/schedules/busy/year").json()["days"] if each["date"] == "2026-05-14"]
        assert day["reasons"]["missed"] == 3


def test_after_a_downtime_lists_and_previews_name_the_same_next_run() -> None:
    """The catch-up policy `skip` skips overdue occurrences, also where no guard or run needs a closer look."""
    calls = ({"kind": "http", "url": "http://localhost/"}, {"workflow_type": "report"})
    with service(at="2026-05-14T00:30:00Z") as horarium:
        for number, action in enumerate(calls):
            horarium.create(
                schedule_id=f"s{number}", cron_expressions=["0 * * * *"], catchup_policy="skip", action=action
            )
        horarium.sleep(hours=3)
        http = horarium.http()
        for each in listed(http):
            described = http.get(f"/api/schedules/{each['schedule_id']}").json()
            rows = http.get(f"/api/schedules/{each['schedule_id']}/preview", params={"n": 4}).json()["rows"]
            assert [row["reason"] for row in rows] == ["missed", "missed", "missed", None]
            assert each["next_run_at"] == described["next_run_at"] == rows[3]["due"]


def test_what_is_overdue_after_a_timed_pause_is_in_every_view() -> None:
    with service(at="2026-05-14T00:30:00Z") as horarium:
        horarium.create(schedule_id="rests", cron_expressions=["0 * * * *"], workflow_type="report")
        http = horarium.http()
        http.post("/api/schedules/rests/pause", json={"until": "2026-05-14T01:30:00Z"}).raise_for_status()
        horarium.sleep(hours=3)
        rows = http.get("/api/schedules/rests/preview", params={"n": 2}).json()["rows"]
        assert [(row["tick_at"][11:16], row["reason"]) for row in rows] == [("02:00", None), ("03:00", "missed")]
        assert http.get("/api/schedules/rests").json()["next_run_at"] == rows[0]["due"]
        query = {"from": "2026-05-14T00:00:00Z", "to": "2026-05-14T03:30:00Z"}
        listed_rows = http.get("/api/agenda", params=query).json()["rows"]
        assert [row["at"] for row in listed_rows] == [row["tick_at"] for row in rows]


def test_a_run_of_now_does_not_stand_in_the_way_of_tomorrow() -> None:
    with service(at="2026-05-14T02:59:00Z", answer=Accepted()) as horarium:
        horarium.create(schedule_id="short", cron_expressions=["0 3 * * *"], workflow_type="report")
        horarium.advance(minutes=1)
        horarium.advance(seconds=8)
        horarium.finish(horarium.runs("short")[0])
        horarium.advance(hours=24, seconds=-6)
        assert [run.state for run in horarium.runs("short")] == ["succeeded", "running"]
        http = horarium.http()
        row = http.get("/api/schedules/short/preview", params={"n": 1}).json()["rows"][0]
        assert (row["tick_at"], row["decision"], row["certainty"]) == ("2026-05-16T03:00:00Z", "dispatch", "likely")
        found = http.get("/api/schedules/short/explain", params={"at": "2026-05-16T03:00:00Z"}).json()
        assert (found["fires"], found["certainty"]) == (True, "likely")
