"""What a function knows about the run that it works on, as a task of this process or as the handler of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from horarium.job.capture import current
from horarium.job.run_log import Sink, Stream


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One attempt at a run. Long functions ask `cancelled()` now and then, and return when it is so.

    `nominal` is the time that the occurrence is named after, `due` when it was to begin, `deadline` when this attempt
    must have ended. `attempt` counts the attempts that are known to have failed: 0 at first. `key` is the same for
    every delivery of an attempt, so that what is done under it can be done once.

    `cost`, `tokens` and `tool_calls` may be set by the function; they are kept with the run.
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
    """Where whoever the work is handed on to may say what became of the run; the token is for this attempt."""
    user_id: str | None = None
    """For whom the run is: who made its schedule, or whom an admin named there."""
    search_attributes: Mapping[str, Any] = field(default_factory=dict)
    workflow: Mapping[str, Any] | None = None
    """`workflow_id` and `version` of the stored workflow that this is a run of, or a step of."""
    node_id: str | None = None
    parent_run_id: str | None = None
    root_run_id: str | None = None
    """Of a step of a workflow: which one, of which run, and of which in the end."""
    assignee: Mapping[str, str] | None = None
    """Who works: `type` and `id`, and of a team the `member` whose turn it is."""
    approval_mode: str | None = None
    gates: Sequence[str] = ()
    """What needs a yes on the way: whoever comes to one of them stops and says that it is blocked."""
    approved_gates: Sequence[str] = ()
    """What this run has a yes for already: whoever comes to one of them goes on."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """What the run may use: `runtime_seconds`, `cost`, `tokens`, `tool_calls`, as far as there are limits."""
    allow_tools: Sequence[str] | None = None
    """None = any."""
    global_model_id: str | None = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    _stopped: bool = field(default=False, repr=False)
    _log: Sink | None = field(default=None, repr=False)

    @property
    def inputs(self) -> Any:
        """The same as `input`."""
        return self.input

    def cancelled(self) -> bool:
        """Somebody wants the run to end, or it is no longer ours: whoever returns now has been cancelled."""
        return self._stopped

    def log(self, text: str) -> None:
        """Kept with the run, as what is printed is, also from threads that the function has started."""
        sink = self._log or current()
        if sink is not None:
            sink.write(Stream.LOG, f"{text}\n")

    def __getstate__(self) -> dict[str, Any]:
        """To another process go the values alone; what is said there comes back by another way."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "_log"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_log": None}.items():
            setattr(self, name, value)

    def stop(self) -> None:
        """From any thread; said by whoever runs the function."""
        self._stopped = True
