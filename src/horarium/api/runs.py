"""The routes of runs: looking, stopping, reporting, and the pull queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query

from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, Document, ReporterOf, ReportToken, ResourcesOf
from horarium.api.run_views import claimed, run_event, shown, skipped
from horarium.api.views import moment
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.operations import occurrences, queues, reports, runs
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.operations.runs import Run, Stopped
from horarium.schedule.run import Origin, PublicStatus, RunState, public_status
from horarium.store.runs.read import RunFilter

router = APIRouter(prefix="/api", tags=["runs"])

T = TypeVar("T")

States = Annotated[list[str] | None, Query(alias="state", description="one or more states")]
Origins = Annotated[list[str] | None, Query(alias="origin", description="one or more origins")]
Include = Annotated[str | None, Query(description="`skips` shows the occurrences without a run among them")]
PageSize = Annotated[int | None, Query(description="1 to 200")]
PageToken = Annotated[str | None, Query(max_length=8_192)]

# A coarse word stands for several states; where it is also the name of one (`failed`), that one is meant.
_STATES: Mapping[str, frozenset[RunState]] = {
    **{word.lower(): frozenset(s for s in RunState if public_status(s) is word) for word in PublicStatus},
    **{state.value: frozenset({state}) for state in RunState},
}
_ORIGINS: Mapping[str, frozenset[Origin]] = {origin.value: frozenset({origin}) for origin in Origin}


@router.get("/runs")
def list_runs(
    resources: ResourcesOf,
    caller: CallerOf,
    state: States = None,
    origin: Origins = None,
    schedule_id: str | None = None,
    workflow_type: str | None = None,
    workflow: Annotated[str | None, Query(description="the same as workflow_type")] = None,
    assignee: str | None = None,
    queue: str | None = None,
    include: Include = None,
    page_size: PageSize = None,
    next_page_token: PageToken = None,
) -> Answer:
    """Newest first."""
    wanted = _wanted(state, origin, workflow_type or workflow, assignee, queue)
    if schedule_id is None and _with_skips(include):
        raise InvalidDefinition({"include": ["skips are shown schedule by schedule; give a schedule_id"]})
    return _listed(resources, caller, wanted, schedule_id, include, page_size, next_page_token)


@router.get("/schedules/{schedule_id}/runs")
def runs_of_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    state: States = None,
    origin: Origins = None,
    include: Include = None,
    page_size: PageSize = None,
    next_page_token: PageToken = None,
) -> Answer:
    """Also of a schedule that was deleted."""
    return _listed(resources, caller, _wanted(state, origin), schedule_id, include, page_size, next_page_token)


@router.get("/runs/{run_id}")
def get(resources: ResourcesOf, caller: CallerOf, run_id: str) -> Answer:
    return Answer(shown(runs.get(resources, caller, run_id)))


@router.get("/runs/{run_id}/events")
def events(
    resources: ResourcesOf,
    caller: CallerOf,
    run_id: str,
    limit: Annotated[int, Query(description="1 to 1000")] = 500,
    after_sequence: int = 0,
) -> Answer:
    found = runs.events(resources, caller, run_id, after_sequence=after_sequence, limit=limit)
    return Answer({"run_id": run_id.upper(), "events": [run_event(each) for each in found]})


@router.post("/runs/{run_id}/cancel")
@idempotent
def cancel(resources: ResourcesOf, caller: CallerOf, run_id: str) -> Answer:
    return _stopped(runs.cancel(resources, caller, run_id))


@router.post("/runs/{run_id}/terminate")
@idempotent
def terminate(resources: ResourcesOf, caller: CallerOf, run_id: str) -> Answer:
    return _stopped(runs.terminate(resources, caller, run_id))


@router.post("/runs/{run_id}/report")
@idempotent
def report(resources: ResourcesOf, caller: ReporterOf, run_id: str, body: Document, token: ReportToken) -> Answer:
    """By a worker with a token of its own, or by the target with the `report_token` that came with the run."""
    said = reports.parse_report(body)
    done = reports.report(resources, caller, run_id, said if token is None else replace(said, token=token))
    return Answer({"run_id": id_text(done.run_id), "outcome": done.outcome.value, "state": done.state.value})


@router.post("/runs/{run_id}/heartbeat")
def heartbeat(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Answer:
    fields = Fields(body)
    epoch = fields.require("lease_epoch", fields.number("lease_epoch"))
    fields.check()
    assert epoch is not None  # or check would have raised
    beat = queues.heartbeat(resources, caller, run_id, epoch)
    return Answer({"lease_until": moment(beat.lease_until), "stop_requested": beat.stop_requested})


@router.post("/queues/{queue}/claim")
def claim(resources: ResourcesOf, caller: CallerOf, queue: str, body: Document) -> Answer:
    fields = Fields(body)
    worker = fields.text("worker", most=255)
    limit = fields.number("limit")
    fields.check()
    taken = queues.claim(resources, caller, queue, worker=worker, limit=1 if limit is None else limit)
    return Answer({"queue": queue, "runs": [claimed(each) for each in taken]})


def _wanted(
    state: list[str] | None,
    origin: list[str] | None,
    workflow: str | None = None,
    assignee: str | None = None,
    queue: str | None = None,
) -> RunFilter:
    return RunFilter(_some("state", state, _STATES), _some("origin", origin, _ORIGINS), workflow, assignee, queue)


def _with_skips(include: str | None) -> bool:
    if include not in (None, "", "skips"):
        raise InvalidDefinition({"include": ["must be skips"]})
    return include == "skips"


def _listed(
    resources: Resources,
    caller: Caller,
    wanted: RunFilter,
    schedule_id: str | None,
    include: str | None,
    page_size: int | None,
    token: str | None,
) -> Answer:
    if schedule_id is not None and _with_skips(include):
        ledger = occurrences.list_occurrences(
            resources, caller, schedule_id, wanted, page_size=page_size, next_page_token=token
        )
        rows = [shown(each) if isinstance(each, Run) else skipped(each) for each in ledger.rows]
        return Answer({"runs": rows, "next_page_token": ledger.next_page_token})
    page = runs.list_runs(
        resources, caller, wanted, schedule_id=schedule_id, page_size=page_size, next_page_token=token
    )
    return Answer({"runs": [shown(run) for run in page.runs], "next_page_token": page.next_page_token})


def _stopped(done: Stopped) -> Answer:
    return Answer({"run_id": id_text(done.run_id), "outcome": done.outcome.value, "state": done.state.value})


def _some(name: str, words: list[str] | None, known: Mapping[str, frozenset[T]]) -> frozenset[T] | None:
    """Each word may stand for several; none at all stands for any."""
    if not words:
        return None
    if any(word.lower() not in known for word in words):
        raise InvalidDefinition({name: [f"must be one of {', '.join(known)}"]})
    return frozenset().union(*(known[word.lower()] for word in words))
