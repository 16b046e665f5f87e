"""Calls about runs, including those of workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from horarium.features.runs.model import (
    ClaimedRun,
    Heartbeat,
    Run,
    RunEvent,
    RunLogLine,
    RunLogsKept,
    RunReported,
    RunReports,
    RunRerun,
    RunStarted,
    RunStopped,
    RunSummary,
)
from horarium.features.schedules.change_model import BulkStops
from horarium.platform.client.call import Call, Method, Page, Pages, When, given, many, one

RUN = "/api/runs/{run_id}"
POLL_SECONDS = 1.0
"""Seconds between two polls of a followed run."""


def _run_logs(body: Any) -> Page[RunLogLine]:
    page = many(RunLogLine, "lines", cursor="next_after")(body)
    return page if page.items else replace(page, cursor=None)


class RunCalls:
    @Method
    @staticmethod
    def list_runs(
        *,
        state: str | Sequence[str] | None = None,
        origin: str | Sequence[str] | None = None,
        workflow_type: str | None = None,
        workflow_id: str | None = None,
        assignee: str | None = None,
        queue: str | None = None,
        schedule_id: str | None = None,
        parent_run_id: str | None = None,
        root_run_id: str | None = None,
        finished_after: When | None = None,
        include: str | None = None,
        namespace: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[RunSummary]]:
        """List the runs of the namespace, newest first; with `namespace="*"`, of all namespaces.

        `include="steps"` includes steps of workflows.
        """
        return Call(
            "GET",
            "/api/runs",
            many(RunSummary, "runs"),
            query={
                "state": state,
                "origin": origin,
                "workflow_type": workflow_type,
                "workflow_id": workflow_id,
                "assignee": assignee,
                "queue": queue,
                "schedule_id": schedule_id,
                "parent_run_id": parent_run_id,
                "root_run_id": root_run_id,
                "finished_after": finished_after,
                "include": include,
                "namespace": namespace,
                "page_size": page_size,
                "next_page_token": next_page_token,
            },
            cursor="next_page_token",
        )

    @Method
    @staticmethod
    def get_run(run_id: str) -> Call[Run]:
        return Call("GET", RUN, one(Run), {"run_id": run_id})

    @Method
    @staticmethod
    def get_run_events(
        run_id: str,
        *,
        limit: int | None = None,
        after_sequence: int | None = None,
        own: bool | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[RunEvent]]:
        """List the events of a run and its steps, oldest first. `own`: without its steps."""
        query = {"limit": limit, "after_sequence": after_sequence, "own": own, "next_page_token": next_page_token}
        events = many(RunEvent, "events")
        return Call("GET", f"{RUN}/events", events, {"run_id": run_id}, query, cursor="next_page_token")

    @Method
    @staticmethod
    def bulk_runs(
        action: str,
        *,
        ids: Sequence[str] | None = None,
        schedule_ids: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        states: Sequence[str] | None = None,
        everything: bool | None = None,
        dry_run: bool | None = None,
        limit: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[BulkStops]:
        """Cancel or terminate all open runs that match, at most 100 per request, with one outcome each."""
        lists = {"ids": ids, "schedule_ids": schedule_ids, "states": states}
        chosen = {name: list(each) for name, each in lists.items() if each is not None} | given(labels=labels)
        body = {
            "action": action,
            **given(filter=chosen or None, all=everything, dry_run=dry_run),
            **given(limit=limit, next_page_token=next_page_token),
        }
        return Call("POST", "/api/runs/bulk", one(BulkStops), body=body)

    @Method
    @staticmethod
    def cancel_run(run_id: str) -> Call[RunStopped]:
        """Cancel a run. A run that has not started ends immediately; a running one is asked to stop."""
        return Call("POST", f"{RUN}/cancel", one(RunStopped), {"run_id": run_id}, body={})

    @Method
    @staticmethod
    def rerun_run(
        run_id: str,
        *,
        overlap_policy: str | None = None,
        even_if_paused: bool | None = None,
        inputs: Any = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[RunRerun]:
        """Rerun an ended run: same occurrence, definition and input, unless `inputs` are given."""
        body = given(overlap_policy=overlap_policy, even_if_paused=even_if_paused, inputs=inputs, reason=reason)
        return Call("POST", f"{RUN}/rerun", one(RunRerun), {"run_id": run_id}, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def terminate_run(run_id: str) -> Call[RunStopped]:
        """End a run immediately, even if a worker or target is still busy with it."""
        return Call("POST", f"{RUN}/terminate", one(RunStopped), {"run_id": run_id}, body={})

    @Method
    @staticmethod
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
    ) -> Call[RunReported]:
        """Report the outcome of a run: `running`, `succeeded`, `failed`, `timed_out`, `cancelled`, or `blocked` at a
        `gate`.

        Return the `lease_epoch` or `report_token` that came with the run: only the worker with the lease or the holder
        of the token may report.
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
        body = {"state": state, **said}
        return Call("POST", f"{RUN}/report", one(RunReported), {"run_id": run_id}, body=body)

    @Method
    @staticmethod
    def report_runs(reports: Sequence[Mapping[str, Any]]) -> Call[RunReports]:
        """Report the outcomes of at most 100 runs: objects with `run_id` and the arguments of `report_run`, one outcome
        each.

        Reports about the same run are processed in order. Repeated reports change nothing.
        """
        return Call("POST", "/api/runs/reports", one(RunReports), body={"reports": list(reports)})

    @Method
    @staticmethod
    def claim_runs(
        queue: str,
        *,
        worker: str | None = None,
        limit: int | None = None,
        workflow_types: Sequence[str] | None = None,
    ) -> Call[Page[ClaimedRun]]:
        """Claim runs from a pull queue, highest priority first. The worker holds each run until its lease ends.

        `workflow_types`: types to claim, at most 100. Not repeated if the answer is lost: the runs become available
        again when their leases end.
        """
        body = given(worker=worker, limit=limit, workflow_types=workflow_types)
        path = "/api/queues/{queue}/claim"
        return Call("POST", path, many(ClaimedRun, "runs"), {"queue": queue}, body=body, idempotent=False)

    @Method
    @staticmethod
    def heartbeat_run(run_id: str, lease_epoch: int) -> Call[Heartbeat]:
        """Renew the lease of a run. Not repeated: the next heartbeat has the same effect."""
        body = {"lease_epoch": lease_epoch}
        return Call("POST", f"{RUN}/heartbeat", one(Heartbeat), {"run_id": run_id}, body=body, idempotent=False)

    @Method
    @staticmethod
    def start_run(
        workflow_id: str,
        *,
        idempotency_key: str,
        version: int | str | None = None,
        inputs: Any = None,
        scheduled_for: When | None = None,
        user_id: str | None = None,
    ) -> Call[RunStarted]:
        """Start a run without a schedule. A repeated idempotency key returns the same run."""
        body = {"workflow_id": workflow_id, "idempotency_key": idempotency_key}
        said = given(version=version, inputs=inputs, scheduled_for=scheduled_for, user_id=user_id)
        return Call("POST", "/api/run-launcher/start", one(RunStarted), body={**body, **said}, key=idempotency_key)

    @Method
    @staticmethod
    def get_run_logs(run_id: str, *, after: int | None = None) -> Call[Page[RunLogLine]]:
        """Show the last log lines of a run. `after`: number of the last line received. `follow_run_logs` waits for
        more.
        """
        return Call("GET", f"{RUN}/logs", _run_logs, {"run_id": run_id}, {"after": after}, cursor="after")

    @Method
    @staticmethod
    def add_run_logs(
        run_id: str, lease_epoch: int, lines: Sequence[str | Mapping[str, Any]], *, dropped: int | None = None
    ) -> Call[RunLogsKept]:
        """Append to the logs of a run: texts, or objects with `text`, `stream` (stdout, stderr, log) and `at`.

        Only for the worker that holds the run. Not repeated, to avoid duplicate lines.
        """
        body = {"lease_epoch": lease_epoch, "lines": list(lines), **given(dropped=dropped)}
        return Call("POST", f"{RUN}/logs", one(RunLogsKept), {"run_id": run_id}, body=body, idempotent=False)

    iter_runs = Pages(list_runs)
    iter_run_logs = Pages(get_run_logs)
    iter_run_events = Pages(get_run_events)
