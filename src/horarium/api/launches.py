"""The route that starts a single run which no schedule asked for, once for each idempotency key."""

from __future__ import annotations

from fastapi import APIRouter

from horarium.api.answers import Answer
from horarium.api.idempotency import idempotent_marked
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.instant import from_rfc3339
from horarium.operations import launches
from horarium.operations.launches import StartOutcome

router = APIRouter(tags=["runs"])


@router.post("/api/run-launcher/start", status_code=201)
@router.post("/run-launcher/start", status_code=201)
@idempotent_marked(outcome=StartOutcome.ALREADY_STARTED.value)
def start(resources: ResourcesOf, caller: CallerOf, body: Document) -> Answer:
    """`{workflow_id, version, user_id, scheduled_for, idempotency_key}`; a repeated key names the same run.

    The key in the body is kept with the run, for as long as the run is.
    """
    action, key, given = launches.action_of_start(body)
    try:
        scheduled_for = None if given is None else from_rfc3339(str(given), field="scheduled_for")
    except ValueError:
        raise InvalidDefinition({"scheduled_for": ["must be a time such as 2026-03-08T07:00:00Z"]}) from None
    done = launches.start_run(resources, caller, action, key=key, scheduled_for=scheduled_for)
    fresh = done.outcome is StartOutcome.STARTED
    answer = {"run_id": id_text(done.run_id), "outcome": done.outcome.value, "state": done.state.value, "started": True}
    return Answer({**answer, "idempotency_key": key}, 201 if fresh else 200)
