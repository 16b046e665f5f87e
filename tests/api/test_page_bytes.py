"""Whoever writes large documents makes no page of anybody larger than two megabytes, and loses no row by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from horarium.features.runs import reports
from horarium.platform.caller import Caller
from horarium.platform.database.statements import MAX_PAGE_BYTES
from horarium.platform.wire import Role
from horarium.testing import Accepted, TestService, service

pytestmark = pytest.mark.both_databases

MANY = 6
LARGE = "x" * 500_000


@pytest.fixture
def crowded(database_url: str) -> Iterator[TestService]:
    with service(answer=Accepted(reference="q", queued=True), database=database_url) as horarium:
        for number in range(MANY):
            horarium.create(
                schedule_id=f"large-{number}",
                cron_expressions=["@hourly"],
                action={"workflow_type": "w", "task_queue": "q", "input": {"text": LARGE}},
                labels={f"label-{each}": "v" * 100 for each in range(20)},
            )
        yield horarium


def pages(
    http: httpx.Client, path: str, rows: str, follow: Callable[[Any], dict[str, Any] | None], **asked: Any
) -> list[Any]:
    """The rows of all pages, none of which is too large."""
    found: list[Any] = []
    params = asked or {"page_size": 200}
    for _ in range(4 * MANY):
        answer = http.get(path, params=params)
        assert answer.status_code == 200, answer.text[:500]
        assert len(answer.content) <= MAX_PAGE_BYTES + 1_000
        found += answer.json()[rows]
        following = follow(answer.json())
        if following is None:
            return found
        params = {**params, **following}
    raise AssertionError("the pages have no end")


def by_token(page: Any) -> dict[str, Any] | None:
    token = page.get("next_page_token")
    return None if token is None else {"next_page_token": token}


def test_pages_of_large_schedules_are_cut_and_hold_each_once(crowded: TestService) -> None:
    http = crowded.http()
    for _ in range(3):
        crowded.clock.advance(1)
        http.put("/api/schedules/large-0", json={"memo": {"at": str(crowded.now)}})
    everything = {f"large-{number}" for number in range(MANY)}
    listed = [each["schedule_id"] for each in pages(http, "/api/schedules", "schedules", by_token)]
    assert (set(listed), len(listed)) == (everything, MANY)
    told = all_told(http, MANY + 3)
    assert len(set(told)) == len(told) == MANY + 3
    onward = pages(http, "/api/feed", "entries", by_token, after="0-0", page_size=200)
    assert [each["id"] for each in onward] == told[::-1]
    assert LARGE in str(onward[0])
    numbers = pages(
        http, "/api/schedules/large-0/history", "events", lambda page: after(page["next_cursor"]), limit=500
    )
    assert [each["sequence"] for each in numbers] == [1, 2, 3, 4]


def all_told(http: httpx.Client, many: int) -> list[str]:
    """Transactions of other tests on the same server hold the feed back."""
    for _ in range(600):
        told = [each["id"] for each in pages(http, "/api/feed", "entries", by_token)]
        if len(told) >= many:
            break
        time.sleep(0.1)
    return told


def test_a_list_of_large_calendars_is_cut_and_the_built_in_ones_come_last(horarium: TestService, dialect: str) -> None:
    http = horarium.http()
    first = date(2000, 1, 1)
    dates = [(first + timedelta(days=day)).isoformat() for day in range(10_000)]
    names = [f"calendar-{number:02}" for number in range(20)]
    for name in names:
        document = {"name": name, "kind": "skip_dates", "dates": dates}
        assert http.post("/api/calendars", json=document).status_code == 201
    listed = [each["name"] for each in pages(http, "/api/calendars", "calendars", by_token)]
    assert (listed[:20], "weekends-only" in listed[20:]) == (names, True)
    assert [each.name for each in horarium.client().iter_calendars()] == listed


def after(cursor: int | None) -> dict[str, Any] | None:
    return None if cursor is None else {"after_sequence": cursor}


def test_what_a_worker_is_handed_and_what_a_preview_shows_is_cut_too(crowded: TestService) -> None:
    http = crowded.http()
    preview = http.get("/api/schedules/large-0/preview", params={"n": 200})
    rows = preview.json()["rows"]
    assert len(preview.content) <= MAX_PAGE_BYTES
    assert [row.get("inputs_omitted", False) for row in rows] == [False] * 4 + [True] * 196
    assert rows[0]["inputs"] == {"text": LARGE}
    crowded.advance(hours=1)
    listed = http.get("/api/runs").json()["runs"]
    assert len(listed) == MANY
    worker = Caller("worker", Role.AGENT)
    taken = [len(reports.claim(crowded.resources, worker, "q", limit=100)) for _ in range(4)]
    assert taken == [2, 2, 2, 0]
