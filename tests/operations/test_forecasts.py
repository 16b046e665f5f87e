"""All views of a schedule say the same of an instant, and what they call certain is what happens.

Schedules, their histories and the instants are drawn from a seed. `HORARIUM_TEST_EFFORT` draws more of them.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import httpx
import pytest

from horarium.instant import to_rfc3339
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


def check_views(http: httpx.Client, random: Random, agenda: dict[tuple[str, str], Said], until: str) -> None:
    for name in sorted({name for name, _ in agenda}):
        rows = http.get(f"/api/schedules/{name}/preview", params={"n": 200}).json()["rows"]
        near = {(name, row["tick_at"]): said(row) for row in rows if row["tick_at"] < until}
        assert near == {key: each for key, each in agenda.items() if key[0] == name}, name
        described = http.get(f"/api/schedules/{name}").json()
        first = next((row["due"] for row in rows if row["decision"] == "dispatch"), None)
        if first is not None:
            assert described["next_run_at"] == first, name
        if described["status"] == "active":
            assert described["next_fire_at"] == rows[0]["due"] == described["next_fire_times"][0], name
    for name, at in random.sample(sorted(agenda), 40):
        found = http.get(f"/api/schedules/{name}/explain", params={"at": at}).json()
        held = found.get("held", False)
        expected = agenda[name, at]
        explained = Said("dispatch" if found["fires"] else "skip", found["reason"], held, found["certainty"])
        assert explained == expected, (name, at, found["sentence"])


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
        http, until = horarium.http(), to_rfc3339(horarium.now + AHEAD_HOURS * 3_600_000_000)
        agenda = foreseen(http, until)
        check_views(http, random, agenda, until)
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
        assert len(certainties) == 3, certainties
