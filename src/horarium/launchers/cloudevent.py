"""How a due run is told to the outside: as a CloudEvents 1.0 event, the same bytes at every redelivery.

`id` is the delivery key, so a receiver that drops events with a known `source` and `id`, as the
specification allows, runs each delivery once. `time` is the nominal moment, not the moment of sending.
"""

from __future__ import annotations

from urllib.parse import quote

import orjson

from horarium.instant import to_rfc3339
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import check, dump
from horarium.schedule.json_limits import Json

EVENT_TYPE = "dev.horarium.run.due.v1"
STRUCTURED = "application/cloudevents+json"
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


def attributes(request: LaunchRequest, source: str) -> dict[str, str]:
    """The context attributes (section 3 of the specification); `traceparent` is its tracing extension."""
    subject = request.schedule_id if request.schedule_id is not None else f"runs/{request.run_id}"
    found = {
        "specversion": "1.0",
        "id": request.key,
        "source": source,
        "type": EVENT_TYPE,
        "subject": f"{request.namespace}/{subject}",
        "time": to_rfc3339(request.nominal),
    }
    return found if request.traceparent is None else {**found, "traceparent": request.traceparent}


def event_body(request: LaunchRequest, source: str, inputs: bytes) -> bytes:
    """The event as one JSON object: structured content mode, for requests with a body. Raises NotJson.

    `inputs` is the JSON text of the run's inputs, which was checked and written before the launch began.
    """
    for part in (request.labels, request.memo, request.search_attributes):
        if part:
            check(part)
    event = {
        **attributes(request, source),
        "datacontenttype": "application/json",
        "data": {**data(request), "inputs": orjson.Fragment(inputs)},
    }
    return dump(event)


def binary_headers(request: LaunchRequest, source: str) -> dict[str, str]:
    """The event as headers: binary content mode, for methods without a body. The run's identity travels along."""
    own = {
        "runid": request.run_id,
        "rootrunid": request.root_run_id,
        "nodeid": request.node_id,
        "attempt": str(request.attempt),
        "reporturl": request.report_url,
        "reporttoken": request.report_token,
    }
    everything = {**attributes(request, source), **own}
    return {f"ce-{name}": header_text(value) for name, value in everything.items() if value is not None}


def header_text(value: str) -> str:
    """Percent-encoding of the HTTP binding (section 3.1.3.2): whatever is not visible ASCII, and `"` and `%`."""
    return quote(value, safe=_VISIBLE)


def data(request: LaunchRequest) -> dict[str, Json]:
    """Description of a run without its inputs."""
    return {
        "run_id": request.run_id,
        "schedule_id": request.schedule_id,
        "namespace": request.namespace,
        "workflow_instance_id": request.instance_id,
        "key": request.key,
        "nominal": to_rfc3339(request.nominal),
        "due": to_rfc3339(request.due),
        "deadline": to_rfc3339(request.deadline),
        "origin": request.origin,
        "attempt": request.attempt,
        "report_url": request.report_url,
        "report_token": request.report_token,
        "trigger_number": request.trigger_number,
        "user_id": request.user_id,
        "labels": dict(request.labels),
        "memo": dict(request.memo),
        "search_attributes": dict(request.search_attributes),
        "workflow": None if request.workflow is None else dict(request.workflow),
        "node_id": request.node_id,
        "parent_run_id": request.parent_run_id,
        "root_run_id": request.root_run_id,
        "assignee": None if request.assignee is None else dict(request.assignee),
        **request.terms.document(),
    }
