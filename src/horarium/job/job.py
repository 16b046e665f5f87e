"""The context of a run, for a task of this process or the handler of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from horarium.job.capture import current
from horarium.job.run_log import Sink, Stream


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One attempt of a run. A long function checks `cancelled()` regularly and returns if it is true.

    `nominal` is the scheduled time of the occurrence, `due` its start time with jitter, `deadline` the end of this
    attempt. `attempt` is the number of failed attempts, 0 at first. `key` is the idempotency key of the attempt: it is
    the same for each delivery.

    The function may set `cost`, `tokens` and `tool_calls`, which are stored with the run.
    """

    run_id: str
    namespace: str
    schedule_id: str | None
    key: str
    nominal: datetime
    due: datetime
    deadline: datetime
    attempt: int = 0
    input: Any = None
    origin: str = ""
    instance_id: str | None = None
    workflow_type: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Any] = field(default_factory=dict)
    report_url: str | None = None
    report_token: str | None = field(default=None, repr=False)
    """URL and token with which another system reports the outcome of the run; the token is for this attempt."""
    user_id: str | None = None
    """The user of the run: the creator of its schedule, or the user that an admin set."""
    search_attributes: Mapping[str, Any] = field(default_factory=dict)
    workflow: Mapping[str, Any] | None = None
    """`workflow_id` and `version` of the stored workflow of the run or step."""
    node_id: str | None = None
    parent_run_id: str | None = None
    root_run_id: str | None = None
    """The node of a workflow step, the run that contains it, and the outermost run."""
    assignee: Mapping[str, str] | None = None
    """The assignee: `type` and `id`, and for a team the selected `member`."""
    approval_mode: str | None = None
    gates: Sequence[str] = ()
    """The gates that require approval: a function that reaches one stops and reports that it is blocked."""
    approved_gates: Sequence[str] = ()
    """The gates that are approved for this run."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The limits of the run: `runtime_seconds`, `cost`, `tokens`, `tool_calls`, as far as set."""
    allow_tools: Sequence[str] | None = None
    """The allowed tools; None = any."""
    global_model_id: str | None = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    _stopped: bool = field(default=False, repr=False)
    _log: Sink | None = field(default=None, repr=False)

    @property
    def inputs(self) -> Any:
        """Return `input`."""
        return self.input

    def cancelled(self) -> bool:
        """Return whether the run should stop: it is being cancelled, or its lease is lost."""
        return self._stopped

    def log(self, text: str) -> None:
        """Append to the log of the run; also works in threads that the function has started."""
        sink = self._log or current()
        if sink is not None:
            sink.write(Stream.LOG, f"{text}\n")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the values without the log, which a child process sends separately."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "_log"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_log": None}.items():
            setattr(self, name, value)

    def stop(self) -> None:
        """Ask the function to stop; callable from any thread."""
        self._stopped = True
