"""Routes that start, report, rerun and log runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from horarium.core.document.states import RunState
from horarium.errors import InvalidDefinition
from horarium.features.runs import events, occurrences, report_batches, starts
from horarium.features.runs import examples as runs_examples
from horarium.features.runs.model import (
    ReportsBody,
    RunLogLine,
    RunLogs,
    RunLogsKept,
    RunReportOutcome,
    RunReports,
    RunRerun,
    RunStarted,
)
from horarium.features.runs.report_batches import Outcome
from horarium.features.runs.reports import Answered
from horarium.instant import from_datetime, to_datetime
from horarium.platform.bodies import RerunBody, RunLogBody, StartBody, read_body
from horarium.platform.database.errors import shown
from horarium.platform.http import examples
from horarium.platform.http.requests import CallerOf, CarrierOf, Document, ResourcesOf, same_namespace
from horarium.platform.http.responses import Reply, status_of
from horarium.platform.http.routing import LOOK, OPERATE, WORK, WRITE, Routes
from horarium.platform.ids import id_text
from horarium.platform.run_log import Stream
from horarium.platform.wire import ReportOutcome, StartOutcome, TriggerOutcome

routes = Routes("/api", tag="runs")

_EXAMPLE = RunReportOutcome(
    run_id=examples.RUN_ID, status=200, outcome=ReportOutcome.RECORDED, state=RunState.SUCCEEDED
)
_LONGEST_MESSAGE = 1_000


@routes(
    "POST",
    "/runs/reports",
    needs=WORK,
    summary="Report the outcomes of many runs",
    body=ReportsBody,
    sends={"reports": [{"run_id": examples.RUN_ID, "state": "succeeded", "report_token": "hrt_0.MTIz"}]},
    answer=RunReports,
    example=RunReports(outcomes=(_EXAMPLE,)),
    repeatable=False,  # each report by itself is: made again it changes nothing
)
def report_runs(resources: ResourcesOf, carrier: CarrierOf, body: Document) -> Reply:
    """At most 100 reports, each with the `lease_epoch` or `report_token` of its run. Each has its own outcome.

    Callers without a token authenticate with the report tokens; these runs may belong to any namespace. Repeated
    reports change nothing.
    """
    given = body.get("reports")
    unknown = sorted(name for name in body if name != "reports")
    if unknown:
        raise InvalidDefinition({name[:100]: ["unknown field"] for name in unknown[:20]})
    if not isinstance(given, list):
        raise InvalidDefinition({"reports": ["must be a list"]})
    outcomes = report_batches.report_many(resources, carrier, given)
    return Reply(RunReports(outcomes=tuple(map(_outcome, given, outcomes))))


def _outcome(document: Any, outcome: Outcome) -> RunReportOutcome:
    if isinstance(outcome, Answered):
        run_id = id_text(outcome.run_id)
        return RunReportOutcome(run_id=run_id, status=200, outcome=outcome.outcome, state=outcome.state)
    named = document.get("run_id") if isinstance(document, dict) else None
    return RunReportOutcome(
        run_id=named[:64] if isinstance(named, str) else "",
        status=status_of(outcome),
        outcome=None,
        state=None,
        reason=outcome.reason,
        message=shown(outcome)[:_LONGEST_MESSAGE],
    )


@routes(
    "GET",
    "/runs/{run_id}/logs",
    needs=LOOK,
    summary="Show the logs of a run",
    answer=RunLogs,
    example=RunLogs(run_id=examples.RUN_ID, lines=(runs_examples.LOG_LINE,), next_after=1, ended=True),
)
def get_run_logs(
    resources: ResourcesOf,
    caller: CallerOf,
    run_id: str,
    after: Annotated[int, Query(description="Number of the last line received. Returns the lines after it.")] = 0,
) -> Reply:
    """The last lines, oldest first. The setting `run_log_bytes` limits the size kept per run."""
    found = events.read_logs(resources, caller, run_id, after=after)
    lines = tuple(
        RunLogLine(
            number=line.number,
            at=to_datetime(line.at),
            attempt=line.attempt,
            stream=Stream(line.stream),
            text=line.text,
        )
        for line in found.lines
    )
    following = lines[-1].number if lines else after
    return Reply(RunLogs(run_id=id_text(found.run_id), lines=lines, next_after=following, ended=found.ended))


@routes(
    "POST",
    "/runs/{run_id}/logs",
    needs=WORK,
    summary="Append to the logs of a run",
    body=RunLogBody,
    sends={"lease_epoch": 1, "lines": [{"stream": "stdout", "text": "42 rows were written"}]},
    answer=RunLogsKept,
    example=RunLogsKept(run_id=examples.RUN_ID, kept=1),
    repeatable=False,  # an answer to remember for each batch of lines would be larger than they are
)
def add_run_logs(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Reply:
    """For the worker that holds the run. A text with line breaks becomes several lines."""
    asked = read_body(RunLogBody, body)
    lines = events.parse_lines(asked.lines)
    kept = events.add_logs(resources, caller, run_id, asked.lease_epoch, lines, dropped=asked.dropped)
    return Reply(RunLogsKept(run_id=run_id.upper(), kept=kept))


rerun_routes = Routes("/api/runs/{run_id}", tag="runs")


@rerun_routes(
    "POST",
    "/rerun",
    needs=OPERATE,
    summary="Rerun an ended run",
    body=RerunBody,
    sends={"reason": "the target was down"},
    answer=RunRerun,
    example=RunRerun(
        rerun_of=examples.RUN_ID,
        run_id=examples.UID,
        schedule_id="nightly-report",
        namespace="default",
        outcome=TriggerOutcome.TRIGGERED,
        workflow_id=f"schedule:nightly-report:manual:{examples.UID}",
        state=RunState.READY,
    ),
)
def rerun_run(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Reply:
    """Creates a run for the same occurrence with the same input and definition. Checks the same guards as a manual
    trigger. Changed `inputs` require the permission `write`.
    """
    asked = read_body(RerunBody, body)
    same_namespace(caller, asked.namespace)
    done = occurrences.rerun(
        resources,
        caller.because(asked.reason).asking_to_skip(asked.approval_status, asked.skip_approval),
        run_id,
        overlap_policy=asked.overlap_policy,
        even_if_paused=asked.even_if_paused,
        inputs=asked.inputs,
    )
    return Reply(
        RunRerun(
            rerun_of=id_text(done.rerun_of),
            run_id=None if done.run_id is None else id_text(done.run_id),
            schedule_id=done.schedule_id,
            namespace=caller.namespace,
            outcome=done.outcome,
            workflow_id=done.instance_id,
            state=done.state,
            reason=done.reason,
            detail=done.detail,
            buffer_depth=done.buffer_depth,
        )
    )


launch_routes = Routes(tag="runs")

_START: dict[str, Any] = {
    "needs": WRITE,
    "summary": "Start a run without a schedule",
    "body": StartBody,
    "sends": examples.START,
    "answer": RunStarted,
    "status": 201,
    "also": (200,),
    "example": runs_examples.STARTED,
    "marks": {"outcome": StartOutcome.ALREADY_STARTED},
}


@launch_routes("POST", "/api/run-launcher/start", **_START)
@launch_routes("POST", "/run-launcher/start", name="start_run_without_prefix", **_START)
def start_run(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """A repeated idempotency key returns the same run. The key is kept as long as the run."""
    asked = read_body(StartBody, body)
    scheduled_for = None if asked.scheduled_for is None else from_datetime(asked.scheduled_for)
    done = starts.start_run(
        resources,
        caller.asking_to_skip(asked.approval_status, asked.skip_approval),
        starts.action_of_start(asked),
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
