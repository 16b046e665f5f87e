"""Preview and explain: what would happen, why, and that looking changes nothing."""

from __future__ import annotations

import pytest
from operations.desks import ADMIN, NOON, VIEWER, Office

from horarium.errors import InvalidDefinition
from horarium.features.forecast import service as forecast_service
from horarium.features.schedules import lifecycle
from horarium.instant import MINUTE
from horarium.platform.errors import ScheduleNotFound


def test_preview_shows_decision_reason_and_inputs(office: Office) -> None:
    office.create(overlap_policy="allow_all", inputs_rotation=[{"n": 1}, {"n": 2}], budget={"max_daily_runs": 2})
    rows = forecast_service.preview(office.resources, VIEWER, "nightly", rows=3)
    assert [(each.row.tick_at, each.row.decision.value, each.row.reason) for each in rows] == [
        (NOON + MINUTE, "dispatch", None),
        (NOON + 2 * MINUTE, "dispatch", None),
        (NOON + 3 * MINUTE, "skip", "daily_limit_reached"),
    ]
    assert [each.inputs for each in rows[:2]] == [{"n": 1}, {"n": 2}]
    assert office.kinds() == ["Created"]


def test_preview_counts_what_ran_today(office: Office) -> None:
    office.create(overlap_policy="allow_all", budget={"max_daily_runs": 2})
    office.tick(60)
    rows = forecast_service.preview(office.resources, VIEWER, "nightly", rows=2)
    assert [each.row.decision.value for each in rows] == ["dispatch", "skip"]


@pytest.mark.parametrize("rows", [0, 201])
def test_preview_has_bounds(office: Office, rows: int) -> None:
    office.create()
    with pytest.raises(InvalidDefinition):
        forecast_service.preview(office.resources, VIEWER, "nightly", rows=rows)


def test_explain_of_the_past_tells_what_was_recorded(office: Office) -> None:
    office.create()
    office.tick(60)
    office.tick(60)
    first = forecast_service.explain(office.resources, VIEWER, "nightly", NOON + MINUTE)
    assert first.recorded is not None
    assert first.recorded.event_type == "ScheduleTriggered"
    second = forecast_service.explain(office.resources, VIEWER, "nightly", NOON + 2 * MINUTE)
    assert second.sentence.endswith("was skipped: previous run still active.")


def test_explain_of_the_future_tells_what_stands_against_it(office: Office) -> None:
    office.create(calendars=["weekdays"])
    told = forecast_service.explain(office.resources, VIEWER, "nightly", NOON + MINUTE)
    assert (told.fires, told.reason) == (False, "calendar")


def test_explain_names_the_runs_in_the_way(office: Office) -> None:
    office.create()
    office.tick(60)
    overlap = forecast_service.explain(office.resources, VIEWER, "nightly", NOON + 2 * MINUTE).findings[-1]
    assert overlap.detail is not None
    assert len(overlap.detail["active_run_ids"]) == 1


def test_explain_works_after_deletion(office: Office) -> None:
    office.create()
    office.tick(60)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    assert forecast_service.explain(office.resources, VIEWER, "nightly", NOON + MINUTE).recorded is not None
    with pytest.raises(ScheduleNotFound):
        forecast_service.explain(office.resources, VIEWER, "never-was", NOON)


@pytest.mark.both_databases
def test_explain_tells_of_the_schedule_that_had_the_id_at_that_moment(office: Office) -> None:
    office.create()
    office.tick(60)
    lifecycle.delete(office.resources, ADMIN, "nightly")
    office.tick(60)
    office.create()

    def explained(minutes: int) -> tuple[bool, bool]:
        found = forecast_service.explain(office.resources, VIEWER, "nightly", NOON + minutes * MINUTE)
        return found.existed, found.recorded is not None

    assert [explained(minutes) for minutes in (-1, 1, 2, 3)] == [
        (False, False),
        (True, True),
        (True, False),
        (True, False),
    ]
    between = forecast_service.explain(office.resources, VIEWER, "nightly", NOON + MINUTE + 30_000_000)
    assert not between.existed
