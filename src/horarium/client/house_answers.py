"""What the answers about calendars, workflows, agents and the house itself are to a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from horarium.client.lenient import Answer

_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Answer):
    approval_id: str = ""
    run_id: str = ""
    schedule_id: str | None = None
    status: str | None = None
    gate: str | None = None
    inputs: Any = None
    requested_at: datetime | None = None
    expires_at: datetime | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar(Answer):
    """`warning` says that its data ends soon. `days` are those of the year that was asked for, with their names."""

    name: str = ""
    kind: str = ""
    timezone: str | None = None
    dates: tuple[str, ...] = ()
    rule: str | None = None
    read_only: bool = False
    version: int | None = None
    updated_at: datetime | None = None
    warning: str | None = None
    days: tuple[_Object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow(Answer):
    workflow_id: str = ""
    version: int | None = None
    name: str | None = None
    owner: str | None = None
    nodes: tuple[Any, ...] = ()
    edges: tuple[Any, ...] = ()
    triggers: tuple[Any, ...] = ()
    outcome: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Answer):
    assignment_id: str = ""
    workflow_id: str | None = None
    assignee_type: str | None = None
    assignee_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Answer):
    id: str = ""
    name: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Team(Answer):
    team_id: str = ""
    name: str | None = None
    members: tuple[str, ...] = ()
    lead: str | None = None
    strategy: str | None = None


# ── the house ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Token(Answer):
    token_id: str = ""
    namespace: str = "default"
    name: str = ""
    role: str = ""
    subject: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken(Token):
    """`secret` is shown this once and never again; printing the value does not show it."""

    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace(Answer):
    namespace: str = ""
    description: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry(Answer):
    """`id` is what a stream is resumed from; `payload` is that of the event in the schedule's history."""

    id: str = ""
    kind: str = ""
    at: datetime | None = None
    namespace: str = "default"
    schedule_id: str | None = None
    run_id: str | None = None
    reason: str | None = None
    occurrence_time: datetime | None = None
    event_type: str | None = None
    sequence: int | None = None
    payload: _Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Answer):
    """`changes` say what was done, or with `dry_run` what would be, with the fires added and removed."""

    dry_run: bool = False
    changes: tuple[_Object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo(Answer):
    server: str | None = None
    version: str | None = None
    tzdata: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Answer):
    status: str = ""
    ready: bool | None = None
    version: str | None = None
    tzdata: str | None = None
    checks: tuple[_Object, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "ok"
