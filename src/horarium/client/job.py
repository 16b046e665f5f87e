"""What a worker hands to a handler, and what it reports in the end."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass, field
from typing import Any

from horarium.client.call import Call, dump
from horarium.client.run_calls import RunCalls
from horarium.errors import InvalidDefinition
from horarium.policy.retry import RetryCause
from horarium.wire.runs import ClaimedRun, RunReported

NO_HANDLER = "no_handler"
_MAX_ERROR = 4_000
_FRAMES = 10


class Blocked(Exception):
    """Raised by a handler that came to something which needs approval, such as `publish` or `spend`."""

    def __init__(self, gate: str) -> None:
        super().__init__(f"waits for approval of {gate}")
        self.gate = gate


@dataclass(slots=True, eq=False)
class Job:
    """One claimed run in the hands of a worker. Long handlers ask `cancelled()` now and then, and return when it is so.

    `cost`, `tokens` and `tool_calls` may be set by the handler; they go out with the report.
    """

    run: ClaimedRun
    cost: float | str | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    lost: bool = False
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def inputs(self) -> Any:
        return self.run.inputs

    def cancelled(self) -> bool:
        """Somebody wants the run to end, or it is no longer ours."""
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()

    # ── what is said about it in the end ─────────────────────────────────────────────────────────

    def succeeded(self, result: Any) -> Call[RunReported]:
        try:
            dump(result)
        except InvalidDefinition as wrong:
            return self.failed(f"the result {wrong.errors['body'][0]}", RetryCause.CONTRACT_VIOLATED)
        return self._report("succeeded", result=result)

    def failed(self, error: str, error_class: str) -> Call[RunReported]:
        return self._report("failed", error=error[-_MAX_ERROR:], error_class=error_class[:100])

    def raised(self, error: BaseException) -> Call[RunReported]:
        """An exception may name its class itself, in `error_class`, as that of a task may."""
        if isinstance(error, Blocked):
            return self._report("blocked", gate=error.gate)
        if self.cancelled():
            return self._report("cancelled", error=_told(error))
        own = getattr(error, "error_class", None)
        usual = RetryCause.TIMEOUT if isinstance(error, TimeoutError) else RetryCause.PROVIDER_ERROR
        return self.failed(_told(error), own if isinstance(own, str) and own else usual)

    def _report(self, state: str, **said: Any) -> Call[RunReported]:
        return RunCalls.report_run(
            self.run_id,
            state,
            lease_epoch=self.run.lease_epoch,
            cost=self.cost,
            tokens=self.tokens,
            tool_calls=self.tool_calls,
            **said,
        )


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-_FRAMES)).strip()
