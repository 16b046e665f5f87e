"""Definitions of schedules, and the target that the runs of an action count against.

A definition is one frozen value that holds a schedule's spec, action, guards and policies. It knows no column, no
request and no engine. `document.py` reads and writes it as JSON, `planning.py` takes out of it what a decision
needs.

A target is a text that all actions share which burden the same machine, agent or queue. A kind of action says how
its targets are named (`kinds.py`). The shipped ones:

| kind     | target                                              |
|----------|-----------------------------------------------------|
| http     | `http:<scheme>://<host>:<port>`, as it is dialled   |
| pull     | `pull:<queue>`                                      |
| celery   | `celery:<connection>/<queue>`                       |
| prompt   | `prompt:<agent or team>/<id>`, `prompt:` for nobody |
| workflow | `workflow:<name>`                                   |
| python   | `python:`, this process                             |
| command  | `command:`, this machine                            |

A target is computed when a schedule is written and stored with its runs, so it never raises: an action without a
name that can be counted has the bare kind, and shares its capacity with others of that kind.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

import idna

from horarium.core.document.assignee import Assignee, AssigneeType, worker_of
from horarium.core.document.json_values import Json
from horarium.core.document.secret_values import DEFAULT_PORTS, pin
from horarium.core.document.states import Delivery, Source
from horarium.core.policy.approval import UNASKED, ApprovalPolicy, FailurePolicy, RetryPolicy
from horarium.core.policy.limits import Budget, RunLimits
from horarium.core.policy.queue import Catchup, Overlap, OwnQueue
from horarium.core.recurrence.parts import DstFold, DstGap
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import Instant

# ── Definitions ───────────────────────────────────────────────────────────────────────────────────────


PROMPT_TIMEOUT_SECONDS = 300
OTHER_TIMEOUT_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class IntervalText:
    every: str
    offset: str | None = None

    def document(self) -> dict[str, str]:
        return {"every": self.every} if self.offset is None else {"every": self.every, "offset": self.offset}


@dataclass(frozen=True, slots=True)
class SpecText:
    """The *when* as it was written; `compile` turns it into something that can be asked."""

    cron_expressions: tuple[str, ...] = ()
    intervals: tuple[IntervalText, ...] = ()
    at: tuple[str, ...] = ()
    timezone: str | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter_ms: int = 0
    dst_gap: DstGap = DstGap.NEXT_VALID
    dst_fold: DstFold = DstFold.FIRST

    def compile(self, key: str | None) -> Spec:
        """`key` is the schedule's id, which `H` hashes."""
        return compile_spec(
            cron_expressions=self.cron_expressions,
            intervals=[{"every": each.every, "offset": each.offset} for each in self.intervals],
            at=self.at,
            timezone=self.timezone,
            start_at=self.start_at,
            end_at=self.end_at,
            jitter_ms=self.jitter_ms,
            dst_gap=self.dst_gap,
            dst_fold=self.dst_fold,
            key=key,
        )


@dataclass(frozen=True, slots=True)
class Action:
    """The *what*. `target` holds the fields of its kind (`url`, `task`, `prompt`, `workflow_type` …)."""

    kind: str
    target: Mapping[str, Json] = field(default_factory=dict)
    input: Json = None
    template: bool = False
    connection: str | None = None
    queue: str | None = None
    global_model_id: str | None = None
    execution_timeout_seconds: int | None = None
    run_timeout_seconds: int | None = None
    timeout_seconds: int | None = None
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    @property
    def workflow(self) -> str | None:
        """The name under which runs of the same work are known, whichever schedule started them."""
        for key in ("workflow_id", "workflow_type", "workflow_class"):
            if self.target.get(key):
                return str(self.target[key])
        return None

    @property
    def timeout(self) -> int | None:
        """Longest duration of a run, if the action sets it."""
        for chosen in (self.timeout_seconds, self.run_timeout_seconds, self.execution_timeout_seconds):
            if chosen is not None:
                return chosen
        return None


class RunDefinition(NamedTuple):
    """The part of a definition that a launch and the life of a run need."""

    schedule_id: str
    action: Action
    inputs_rotation: tuple[Json, ...]
    labels: Mapping[str, str]
    memo: Mapping[str, Json]
    search_attributes: Mapping[str, Json]
    approval: ApprovalPolicy
    retry: RetryPolicy
    limits: RunLimits
    user_id: str | None
    node_gates: tuple[str, ...] = ()
    """The gates of a step's node, which may require approval."""
    approved_gates: tuple[str, ...] = ()
    """The gates for which the run is approved."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Pause is not part of it: whether a schedule is paused belongs to its operators."""

    schedule_id: str
    spec: SpecText
    action: Action
    namespace: str = "default"
    name: str = ""
    note: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Json] = field(default_factory=dict)
    search_attributes: Mapping[str, Json] = field(default_factory=dict)
    source: Source = Source.RUNTIME
    user_id: str | None = None
    owner: str | None = None
    assignee: Assignee | None = None
    workflow_assignment_id: str | None = None
    calendars: tuple[str, ...] = ()
    pre_dispatch_condition: Json = None
    inputs_rotation: tuple[Json, ...] = ()
    budget: Budget = field(default_factory=Budget)
    overlap: Overlap = field(default_factory=Overlap)
    catchup: Catchup = field(default_factory=Catchup)
    concurrency_key: str | None = None
    concurrency_limit: int = 1
    priority: int = 0
    approval: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    retry: RetryPolicy = UNASKED
    failure: FailurePolicy = field(default_factory=FailurePolicy)
    limits: RunLimits = field(default_factory=RunLimits)
    pause_on_failure: int | None = None
    failing_after: int | None = None
    max_runs: int | None = None

    @property
    def queue(self) -> OwnQueue:
        return OwnQueue(self.overlap, self.catchup, self.priority)


# ── Targets ───────────────────────────────────────────────────────────────────────────────────────────


DEFAULT_QUEUE = "default"
DEFAULT_CONNECTION = "default"
MAX_TARGET_LENGTH = 320
# RFC 1035 section 2.3.4; no longer name can be looked up.
_MAX_HOST_NAME = 253
_DIGEST_CHARACTERS = 16
_CELERY = "celery:"
_USER_INFO = re.compile(r"[^:/?#]*://[^/?#]*@")
_PROMPT = "prompt:"
_TO_AGENT = f"{_PROMPT}{AssigneeType.AGENT.value}/"


def target_text(kind: str, name: str) -> str:
    """Long names stay apart by their digest; a column and an index hold the rest."""
    target = f"{kind}:{name}"
    if len(target) <= MAX_TARGET_LENGTH:
        return target
    digest = sha256(target.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{target[: MAX_TARGET_LENGTH - _DIGEST_CHARACTERS - 1]}~{digest}"


def bare_target(_action: Action, _assignee: Assignee | None) -> str:
    """For kinds whose actions all share one room, such as this process."""
    return ""


def origin_target(action: Action, _assignee: Assignee | None) -> str:
    return _origin(action.target.get("url"))


def queue_target(action: Action, _assignee: Assignee | None) -> str:
    return _text_of_part(action.queue or DEFAULT_QUEUE)


def connection_and_queue(action: Action, _assignee: Assignee | None) -> str:
    return f"{_text_of_part(action.connection or DEFAULT_CONNECTION)}/{_text_of_part(action.queue)}"


def connection_in(target: str) -> str | None:
    """The connection that a celery run goes over; None for what goes another way."""
    name, slash, _ = target.removeprefix(_CELERY).partition("/")
    return name if slash and target.startswith(_CELERY) else None


def assignee_target(_action: Action, assignee: Assignee | None) -> str:
    """Recipient of a prompt; the definition names it, not the action."""
    return "" if assignee is None else f"{assignee.type}/{assignee.id}"


def of_worker(target: str, assignee: Assignee | None, member: str | None) -> str:
    """That of a run whose worker is settled: a prompt goes to one agent, also where a team was asked for it."""
    agent_id = worker_of(assignee, member)
    return target if agent_id is None or not target.startswith(_PROMPT) else f"{_TO_AGENT}{agent_id}"


def agent_in(target: str) -> str | None:
    """The agent that a prompt goes to; None for what goes to nobody, or to somebody else."""
    return target.removeprefix(_TO_AGENT) if target.startswith(_TO_AGENT) else None


_LATEST = "latest"


def asked_version(action: Action) -> int | None:
    """Requested version of a stored workflow; None = the newest."""
    version = action.target.get("version")
    return None if version is None or version == _LATEST else int(version)


def workflow_target(action: Action, _assignee: Assignee | None) -> str:
    return _text_of_part(action.workflow)


def pin_of(url: object) -> str:
    """Return scheme, host and port of an address as pins of secrets name them; empty for one that is never dialled."""
    place = None if isinstance(url, str) and _USER_INFO.match(url) else _place(url)
    return "" if place is None else pin(*place)


def host_in(url: str) -> str | None:
    try:
        host = urlsplit(url).hostname
        return host if host is None or host.isascii() else _host(host)
    except ValueError:  # also what no name can be made of, a UnicodeError
        return None


def _origin(url: object) -> str:
    """Return scheme, host and port in one spelling (RFC 3986 section 6.2); empty for an invalid address."""
    place = _place(url)
    return "" if place is None else "{}://{}:{}".format(*place)


def _place(url: object) -> tuple[str, str, int] | None:
    """None also for an address that is never dialled: with what another reader leaves out."""
    if not isinstance(url, str) or not url.isprintable() or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if parts.scheme not in DEFAULT_PORTS or not host or port == 0:
            return None
        return parts.scheme, _host(host), port or DEFAULT_PORTS[parts.scheme]
    except ValueError:  # also what no name can be made of, a UnicodeError
        return None


def _host(name: str) -> str:
    if ":" in name:
        address, percent, zone = name.partition("%")
        return f"[{ipaddress.IPv6Address(address)}{percent}{zone}]"
    # The dot at the end says that the name is whole, as all names in a URL are.
    name = name.removesuffix(".")
    if not name.isascii():
        # IDNA 2008, as it is looked up: the codec of Python is of 2003, and makes another name of some letters.
        name = idna.encode(name.lower()).decode("ascii")
    if not 0 < len(name) <= _MAX_HOST_NAME or not name.isprintable() or " " in name or name.endswith("."):
        raise ValueError("no host name")
    return name


def _text_of_part(value: object) -> str:
    """Names come checked from the door; what is no plain text came past it and is not counted apart."""
    return value if isinstance(value, str) and value.isprintable() else ""
