"""How the server says that schedules are doing: one, or all of the namespace."""

from __future__ import annotations

from horarium.cli.remote import Remote
from horarium.client.call import Call, many
from horarium.client.page import Page
from horarium.wire.schedules import ScheduleHealth


def health_of(remote: Remote, schedule_id: str | None) -> Page[ScheduleHealth]:
    if schedule_id is None:
        return remote.send(Call("GET", "/admin/schedules/health", many(ScheduleHealth)))
    return Page((remote.client.get_schedule_health(schedule_id),))
