"""Runs: what is shown of them, how they are stopped, claimed, and reported on."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, AGENT, NOON, OPERATOR, VIEWER, Office, without_gaps

from horarium.core.document.states import RunState
from horarium.errors import InvalidDefinition, InvalidTransition
from horarium.features.runs import events as runs_events
from horarium.features.runs import reports as runs_reports
from horarium.features.runs import service as run_service
from horarium.features.runs.events import RunEventEntry
from horarium.features.runs.reports import parse_report
from horarium.features.runs.rows import RunRow
from horarium.features.runs.starts import start_run
from horarium.features.schedules import lists
from horarium.features.schedules.triggers import trigger
from horarium.instant import MINUTE, SECOND, Instant, to_rfc3339
from horarium.platform.database.tables import runs as table
from horarium.platform.errors import ApprovalRequired, Forbidden, ReportUnproven, RunNotFound, RunNotHeld
from horarium.platform.ids import id_text, new_id, parse_id
from horarium.platform.wire import ReportOutcome, StopOutcome


def _queued(office: Office, **parts: Any) -> str:
    """A run that waits on the queue `q`, as the pull launcher leaves it."""
    office.create(action={"workflow_type": "report", "task_queue": "q"}, **parts)
    office.tick(60)
    return _enqueue(office, office.runs()[-1])


def _enqueue(office: Office, run: RunRow) -> str:
    deadline = office.clock.now() + 60 * MINUTE
    office.resources.database.write(
        lambda c: c.execute(
            sa.update(table).where(table.c.run_id == run.run_id).values(state="queued", deadline=deadline)
        )
    )
    return id_text(run.run_id)


def _report(office: Office, run_id: str, **body: Any) -> ReportOutcome:
    """By the target, with the token of the first attempt, unless another right is shown."""
    if not {"lease_epoch", "report_token"} & body.keys():
        body["report_token"] = office.resources.tokens.make(parse_id(run_id, "run_id"), 0)
    return _said(office, run_id, **body)


def _said(office: Office, run_id: str, **body: Any) -> ReportOutcome:
    return runs_reports.report(office.resources, AGENT, run_id, parse_report(body)).outcome


def _claim(office: Office) -> dict[str, Any]:
    """What goes back with the report."""
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    return {"lease_epoch": claimed.lease_epoch}


def told(*asked: Any, **options: Any) -> tuple[RunEventEntry, ...]:
    return runs_events.events(*asked, **options).events


def _kinds(office: Office, run_id: str) -> list[str]:
    return [event.event_type for event in told(office.resources, VIEWER, run_id)]


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_shows_what_its_revision_says(office: Office) -> None:
    office.create(action={"workflow_type": "report", "input": {"n": 1}}, labels={"team": "x"})
    office.tick(60)
    run = run_service.get(office.resources, VIEWER, id_text(office.runs()[0].run_id))
    assert run.inputs == {"n": 1}
    assert run.definition is not None
    assert run.definition.labels == {"team": "x"}
    assert run.instance_id == f"schedule:nightly:{(NOON + MINUTE) // SECOND}"
    assert len(run.key) == 64


def test_the_rotation_decides_the_inputs(office: Office) -> None:
    office.create(inputs_rotation=[{"n": 1}, {"n": 2}], overlap_policy="allow_all")
    office.tick(60)
    office.tick(60)
    page = run_service.list_runs(office.resources, VIEWER, schedule_id="nightly")
    found = [run_service.get(office.resources, VIEWER, id_text(run.row.run_id)) for run in page.runs]
    assert [run.inputs for run in found] == [{"n": 2}, {"n": 1}]


@pytest.mark.parametrize("run_id", ["", "nonsense", "x" * 5_000, "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
def test_a_run_that_is_not_there_is_not_found(office: Office, run_id: str) -> None:
    with pytest.raises(RunNotFound):
        run_service.get(office.resources, VIEWER, run_id)


@pytest.mark.both_databases
def test_pages_show_every_run_once(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    for _ in range(5):
        office.tick(60)
    seen: list[bytes] = []
    token = None
    while True:
        page = run_service.list_runs(
            office.resources, VIEWER, schedule_id="nightly", page_size=2, next_page_token=token
        )
        seen += [run.row.run_id for run in page.runs]
        token = page.next_page_token
        if token is None:
            break
    assert seen == [run.run_id for run in reversed(office.runs())]


def test_the_stream_of_a_run_begins_with_why_it_exists(office: Office) -> None:
    run_id = _queued(office)
    _report(office, run_id, state="running")
    _report(office, run_id, state="succeeded")
    events = told(office.resources, VIEWER, run_id)
    assert [event.event_type for event in events] == [
        "ScheduleTriggered",
        "run.created",
        "run.started",
        "run.completed",
    ]
    assert [event.sequence for event in events] == [1, 2, 3, 4]
    assert events[0].payload["cron_expression"] == "* * * * *"
    assert events[0].payload["trigger_number"] == 1
    assert [event.sequence for event in told(office.resources, VIEWER, run_id, after_sequence=1)] == [2, 3, 4]
    assert [event.sequence for event in told(office.resources, VIEWER, run_id, limit=2)] == [1, 2]


HELD = ["ScheduleTriggered", "run.created", "run.held"]


def _held(office: Office) -> RunRow:
    office.create(overlap_policy="buffer_all")
    office.tick(60)
    office.tick(60)
    return office.runs()[-1]


def test_the_stream_of_a_run_tells_that_it_was_held_then_and_ever_after(office: Office) -> None:
    run = _held(office)
    run_id = id_text(run.run_id)
    assert _kinds(office, run_id) == HELD
    held = told(office.resources, VIEWER, run_id)[-1]
    assert (held.sequence, held.recorded_at, held.payload) == (3, run.created_at, {})
    office.end(office.runs()[0])
    assert _kinds(office, run_id) == [*HELD, "run.released"]
    office.end(run)
    events = told(office.resources, VIEWER, run_id)
    assert [event.event_type for event in events] == [*HELD, "run.released", "run.completed"]
    assert [event.sequence for event in events] == [1, 2, 3, 4, 5]
    for after in range(7):
        page = told(office.resources, VIEWER, run_id, after_sequence=after)
        assert [event.sequence for event in page] == list(range(after + 1, 6))


def test_a_run_that_ended_while_it_was_held_tells_both(office: Office) -> None:
    run_id = id_text(_held(office).run_id)
    run_service.cancel(office.resources, ADMIN, run_id)
    assert _kinds(office, run_id) == [*HELD, "run.cancelled"]
    assert [event.sequence for event in told(office.resources, VIEWER, run_id)] == [1, 2, 3, 4]


@pytest.mark.both_databases
def test_a_run_from_before_that_was_told_has_no_gap(office: Office) -> None:
    run = _held(office)
    office.resources.database.write(
        lambda c: c.execute(sa.update(table).where(table.c.run_id == run.run_id).values(next_event=3))
    )
    assert _kinds(office, id_text(run.run_id)) == HELD[:2]
    office.end(office.runs()[0])
    assert _kinds(office, id_text(run.run_id)) == [*HELD[:2], "run.released"]


def test_a_run_that_was_never_held_does_not_say_so(office: Office) -> None:
    office.create()
    office.tick(60)
    run = office.runs()[0]
    assert _kinds(office, id_text(run.run_id)) == HELD[:2]
    office.end(run)
    assert _kinds(office, id_text(run.run_id)) == [*HELD[:2], "run.completed"]


def test_the_stream_of_a_run_tells_that_somebody_was_asked(office: Office) -> None:
    office.create(approval_policy={"requires_approval": True, "gates": ["spend"]}, overlap_policy="buffer_all")
    office.tick(60)
    office.tick(60)
    first, second = (id_text(run.run_id) for run in office.runs())
    asked = told(office.resources, VIEWER, first)[-1]
    assert (asked.event_type, asked.sequence) == ("run.approval_requested", 3)
    assert asked.payload["gates"] == ["spend"]
    assert asked.payload["expires_at"] == to_rfc3339(office.clock.now() + 24 * 60 * MINUTE - MINUTE)
    assert len(asked.payload["approval_id"]) == 26
    run_service.cancel(office.resources, ADMIN, first)
    assert _kinds(office, second) == [*HELD, "run.released", "run.approval_requested"]
    assert [event.sequence for event in told(office.resources, VIEWER, second)] == [1, 2, 3, 4, 5]


def test_a_run_that_no_schedule_asked_for_begins_with_its_creation(office: Office) -> None:
    started = start_run(office.resources, ADMIN, {"workflow_id": "report", "input": [1]}, key="k")
    run_id = id_text(started.run_id)
    assert _kinds(office, run_id) == ["run.created"]
    run = run_service.get(office.resources, VIEWER, run_id)
    assert (run.instance_id, run.inputs, run.row.schedule_id) == (f"run:{run_id}", [1], None)
    assert run_service.cancel(office.resources, ADMIN, run_id).outcome is StopOutcome.CANCELLED
    assert [event.sequence for event in told(office.resources, VIEWER, run_id)] == [1, 2]


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_has_not_started_is_cancelled_at_once_and_makes_room(office: Office) -> None:
    office.create(overlap_policy="buffer_all")
    office.tick(60)
    office.tick(60)
    stopped = run_service.cancel(office.resources, OPERATOR, id_text(office.runs()[0].run_id))
    assert stopped.outcome is StopOutcome.CANCELLED
    assert office.states() == ["cancelled", "ready"]
    assert without_gaps(office.events())


def test_what_runs_is_asked_to_stop(office: Office) -> None:
    run_id = _queued(office)
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    assert run_service.cancel(office.resources, ADMIN, run_id).outcome is StopOutcome.REQUESTED
    assert runs_reports.heartbeat(office.resources, AGENT, run_id, claimed.lease_epoch).stop_requested
    assert _report(office, run_id, state="cancelled", lease_epoch=claimed.lease_epoch) is ReportOutcome.RECORDED
    assert office.states() == ["cancelled"]


def test_terminate_ends_it_whoever_has_it(office: Office) -> None:
    run_id = _queued(office)
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    assert run_service.terminate(office.resources, ADMIN, run_id).outcome is StopOutcome.TERMINATED
    with pytest.raises(RunNotHeld):
        runs_reports.heartbeat(office.resources, AGENT, run_id, claimed.lease_epoch)
    assert _report(office, run_id, state="succeeded") is ReportOutcome.LATE
    assert office.states() == ["terminated"]


@pytest.mark.parametrize("stop", [run_service.cancel, run_service.terminate], ids=["cancel", "terminate"])
def test_what_has_ended_stays_as_it_is(office: Office, stop: Any) -> None:
    run_id = _queued(office)
    _report(office, run_id, state="succeeded")
    assert stop(office.resources, ADMIN, run_id).outcome is StopOutcome.UNCHANGED
    with pytest.raises(Forbidden):
        stop(office.resources, VIEWER, run_id)
    with pytest.raises(RunNotFound):
        stop(office.resources, ADMIN, id_text(new_id()))


# ── the pull queue ───────────────────────────────────────────────────────────────────────────────────


def _lease_from_now(office: Office) -> Instant:
    return office.clock.now() + office.resources.settings.lease_seconds * SECOND


def test_a_claim_takes_each_run_once(office: Office) -> None:
    run_id = _queued(office)
    assert runs_reports.claim(office.resources, AGENT, "other") == []
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q", worker="w1", limit=5)
    assert id_text(claimed.run.row.run_id) == run_id
    assert (claimed.run.row.state, claimed.lease_until) == (RunState.RUNNING, _lease_from_now(office))
    assert runs_reports.claim(office.resources, AGENT, "q") == []


def test_a_heartbeat_renews_the_lease_of_its_holder_only(office: Office) -> None:
    run_id = _queued(office)
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    office.clock.move(20)
    beat = runs_reports.heartbeat(office.resources, AGENT, run_id, claimed.lease_epoch)
    assert (beat.lease_until, beat.stop_requested) == (_lease_from_now(office), False)
    with pytest.raises(RunNotHeld):
        runs_reports.heartbeat(office.resources, AGENT, run_id, claimed.lease_epoch - 1)


@pytest.mark.parametrize("limit", [0, 101])
def test_a_claim_has_bounds(office: Office, limit: int) -> None:
    with pytest.raises(InvalidDefinition):
        runs_reports.claim(office.resources, AGENT, "q", limit=limit)


def test_only_those_who_work_may_claim(office: Office) -> None:
    with pytest.raises(Forbidden):
        runs_reports.claim(office.resources, VIEWER, "q")


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_success_is_recorded_once(office: Office) -> None:
    run_id = _queued(office)
    assert _report(office, run_id, state="SUCCESS", result={"ok": True}, cost=1.5, tokens=7) is ReportOutcome.RECORDED
    assert _report(office, run_id, state="succeeded") is ReportOutcome.UNCHANGED
    row = office.runs()[0]
    assert (row.state, row.result, row.cost, row.tokens) == (RunState.SUCCEEDED, {"ok": True}, 1_500_000, 7)
    assert _kinds(office, run_id).count("run.completed") == 1
    assert lists.describe(office.resources, ADMIN, "nightly").row.active == 0


def test_a_late_report_is_written_down_and_changes_nothing(office: Office) -> None:
    run_id = _queued(office)
    _report(office, run_id, state="succeeded")
    assert _report(office, run_id, state="failed", error="no") is ReportOutcome.LATE
    assert office.states() == ["succeeded"]
    assert _kinds(office, run_id)[-1] == "run.late_report"


def test_a_failure_is_retried_while_the_policy_allows(office: Office) -> None:
    run_id = _queued(office, retry_policy={"max_retries": 1, "backoff_ms": 0})
    first = _claim(office)
    assert _report(office, run_id, state="failed", error="first", **first) is ReportOutcome.RETRIED
    assert (office.runs()[0].state, office.runs()[0].attempt) == (RunState.READY, 1)
    _enqueue(office, office.runs()[0])
    second = _claim(office)
    assert _report(office, run_id, state="failed", error="second", **second) is ReportOutcome.RECORDED
    assert (office.runs()[0].state, office.runs()[0].error) == (RunState.FAILED, "second")
    assert lists.describe(office.resources, ADMIN, "nightly").row.failures_count == 1


def test_a_worker_that_lost_its_lease_is_told_so(office: Office) -> None:
    run_id = _queued(office)
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    with pytest.raises(RunNotHeld):
        _report(office, run_id, state="succeeded", lease_epoch=claimed.lease_epoch + 1)
    assert _report(office, run_id, state="succeeded", lease_epoch=claimed.lease_epoch) is ReportOutcome.RECORDED


def test_a_leased_run_is_ended_by_its_holder_only(office: Office) -> None:
    run_id = _queued(office)
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    for said in ({}, {"attempt": 0}):
        with pytest.raises(ReportUnproven):
            _said(office, run_id, state="succeeded", **said)
    with pytest.raises(Forbidden):
        _report(office, run_id, state="succeeded", report_token=office.resources.tokens.make(new_id(), 0))
    assert office.states() == ["running"]
    assert _report(office, run_id, state="succeeded", report_token=claimed.report_token) is ReportOutcome.RECORDED


def test_a_repeated_failed_report_leaves_the_next_attempt_alone(office: Office) -> None:
    run_id = _queued(office, retry_policy={"max_retries": 3, "backoff_ms": 0})
    (claimed,) = runs_reports.claim(office.resources, AGENT, "q")
    said = {"state": "failed", "error": "first", "report_token": claimed.report_token}
    assert _report(office, run_id, **said) is ReportOutcome.RETRIED
    assert _report(office, run_id, **said) is ReportOutcome.LATE
    _enqueue(office, office.runs()[0])
    assert _report(office, run_id, **said) is ReportOutcome.LATE
    with pytest.raises(ReportUnproven):
        _said(office, run_id, state="failed")
    row = office.runs()[0]
    assert (row.state, row.attempt) == (RunState.QUEUED, 1)


def test_a_gate_makes_a_running_run_wait_for_approval(office: Office) -> None:
    run_id = _queued(office)
    assert _report(office, run_id, state="blocked", gate="publish", **_claim(office)) is ReportOutcome.BLOCKED
    assert _report(office, run_id, state="blocked", gate="publish") is ReportOutcome.UNCHANGED
    row = office.runs()[0]
    assert (row.state, row.needs_approval, row.lease_until) == (RunState.AWAITING_APPROVAL, True, None)
    with pytest.raises(ApprovalRequired):
        _report(office, run_id, state="succeeded")


def test_a_run_that_nobody_was_given_cannot_be_reported_on(office: Office) -> None:
    office.create()
    office.tick(60)
    with pytest.raises(InvalidTransition):
        _report(office, id_text(office.runs()[0].run_id), state="succeeded")


def test_a_run_awaiting_approval_cannot_be_reported_as_running(office: Office) -> None:
    office.create_for("agent-7")
    office.tick(60)
    with pytest.raises(ApprovalRequired):
        _report(office, id_text(office.runs()[0].run_id), state="running")


def test_a_cap_that_is_passed_ends_the_run_with_its_cause(office: Office) -> None:
    run_id = _queued(office, limits={"tokens": 100})
    assert _report(office, run_id, state="running", tokens=100) is ReportOutcome.RECORDED
    assert office.states() == ["running"]
    _report(office, run_id, state="running", tokens=101)
    row = office.runs()[0]
    assert (row.state, row.cause, row.tokens) == (RunState.FAILED, "tokens_cap", 101)


@pytest.mark.parametrize(
    ("limits", "said", "cause"),
    [
        ({"tokens": 100}, {"tokens": 101}, "tokens_cap"),
        ({"cost": 1}, {"cost": 1.5}, "cost_cap"),
        ({"tool_calls": 0}, {"tool_calls": 1}, "tool_calls_cap"),
    ],
)
def test_a_final_report_beyond_a_cap_is_no_success(office: Office, limits: Any, said: Any, cause: str) -> None:
    run_id = _queued(office, limits=limits)
    _report(office, run_id, state="succeeded", result={"kept": True}, **said)
    row = office.runs()[0]
    assert (row.state, row.cause, row.result) == (RunState.FAILED, cause, {"kept": True})


@pytest.mark.both_databases
def test_failures_in_a_row_pause_the_schedule_and_account_for_what_is_due(office: Office) -> None:
    run_id = _queued(office, pause_on_failure=1, retry_policy={"max_retries": 0})
    office.clock.move(90)
    _report(office, run_id, state="failed")
    assert office.kinds() == ["Created", "Triggered", "Missed", "Paused"]
    assert without_gaps(office.events())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "state"),
        ({"state": "ready"}, "state"),
        ({"state": "blocked"}, "gate"),
        ({"state": "failed", "cost": -1}, "cost"),
        ({"state": "failed", "tokens": 1.5}, "tokens"),
        ({"state": "failed", "error": 7}, "error"),
        ({"state": "succeeded", "result": float("nan")}, "result"),
        ({"state": "succeeded", "more": 1}, "more"),
        ([], "report"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_report_that_makes_no_sense_is_refused(body: Any, field: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        parse_report(body)
    assert list(refused.value.errors) == [field]


def test_a_long_error_is_cut(office: Office) -> None:
    assert len(parse_report({"state": "failed", "error": "x" * 100_000}).said.error or "") == 4_000


def test_metrics_count_the_end_of_a_run_once(office: Office) -> None:
    run_id = _queued(office)
    for _ in range(3):
        _report(office, run_id, state="succeeded")
    registry = office.resources.telemetry.metrics.registry
    assert registry.get_sample_value("horarium_run_ends_total", {"state": "succeeded"}) == 1


def test_a_manual_run_is_held_and_released_like_any_other(office: Office) -> None:
    run_id = _queued(office, overlap_policy="buffer_all")
    trigger(office.resources, ADMIN, "nightly")
    _report(office, run_id, state="succeeded")
    assert office.states() == ["succeeded", "ready"]
