"""Writing schedules: what is created, what an edit does to the plan, and who may do it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, ALICE, BOB, NOON, OPERATOR, VIEWER, Office, document, without_gaps

from horarium.core.document.canonical import UpdateMode
from horarium.core.document.states import Status
from horarium.core.lifecycle.outcome import UsedResources
from horarium.errors import InvalidDefinition
from horarium.features.history import service as history_service
from horarium.features.schedules import lifecycle, lists
from horarium.features.schedules import rows as schedule_rows
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.filters import MalformedPageToken, ScheduleFilter
from horarium.features.tenants import service as tenant_service
from horarium.instant import DAY, MINUTE, SECOND, to_rfc3339
from horarium.platform.database.tables import runs
from horarium.platform.errors import (
    Forbidden,
    NamespaceNotFound,
    ScheduleAlreadyExists,
    ScheduleNotFound,
    VersionMismatch,
)
from horarium.platform.wire import WriteOutcome


def _caller(namespace: str) -> Any:
    return type(ADMIN)("root", ADMIN.role, namespace)


# ── creating ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_schedule_is_planned_from_now(office: Office) -> None:
    written = office.create()
    assert (written.outcome, written.version, written.status) == (WriteOutcome.CREATED, 1, Status.ACTIVE)
    assert written.next_due == NOON + MINUTE
    (event,) = office.events()
    assert event.event_type == "ScheduleCreated"
    assert event.payload["spec"] == {"cron_expressions": ["* * * * *"]}
    assert event.payload["next_fire_at"] == to_rfc3339(NOON + MINUTE)
    assert event.payload["command_context"] == {"principal": "root", "request_id": "r-1", "source": "test"}
    assert (event.payload["revision"], event.payload["generation"]) == (1, 1)


def test_a_schedule_without_an_id_gets_one(office: Office) -> None:
    body = document()
    del body["schedule_id"]
    first, second = (
        schedule_service.create(office.resources, ADMIN, body),
        schedule_service.create(office.resources, ADMIN, body),
    )
    assert first.schedule_id != second.schedule_id


def test_a_taken_id_is_refused(office: Office) -> None:
    office.create()
    with pytest.raises(ScheduleAlreadyExists) as refused:
        office.create()
    assert (refused.value.reason, refused.value.status) == ("schedule_already_exists", 409)


def test_a_schedule_created_paused_has_two_events_and_does_not_fire(office: Office) -> None:
    written = office.create(paused=True)
    assert (written.status, written.next_due) == (Status.PAUSED, NOON + MINUTE)
    office.tick(600)
    assert office.kinds() == ["Created", "Paused"]


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ({"calendars": ["nobodys"]}, "calendars.0"),
        ({"calendars": ["holidays:ZZ"]}, "calendars.0"),
        ({"spec": {"cron_expressions": ["61 * * * *"]}}, "spec.cron_expressions.0"),
        ({"spec": {"at": ["2020-01-01T00:00:00Z"]}}, "spec"),
        ({"namespace": "other"}, "namespace"),
        ({"workflow_assignment_id": "nobodys"}, "workflow_assignment_id"),
    ],
    ids=["unknown calendar", "unknown country", "bad cron", "no future", "another namespace", "unknown assignment"],
)
def test_what_cannot_be_is_refused_by_its_path_and_leaves_nothing(
    office: Office, parts: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        office.create(**parts)
    assert any(found.startswith(path) for found in refused.value.errors)
    with pytest.raises(ScheduleNotFound):
        lists.describe(office.resources, ADMIN, "nightly")


def test_a_namespace_is_made_first(office: Office) -> None:
    with pytest.raises(NamespaceNotFound) as refused:
        schedule_service.create(office.resources, _caller("other"), document())
    assert refused.value.reason == "namespace_not_found"


@pytest.mark.parametrize("caller", [VIEWER, OPERATOR], ids=["viewer", "operator"])
def test_who_may_only_look_or_operate_cannot_create(office: Office, caller: Any) -> None:
    with pytest.raises(Forbidden):
        office.create(caller=caller)


def test_the_owner_is_who_created_it_whatever_the_document_says(office: Office) -> None:
    office.create("a", ALICE, owner="mallory", user_id="mallory")
    office.create("b", ADMIN, owner="bob", user_id="bob")
    owners = {each.row.schedule_id: (each.row.owner, each.definition.user_id) for each in _listed(office)}
    assert owners == {"a": ("alice", "alice"), "b": ("bob", "bob")}


def test_only_the_owner_or_an_admin_changes_a_schedule(office: Office) -> None:
    office.create(caller=ALICE)
    with pytest.raises(Forbidden):
        schedule_service.update(office.resources, BOB, "nightly", {"note": "mine now"})
    with pytest.raises(Forbidden):
        lifecycle.delete(office.resources, BOB, "nightly")
    assert schedule_service.update(office.resources, ADMIN, "nightly", {"note": "seen"}).outcome is WriteOutcome.UPDATED
    assert lists.describe(office.resources, ADMIN, "nightly").definition.owner == "alice"


# ── editing ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_equal_definition_changes_nothing(office: Office) -> None:
    office.create()
    office.clock.move(30)
    again = schedule_service.upsert(office.resources, ADMIN, document())
    assert (again.outcome, again.version, again.next_due) == (WriteOutcome.UNCHANGED, 1, NOON + MINUTE)
    assert office.kinds() == ["Created"]


def test_an_upsert_creates_what_is_not_there(office: Office) -> None:
    assert schedule_service.upsert(office.resources, ADMIN, document()).outcome is WriteOutcome.CREATED


def test_an_upsert_replaces_the_whole_and_never_undoes_a_pause(office: Office) -> None:
    office.create(note="old", paused=True)
    written = schedule_service.upsert(office.resources, ADMIN, document(labels={"a": "b"}, paused=False))
    assert (written.outcome, written.status) == (WriteOutcome.UPDATED, Status.PAUSED)
    assert written.changed == ("labels",)  # a note that nobody speaks of stays


def test_an_edit_that_leaves_the_spec_leaves_the_plan_alone(office: Office) -> None:
    office.create()
    office.clock.move(90)  # one occurrence is due and undecided
    written = schedule_service.update(office.resources, ADMIN, "nightly", {"note": "hello"})
    assert (written.changed, written.next_due, written.version) == (("note",), NOON + MINUTE, 2)
    office.tick()
    assert office.kinds() == ["Created", "Updated", "Triggered"]


def test_an_edit_of_the_spec_never_fires_the_past(office: Office) -> None:
    office.create()
    office.clock.move(150)  # 12:01 and 12:02 are due and undecided
    written = schedule_service.update(
        office.resources, ADMIN, "nightly", {"spec": {"cron_expressions": ["*/5 * * * *"]}}, how=UpdateMode.PARTS
    )
    assert written.next_due == NOON + 5 * MINUTE
    missed, updated = office.events()[1:]
    assert (missed.nominal, missed.nominal_last) == (NOON + MINUTE, NOON + 2 * MINUTE)
    assert (missed.payload["count"], missed.payload["reason"]) == (2, "superseded")
    assert (updated.payload["changed_fields"], updated.payload["generation"]) == (["spec"], 2)
    office.tick()
    assert office.runs() == []


def test_an_edit_may_pause_and_resume(office: Office) -> None:
    office.create()
    assert schedule_service.update(office.resources, ADMIN, "nightly", {"paused": True}).status is Status.PAUSED
    assert (
        schedule_service.update(office.resources, ADMIN, "nightly", {"paused": True}).outcome is WriteOutcome.UNCHANGED
    )
    office.clock.move(600)
    resumed = schedule_service.update(office.resources, ADMIN, "nightly", {"paused": False, "note": "again"})
    assert (resumed.status, resumed.next_due) == (Status.ACTIVE, NOON + 11 * MINUTE)
    assert office.kinds() == ["Created", "Paused", "Updated", "Resumed"]
    assert without_gaps(office.events())


def test_an_edit_under_an_old_version_is_refused(office: Office) -> None:
    office.create()
    schedule_service.update(office.resources, ADMIN, "nightly", {"note": "one"}, if_version=1)
    with pytest.raises(VersionMismatch) as refused:
        schedule_service.update(office.resources, ADMIN, "nightly", {"note": "two"}, if_version=1)
    assert (refused.value.current, refused.value.status) == (2, 412)


def test_a_bad_edit_changes_nothing(office: Office) -> None:
    office.create()
    with pytest.raises(InvalidDefinition):
        schedule_service.update(office.resources, ADMIN, "nightly", {"calendars": ["nobodys"]})
    assert office.kinds() == ["Created"]


def test_a_new_rotation_begins_at_its_first_place(office: Office) -> None:
    office.create(inputs_rotation=[{"n": 1}, {"n": 2}], overlap_policy="allow_all")
    office.tick(60)
    schedule_service.update(office.resources, ADMIN, "nightly", {"inputs_rotation": [{"n": 3}, {"n": 4}]})
    office.tick(60)
    assert [run.rotation_index for run in office.runs()] == [0, 0]


def test_a_limit_added_at_noon_counts_the_morning(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    office.tick(60)
    office.tick(60)
    schedule_service.update(office.resources, ADMIN, "nightly", {"budget": {"max_daily_runs": 3}})
    office.tick(60)
    office.tick(60)
    assert office.kinds()[-2:] == ["Triggered", "TriggerSkipped"]
    assert office.events()[-1].payload["reason"] == "daily_limit_reached"


def test_a_spending_limit_added_at_noon_counts_what_the_morning_cost(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    office.tick(60)
    office.end(office.runs()[0], used=UsedResources(5_000_000, 0, 0))
    schedule_service.update(office.resources, ADMIN, "nightly", {"budget": {"spending_limit_credits": 5}})
    office.tick(60)
    assert office.events()[-1].payload["reason"] == "budget_exceeded"


def test_more_room_lets_held_runs_go(office: Office) -> None:
    office.create(overlap_policy="buffer_all")
    office.tick(60)
    office.tick(60)
    assert office.states() == ["ready", "held"]
    schedule_service.update(office.resources, ADMIN, "nightly", {"max_concurrency": 2})
    assert office.states() == ["ready", "ready"]
    assert without_gaps(office.events())


# ── pause, resume, delete ────────────────────────────────────────────────────────────────────────────


def test_a_pause_accounts_for_what_was_due_and_stops_the_clock(office: Office) -> None:
    office.create()
    office.clock.move(90)
    paused = lifecycle.pause(office.resources, OPERATOR, "nightly", reason="holiday")
    assert (paused.outcome, paused.status, paused.version) == (WriteOutcome.PAUSED, Status.PAUSED, 2)
    office.tick(600)
    assert office.kinds() == ["Created", "Missed", "Paused"]
    assert office.events()[-1].payload["reason"] == "holiday"
    row = lists.describe(office.resources, ADMIN, "nightly").row
    assert (row.pause_reason, row.last_dispatch_status) == ("holiday", "paused")


def test_a_second_pause_and_a_second_resume_change_nothing(office: Office) -> None:
    office.create()
    assert lifecycle.resume(office.resources, ADMIN, "nightly").outcome is WriteOutcome.UNCHANGED
    lifecycle.pause(office.resources, ADMIN, "nightly")
    assert lifecycle.pause(office.resources, ADMIN, "nightly").outcome is WriteOutcome.UNCHANGED
    lifecycle.resume(office.resources, ADMIN, "nightly")
    assert lifecycle.resume(office.resources, ADMIN, "nightly").outcome is WriteOutcome.UNCHANGED
    assert office.kinds() == ["Created", "Paused", "Resumed"]


def test_a_resume_plans_from_now(office: Office) -> None:
    office.create()
    lifecycle.pause(office.resources, ADMIN, "nightly")
    office.clock.move(3_600)
    resumed = lifecycle.resume(office.resources, ADMIN, "nightly")
    assert resumed.next_due == NOON + 61 * MINUTE
    office.tick()
    assert office.runs() == []


def test_a_resume_releases_held_runs(office: Office) -> None:
    office.create(overlap_policy="buffer_all")
    office.tick(60)
    office.tick(60)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    office.end(office.runs()[0])
    assert office.states() == ["succeeded", "held"]
    lifecycle.resume(office.resources, ADMIN, "nightly")
    assert office.states() == ["succeeded", "ready"]
    assert without_gaps(office.events())


def test_a_delete_cancels_what_has_not_started_and_lets_the_rest_end(office: Office) -> None:
    office.create(overlap_policy="buffer_all", max_concurrency=2)
    for _ in range(4):
        office.tick(60)
    first = office.runs()[0]
    office.resources.database.write(lambda c: _mark(c, first.run_id, "running"))
    deleted = lifecycle.delete(office.resources, ADMIN, "nightly", reason="done")
    assert (deleted.outcome, deleted.next_due) == (WriteOutcome.DELETED, None)
    assert office.states() == ["running", "cancelled", "cancelled", "cancelled"]
    office.end(first)
    office.tick(600)
    assert office.states() == ["succeeded", "cancelled", "cancelled", "cancelled"]
    assert office.kinds()[-1] == "Deleted"
    row = office.resources.database.read(lambda c: schedule_rows.find_newest(c, "default", "nightly"))
    assert row is not None
    assert (row.active, row.held) == (0, 0)


def _mark(connection: Any, run_id: bytes, state: str) -> None:
    connection.execute(sa.update(runs).where(runs.c.run_id == run_id).values(state=state))


def test_a_deleted_schedule_is_gone_but_its_history_stays(office: Office) -> None:
    office.create()
    lifecycle.delete(office.resources, ADMIN, "nightly")
    for operation in (lifecycle.pause, lifecycle.resume, lifecycle.delete, lists.describe):
        with pytest.raises(ScheduleNotFound):
            operation(office.resources, ADMIN, "nightly")
    assert office.kinds() == ["Created", "Deleted"]
    assert _listed(office) == []


def test_a_deleted_id_may_be_used_again_by_another_schedule(office: Office) -> None:
    first = office.create()
    lifecycle.delete(office.resources, ADMIN, "nightly")
    second = office.create()
    assert first.schedule_uid != second.schedule_uid
    assert office.kinds() == ["Created"]
    old = history_service.read_history(office.resources, ADMIN, "nightly", uid=first.schedule_uid)
    assert [event.event_type.value for event in old.rows] == ["ScheduleCreated", "ScheduleDeleted"]


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def _listed(office: Office, **options: Any) -> list[lists.Listed]:
    return list(lists.list_schedules(office.resources, VIEWER, **options).schedules)


def test_describe_shows_the_next_five(office: Office) -> None:
    office.create(max_runs=9)
    office.tick(60)
    seen = lists.describe(office.resources, VIEWER, "nightly")
    assert [fire.nominal for fire in seen.next_fires] == [NOON + n * MINUTE for n in range(2, 7)]
    assert seen.remaining_runs == 8
    assert seen.last_instance_id == f"schedule:nightly:{(NOON + MINUTE) // SECOND}"
    assert seen.row.fires_count == 1


def test_describe_of_a_paused_schedule_shows_what_a_resume_would_bring(office: Office) -> None:
    office.create(paused=True)
    office.clock.move(3_600)
    assert lists.describe(office.resources, VIEWER, "nightly").next_fires[0].nominal == NOON + 61 * MINUTE


def test_pages_show_every_schedule_once(office: Office) -> None:
    for number in range(7):
        office.create(f"s-{number}")
        office.clock.move(1 if number % 2 else 0)
    seen: list[str] = []
    token = None
    while True:
        page = lists.list_schedules(office.resources, VIEWER, page_size=2, next_page_token=token)
        seen += [each.row.schedule_id for each in page.schedules]
        token = page.next_page_token
        if token is None:
            break
    assert sorted(seen) == [f"s-{number}" for number in range(7)]
    assert len(seen) == 7


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (ScheduleFilter(statuses=[Status.PAUSED]), ["b"]),
        (ScheduleFilter(workflow="other"), ["c"]),
        (ScheduleFilter(labels={"team": "x"}), ["a", "b"]),
        (ScheduleFilter(labels={"team": "x", "tier": "1"}), ["a"]),
        (ScheduleFilter(search_attributes={"tenant": 42}), ["c"]),
        (ScheduleFilter(text="B"), ["b"]),
    ],
    ids=["status", "workflow", "label", "two labels", "search attribute", "text"],
)
def test_lists_are_filtered(office: Office, wanted: ScheduleFilter, ids: list[str]) -> None:
    office.create("a", labels={"team": "x", "tier": "1"})
    office.create("b", labels={"team": "x"}, paused=True)
    office.create("c", action={"workflow_type": "other"}, search_attributes={"tenant": 42})
    assert sorted(each.row.schedule_id for each in _listed(office, wanted=wanted)) == ids


@pytest.mark.parametrize("token", ["", "!", "ü", "AAAA", "x" * 5_000])
def test_a_token_that_no_page_gave_is_refused(office: Office, token: str) -> None:
    with pytest.raises(MalformedPageToken):
        lists.list_schedules(office.resources, VIEWER, next_page_token=token)


def test_another_tenants_schedule_is_not_there(office: Office) -> None:
    office.create()
    tenant_service.create_namespace(office.resources, ADMIN, "other")
    with pytest.raises(ScheduleNotFound):
        lists.describe(office.resources, _caller("other"), "nightly")
    with pytest.raises(ScheduleNotFound):
        lifecycle.pause(office.resources, _caller("other"), "nightly")


def test_a_day_of_downtime_is_one_missed_range_and_history_has_no_gap(office: Office) -> None:
    office.create(catchup_policy="skip")
    office.clock.move(DAY / SECOND)
    lifecycle.pause(office.resources, ADMIN, "nightly")
    assert office.events()[1].payload["count"] == 1_440
    assert without_gaps(office.events())
