"""The routes of runs: looking, stopping, reporting, and the pull queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import Query
from starlette.responses import Response

from horarium.core.document.states import STATE_GROUPS, Origin, PublicStatus, RunState, public_status
from horarium.core.policy.queue import shown as shown_value
from horarium.errors import InvalidDefinition
from horarium.features.forecast.routes import MOMENT, written
from horarium.features.resources import Resources
from horarium.features.runs import events, occurrences, service
from horarium.features.runs import examples as runs_examples
from horarium.features.runs import reports as runs_reports
from horarium.features.runs.model import ClaimedRuns, Heartbeat, Run, RunEvents, RunList, RunReported, RunStopped
from horarium.features.runs.occurrences import Skipped
from horarium.features.runs.rows import RunFilter
from horarium.features.runs.service import Stopped
from horarium.features.runs.views import claimed, run_event, shown, skipped, summary
from horarium.instant import Instant, to_datetime
from horarium.platform.bodies import ClaimBody, HeartbeatBody, ReportBody, read_body
from horarium.platform.caller import Caller
from horarium.platform.http import examples
from horarium.platform.http.limits import cut, readable, within_bytes
from horarium.platform.http.requests import (
    CallerOf,
    Document,
    ListCallerOf,
    PusherOf,
    PushToken,
    ReporterOf,
    ReportToken,
    ResourcesOf,
)
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import LOOK, OPERATE, READ, WORK, Routes
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Answer

routes = Routes("/api", tag="runs")

T = TypeVar("T")

States = Annotated[
    list[str] | None,
    Query(
        alias="state",
        description=f"One or more states, or {', '.join(STATE_GROUPS)} (failed, timed_out, launch_failed, unknown).",
    ),
]
Origins = Annotated[list[str] | None, Query(alias="origin", description="One or more origins.")]
Include = Annotated[
    str | None,
    Query(description="`skips` includes occurrences without a run, `steps` includes steps of workflows."),
]
WorkflowId = Annotated[str | None, Query(description="ID of a workflow. Same as workflow_type.")]
AssigneeOf = Annotated[
    str | None,
    Query(alias="assignee", description="ID of an agent or a team. For an agent, includes its runs for teams."),
]
FinishedAfter = Annotated[str | None, Query(description=f"Only runs that ended at or after this time: {MOMENT}.")]
PageSize = Annotated[int | None, Query(description="Page size, 1 to 200.")]
PageToken = Annotated[str | None, Query(max_length=8_192)]

_SKIPS, _STEPS = "skips", "steps"
# A coarse word stands for several states; where it is also the name of one (`failed`), that one is meant.
_STATES: Mapping[str, frozenset[RunState]] = {
    **{word.lower(): frozenset(s for s in RunState if public_status(s) is word) for word in PublicStatus},
    **{state.value: frozenset({state}) for state in RunState},
    **STATE_GROUPS,
}
_ORIGINS: Mapping[str, frozenset[Origin]] = {origin.value: frozenset({origin}) for origin in Origin}


@routes(
    "GET",
    "/runs",
    needs=READ,
    summary="List runs",
    answer=RunList,
    example=RunList(runs=(runs_examples.SUMMARY,), next_page_token=None),
)
def list_runs(
    resources: ResourcesOf,
    caller: ListCallerOf,
    state: States = None,
    origin: Origins = None,
    schedule_id: str | None = None,
    workflow_type: str | None = None,
    workflow: Annotated[str | None, Query(description="Same as workflow_type.")] = None,
    workflow_id: WorkflowId = None,
    assignee: AssigneeOf = None,
    queue: str | None = None,
    parent_run_id: Annotated[str | None, Query(description="Only steps of this run.")] = None,
    root_run_id: Annotated[str | None, Query(description="Only steps of this run, at all depths.")] = None,
    finished_after: FinishedAfter = None,
    include: Include = None,
    page_size: PageSize = None,
    next_page_token: PageToken = None,
) -> Reply:
    """Newest first, without inputs and results. Steps of workflows are listed only on request. `namespace=*` cannot be
    combined with `schedule_id`.
    """
    wanted = replace(
        _wanted(state, origin, workflow_id or workflow_type or workflow, assignee, queue),
        finished_after=_instant(resources, finished_after),
        with_steps=include == _STEPS,
        parent=None if parent_run_id is None else parse_id(parent_run_id, "parent_run_id"),
        root=None if root_run_id is None else parse_id(root_run_id, "root_run_id"),
    )
    if schedule_id is None and _with_skips(include):
        raise InvalidDefinition({"include": ["skips requires a schedule_id"]})
    return _listed(resources, caller, wanted, schedule_id, include, page_size, next_page_token)


@routes(
    "GET",
    "/schedules/{schedule_id}/runs",
    needs=READ,
    summary="List the runs of a schedule",
    answer=RunList,
    example=RunList(runs=(runs_examples.SUMMARY,), next_page_token=None),
)
def list_schedule_runs(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    state: States = None,
    origin: Origins = None,
    workflow_id: WorkflowId = None,
    assignee: AssigneeOf = None,
    finished_after: FinishedAfter = None,
    include: Include = None,
    page_size: PageSize = None,
    next_page_token: PageToken = None,
) -> Reply:
    """Newest first, with outcome, cost, approval and duration. Also available for deleted schedules."""
    wanted = replace(
        _wanted(state, origin, workflow_id, assignee),
        finished_after=_instant(resources, finished_after),
        with_steps=include == _STEPS,
    )
    return _listed(resources, caller, wanted, schedule_id, include, page_size, next_page_token)


@routes("GET", "/runs/{run_id}", needs=LOOK, summary="Show a run", answer=Run, example=runs_examples.RUN)
def get_run(resources: ResourcesOf, caller: CallerOf, run_id: str) -> Reply:
    return Reply(shown(service.get(resources, caller, run_id)))


@routes(
    "GET",
    "/runs/{run_id}/events",
    needs=LOOK,
    summary="List the events of a run",
    answer=RunEvents,
    example=RunEvents(run_id=examples.RUN_ID, events=(runs_examples.RUN_EVENT,), next_page_token=None),
)
def get_run_events(
    resources: ResourcesOf,
    caller: CallerOf,
    run_id: str,
    limit: Annotated[int, Query(description="Page size, 1 to 1000.")] = 500,
    after_sequence: Annotated[int, Query(description="Only the run's own events after this sequence number.")] = 0,
    own: Annotated[bool, Query(description="Omit the events of its steps.")] = False,
    next_page_token: PageToken = None,
) -> Reply:
    """Oldest first. The events of a workflow run include those of its steps, in the order of recording."""
    page = events.events(
        resources,
        caller,
        run_id,
        own=own,
        after_sequence=after_sequence,
        next_page_token=next_page_token,
        limit=limit,
    )
    told, is_whole = cut(map(run_event, page.events))
    more = page.more or not is_whole
    token = page.token_after(page.events[len(told) - 1]) if more else None
    return Reply(RunEvents(run_id=run_id.upper(), events=told, has_more=more, next_page_token=token))


@routes(
    "POST",
    "/runs/{run_id}/cancel",
    needs=OPERATE,
    summary="Cancel a run",
    answer=RunStopped,
    example=runs_examples.CANCELLED,
)
def cancel_run(resources: ResourcesOf, caller: CallerOf, run_id: str) -> Reply:
    """A run that has not started ends immediately. A running one is asked to stop."""
    return _stopped(service.cancel(resources, caller, run_id))


@routes(
    "POST",
    "/runs/{run_id}/terminate",
    needs=OPERATE,
    summary="Terminate a run",
    answer=RunStopped,
    example=runs_examples.TERMINATED,
    planned=True,
)
def terminate_run(resources: ResourcesOf, caller: CallerOf, run_id: str) -> Reply:
    """The run ends immediately, even if a worker or target is still busy with it."""
    return _stopped(service.terminate(resources, caller, run_id))


@routes(
    "POST",
    "/runs/{run_id}/report",
    needs=WORK,
    summary="Report the outcome of a run",
    body=ReportBody,
    sends={"state": "succeeded", "result": {"rows": 3}, "cost": 0.25, "tokens": 700},
    answer=RunReported,
    example=runs_examples.REPORTED,
)
def report_run(resources: ResourcesOf, caller: ReporterOf, run_id: str, body: Document, token: ReportToken) -> Reply:
    """For the worker that claimed the run, with its `lease_epoch`, or for the target, with the `report_token` it
    received.
    """
    said = runs_reports.parse_report(body)
    done = runs_reports.report(resources, caller, run_id, said if token is None else replace(said, token=token))
    return Reply(RunReported(run_id=id_text(done.run_id), outcome=done.outcome, state=done.state))


@routes(
    "POST",
    "/runs/{run_id}/pushes",
    needs=WORK,
    summary="Notify about an update of a run",
    status=204,
    example=None,
    repeatable=False,  # it is a hint: who follows the run asks its agent, and that may be done at any time
)
def push_run(resources: ResourcesOf, caller: PusherOf, run_id: str, token: PushToken = None) -> Response:
    """For the agent that received a prompt (A2A push notifications). The body is ignored; Horarium queries the agent
    for the outcome. The token was sent with the prompt.
    """
    events.push(resources, caller, run_id, token)
    return Response(status_code=204)


@routes(
    "POST",
    "/runs/{run_id}/heartbeat",
    needs=WORK,
    summary="Renew the lease of a run",
    body=HeartbeatBody,
    sends={"lease_epoch": 1},
    answer=Heartbeat,
    example=runs_examples.BEAT,
    repeatable=False,  # a lease is good for the moment only
)
def heartbeat_run(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Reply:
    beat = runs_reports.heartbeat(resources, caller, run_id, read_body(HeartbeatBody, body).lease_epoch)
    return Reply(Heartbeat(lease_until=to_datetime(beat.lease_until), stop_requested=beat.stop_requested))


@routes(
    "POST",
    "/queues/{queue}/claim",
    needs=WORK,
    summary="Claim runs from a queue",
    body=ClaimBody,
    sends={"worker": "w1", "limit": 1, "workflow_types": ["report"]},
    answer=ClaimedRuns,
    example=ClaimedRuns(queue="reports", runs=(runs_examples.CLAIMED,)),
    repeatable=False,  # what was taken comes back by itself when its lease ends
)
def claim_runs(resources: ResourcesOf, caller: CallerOf, queue: str, body: Document) -> Reply:
    """Highest priority first, then oldest. The worker holds each run until its lease ends. With `workflow_types`, only
    runs of these types are claimed.
    """
    asked = read_body(ClaimBody, body)
    taken = runs_reports.claim(
        resources,
        caller,
        queue,
        worker=asked.worker,
        limit=asked.limit,
        workflow_types=asked.workflow_types,
    )
    return Reply(ClaimedRuns(queue=queue, runs=tuple(claimed(each) for each in taken)))


def _wanted(
    state: list[str] | None,
    origin: list[str] | None,
    workflow: str | None = None,
    assignee: str | None = None,
    queue: str | None = None,
) -> RunFilter:
    return RunFilter(_some("state", state, _STATES), _some("origin", origin, _ORIGINS), workflow, assignee, queue)


def _instant(resources: Resources, text: str | None) -> Instant | None:
    moment = written("finished_after", text, None)
    return None if moment is None else moment.instant(resources.clock.now())


def _with_skips(include: str | None) -> bool:
    if include not in (None, "", _SKIPS, _STEPS):
        raise InvalidDefinition({"include": [f"must be {_SKIPS} or {_STEPS}"]})
    return include == _SKIPS


def _listed(
    resources: Resources,
    caller: Caller,
    wanted: RunFilter,
    schedule_id: str | None,
    include: str | None,
    page_size: int | None,
    token: str | None,
) -> Reply:
    if schedule_id is not None and _with_skips(include):
        found, rows = within_bytes(
            page_size,
            lambda most: occurrences.list_occurrences(
                resources, caller, schedule_id, wanted, page_size=most, next_page_token=token
            ),
            lambda found: _occurrences(resources, found.rows),
        )
        return Reply(RunList(runs=rows, next_page_token=found.next_page_token))
    page, rows = within_bytes(
        page_size,
        lambda most: service.list_runs(
            resources, caller, wanted, schedule_id=schedule_id, page_size=most, next_page_token=token
        ),
        lambda page: readable(resources, "run", page.runs, summary, lambda each: each.row.run_id),
    )
    return Reply(RunList(runs=rows, next_page_token=page.next_page_token))


def _occurrences(resources: Resources, found: Iterable[service.RunView | Skipped]) -> Iterator[Answer]:
    for each in found:
        if isinstance(each, service.RunView):
            yield from readable(resources, "run", (each,), summary, lambda run: run.row.run_id)
        else:
            yield from readable(resources, "event", (each,), skipped, lambda row: row.event.sequence)


def _stopped(done: Stopped) -> Reply:
    return Reply(RunStopped(run_id=id_text(done.run_id), outcome=done.outcome, state=done.state))


def _some(name: str, words: list[str] | None, known: Mapping[str, frozenset[T]]) -> frozenset[T] | None:
    """Each word may stand for several; none at all stands for any."""
    if not words:
        return None
    for word in words:
        if word.lower() not in known:
            raise InvalidDefinition({name: [f"must be one of {', '.join(known)}, not {shown_value(word)}"]})
    return frozenset().union(*(known[word.lower()] for word in words))
