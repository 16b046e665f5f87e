"""Calendars: one's own may be changed, the built-in ones cloned, and none is pulled from under a schedule."""

from __future__ import annotations

import pytest
from operations.desks import ADMIN, NOON, VIEWER, Office, document

from horarium.core.document.calendar import BUILT_IN
from horarium.errors import InvalidCalendar
from horarium.features.bundles.document import read_bundle
from horarium.features.bundles.service import apply_bundle
from horarium.features.calendars import service as calendar_service
from horarium.features.schedules import health, revisions, triggers
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.lifecycle import delete
from horarium.platform.errors import (
    CalendarAlreadyExists,
    CalendarInUse,
    CalendarNotFound,
    CalendarReadOnly,
    Forbidden,
    PreconditionFailed,
)

FEAST = {"name": "feasts", "kind": "skip_dates", "dates": ["2026-03-15"], "covers": ["2026-01-01", "2026-04-30"]}


def test_the_list_has_ones_own_and_the_built_in_ones(office: Office) -> None:
    calendar_service.create(office.resources, ADMIN, FEAST)
    page = calendar_service.list_calendars(office.resources, VIEWER)
    listed = [kept for kept in page.calendars if isinstance(kept, calendar_service.StoredCalendar)]
    assert [kept.calendar.name for kept in listed] == ["feasts", *BUILT_IN, "weekends", "weekdays"]
    assert [kept.calendar.read_only for kept in listed] == [False, *[True] * (len(BUILT_IN) + 2)]
    assert listed[0].warning is not None  # its data ends in April


@pytest.mark.parametrize("name", ["weekends-only", "holidays:US", "holidays:TR@Europe/Istanbul"])
def test_built_in_and_rule_calendars_are_there_for_all(office: Office, name: str) -> None:
    assert calendar_service.get(office.resources, VIEWER, name).calendar.read_only


@pytest.mark.parametrize("name", ["nobodys", "holidays:ZZ", ""])
def test_what_nobody_made_is_not_found(office: Office, name: str) -> None:
    with pytest.raises(CalendarNotFound):
        calendar_service.get(office.resources, VIEWER, name)


def test_a_calendar_stops_a_schedule(office: Office) -> None:
    calendar_service.create(office.resources, ADMIN, FEAST)
    office.create(calendars=["feasts"])
    office.tick(60)
    assert office.events()[-1].payload["reason"] == "calendar"


SOON = {"name": "soon", "kind": "only_dates", "dates": ["2026-06-13"]}  # 90 days after the clock
LATER = {"name": "later", "kind": "only_dates", "dates": ["2026-06-14"]}
ENDS = "calendars: soon: its dates end on 2026-06-13; after that it prevents every run"


@pytest.fixture
def ending(office: Office) -> Office:
    for each in (SOON, LATER):
        calendar_service.create(office.resources, ADMIN, each)
    return office


def test_a_calendar_that_ends_within_90_days_warns_wherever_it_is_attached(ending: Office) -> None:
    resources = ending.resources
    assert ending.create("created", calendars=["soon", "later"]).warnings == (ENDS,)
    ending.create()
    draft = revisions.draft(resources, ADMIN, {"calendars": ["soon"]}, schedule_id="nightly")
    assert ENDS in draft.warnings
    assert triggers.put(resources, ADMIN, "nightly", triggers.Guarded.CALENDARS, ["soon"]).warnings == (ENDS,)
    assert schedule_service.upsert(resources, ADMIN, {**document("put"), "calendars": ["soon"]}).warnings == (ENDS,)
    assert schedule_service.update(resources, ADMIN, "nightly", {"note": "read it before"}).warnings == ()
    assert ENDS in revisions.draft(resources, ADMIN, {**document("new"), "calendars": ["soon"]}).warnings


def test_the_plan_of_an_apply_warns_of_a_calendar_that_ends_soon(ending: Office) -> None:
    ending.create("changed")
    bundle = read_bundle(
        "b", {"schedules": [{**document(name), "calendars": ["soon"]} for name in ("added", "changed")]}
    )
    steps = apply_bundle(ending.resources, ADMIN, bundle, adopt=True, dry_run=True)
    assert [(step.change.value, step.warnings) for step in steps] == [("create", (ENDS,)), ("update", (ENDS,))]


def test_health_names_the_calendars_that_end_soon(ending: Office) -> None:
    ending.create(calendars=["soon", "later", "weekdays"])
    ending.create("other", calendars=["later"])
    page = health.examine_page(ending.resources, VIEWER)
    assert {each.row.schedule_id: each.warnings for each in page.examined} == {"nightly": (ENDS,), "other": ()}
    assert health.examine_one(ending.resources, VIEWER, "nightly").warnings == (ENDS,)
    ending.clock.move(86_400)
    assert len(health.examine_one(ending.resources, VIEWER, "other").warnings) == 1


def test_an_update_changes_what_it_says_and_nothing_else(office: Office) -> None:
    calendar_service.create(office.resources, ADMIN, FEAST)
    kept = calendar_service.update(office.resources, ADMIN, "feasts", {"timezone": "Asia/Tokyo"}, if_version=1)
    assert (kept.version, kept.calendar.timezone, kept.updated_at) == (2, "Asia/Tokyo", NOON)
    assert len(kept.calendar.dates) == 1
    with pytest.raises(PreconditionFailed):
        calendar_service.update(office.resources, ADMIN, "feasts", {"dates": []}, if_version=1)
    with pytest.raises(InvalidCalendar):
        calendar_service.update(office.resources, ADMIN, "feasts", {"name": "other"})


def test_a_built_in_calendar_cannot_be_changed_but_cloned(office: Office) -> None:
    with pytest.raises(CalendarReadOnly):
        calendar_service.update(office.resources, ADMIN, "weekends-only", {"dates": []})
    with pytest.raises(CalendarReadOnly):
        calendar_service.delete(office.resources, ADMIN, "weekends-only")
    mine = calendar_service.clone_calendar(office.resources, ADMIN, "weekends-only", "mine")
    assert (mine.calendar.read_only, mine.calendar.dates) == (False, BUILT_IN["weekends-only"].dates)


def test_a_taken_name_is_refused(office: Office) -> None:
    calendar_service.create(office.resources, ADMIN, FEAST)
    with pytest.raises(CalendarAlreadyExists):
        calendar_service.create(office.resources, ADMIN, FEAST)


def test_a_calendar_in_use_cannot_be_deleted(office: Office) -> None:
    calendar_service.create(office.resources, ADMIN, FEAST)
    office.create(calendars=["feasts"])
    office.create("other", labels={"about": "feasts"})
    with pytest.raises(CalendarInUse) as refused:
        calendar_service.delete(office.resources, ADMIN, "feasts")
    assert refused.value.schedules == ("nightly",)
    delete(office.resources, ADMIN, "nightly")
    calendar_service.delete(office.resources, ADMIN, "feasts")
    with pytest.raises(CalendarNotFound):
        calendar_service.get(office.resources, ADMIN, "feasts")


def test_a_viewer_changes_nothing(office: Office) -> None:
    with pytest.raises(Forbidden):
        calendar_service.create(office.resources, VIEWER, FEAST)
