"""The routes that make a schedule fire: a trigger by hand, and a backfill of past occurrences."""

from __future__ import annotations

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.idempotency import IdempotencyKey
from horarium.api.requests import CallerOf, Document, ResourcesOf, same_namespace
from horarium.api.routing import OPERATE, Routes
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import from_datetime, to_datetime
from horarium.operations import backfills, triggers
from horarium.wire.bodies import BackfillBody, TriggerBody, read_body
from horarium.wire.outcomes import BackfillOutcome
from horarium.wire.schedules import Backfilled, Filled, Triggered

routes = Routes("/api/schedules/{schedule_id}", tag="schedules")


@routes(
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


@routes(
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


def _filled(row: backfills.Filled) -> Filled:
    return Filled(
        fire_time=to_datetime(row.nominal),
        outcome=row.outcome,
        workflow_id=row.instance_id,
        run_id=None if row.run_id is None else id_text(row.run_id),
        reason=row.reason,
        detail=row.detail,
    )
