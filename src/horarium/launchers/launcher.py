"""The interface of a launcher: it takes one run, gives it to its target, and returns one of the outcomes.

A launcher never raises because of its target, keeps to the request's deadline, stops when `request.cancelled` is
set, and opens no transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from horarium.core.decision.run_policies import Terms
from horarium.core.document.assignee import AgentContext, AgentProtocol
from horarium.core.document.definition import Action
from horarium.core.document.json_values import Json
from horarium.core.document.reader import Kind
from horarium.core.lifecycle.outcome import Outcome, StillRunning, Unknown
from horarium.instant import SECOND, Instant
from horarium.platform.clock import Clock
from horarium.platform.run_log import RunLog


@dataclass(frozen=True, slots=True)
class AgentLine:
    """The address of an agent and what a call to it carries.

    `allowed_hosts` are other hosts that its card may point to; what goes there goes without the token. `token_hosts`
    are the pins of the token, None = any. `input_hosts` are those of each pinned secret in the prompt itself: an
    address is called only if all of them allow it.
    """

    agent_id: str
    url: str | None
    protocol: AgentProtocol = AgentProtocol.AUTO
    context: AgentContext = AgentContext.FRESH
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    token_hosts: tuple[str, ...] | None = None
    input_hosts: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class CardSeen:
    """Result of fetching an agent's card: `card` is the document, None = it is unavailable (`error`).

    `dialect` is the protocol version of the reply; None = there was no conversation. `answered`: the agent responds,
    with a card or without.
    """

    card: Mapping[str, Json] | None
    etag: str | None = None
    error: str | None = None
    dialect: str | None = None
    answered: bool = True


class Holder(Protocol):
    """Callbacks of a launch in progress: they record its state and tell why it is to stop. None of them ever raises."""

    async def taken(self, reference: str) -> None:
        """The target has it under this name: kept at once, so that whoever comes after us finds it."""

    async def seen(self, card: CardSeen) -> None: ...

    def stop_wanted(self) -> bool:
        """When `cancelled` is set: whether somebody wants the work to end, or this process only lets go of it."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One delivery of a run. A redelivery repeats `key`; a retry after a known failure carries `key:n`."""

    run_id: str
    namespace: str
    key: str
    nominal: Instant
    due: Instant
    origin: str
    action: Action = field(repr=False)
    deadline: Instant
    instance_id: str
    schedule_id: str | None = None
    attempt: int = 0
    inputs: Json = field(default=None, repr=False)
    own_inputs: bool = False
    """The inputs are not those of the action: they come from a rotation or from the caller."""
    priority: int = 0
    trigger_number: int | None = None
    user_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Json] = field(default_factory=dict)
    search_attributes: Mapping[str, Json] = field(default_factory=dict)
    node_id: str | None = None
    parent_run_id: str | None = None
    root_run_id: str | None = None
    """Of a step of a workflow: which one, of which run, and of which in the end."""
    workflow: Mapping[str, Json] | None = None
    """The stored workflow, and its version, that this is a run of, or a step of."""
    assignee: Mapping[str, str] | None = None
    terms: Terms = field(default_factory=Terms)
    traceparent: str | None = None
    report_url: str | None = None
    report_token: str | None = field(default=None, repr=False)
    """The URL for reports of the target, and the token that proves the attempt."""
    cancelled: asyncio.Event | None = field(default=None, compare=False)
    log: RunLog | None = field(default=None, compare=False, repr=False)
    """The log of the run; lines are stored up to the size limit."""
    agent: AgentLine | None = None
    """The agent, or the selected member of a team, that receives the prompt."""
    reference: str | None = None
    """The target's name for work that has started: the launcher follows it and does not send it again."""
    heard: bool = False
    """An earlier delivery of this key may have arrived."""
    once: bool = False
    """A delivery that may have arrived must not be repeated (at most once)."""
    answer: str | None = field(default=None, repr=False)
    """The approver's answer to the question of the target."""
    holder: Holder | None = field(default=None, compare=False, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The secret values in action and inputs, which must never be shown."""

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a delivery requires a key")
        if self.attempt < 0:
            raise ValueError(f"attempt must not be negative: {self.attempt}")

    def seconds_left(self, clock: Clock) -> float:
        return (self.deadline - clock.now()) / SECOND


class Launcher(Protocol):
    """Subclass it to inherit the answers of a launcher that cannot be asked and holds nothing open."""

    kind: str
    declares: Kind | None = None
    """Fields of an action of this kind with their checks, its target and its timeout. None for a built-in kind, or one
    without fields."""
    honours_key: bool
    """True if the target ignores a second delivery of the same key."""
    concurrency: int | None
    """Places of this kind in a process, unless the settings say otherwise. None: a launch costs this process
    next to nothing, and only the limits of the process, the namespace and the target hold."""
    places_at_target: int | None = None
    """Maximum concurrent launches per target for a launcher that sends them in batches, where many cost no more than
    a few. They do not count for the process or the namespace. None: each launch counts, as the settings say."""
    can_poll: bool
    works_here: bool = False
    """True if the work runs in this process or a child process, so the run is running as long as the launch."""
    launches_at_once: bool = False
    """True if a launch has no external effect, so `answer_at_once` may run inside the transaction of the claim."""

    async def launch(self, request: LaunchRequest) -> Outcome: ...

    def answer_at_once(self, request: LaunchRequest) -> Outcome:
        """The outcome without waiting for anybody; only for launchers that say `launches_at_once`."""
        raise TypeError(f"the launcher of kind {self.kind} has no immediate result")

    async def poll(self, request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        return Unknown(f"a {self.kind} target does not report the state of a run")

    async def cancel(self, request: LaunchRequest, reference: str | None) -> None:
        """Ask for the end of a run. By default what this process has in flight stops; others are left to themselves."""
        if request.cancelled is not None:
            request.cancelled.set()

    def hint(self, run_id: str) -> None:
        """The target of this run says that there is news. Called on any thread; believe nothing, ask sooner."""
        return

    def known_names(self) -> Collection[str] | None:
        """The names that its actions may give (tasks, commands); None = it cannot say.

        A mapping to an `Audience` also says which namespaces may give each; its launch must ask the same.
        """
        return None

    def connections_for(self, namespace: str) -> frozenset[str] | None:
        """The names that an action of this namespace may give as its `connection`; None = any."""
        return None

    async def start(self) -> None:
        return None

    async def close(self) -> None:
        return None


@runtime_checkable
class CancelsTasks(Protocol):
    """A launcher whose targets can be told that a task of theirs is not wanted, when nothing else is known of it."""

    async def cancel_task(self, namespace: str, agent: AgentLine, reference: str) -> bool:
        """Tell whether the matter is settled: the agent received it, or has no such active task."""


@runtime_checkable
class EndsTasks(Protocol):
    """A launcher whose workers can be told to end tasks of which nothing is known but their target and their names."""

    async def end_tasks(self, target: str, references: list[str]) -> bool:
        """Tell whether the matter is settled."""
