"""The routes of what runs say: read by people, added to by whoever does the work."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.api import examples, run_examples
from horarium.api.answers import Reply
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import LOOK, WORK, Routes
from horarium.ids import id_text
from horarium.instant import to_datetime
from horarium.job.run_log import Stream
from horarium.operations import run_logs
from horarium.wire.bodies import RunLogBody, read_body
from horarium.wire.runs import RunLogLine, RunLogs, RunLogsKept

routes = Routes("/api", tag="runs")


@routes(
    "GET",
    "/runs/{run_id}/logs",
    needs=LOOK,
    summary="Show the logs of a run",
    answer=RunLogs,
    example=RunLogs(run_id=examples.RUN_ID, lines=(run_examples.LOG_LINE,), next_after=1, ended=True),
)
def get_run_logs(
    resources: ResourcesOf,
    caller: CallerOf,
    run_id: str,
    after: Annotated[int, Query(description="Number of the last line received. Returns the lines after it.")] = 0,
) -> Reply:
    """The last lines, oldest first. The setting `run_log_bytes` limits the size kept per run."""
    found = run_logs.read_logs(resources, caller, run_id, after=after)
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
    lines = run_logs.parse_lines(asked.lines)
    kept = run_logs.add_logs(resources, caller, run_id, asked.lease_epoch, lines, dropped=asked.dropped)
    return Reply(RunLogsKept(run_id=run_id.upper(), kept=kept))
