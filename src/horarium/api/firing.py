"""The routes that make a schedule fire: a trigger by hand, and a backfill of past occurrences."""

from __future__ import annotations

from fastapi import APIRouter

from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.idempotency import IdempotencyKey, idempotent, idempotent_marked
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.views import Body, moment
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.operations import backfills, triggers
from horarium.operations.backfills import Backfilled, Filled
from horarium.operations.triggers import Triggered

router = APIRouter(prefix="/api/schedules/{schedule_id}", tags=["schedules"])


@router.post("/trigger")
@idempotent_marked(repeated=True)
def trigger(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Document, idempotency_key: IdempotencyKey = None
) -> Answer:
    fields = Fields(body)
    overlap_policy = fields.overlap_policy()
    even_if_paused = fields.flag("even_if_paused")
    key = fields.text("idempotency_key", most=255) or idempotency_key
    inputs = fields.anything("inputs", "input")
    caller = caller.because(fields.text("reason", "note"))
    fields.check()
    done = triggers.trigger(
        resources,
        caller,
        schedule_id,
        overlap_policy=overlap_policy,
        even_if_paused=even_if_paused,
        key=key,
        inputs=inputs,
    )
    return Answer({**_triggered(done), "namespace": caller.namespace})


@router.post("/backfill")
@idempotent
def backfill(resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Document) -> Answer:
    fields = Fields(body)
    start = fields.require("start_time", fields.moment("start_time", "from"))
    end = fields.require("end_time", fields.moment("end_time", "to"))
    overlap_policy = fields.overlap_policy()
    reverse, dry_run = fields.flag("reverse"), fields.flag("dry_run")
    caller = caller.because(fields.text("reason", "note"))
    fields.check()
    assert start is not None  # or check would have raised
    assert end is not None
    if end <= start:
        raise InvalidDefinition({"end_time": ["must be after start_time"]})
    done = backfills.backfill(
        resources,
        caller,
        schedule_id,
        start=start,
        end=end,
        overlap_policy=overlap_policy,
        reverse=reverse,
        dry_run=dry_run,
    )
    return Answer({**_backfilled(done), "namespace": caller.namespace})


def _triggered(done: Triggered) -> Body:
    """`workflow_id` is what the Durable Workflow client calls the instance."""
    answer: Body = {
        "schedule_id": done.schedule_id,
        "outcome": done.outcome.value,
        "workflow_id": done.instance_id,
        "run_id": None if done.run_id is None else id_text(done.run_id),
        "state": None if done.state is None else done.state.value,
        "reason": None if done.reason is None else done.reason.value,
        "detail": done.detail,
        "buffer_depth": done.buffer_depth,
        "repeated": done.repeated or None,
    }
    return {name: value for name, value in answer.items() if value is not None}


def _backfilled(done: Backfilled) -> Body:
    return {
        "schedule_id": done.schedule_id,
        "outcome": "backfill_planned" if done.dry_run else "backfill_started",
        "fires_attempted": len(done.rows),
        "fires_started": done.started,
        "dry_run": done.dry_run,
        "stopped": done.stopped,
        "results": [_filled(row) for row in done.rows],
    }


def _filled(row: Filled) -> Body:
    answer: Body = {
        "fire_time": moment(row.nominal),
        "outcome": row.outcome.value,
        "workflow_id": row.instance_id,
        "run_id": None if row.run_id is None else id_text(row.run_id),
        "reason": None if row.reason is None else row.reason.value,
        "detail": row.detail,
    }
    return {name: value for name, value in answer.items() if value is not None}
