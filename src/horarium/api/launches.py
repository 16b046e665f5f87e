"""The route that starts a single run without a schedule, once per idempotency key."""

from __future__ import annotations

from typing import Any

from horarium.api import examples, run_examples
from horarium.api.answers import Reply
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import WRITE, Routes
from horarium.ids import id_text
from horarium.instant import from_datetime
from horarium.operations import launches
from horarium.wire.bodies import StartBody, read_body
from horarium.wire.outcomes import StartOutcome
from horarium.wire.runs import RunStarted

routes = Routes(tag="runs")

_START: dict[str, Any] = {
    "needs": WRITE,
    "summary": "Start a run without a schedule",
    "body": StartBody,
    "sends": examples.START,
    "answer": RunStarted,
    "status": 201,
    "also": (200,),
    "example": run_examples.STARTED,
    "marks": {"outcome": StartOutcome.ALREADY_STARTED},
}


@routes("POST", "/api/run-launcher/start", **_START)
@routes("POST", "/run-launcher/start", name="start_run_without_prefix", **_START)
def start_run(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """A repeated idempotency key returns the same run. The key is kept as long as the run."""
    asked = read_body(StartBody, body)
    scheduled_for = None if asked.scheduled_for is None else from_datetime(asked.scheduled_for)
    done = launches.start_run(
        resources,
        caller.asking_to_skip(asked.approval_status, asked.skip_approval),
        launches.action_of_start(asked),
        key=asked.idempotency_key,
        scheduled_for=scheduled_for,
        user_id=asked.user_id,
    )
    fresh = done.outcome is StartOutcome.STARTED
    answer = RunStarted(
        run_id=id_text(done.run_id),
        outcome=done.outcome,
        state=done.state,
        started=True,
        idempotency_key=asked.idempotency_key,
    )
    return Reply(answer, 201 if fresh else 200)
