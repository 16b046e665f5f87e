"""The routes that look ahead and back: what each coming occurrence would bring, and why one did or did not fire.

Nothing here writes.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from horarium.api.answers import Answer
from horarium.api.requests import CallerOf, ResourcesOf
from horarium.api.views import Body, moment
from horarium.decision.explain import Explanation, Recorded
from horarium.errors import InvalidDefinition
from horarium.instant import Instant, from_rfc3339
from horarium.operations import previews
from horarium.operations.previews import Previewed
from horarium.schedule.event import EventType

router = APIRouter(prefix="/api/schedules/{schedule_id}", tags=["previews"])

_OUTCOMES = {
    EventType.TRIGGERED.value: "fired",
    EventType.BUFFERED.value: "held",
    EventType.TRIGGER_SKIPPED.value: "skipped",
    EventType.MISSED.value: "missed",
}


@router.get("/preview")
def preview(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    n: Annotated[int, Query(description="rows, 1 to 200")] = 10,
    start: Annotated[str | None, Query(alias="from", description="the first moment; now, unless given")] = None,
) -> Answer:
    """At most 31 days ahead."""
    # What is at `from` itself is wanted too.
    after = None if start is None else _moment("from", start) - 1
    found = previews.preview(resources, caller, schedule_id, rows=n, after=after)
    return Answer({"schedule_id": schedule_id, "rows": [_row(each) for each in found]})


@router.get("/explain")
def explain(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    at: Annotated[str, Query(description="any moment, past or future")],
) -> Answer:
    return Answer(
        {"schedule_id": schedule_id, **_explained(previews.explain(resources, caller, schedule_id, _moment("at", at)))}
    )


def _moment(name: str, text: str) -> Instant:
    """A plus sign that nobody encoded comes as a blank."""
    try:
        return from_rfc3339(text.strip().replace(" ", "T" if "T" not in text.upper() else "+"), field=name)
    except ValueError:
        raise InvalidDefinition({name: ["must be a time such as 2026-03-08T07:00:00Z"]}) from None


def _row(each: Previewed) -> Body:
    row = each.row
    return {
        "tick_at": moment(row.tick_at),
        "decision": row.decision.value,
        "reason": None if row.reason is None else row.reason.value,
        "inputs": each.inputs,
        "due": moment(row.due),
        "detail": row.detail,
        "rotation_index": row.rotation_index,
    }


def _explained(found: Explanation) -> Body:
    recorded = found.recorded if found.recorded is not None and _is_about(found, found.recorded) else None
    predicted = {
        "outcome": ("fires" if found.fires else "skips") if found.on_spec else "nothing",
        "fires": found.fires,
        "reason": None if found.reason is None else found.reason.value,
    }
    return {
        "at": moment(found.at),
        "sentence": found.sentence,
        "on_spec": found.on_spec,
        **(predicted if recorded is None else _decided(found, recorded)),
        "source": "prediction" if recorded is None else "history",
        "due": moment(found.due),
        "findings": [
            {"question": each.question, "holds": each.holds, "detail": each.detail} for each in found.findings
        ],
        "recorded": None if recorded is None else {"event_type": recorded.event_type, "payload": recorded.payload},
        "previous": moment(found.previous),
        "following": moment(found.following),
    }


def _is_about(found: Explanation, recorded: Recorded) -> bool:
    """A range of missed occurrences spans moments that never were one."""
    said = recorded.payload
    named = [said.get("occurrence_time"), said.get("first"), said.get("last")]
    return found.on_spec or moment(found.at) in named


def _decided(found: Explanation, recorded: Recorded) -> Body:
    """What happened wins over what we would decide today."""
    outcome = _OUTCOMES.get(recorded.event_type, "recorded")
    born = recorded.event_type in (EventType.TRIGGERED.value, EventType.BUFFERED.value)
    if born and recorded.payload.get("occurrence_time") != moment(found.at):
        return {"outcome": "covered", "fires": False, "reason": None}
    return {"outcome": outcome, "fires": born, "reason": recorded.payload.get("reason")}
