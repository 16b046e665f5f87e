"""`next_run_at` is what will really run, beside the next occurrence of the spec; every answer says the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from horarium.core.document.canonical import to_document
from horarium.core.document.definition import Definition
from horarium.core.document.document import parse_definition
from horarium.features.schedules.creation import GUARDED_BY
from horarium.testing import TestService

# The tests begin on Sunday, 1 March 2026.
SUNDAY, MONDAY, SATURDAY = (f"2026-03-{day}T02:00:00Z" for day in ("01", "02", "07"))
DAILY: dict[str, Any] = {"schedule_id": "daily", "cron_expressions": ["0 2 * * *"], "workflow_type": "report"}


# What reads counters and calendars is asked of both databases, the rest of one.
sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def coming(answer: httpx.Response) -> tuple[str | None, str | None, str | None]:
    assert answer.is_success, answer.text
    found = answer.json()
    return found["next_fire_at"], found["next_run_at"], found["next_run_reason"]


def everywhere(http: httpx.Client) -> set[tuple[str | None, ...]]:
    """What describing, listing and writing it again say."""
    [row] = http.get("/api/schedules").json()["schedules"]
    read = http.get("/api/schedules/daily")
    again = http.put("/api/schedules/daily", json=read.json())
    assert again.json()["outcome"] == "unchanged"
    listed = row["next_fire_at"], row["next_run_at"], row["next_run_reason"]
    return {listed, coming(read), coming(again)}


@sqlite_only
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (SUNDAY, SUNDAY, None)),
        ({"calendars": ["weekdays"]}, (SUNDAY, MONDAY, None)),
        ({"calendars": ["weekdays", "weekends"]}, (SUNDAY, None, "calendar")),
        ({"budget": {"max_daily_runs": 0}}, (SUNDAY, None, "daily_limit_reached")),
        ({"paused": True}, (SUNDAY, None, "status_not_triggerable")),
    ],
    ids=str,
)
def test_every_answer_says_when_it_runs(http: httpx.Client, fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert coming(http.post("/api/schedules", json={**DAILY, **fields})) == expected
    assert everywhere(http) == {expected}


@sqlite_only
def test_each_change_says_when_it_runs_from_now_on(http: httpx.Client) -> None:
    http.post("/api/schedules", json=DAILY)
    at = "/api/schedules/daily"
    assert coming(http.put(f"{at}/calendars", json=["weekdays"])) == (SUNDAY, MONDAY, None)
    assert coming(http.patch(at, json={"calendars": ["weekdays"], "note": "n"})) == (SUNDAY, MONDAY, None)
    assert coming(http.post(f"{at}/pause")) == (SUNDAY, None, "status_not_triggerable")
    assert coming(http.put(f"{at}/calendars", json=["weekends"])) == (SUNDAY, None, "status_not_triggerable")
    assert coming(http.post(f"{at}/resume")) == (SUNDAY, SUNDAY, None)
    assert coming(http.patch(at, json={"cron_expressions": ["0 2 * * 3,6"]})) == (
        "2026-03-04T02:00:00Z", SATURDAY, None,
    )  # fmt: skip
    assert coming(http.delete(f"{at}/calendars"))[1] == "2026-03-04T02:00:00Z"
    assert coming(http.delete(at)) == (None, None, "status_not_triggerable")


def test_a_limit_that_is_reached_today_does_not_stand_against_tomorrow(
    horarium: TestService, http: httpx.Client
) -> None:
    http.post("/api/schedules", json={**DAILY, "cron_expressions": ["0 * * * *"], "budget": {"max_daily_runs": 1}})
    horarium.advance_to("2026-03-01T01:00:00Z")
    assert everywhere(http) == {(SUNDAY, "2026-03-02T00:00:00Z", None)}


@sqlite_only
def test_a_schedule_without_a_future_says_so(horarium: TestService, http: httpx.Client) -> None:
    http.post("/api/schedules", json={"schedule_id": "daily", "at": [SUNDAY], "workflow_type": "report"})
    horarium.advance_to(SUNDAY)
    assert coming(http.get("/api/schedules/daily")) == (None, None, "finished")


@sqlite_only
def test_on_the_registrar_next_run_stays_the_next_occurrence(http: httpx.Client) -> None:
    body = {"schedule_id": "daily", "workflow_id": "w", "cron_expr": "0 2 * * *", "calendars": ["weekdays"]}
    assert http.post("/schedules/upsert", json=body).json()["next_run_at"] == SUNDAY
    assert http.get("/schedules/daily").json()["next_run_at"] == SUNDAY
    assert coming(http.get("/api/schedules/daily")) == (SUNDAY, MONDAY, None)


@contextmanager
def counted(horarium: TestService) -> Iterator[list[str]]:
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        asked.append(statement)

    engine = horarium.resources.database.engine
    event.listen(engine, "before_cursor_execute", note)
    yield asked
    event.remove(engine, "before_cursor_execute", note)


def test_a_page_asks_as_much_for_one_as_for_many(horarium: TestService, http: httpx.Client) -> None:
    fields = {"calendars": ["weekdays", "own"], "budget": {"max_daily_runs": 3}}
    http.post("/api/calendars", json={"name": "own", "kind": "skip_dates", "dates": ["2026-03-02"]})

    def page() -> tuple[int, int]:
        with counted(horarium) as asked:
            rows = http.get("/api/schedules").json()["schedules"]
        assert {row["next_run_at"] for row in rows} == {"2026-03-03T02:00:00Z"}
        return len(rows), len(asked)

    horarium.create(**{**DAILY, "schedule_id": "one", **fields})
    page()
    one = page()
    for number in range(4):
        horarium.create(**{**DAILY, "schedule_id": f"s{number}", "note": str(number), **fields})
    assert page() == (5, one[1])


@pytest.mark.parametrize(
    "fields",
    [
        {"calendars": ["weekends"]},
        {"max_runs": 3},
        {"budget": {"max_daily_runs": 0}},
        {"budget": {"spending_limit_credits": 0}},
        {"prompt": "x", "workflow_type": None, "assignee_type": "agent", "assignee_id": "a"},
    ],
    ids=str,
)
def test_what_may_stand_against_a_run_shows_in_the_document(fields: dict[str, Any]) -> None:
    """A list goes by the document: it must not take a guarded schedule for a plain one."""
    definition: Definition = parse_definition({**DAILY, **fields}, now=0, namespace="default").definition
    assert any(to_document(definition).get(name) is not None for name in GUARDED_BY)
