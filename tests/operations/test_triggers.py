"""Triggers by hand and single starts: what they ask, what they count, and that a key starts one run."""

from __future__ import annotations

from typing import Any

import pytest
from operations.desks import ADMIN, NOON, OPERATOR, VIEWER, Office, without_gaps

from horarium.core.document.states import RunState, Status
from horarium.core.policy.queue import OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.features.cluster.verification import verify
from horarium.features.runs.starts import action_of_start, start_run
from horarium.features.schedules import lifecycle, lists
from horarium.features.schedules.triggers import trigger
from horarium.instant import MINUTE
from horarium.platform.bodies import StartBody, read_body
from horarium.platform.errors import Forbidden, IdempotencyKeyReused, ScheduleNotFound
from horarium.platform.wire import StartOutcome, TriggerOutcome


def test_a_trigger_starts_a_run_and_leaves_the_plan_alone(office: Office) -> None:
    office.create()
    office.clock.move(10)
    answer = trigger(office.resources, OPERATOR, "nightly")
    assert (answer.outcome, answer.state, answer.repeated) == (TriggerOutcome.TRIGGERED, RunState.READY, False)
    assert answer.instance_id is not None
    assert answer.instance_id.startswith("schedule:nightly:manual:")
    row = lists.describe(office.resources, ADMIN, "nightly").row
    assert (row.next_due, row.fires_count, row.active) == (NOON + MINUTE, 1, 1)
    event = office.events()[-1]
    assert (event.event_type, event.nominal, event.run_id) == ("ScheduleTriggered", None, answer.run_id)
    assert event.payload["command_context"] == {"principal": "olga"}
    assert event.payload["origin"] == "manual"


def test_calendar_and_condition_are_not_asked(office: Office) -> None:
    never = {"/last_24h_stats/total": {"gt": 10}}
    office.create(calendars=["weekdays"], pre_dispatch_condition=never)  # it is a Sunday
    assert trigger(office.resources, ADMIN, "nightly").outcome is TriggerOutcome.TRIGGERED


@pytest.mark.parametrize(
    ("policy", "override", "outcome"),
    [
        ("skip", None, TriggerOutcome.SKIPPED),
        ("skip", OverlapPolicy.ALLOW_ALL, TriggerOutcome.TRIGGERED),
        ("buffer_one", None, TriggerOutcome.BUFFERED),
        ("allow_all", OverlapPolicy.SKIP, TriggerOutcome.SKIPPED),
        ("allow_all", OverlapPolicy.BUFFER_ALL, TriggerOutcome.BUFFERED),
    ],
)
def test_the_overlap_policy_is_asked_and_the_caller_may_choose_another(
    office: Office, policy: str, override: OverlapPolicy | None, outcome: TriggerOutcome
) -> None:
    office.create(overlap_policy=policy)
    trigger(office.resources, ADMIN, "nightly")
    assert trigger(office.resources, ADMIN, "nightly", overlap_policy=override).outcome is outcome
    if outcome is not TriggerOutcome.SKIPPED:
        named = OverlapPolicy(policy) if override is None else override
        assert office.events()[-1].payload["effective_overlap_policy"] == named.value


def test_a_full_buffer_says_so(office: Office) -> None:
    office.create(overlap_policy="buffer_one")
    outcomes = [trigger(office.resources, ADMIN, "nightly").outcome for _ in range(3)]
    assert outcomes == [TriggerOutcome.TRIGGERED, TriggerOutcome.BUFFERED, TriggerOutcome.BUFFER_FULL]
    office.end(office.runs()[0])
    assert office.states() == ["succeeded", "ready"]
    assert without_gaps(office.events())


def test_a_paused_schedule_skips_unless_asked_to_run_all_the_same(office: Office) -> None:
    office.create(paused=True)
    skipped = trigger(office.resources, ADMIN, "nightly")
    assert (skipped.outcome, skipped.reason) == (TriggerOutcome.SKIPPED, "status_not_triggerable")
    assert office.events()[-1].payload["skipped_trigger_count"] == 1
    assert trigger(office.resources, ADMIN, "nightly", even_if_paused=True).outcome is TriggerOutcome.TRIGGERED
    assert lists.describe(office.resources, ADMIN, "nightly").row.status is Status.PAUSED


def test_terminate_other_ends_what_runs(office: Office) -> None:
    office.create(overlap_policy="terminate_other")
    trigger(office.resources, ADMIN, "nightly")
    trigger(office.resources, ADMIN, "nightly")
    assert office.states() == ["cancelled", "ready"]  # it had not started
    assert lists.describe(office.resources, ADMIN, "nightly").row.active == 1


def test_a_trigger_takes_its_turn_in_the_rotation(office: Office) -> None:
    office.create(inputs_rotation=[{"n": 1}, {"n": 2}], overlap_policy="allow_all")
    for _ in range(3):
        trigger(office.resources, ADMIN, "nightly")
    assert [run.rotation_index for run in office.runs()] == [0, 1, 0]


def test_the_last_run_deletes_the_schedule_and_accounts_for_what_was_due(office: Office) -> None:
    office.create(max_runs=1)
    office.clock.move(90)
    trigger(office.resources, ADMIN, "nightly")
    assert office.kinds() == ["Created", "Triggered", "Missed", "Deleted"]
    assert office.events()[-1].payload["reason"] == "max_runs_exhausted"


def test_a_trigger_after_the_last_run_is_a_skip_that_is_tracked(office: Office) -> None:
    office.create(max_runs=1)
    first = trigger(office.resources, ADMIN, "nightly", key="k1")
    deleted = lists.describe(office.resources, ADMIN, "nightly", include_deleted=True).row
    for skipped in (1, 2):
        office.clock.move(60)
        done = trigger(office.resources, ADMIN, "nightly")
        assert (done.outcome.value, done.reason) == ("skipped", "remaining_actions_exhausted")
        row = lists.describe(office.resources, ADMIN, "nightly", include_deleted=True).row
        assert (row.skipped_count, row.last_skip_reason) == (skipped, "remaining_actions_exhausted")
        assert row.last_skipped_at == office.clock.now()
        assert (row.deleted_at, row.status, row.version) == (deleted.deleted_at, deleted.status, deleted.version)
    assert office.kinds() == ["Created", "Triggered", "Deleted", "TriggerSkipped", "TriggerSkipped"]
    assert office.events()[-1].payload["skipped_trigger_count"] == 2
    again = trigger(office.resources, ADMIN, "nightly", key="k1")
    assert (again.run_id, again.repeated) == (first.run_id, True)
    assert without_gaps(office.events())
    assert list(verify(office.resources, ADMIN)) == []


def test_a_schedule_that_was_deleted_by_request_is_not_triggered(office: Office) -> None:
    office.create(max_runs=2)
    trigger(office.resources, ADMIN, "nightly")
    lifecycle.delete(office.resources, ADMIN, "nightly")
    with pytest.raises(ScheduleNotFound):
        trigger(office.resources, ADMIN, "nightly")
    assert office.kinds()[-1] == "Deleted"


def test_a_schedule_made_anew_after_the_last_run_is_the_one_that_is_triggered(office: Office) -> None:
    office.create(max_runs=1)
    trigger(office.resources, ADMIN, "nightly")
    office.create()
    assert trigger(office.resources, ADMIN, "nightly").outcome.value == "triggered"


def test_work_for_an_agent_waits_for_approval(office: Office) -> None:
    office.create_for("agent-7")
    assert trigger(office.resources, ADMIN, "nightly").state is RunState.AWAITING_APPROVAL


def test_a_run_that_was_held_still_waits_for_approval_when_it_is_released(office: Office) -> None:
    office.create_for("agent-7", overlap_policy="buffer_all")
    trigger(office.resources, ADMIN, "nightly")
    trigger(office.resources, ADMIN, "nightly")
    office.end(office.runs()[0], RunState.REJECTED)
    assert office.states() == ["rejected", "awaiting_approval"]


@pytest.mark.archived
def test_the_same_key_is_the_same_trigger(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    first = trigger(office.resources, ADMIN, "nightly", key="k1", inputs={"n": 1})
    again = trigger(office.resources, ADMIN, "nightly", key="k1")
    other = trigger(office.resources, ADMIN, "nightly", key="k2")
    assert (again.run_id, again.repeated) == (first.run_id, True)
    assert other.run_id != first.run_id
    assert len(office.runs()) == 2
    assert office.runs()[0].inputs == {"n": 1}


def test_a_key_of_another_schedule_is_refused(office: Office) -> None:
    office.create()
    office.create("other")
    trigger(office.resources, ADMIN, "nightly", key="k1")
    with pytest.raises(IdempotencyKeyReused):
        trigger(office.resources, ADMIN, "other", key="k1")


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "ü"])
def test_a_key_must_be_plain(office: Office, key: str) -> None:
    office.create()
    with pytest.raises(InvalidDefinition):
        trigger(office.resources, ADMIN, "nightly", key=key)


def test_a_viewer_triggers_nothing(office: Office) -> None:
    office.create()
    with pytest.raises(Forbidden):
        trigger(office.resources, VIEWER, "nightly")


def test_a_trigger_of_a_deleted_schedule_finds_nothing(office: Office) -> None:
    office.create()
    lifecycle.delete(office.resources, ADMIN, "nightly")
    with pytest.raises(ScheduleNotFound):
        trigger(office.resources, ADMIN, "nightly")


# ── single starts ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.archived
def test_a_start_is_one_run_for_one_key(office: Office) -> None:
    action = {"workflow_id": "report", "version": 3, "input": {"n": 1}}
    first = start_run(office.resources, ADMIN, action, key="k1", scheduled_for=NOON - MINUTE)
    again = start_run(office.resources, ADMIN, action, key="k1")
    assert (first.outcome, again.outcome) == (StartOutcome.STARTED, StartOutcome.ALREADY_STARTED)
    assert first.run_id == again.run_id
    assert first.state is RunState.READY


def test_a_key_for_other_work_is_refused(office: Office) -> None:
    start_run(office.resources, ADMIN, {"workflow_id": "report"}, key="k1")
    with pytest.raises(IdempotencyKeyReused):
        start_run(office.resources, ADMIN, {"workflow_id": "other"}, key="k1")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"workflow_id": "w"}, "idempotency_key"),
        ({"idempotency_key": "k"}, "workflow_id"),
        ({"workflow_id": "w", "idempotency_key": "k", "x": 1}, "x"),
    ],
    ids=["no key", "no workflow", "unknown field"],
)
def test_a_start_that_says_too_little_or_too_much_is_refused(body: Any, path: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        read_body(StartBody, body)
    assert path in refused.value.errors


def test_the_body_of_a_start_becomes_an_action() -> None:
    body = {"workflow_id": "w", "version": 2, "user_id": "u", "idempotency_key": "k", "input": [1]}
    assert action_of_start(read_body(StartBody, body)) == {"workflow_id": "w", "version": 2, "input": [1]}
