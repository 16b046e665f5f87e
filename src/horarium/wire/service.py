"""What is answered about calendars, tokens, namespaces, the feed, and the service itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from horarium.schedule.calendar import CalendarKind
from horarium.schedule.event import EventType
from horarium.wire.answer import Answer, Object, Time
from horarium.wire.outcomes import RevokeOutcome
from horarium.wire.roles import Role


class CalendarDay(Answer, frozen=True, kw_only=True):
    date: str
    name: str | None


class Calendar(Answer, frozen=True, kw_only=True):
    """`warning` says that its data ends soon. `days` are those of the year that was asked for, with their names."""

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
    days: tuple[CalendarDay, ...] | None = None


class CalendarList(Answer, frozen=True, kw_only=True):
    calendars: tuple[Calendar, ...]


class CalendarDeleted(Answer, frozen=True, kw_only=True):
    name: str
    outcome: str


class FeedEntry(Answer, frozen=True, kw_only=True):
    """`id` is what a stream is resumed from; `payload` is that of the event in the schedule's history."""

    id: str
    kind: str
    at: Time
    namespace: str
    schedule_id: str | None
    run_id: str | None
    reason: str | None
    occurrence_time: Time | None
    event_type: EventType
    sequence: int
    payload: Object


class Feed(Answer, frozen=True, kw_only=True):
    entries: tuple[FeedEntry, ...]
    next_page_token: str | None


class Token(Answer, frozen=True, kw_only=True):
    token_id: str
    namespace: str
    name: str
    role: Role
    subject: str | None
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None


class IssuedToken(Token, frozen=True, kw_only=True):
    """`secret` is shown this once and never again; printing the value does not show it."""

    HIDDEN: ClassVar = frozenset({"secret"})

    secret: str


class TokenList(Answer, frozen=True, kw_only=True):
    tokens: tuple[Token, ...]


class TokenRevoked(Answer, frozen=True, kw_only=True):
    token_id: str
    outcome: RevokeOutcome


class Namespace(Answer, frozen=True, kw_only=True):
    namespace: str
    description: str
    created_at: Time


class NamespaceList(Answer, frozen=True, kw_only=True):
    namespaces: tuple[Namespace, ...]


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
