"""A claimed run: the job that its handler receives, and the final report."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from horarium.client.call import Call, dump
from horarium.client.run_calls import RunCalls
from horarium.clock import SystemClock
from horarium.errors import InvalidDefinition
from horarium.instant import to_rfc3339
from horarium.job.job import Job
from horarium.job.run_log import Batch, RunLog
from horarium.policy.retry import RetryCause
from horarium.wire.runs import ClaimedRun, RunLogsKept, RunReported

__all__ = ["NO_HANDLER", "Blocked", "HeldRun", "Job", "job_of"]

NO_HANDLER = "no_handler"
_MAX_ERROR = 4_000
_FRAMES = 10


class Blocked(Exception):
    """Raise this in a handler when the run reaches a gate that needs approval, such as `publish` or `spend`."""

    def __init__(self, gate: str) -> None:
        super().__init__(f"needs approval of the gate {gate}")
        self.gate = gate


def job_of(run: ClaimedRun, log: RunLog | None = None) -> Job:
    """A run that was claimed has all its times; what a server left out is as of its birth."""
    return Job(
        run_id=run.run_id,
        namespace=run.namespace,
        schedule_id=run.schedule_id,
        key=run.key or "",
        nominal=run.nominal or run.created_at,
        due=run.due or run.created_at,
        deadline=run.deadline or run.lease_until,
        attempt=run.attempt,
        input=run.inputs,
        origin=run.origin,
        instance_id=run.workflow_instance_id,
        workflow_type=run.workflow_type,
        labels=run.labels,
        memo=run.memo,
        report_url=run.report_url,
        report_token=run.report_token,
        user_id=run.user_id,
        search_attributes=run.search_attributes,
        workflow=run.raw.get("workflow") or run.raw.get("step_of"),
        node_id=run.node_id,
        parent_run_id=run.parent_run_id,
        root_run_id=run.root_run_id,
        assignee=run.raw.get("assignee"),
        approval_mode=run.approval_mode,
        gates=run.gates,
        approved_gates=run.approved_gates,
        limits=run.limits,
        allow_tools=run.allow_tools,
        global_model_id=run.global_model_id,
        _log=log,
    )


@dataclass(slots=True, eq=False)
class HeldRun:
    """`lost`: the lease is over, and what is said about the run is no longer ours to say."""

    run: ClaimedRun
    job: Job
    log: RunLog | None = None
    lost: bool = False

    @classmethod
    def of(cls, run: ClaimedRun, log_bytes: int) -> HeldRun:
        """With `log_bytes` 0 nothing is kept of what its handler says."""
        log = RunLog(SystemClock().now, log_bytes) if log_bytes else None
        return cls(run, job_of(run, log), log)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    # ── what it says meanwhile ───────────────────────────────────────────────────────────────────

    def waiting_lines(self, *, last: bool = False) -> Batch | None:
        """Lines that the handler has written since the last call; None = there are none."""
        if self.log is None or not self.log.touched:
            return None
        batch = self.log.peek(last=last)
        return batch if batch.lines else None

    def lines_call(self, batch: Batch) -> Call[RunLogsKept]:
        lines = [{"at": to_rfc3339(line.at), "stream": line.stream, "text": line.text} for line in batch.lines]
        return RunCalls.add_run_logs(self.run_id, self.run.lease_epoch, lines, dropped=batch.dropped or None)

    # ── what is said about it in the end ─────────────────────────────────────────────────────────

    def returned(self, result: Any) -> Call[RunReported]:
        """A handler that returns after it was asked to stop has stopped; what it has got so far is kept."""
        try:
            dump(result)
        except InvalidDefinition as wrong:
            return self.failed(f"the result {wrong.errors['body'][0]}", RetryCause.CONTRACT_VIOLATED)
        return self._report("cancelled" if self.job.cancelled() else "succeeded", result=result)

    def failed(self, error: str, error_class: str) -> Call[RunReported]:
        return self._report("failed", error=error[-_MAX_ERROR:], error_class=error_class[:100])

    def raised(self, error: BaseException) -> Call[RunReported]:
        """An exception may name its class itself, in `error_class`, as that of a task may."""
        if isinstance(error, Blocked):
            return self._report("blocked", gate=error.gate)
        if self.job.cancelled():
            return self._report("cancelled", error=_told(error))
        own = getattr(error, "error_class", None)
        usual = RetryCause.TIMEOUT if isinstance(error, TimeoutError) else RetryCause.PROVIDER_ERROR
        return self.failed(_told(error), own if isinstance(own, str) and own else usual)

    def _report(self, state: str, **said: Any) -> Call[RunReported]:
        return RunCalls.report_run(
            self.run_id,
            state,
            lease_epoch=self.run.lease_epoch,
            cost=self.job.cost,
            tokens=self.job.tokens,
            tool_calls=self.job.tool_calls,
            **said,
        )


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-_FRAMES)).strip()
