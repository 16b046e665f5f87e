"""Every call about schedules and runs, described once; `house_calls` has the rest, the drivers send them.

A function here makes a Call and does nothing else. Fields of documents are those of a schedule's document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from horarium.client.answers import (
    Backfilled,
    ClaimedRun,
    Explanation,
    Heartbeat,
    HistoryEvent,
    Page,
    PreviewRow,
    Run,
    RunEvent,
    RunOutcome,
    ScheduleDescription,
    ScheduleHealth,
    Triggered,
    WriteResult,
)
from horarium.client.call import Call, When, given, if_match, many, one, rfc3339

Document = Mapping[str, Any]

SCHEDULES = "/api/schedules"
SCHEDULE = "/api/schedules/{schedule_id}"
RUN = "/api/runs/{run_id}"

_written = one(WriteResult)
_run_page = many(Run, "runs")


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────


def create_schedule(
    document: Document | None = None, /, *, idempotency_key: str | None = None, **fields: Any
) -> Call[WriteResult]:
    """Make a schedule from a document, from fields, or from both; raises ScheduleAlreadyExists."""
    return Call("POST", SCHEDULES, _written, body={**(document or {}), **fields}, key=idempotency_key)


def upsert_schedule(document: Document | None = None, /, **fields: Any) -> Call[WriteResult]:
    """Create or replace by `schedule_id`; an equal definition changes nothing."""
    return Call("POST", f"{SCHEDULES}/upsert", _written, body={**(document or {}), **fields})


def list_schedules(
    *,
    status: str | None = None,
    workflow_type: str | None = None,
    owner: str | None = None,
    source: str | None = None,
    text: str | None = None,
    labels: Mapping[str, str] | None = None,
    query: str | None = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> Call[Page[ScheduleDescription]]:
    """Newest first; deleted ones are not shown. `text` is part of an id or a name; all `labels` must fit."""
    return Call(
        "GET",
        SCHEDULES,
        many(ScheduleDescription, "schedules"),
        query={
            "status": status,
            "workflow_type": workflow_type,
            "owner": owner,
            "source": source,
            "text": text,
            "label": labels,
            "query": query,
            "page_size": page_size,
            "next_page_token": next_page_token,
        },
        cursor="next_page_token",
    )


def describe_schedule(schedule_id: str) -> Call[ScheduleDescription]:
    """One schedule with its next fire times."""
    return Call("GET", SCHEDULE, one(ScheduleDescription), {"schedule_id": schedule_id})


def update_schedule(
    schedule_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
) -> Call[WriteResult]:
    """Replace the parts that are given, and leave the others; an action is merged key by key."""
    return _change("PUT", schedule_id, {**(changes or {}), **fields}, if_version)


def patch_schedule(
    schedule_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
) -> Call[WriteResult]:
    """Merge into the document (RFC 7396): None clears a field."""
    return _change("PATCH", schedule_id, {**(changes or {}), **fields}, if_version)


def delete_schedule(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
    """What has not started is cancelled; history stays readable."""
    return Call("DELETE", SCHEDULE, _written, {"schedule_id": schedule_id}, headers=if_match(if_version))


def pause_schedule(schedule_id: str, *, note: str | None = None, if_version: int | None = None) -> Call[WriteResult]:
    """Nothing fires until it is resumed; what runs goes on."""
    return _tell("pause", schedule_id, given(note=note), if_version)


def resume_schedule(schedule_id: str, *, note: str | None = None, if_version: int | None = None) -> Call[WriteResult]:
    """Goes on from now: what fell into the pause is not made up for."""
    return _tell("resume", schedule_id, given(note=note), if_version)


def trigger_schedule(
    schedule_id: str,
    *,
    overlap_policy: str | None = None,
    even_if_paused: bool | None = None,
    inputs: Any = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Triggered]:
    """Fire once now. With the same `idempotency_key` a second trigger is the first one again."""
    body = given(overlap_policy=overlap_policy, even_if_paused=even_if_paused, inputs=inputs, reason=reason)
    path = f"{SCHEDULE}/trigger"
    return Call("POST", path, one(Triggered), {"schedule_id": schedule_id}, body=body, key=idempotency_key)


def backfill_schedule(
    schedule_id: str,
    start_time: When,
    end_time: When,
    *,
    overlap_policy: str | None = None,
    reverse: bool | None = None,
    dry_run: bool | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Backfilled]:
    """Run what the spec had between `start_time` and before `end_time`; occurrences that have a run are left alone."""
    body = {
        "start_time": rfc3339(start_time),
        "end_time": rfc3339(end_time),
        **given(overlap_policy=overlap_policy, reverse=reverse, dry_run=dry_run, reason=reason),
    }
    path = f"{SCHEDULE}/backfill"
    return Call("POST", path, one(Backfilled), {"schedule_id": schedule_id}, body=body, key=idempotency_key)


def get_schedule_history(
    schedule_id: str, *, limit: int | None = None, after_sequence: int | None = None, uid: str | None = None
) -> Call[Page[HistoryEvent]]:
    """The audit stream, oldest first, also of a deleted schedule; `uid` names an older one of the same id."""
    return Call(
        "GET",
        f"{SCHEDULE}/history",
        many(HistoryEvent, "events", cursor="next_cursor"),
        {"schedule_id": schedule_id},
        query={"limit": limit, "after_sequence": after_sequence, "uid": uid},
        cursor="after_sequence",
    )


def list_schedule_runs(
    schedule_id: str,
    *,
    state: str | Sequence[str] | None = None,
    origin: str | Sequence[str] | None = None,
    include: str | None = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> Call[Page[Run]]:
    """Newest first, also of a deleted schedule; `include="skips"` shows what was skipped among them."""
    return Call(
        "GET",
        f"{SCHEDULE}/runs",
        _run_page,
        {"schedule_id": schedule_id},
        query={
            "state": state,
            "origin": origin,
            "include": include,
            "page_size": page_size,
            "next_page_token": next_page_token,
        },
        cursor="next_page_token",
    )


def preview_schedule(schedule_id: str, *, n: int | None = None, start: When | None = None) -> Call[Page[PreviewRow]]:
    """What each coming occurrence would bring, and why; nothing is written."""
    return Call(
        "GET",
        f"{SCHEDULE}/preview",
        many(PreviewRow, "rows", "preview"),
        {"schedule_id": schedule_id},
        query={"n": n, "from": start},
    )


def explain_schedule(schedule_id: str, at: When) -> Call[Explanation]:
    """Why it did, did not, will or will not fire at this instant."""
    return Call("GET", f"{SCHEDULE}/explain", one(Explanation), {"schedule_id": schedule_id}, query={"at": at})


def get_schedule_health(schedule_id: str) -> Call[ScheduleHealth]:
    """Whether it fires when it should."""
    return Call("GET", f"{SCHEDULE}/health", one(ScheduleHealth), {"schedule_id": schedule_id})


def set_calendars(schedule_id: str, calendars: Sequence[str], *, if_version: int | None = None) -> Call[WriteResult]:
    """All of them must allow a day."""
    return _set("calendars", schedule_id, {"calendars": list(calendars)}, if_version)


def clear_calendars(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
    return _clear("calendars", schedule_id, if_version)


def set_condition(schedule_id: str, condition: Document, *, if_version: int | None = None) -> Call[WriteResult]:
    """What must hold for an occurrence to fire."""
    return _set("condition", schedule_id, {"pre_dispatch_condition": condition}, if_version)


def clear_condition(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
    return _clear("condition", schedule_id, if_version)


def set_rotation(schedule_id: str, inputs: Sequence[Any], *, if_version: int | None = None) -> Call[WriteResult]:
    """Inputs that runs take in turn; begins with the first again."""
    return _set("rotation", schedule_id, {"inputs_rotation": list(inputs)}, if_version)


def clear_rotation(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
    return _clear("rotation", schedule_id, if_version)


def _change(method: str, schedule_id: str, body: Document, version: int | None) -> Call[WriteResult]:
    return Call(method, SCHEDULE, _written, {"schedule_id": schedule_id}, body=body, headers=if_match(version))


def _tell(verb: str, schedule_id: str, body: Document, version: int | None) -> Call[WriteResult]:
    names = {"schedule_id": schedule_id}
    return Call("POST", f"{SCHEDULE}/{verb}", _written, names, body=body, headers=if_match(version))


def _set(part: str, schedule_id: str, body: Document, version: int | None) -> Call[WriteResult]:
    names = {"schedule_id": schedule_id}
    return Call("PUT", f"{SCHEDULE}/{part}", _written, names, body=body, headers=if_match(version))


def _clear(part: str, schedule_id: str, version: int | None) -> Call[WriteResult]:
    return Call("DELETE", f"{SCHEDULE}/{part}", _written, {"schedule_id": schedule_id}, headers=if_match(version))


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


def list_runs(
    *,
    state: str | Sequence[str] | None = None,
    origin: str | Sequence[str] | None = None,
    workflow_type: str | None = None,
    assignee: str | None = None,
    queue: str | None = None,
    schedule_id: str | None = None,
    include: str | None = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> Call[Page[Run]]:
    """The runs of the namespace, newest first."""
    return Call(
        "GET",
        "/api/runs",
        _run_page,
        query={
            "state": state,
            "origin": origin,
            "workflow_type": workflow_type,
            "assignee": assignee,
            "queue": queue,
            "schedule_id": schedule_id,
            "include": include,
            "page_size": page_size,
            "next_page_token": next_page_token,
        },
        cursor="next_page_token",
    )


def get_run(run_id: str) -> Call[Run]:
    return Call("GET", RUN, one(Run), {"run_id": run_id})


def get_run_events(run_id: str, *, limit: int | None = None, after_sequence: int | None = None) -> Call[Page[RunEvent]]:
    """What happened to a run, oldest first."""
    query = {"limit": limit, "after_sequence": after_sequence}
    return Call("GET", f"{RUN}/events", _run_events, {"run_id": run_id}, query, cursor="after_sequence")


def cancel_run(run_id: str) -> Call[RunOutcome]:
    """What has not started ends now; whoever has taken it is asked to stop."""
    return _tell_run("cancel", run_id)


def terminate_run(run_id: str) -> Call[RunOutcome]:
    """Ends now, whoever has it."""
    return _tell_run("terminate", run_id)


def approve_run(run_id: str, *, reason: str | None = None, inputs: Document | None = None) -> Call[RunOutcome]:
    """`inputs` are merged into those of the run: approved, but so."""
    return _tell_run("approve", run_id, given(reason=reason, inputs=inputs))


def reject_run(run_id: str, *, reason: str | None = None) -> Call[RunOutcome]:
    return _tell_run("reject", run_id, given(reason=reason))


def report_run(
    run_id: str,
    state: str,
    *,
    result: Any = None,
    error: str | None = None,
    error_class: str | None = None,
    cost: float | str | None = None,
    tokens: int | None = None,
    tool_calls: int | None = None,
    gate: str | None = None,
    lease_epoch: int | None = None,
    attempt: int | None = None,
    report_token: str | None = None,
) -> Call[RunOutcome]:
    """What became of a run: `running`, `succeeded`, `failed`, `timed_out`, `cancelled`, or `blocked` at a `gate`.

    `lease_epoch`, `attempt` or `report_token` came with the run and say which delivery is meant; a run that
    somebody holds listens to its holder (`lease_epoch`) and to whoever has its `report_token`.
    """
    said = given(
        result=result,
        error=error,
        error_class=error_class,
        cost=cost,
        tokens=tokens,
        tool_calls=tool_calls,
        gate=gate,
        lease_epoch=lease_epoch,
        attempt=attempt,
        report_token=report_token,
    )
    return _tell_run("report", run_id, {"state": state, **said})


def claim_runs(queue: str, *, worker: str | None = None, limit: int | None = None) -> Call[Page[ClaimedRun]]:
    """Take runs from a pull queue, the oldest first; each is the worker's until its lease ends.

    Not repeated when the answer is lost: what was taken comes back by itself when its lease ends.
    """
    body = given(worker=worker, limit=limit)
    path = "/api/queues/{queue}/claim"
    return Call("POST", path, many(ClaimedRun, "runs"), {"queue": queue}, body=body, idempotent=False)


def heartbeat_run(run_id: str, lease_epoch: int) -> Call[Heartbeat]:
    """Renew the lease. Not repeated: the next beat does the same."""
    body = {"lease_epoch": lease_epoch}
    return Call("POST", f"{RUN}/heartbeat", one(Heartbeat), {"run_id": run_id}, body=body, idempotent=False)


def start_run(
    workflow_id: str,
    *,
    idempotency_key: str,
    version: int | str | None = None,
    inputs: Any = None,
    scheduled_for: When | None = None,
) -> Call[RunOutcome]:
    """Start one run that no schedule asked for; the same key again names the same run."""
    body = {"workflow_id": workflow_id, "idempotency_key": idempotency_key}
    said = given(version=version, inputs=inputs, scheduled_for=scheduled_for)
    return Call("POST", "/api/run-launcher/start", one(RunOutcome), body={**body, **said}, key=idempotency_key)


def _run_events(body: Any) -> Page[RunEvent]:
    """The answer does not say whether there is more: whoever wants all asks until nothing comes."""
    page = many(RunEvent, "events")(body)
    return replace(page, cursor=page.items[-1].sequence) if page.items else page


def _tell_run(verb: str, run_id: str, body: Document | None = None) -> Call[RunOutcome]:
    return Call("POST", f"{RUN}/{verb}", one(RunOutcome), {"run_id": run_id}, body=body or {})
