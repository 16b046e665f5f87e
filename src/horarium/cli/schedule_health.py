"""The health of one schedule, of a namespace, or of all namespaces."""

from __future__ import annotations

from horarium.cli.remote import Remote
from horarium.client.page import Page
from horarium.decision.health_status import UNWELL
from horarium.features.schedules.model import ScheduleHealth

_PAGE = 200


def health_of(
    remote: Remote, schedule_id: str | None, *, unwell: bool = False, namespace: str | None = None
) -> Page[ScheduleHealth]:
    if schedule_id is not None:
        return Page((remote.client.get_schedule_health(schedule_id),))
    if unwell:
        return remote.client.list_schedule_health(unwell=True, namespace=namespace)
    return Page(tuple(remote.client.iter_schedule_health(namespace=namespace, page_size=_PAGE)))


def is_unwell(health: ScheduleHealth) -> bool:
    """Return whether the status is an unhealthy one; an unknown status is not."""
    return health.status in UNWELL
