"""Responses about calendars, tokens, namespaces, the feed and the service, and bodies of sessions and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.calendar import CalendarKind
from horarium.core.document.states import EventType, RunState
from horarium.platform.bodies import Body, Name, Text, Whole
from horarium.platform.wire import Answer, Object, Permission, RemovalOutcome, RevokeOutcome, Role, Rows, Time


class CalendarDay(Answer, frozen=True, kw_only=True):
    date: str
    name: str | None


class Calendar(Answer, frozen=True, kw_only=True):
    """A calendar. `warning`: its data ends soon. `bundle` created it; `owner` is its owner. `days`: days of the
    requested year, with names. `timezone` null: the time zone of each schedule that uses it. `covered_until`: last day
    with data, even if `covers` is not set.
    """

    name: str
    kind: CalendarKind
    timezone: str | None
    dates: tuple[str, ...]
    rule: str | None
    covers: tuple[str, ...] | None
    read_only: bool
    version: int | None
    updated_at: Time | None
    warning: str | None
    bundle: str | None = None
    owner: str | None = None
    covered_until: str | None = None
    days: tuple[CalendarDay, ...] | None = None


class CalendarList(Answer, frozen=True, kw_only=True):
    calendars: Rows[Calendar]
    next_page_token: str | None


class CalendarDeleted(Answer, frozen=True, kw_only=True):
    name: str
    outcome: str


class FeedEntry(Answer, frozen=True, kw_only=True):
    """A feed entry. `id` is the position for resuming a stream; `payload` contains all details.

    `event_type` and `sequence` identify the event in the history of the schedule. Entries without such an event omit
    both: the end of a run (`run_finished`, with `state` and, if approval was requested, `approval`) and a change of
    health (`schedule_health`, with `status`). `version` is the version of a stored `workflow`.
    """

    id: str
    kind: str
    at: Time
    namespace: str
    schedule_id: str | None
    run_id: str | None
    reason: str | None
    occurrence_time: Time | None
    event_type: EventType | None
    sequence: int | None
    payload: Object
    state: RunState | None = None
    error: str | None = None
    attempt: int | None = None
    duration_seconds: float | None = None
    workflow: str | None = None
    version: int | None = None
    approval: str | None = None
    status: HealthStatus | None = None


class Feed(Answer, frozen=True, kw_only=True):
    entries: Rows[FeedEntry]
    next_page_token: str | None


class Token(Answer, frozen=True, kw_only=True):
    """A token without its secret. `previous_until`: the previous secret stays valid until then. `queues`: queues it may
    claim from (null = all).
    """

    token_id: str
    namespace: str
    name: str
    role: Role
    subject: str | None
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None
    previous_until: Time | None = None
    queues: tuple[str, ...] | None = None


class IssuedToken(Token, frozen=True, kw_only=True):
    """A new token. `secret` is returned only once; printing the value hides it."""

    HIDDEN: ClassVar = frozenset({"secret"})

    secret: str


class TokenList(Answer, frozen=True, kw_only=True):
    tokens: Rows[Token]


class TokenRevoked(Answer, frozen=True, kw_only=True):
    token_id: str
    outcome: RevokeOutcome


class QuotaUse(Answer, frozen=True, kw_only=True):
    """A quota. `limit` null: unlimited. `used` is omitted for quotas that apply to each schedule. `own`: set for this
    namespace, not by the settings.
    """

    limit: int | None
    used: int | None = None
    own: bool = False


class NamespaceQuotas(Answer, frozen=True, kw_only=True):
    """Quotas and usage of a namespace: live schedules, runs created in this minute, runs that have not ended, bytes."""

    schedules: QuotaUse
    runs_per_minute: QuotaUse
    open_runs: QuotaUse
    bytes_stored: QuotaUse
    shortest_gap_seconds: QuotaUse


class NamespaceRetention(Answer, frozen=True, kw_only=True):
    """Days for which ended runs and decisions are kept (null = forever)."""

    keep_runs_days: int | None
    keep_history_days: int | None


class Namespace(Answer, frozen=True, kw_only=True):
    """A namespace. Lists omit quotas and retention."""

    namespace: str
    description: str
    created_at: Time
    quotas: NamespaceQuotas | None = None
    retention: NamespaceRetention | None = None


class NamespaceDeleted(Answer, frozen=True, kw_only=True):
    """Outcome of deleting a namespace. `schedules` and `open_runs` count what was live."""

    namespace: str
    outcome: RemovalOutcome
    schedules: int
    open_runs: int


class NamespaceList(Answer, frozen=True, kw_only=True):
    namespaces: Rows[Namespace]


class ControlPlane(Answer, frozen=True, kw_only=True):
    version: str
    request_contract: Object


class ClusterInfo(Answer, frozen=True, kw_only=True):
    """The server and its protocol versions."""

    server: str
    version: str
    tzdata: str
    control_plane: ControlPlane


class Check(Answer, frozen=True, kw_only=True):
    """A check of a probe."""

    name: str
    passed: bool
    detail: str | None
    remedy: str | None


class Health(Answer, frozen=True, kw_only=True):
    """Health of the service. `/livez` returns only `status`."""

    status: str
    ready: bool | None = None
    version: str | None = None
    tzdata: str | None = None
    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Home(Answer, frozen=True, kw_only=True):
    """The service and the paths of its endpoints."""

    name: str
    version: str
    summary: str
    ui: str
    docs: str
    openapi: str
    schedules: str
    health: str
    readiness: str
    metrics: str


class LoopLife(Answer, frozen=True, kw_only=True):
    last_tick_at: Time | None
    seconds_ago: float
    limit_seconds: float
    healthy: bool


class ProcessLife(Answer, frozen=True, kw_only=True):
    name: str
    alive: bool
    draining: bool
    healthy: bool
    since: Time
    beat_at: Time
    loops: Mapping[str, LoopLife]


class Liveness(Answer, frozen=True, kw_only=True):
    """Loops of all processes that complete their steps."""

    healthy: bool
    subsystems: Mapping[str, LoopLife]
    processes: tuple[ProcessLife, ...]


MAX_TOKEN = 8_192


class SessionBody(Body, frozen=True, kw_only=True):
    """Credentials for a session. `token` is an API token, a signed JWT or the `code` of a sign-in link. `namespace` is
    the first one to show. With `dry_run` no session starts.
    """

    token: Annotated[str, Meta(max_length=MAX_TOKEN)]
    namespace: Name | None = None
    dry_run: bool = False


class Session(Answer, frozen=True, kw_only=True):
    """The caller and its permissions. `namespaces`: namespaces that the caller can switch to, at most 1,000;
    `more_namespaces`: there are more. `zone`: default time zone of schedules. `ends_at`: time at which the session ends
    (null = with the credential).
    """

    principal: str
    role: Role
    permissions: tuple[Permission, ...]
    namespace: str
    everywhere: bool
    namespaces: tuple[str, ...]
    more_namespaces: bool
    version: str
    now: Time
    zone: str | None
    ends_at: Time | None


class SignInLink(Answer, frozen=True, kw_only=True):
    """A sign-in code. `code` replaces a token when a session is opened, until `expires_at`."""

    HIDDEN: ClassVar = frozenset({"code"})

    code: str
    expires_at: Time


class TokenBody(Body, frozen=True, kw_only=True):
    name: Text
    role: Role
    subject: Text | None = None
    expires_at: Time | None = None
    queues: tuple[Text, ...] | None = None


class AgentTokenBody(Body, frozen=True, kw_only=True):
    """A token with the role `agent` for the agent in the path. `name` defaults to that of the agent."""

    name: Text | None = None
    expires_at: Time | None = None


class RotateBody(Body, frozen=True, kw_only=True):
    """Seconds for which the old secret stays valid (default 86400)."""

    overlap_seconds: Whole | None = None
