"""What is answered about calendars, tokens, namespaces, the feed, and the service itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from horarium.decision.health_status import HealthStatus
from horarium.schedule.calendar import CalendarKind
from horarium.schedule.event import EventType
from horarium.schedule.run import RunState
from horarium.wire.answer import Answer, Object, Rows, Time
from horarium.wire.outcomes import RemovalOutcome, RevokeOutcome
from horarium.wire.roles import Role


class CalendarDay(Answer, frozen=True, kw_only=True):
    date: str
    name: str | None


class Calendar(Answer, frozen=True, kw_only=True):
    """`warning` says that its data ends soon; `bundle` is the one that brought it, `owner` who made it.

    `days` are those of the year that was asked for, with their names. `timezone` null = that of whichever schedule
    obeys it. `covered_until` is the last day its data speaks about, also where nobody has said `covers`.
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
    """`id` is what a stream is resumed from; `payload` is all that is told, some of which stands beside it too.

    `event_type` and `sequence` are those of the event in the schedule's history. What has no place there has
    neither: the end of a run (`run_finished`, with `state`, and with `approval` where somebody was asked), and a change
    of health (`schedule_health`, with `status`). `version` is that of a stored `workflow`.
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
    """`previous_until`: it was rotated, and until then its secret before that is good, too.

    `queues`: those that it may claim from; null = all.
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
    """`secret` is shown this once and never again; printing the value does not show it."""

    HIDDEN: ClassVar = frozenset({"secret"})

    secret: str


class TokenList(Answer, frozen=True, kw_only=True):
    tokens: Rows[Token]


class TokenRevoked(Answer, frozen=True, kw_only=True):
    token_id: str
    outcome: RevokeOutcome


class QuotaUse(Answer, frozen=True, kw_only=True):
    """`limit` null = none. `used` is missing for what each schedule is asked alone; `own`: it is not the settings'."""

    limit: int | None
    used: int | None = None
    own: bool = False


class NamespaceQuotas(Answer, frozen=True, kw_only=True):
    """What it may have, and has: live schedules, runs born in this minute, runs that have not ended, bytes."""

    schedules: QuotaUse
    runs_per_minute: QuotaUse
    open_runs: QuotaUse
    bytes_stored: QuotaUse
    shortest_gap_seconds: QuotaUse


class NamespaceRetention(Answer, frozen=True, kw_only=True):
    """Days that ended runs and decisions are kept; null = for ever."""

    keep_runs_days: int | None
    keep_history_days: int | None


class Namespace(Answer, frozen=True, kw_only=True):
    """A list of many tells neither quotas nor retention."""

    namespace: str
    description: str
    created_at: Time
    quotas: NamespaceQuotas | None = None
    retention: NamespaceRetention | None = None


class NamespaceDeleted(Answer, frozen=True, kw_only=True):
    """`schedules` and `open_runs` are what was live when it was asked for."""

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
    """Which server this is, and what it speaks."""

    server: str
    version: str
    tzdata: str
    control_plane: ControlPlane


class Check(Answer, frozen=True, kw_only=True):
    """One question that a probe asks."""

    name: str
    passed: bool
    detail: str | None
    remedy: str | None


class Health(Answer, frozen=True, kw_only=True):
    """Of the service. `/livez` knows the status alone."""

    status: str
    ready: bool | None = None
    version: str | None = None
    tzdata: str | None = None
    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Home(Answer, frozen=True, kw_only=True):
    """What this is and where to go; the places are paths on the same server."""

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
    """Which loops complete their steps, in all processes."""

    healthy: bool
    subsystems: Mapping[str, LoopLife]
    processes: tuple[ProcessLife, ...]
