"""Rows of one schedule that cannot be read: verify and health name them, and go on with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from store.feeds import eventually

from horarium.core.lifecycle.live_run import Unsound
from horarium.core.lifecycle.outcome import Accepted
from horarium.features.cluster.verification import CannotVerify, UnsoundRun
from horarium.platform.database.tables import approvals, history, positions, runs, schedules
from horarium.testing import TestService, service

BEYOND = 2**61


@pytest.fixture
def horarium(database_url: str) -> Iterator[TestService]:
    with service(at="2026-03-01T00:00:00Z", answer=Accepted(), database=database_url) as running:
        for name in ("a", "b"):
            running.create(
                schedule_id=name,
                cron_expressions=["0 * * * *"],
                workflow_type="w",
                approval_policy={"requires_approval": True},
            )
        running.advance(minutes=61)
        yield running


def damage(horarium: TestService, table: sa.Table, **values: Any) -> None:
    uid = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == "a").scalar_subquery()
    done = sa.update(table).where(table.c.schedule_uid == uid).values(values)
    horarium.resources.database.write(lambda connection: connection.execute(done))


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("table", "values"),
    [
        (positions, {"status": "melted"}),
        (positions, {"decided_until": BEYOND}),
        (history, {"event_type": "melted"}),
        (history, {"recorded_at": BEYOND}),
    ],
)
def test_verify_reports_a_schedule_that_it_cannot_read_and_checks_the_others(
    horarium: TestService, table: sa.Table, values: dict[str, Any]
) -> None:
    damage(horarium, table, **values)
    position = sa.update(positions).where(positions.c.schedule_id == "b").values(active=7)
    horarium.resources.database.write(lambda connection: connection.execute(position))
    found = list(horarium.verify())
    assert any(isinstance(each, CannotVerify) and each.schedule_id == "a" for each in found)
    assert any(getattr(each, "told", None) == 7 for each in found)


@pytest.mark.both_databases
def test_verify_reports_a_run_that_it_cannot_read(horarium: TestService) -> None:
    damage(horarium, runs, state="melted", needs_approval=False, approval_id=None)
    (found,) = [each for each in horarium.verify() if isinstance(each, UnsoundRun)]
    assert (found.schedule_id, found.what) == ("a", Unsound.UNREADABLE)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("table", "values"),
    [
        (runs, {"created_at": BEYOND}),
        (positions, {"status": "melted", "next_due": 0}),
        (positions, {"last_completed_at": BEYOND, "failures_in_a_row": 9}),
    ],
)
def test_a_schedule_that_cannot_be_judged_hides_the_health_of_no_other(
    horarium: TestService, table: sa.Table, values: dict[str, Any]
) -> None:
    http = horarium.http()
    damage(horarium, table, **values)
    horarium.parts.engine.health.step()

    def announced() -> set[str]:
        entries = http.get("/api/feed").json()["entries"]
        return {each["schedule_id"] for each in entries if each.get("kind") == "schedule_health"}

    eventually(lambda: "b" in announced())
    for path in ("/api/health/schedules", "/api/health/schedules?unwell=true", "/admin/schedules/health"):
        answer = http.get(path)
        assert answer.status_code == 200, answer.text
        assert '"b"' in answer.text or path.startswith("/admin")
    assert http.get("/api/overview").status_code == 200


@pytest.mark.both_databases
def test_a_run_whose_approval_cannot_be_read_names_the_value(horarium: TestService) -> None:
    http = horarium.http()
    (run,) = horarium.runs("a")
    damage(horarium, approvals, decision="melted")
    answer = http.get(f"/api/runs/{run.run_id}")
    assert (answer.status_code, answer.json()["reason"]) == (500, "unreadable_row")
    assert "decision: 'melted' is not known" in answer.json()["detail"]


@pytest.mark.both_databases
@pytest.mark.parametrize("column", ["requested_at", "decided_at"])
def test_an_impossible_time_is_named_where_its_row_is_asked_for(horarium: TestService, column: str) -> None:
    http = horarium.http()
    (asked,) = [each for each in http.get("/api/approvals").json()["approvals"] if each["schedule_id"] == "a"]
    damage(horarium, approvals, **{column: BEYOND})
    answer = http.get(f"/api/approvals/{asked['approval_id']}")
    assert (answer.status_code, answer.json()["reason"]) == (500, "unreadable_row")
    assert str(BEYOND) in answer.json()["detail"]
