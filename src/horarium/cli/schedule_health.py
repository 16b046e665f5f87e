"""How the server says that a schedule is doing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from horarium.cli.remote import Remote
from horarium.client.answers import Page
from horarium.client.call import Call, many, one
from horarium.client.lenient import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleHealth(Answer):
    schedule_id: str = ""
    status: str = ""
    last_run_at: datetime | None = None
    expected_next_run: datetime | None = None
    late_seconds: float = 0.0
    error: str | None = None


def health_of(remote: Remote, schedule_id: str | None) -> Page[ScheduleHealth]:
    """Of one schedule, or of all in the namespace."""
    if schedule_id is None:
        return remote.send(Call("GET", "/admin/schedules/health", many(ScheduleHealth)))
    path = "/api/schedules/{schedule_id}/health"
    return Page((remote.send(Call("GET", path, one(ScheduleHealth), {"schedule_id": schedule_id})),))
