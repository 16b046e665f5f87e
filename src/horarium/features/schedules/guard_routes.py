"""Routes of manual triggers, backfills, calendars, conditions and input rotation of a schedule."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends

from horarium.condition import ClauseResult, Operator
from horarium.core.document.descriptions import describe_clause
from horarium.errors import InvalidDefinition
from horarium.features.schedules import backfills, draft_checks, triggers
from horarium.features.schedules.change_model import ConditionFinding, ConditionTest, ConditionTestBody
from horarium.features.schedules.model import Backfilled, Filled, Triggered, WriteResult
from horarium.features.schedules.routes import reply_written
from horarium.features.schedules.triggers import Guarded
from horarium.instant import from_datetime, to_datetime
from horarium.platform.bodies import (
    BackfillBody,
    Body,
    CalendarsBody,
    ConditionBody,
    RotationBody,
    TriggerBody,
    names_of,
    read_body,
)
from horarium.platform.http import examples
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf, json_body, same_namespace
from horarium.platform.http.responses import IfMatch, Reply, version_of
from horarium.platform.http.routing import OPERATE, READ, WRITE, IdempotencyKey, Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import BackfillOutcome, encode

routes = Routes("/api/schedules/{schedule_id}", tag="guards")

Value = Annotated[Any, Depends(json_body)]


@routes(
    "PUT",
    "/calendars",
    needs=WRITE,
    summary="Set the calendars of a schedule",
    body=CalendarsBody,
    sends={"calendars": ["us-federal-holidays-2026"]},
    answer=WriteResult,
    example=examples.UPDATED,
)
def set_calendars(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Reply:
    """All calendars must allow a day."""
    return _put(resources, caller, schedule_id, Guarded.CALENDARS, _value(CalendarsBody, body), if_match)


@routes(
    "DELETE",
    "/calendars",
    needs=WRITE,
    summary="Remove all calendars from a schedule",
    answer=WriteResult,
    example=examples.UPDATED,
)
def clear_calendars(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    return _clear(resources, caller, schedule_id, Guarded.CALENDARS, if_match)


@routes(
    "PUT",
    "/condition",
    needs=WRITE,
    summary="Set the condition of a schedule",
    body=ConditionBody,
    sends={"pre_dispatch_condition": {"/last_24h_stats/failed": {"lt": 3}}},
    answer=WriteResult,
    example=examples.UPDATED,
)
def set_condition(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Reply:
    """Accepts the condition itself or an object with `pre_dispatch_condition`."""
    # A filter maps JSON pointers, which are empty or begin with a slash: no pointer is spelled like these names.
    names = {*names_of(ConditionBody), *ConditionBody.OTHER_NAMES}
    named = isinstance(body, dict) and not names.isdisjoint(body)
    condition = _value(ConditionBody, body) if named else body
    return _put(resources, caller, schedule_id, Guarded.CONDITION, condition, if_match)


@routes(
    "DELETE",
    "/condition",
    needs=WRITE,
    summary="Remove the condition from a schedule",
    answer=WriteResult,
    example=examples.UPDATED,
)
def clear_condition(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    return _clear(resources, caller, schedule_id, Guarded.CONDITION, if_match)


@routes(
    "PUT",
    "/rotation",
    needs=WRITE,
    summary="Set the input rotation of a schedule",
    body=RotationBody,
    sends={"inputs_rotation": [{"region": "eu"}, {"region": "us"}]},
    answer=WriteResult,
    example=examples.UPDATED,
)
def set_rotation(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Reply:
    """The rotation restarts with the first entry, even if the entries are unchanged."""
    return _put(resources, caller, schedule_id, Guarded.ROTATION, _value(RotationBody, body), if_match)


@routes(
    "DELETE",
    "/rotation",
    needs=WRITE,
    summary="Remove the input rotation from a schedule",
    answer=WriteResult,
    example=examples.UPDATED,
)
def clear_rotation(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    return _clear(resources, caller, schedule_id, Guarded.ROTATION, if_match)


def _value(kind: type[Body], body: Any) -> Any:
    """The one thing that such a body holds; it may come without the object around it."""
    [name] = names_of(kind)
    return getattr(read_body(kind, body), name) if isinstance(body, dict) else body


def _put(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, part: Guarded, value: Any, if_match: str | None
) -> Reply:
    if value is None or (value == {} and part is Guarded.CONDITION):
        raise InvalidDefinition({part.value: ["is required; use DELETE to clear it"]})
    return reply_written(triggers.put(resources, caller, schedule_id, part, value, if_version=version_of(if_match)))


def _clear(resources: ResourcesOf, caller: CallerOf, schedule_id: str, part: Guarded, if_match: str | None) -> Reply:
    return reply_written(triggers.clear(resources, caller, schedule_id, part, if_version=version_of(if_match)))


trigger_routes = Routes("/api/schedules/{schedule_id}", tag="schedules")


@trigger_routes(
    "POST",
    "/trigger",
    needs=OPERATE,
    summary="Trigger a schedule now",
    body=TriggerBody,
    sends={"overlap_policy": "allow_all", "reason": "the numbers were wrong"},
    answer=Triggered,
    example=examples.TRIGGERED,
    marks={"repeated": True},
)
def trigger_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    body: Document,
    idempotency_key: IdempotencyKey = None,
) -> Reply:
    """A repeated idempotency key returns the first trigger. Changed `inputs` require the permission `write`."""
    asked = read_body(TriggerBody, body)
    same_namespace(caller, asked.namespace)
    done = triggers.trigger(
        resources,
        caller.because(asked.reason).asking_to_skip(asked.approval_status, asked.skip_approval),
        schedule_id,
        overlap_policy=asked.overlap_policy,
        even_if_paused=asked.even_if_paused,
        key=asked.idempotency_key or idempotency_key,
        inputs=asked.inputs,
    )
    return Reply(
        Triggered(
            schedule_id=done.schedule_id,
            namespace=caller.namespace,
            outcome=done.outcome,
            workflow_id=done.instance_id,
            run_id=None if done.run_id is None else id_text(done.run_id),
            state=done.state,
            reason=done.reason,
            detail=done.detail,
            buffer_depth=done.buffer_depth,
            repeated=done.repeated,
        )
    )


@trigger_routes(
    "POST",
    "/backfill",
    needs=OPERATE,
    summary="Backfill a schedule",
    body=BackfillBody,
    sends={"start_time": "2026-02-27T00:00:00Z", "end_time": "2026-02-28T00:00:00Z", "dry_run": True},
    answer=Backfilled,
    example=examples.BACKFILLED,
    planned=True,
)
def backfill_schedule(resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Document) -> Reply:
    """Creates runs for occurrences from `start_time` to before `end_time` that have none. With the overlap policy
    `skip` they run one after the other; waiting runs are `buffered`.
    """
    asked = read_body(BackfillBody, body)
    same_namespace(caller, asked.namespace)
    if asked.end_time <= asked.start_time:
        raise InvalidDefinition({"end_time": ["must be after start_time"]})
    done = backfills.backfill(
        resources,
        caller.because(asked.reason).asking_to_skip(asked.approval_status, asked.skip_approval),
        schedule_id,
        start=from_datetime(asked.start_time),
        end=from_datetime(asked.end_time),
        overlap_policy=asked.overlap_policy,
        reverse=asked.reverse,
        dry_run=asked.dry_run,
    )
    return Reply(
        Backfilled(
            schedule_id=done.schedule_id,
            namespace=caller.namespace,
            outcome=BackfillOutcome.PLANNED if done.dry_run else BackfillOutcome.STARTED,
            fires_attempted=len(done.rows),
            fires_started=done.started,
            dry_run=done.dry_run,
            stopped=done.stopped,
            results=tuple(_filled(row) for row in done.rows),
            message=done.message,
        )
    )


def _filled(row: backfills.BackfillOccurrence) -> Filled:
    return Filled(
        fire_time=to_datetime(row.nominal),
        outcome=row.outcome,
        workflow_id=row.instance_id,
        run_id=None if row.run_id is None else id_text(row.run_id),
        reason=row.reason,
        detail=row.detail,
    )


condition_routes = Routes("/api/conditions", tag="previews")

MAX_CONTEXT_BYTES: Final = 64 * 1_024


@condition_routes(
    "POST",
    "/test",
    needs=READ,
    summary="Test a condition",
    body=ConditionTestBody,
    sends={"condition": {"/last_24h_stats/failed": {"lt": 3}}, "schedule_id": "nightly-report"},
    answer=ConditionTest,
    example=ConditionTest(
        holds=True,
        error=None,
        findings=(
            ConditionFinding(
                path="/last_24h_stats/failed",
                operator=Operator.LT,
                value=3,
                found=True,
                actual=1,
                holds=True,
                sentence="/last_24h_stats/failed is less than 3: it is 1",
            ),
        ),
        context={"prior_run_result": None, "last_24h_stats": {"succeeded": 21, "failed": 1, "total": 22}},
    ),
    repeatable=False,  # it writes nothing
)
def test_condition(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """Evaluates the condition on `context`, or on the current context of the schedule. Returns the value that each
    clause found.
    """
    asked = read_body(ConditionTestBody, body)
    same_namespace(caller, asked.namespace)
    tried = draft_checks.try_condition(
        resources, caller, asked.condition, schedule_id=asked.schedule_id, context=asked.context
    )
    fits = len(encode(tried.context)) <= MAX_CONTEXT_BYTES
    return Reply(
        ConditionTest(
            holds=tried.holds,
            error=tried.error,
            findings=tuple(map(_shown, tried.findings)),
            context=tried.context if fits else None,
            warnings=tried.warnings,
            signal_error=tried.signal_error,
            context_omitted=not fits,
        )
    )


def _shown(found: ClauseResult) -> ConditionFinding:
    told = describe_clause(found)
    return ConditionFinding(
        path=found.pointer,
        operator=found.operator,
        value=told.wanted,
        found=found.found,
        actual=told.seen,
        holds=found.holds,
        sentence=told.sentence,
    )
