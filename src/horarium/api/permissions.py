"""What each route asks of its caller: one table, which the door obeys and a test compares with the routes.

The operations behind the routes ask again, and some ask more: the owner of a schedule, an admin of the house.
A route that has no row here lets nobody in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from horarium.operations.caller import Permission


class Open(Enum):
    """Asks nothing: probes and descriptions, which tell nothing about anybody."""

    TO_ALL = "open to all"


OPEN = Open.TO_ALL
READ, WRITE, OPERATE = Permission.READ, Permission.WRITE, Permission.OPERATE
WORK, ADMINISTER = Permission.WORK, Permission.ADMINISTER

_TABLE: Mapping[Permission | Open, str] = {
    OPEN: """
        GET /livez
        GET /healthz
        GET /readyz
        GET /api/health
        GET /openapi.json
        GET /docs
    """,
    READ: """
        GET /metrics
        GET /api/cluster/info
        GET /api/schedules
        GET /api/schedules/{schedule_id}
        GET /api/schedules/{schedule_id}/history
        GET /api/schedules/{schedule_id}/runs
        GET /api/schedules/{schedule_id}/preview
        GET /api/schedules/{schedule_id}/explain
        GET /api/schedules/{schedule_id}/health
        GET /api/runs
        GET /api/runs/{run_id}
        GET /api/runs/{run_id}/events
        GET /api/calendars
        GET /api/calendars/{name}
        GET /api/feed
        GET /api/events
        GET /api/namespaces/{namespace}
        GET /schedules/{schedule_id}
        GET /schedules/{schedule_id}/runs
    """,
    WRITE: """
        POST /api/schedules
        POST /api/schedules/upsert
        PUT /api/schedules/{schedule_id}
        PATCH /api/schedules/{schedule_id}
        DELETE /api/schedules/{schedule_id}
        PUT /api/schedules/{schedule_id}/calendars
        DELETE /api/schedules/{schedule_id}/calendars
        PUT /api/schedules/{schedule_id}/condition
        DELETE /api/schedules/{schedule_id}/condition
        PUT /api/schedules/{schedule_id}/rotation
        DELETE /api/schedules/{schedule_id}/rotation
        POST /api/calendars
        PUT /api/calendars/{name}
        DELETE /api/calendars/{name}
        POST /api/calendars/{name}/clone
        POST /schedules/upsert
        DELETE /schedules/{schedule_id}
    """,
    OPERATE: """
        POST /api/schedules/{schedule_id}/pause
        POST /api/schedules/{schedule_id}/resume
        POST /api/schedules/{schedule_id}/trigger
        POST /api/schedules/{schedule_id}/backfill
        POST /api/runs/{run_id}/cancel
        POST /api/runs/{run_id}/terminate
        POST /api/run-launcher/start
        POST /schedules/pause
        POST /run-launcher/start
    """,
    WORK: """
        POST /api/queues/{queue}/claim
        POST /api/runs/{run_id}/heartbeat
        POST /api/runs/{run_id}/report
    """,
    ADMINISTER: """
        GET /api/tokens
        POST /api/tokens
        DELETE /api/tokens/{token_id}
        GET /api/namespaces
        POST /api/namespaces
        GET /admin/liveness
        GET /admin/schedules/health
    """,
}


def _rows() -> Iterator[tuple[tuple[str, str], Permission | Open]]:
    for needed, text in _TABLE.items():
        for line in text.split("\n"):
            method, _, path = line.strip().partition(" ")
            if method:
                yield (method, path), needed


PERMISSIONS: Mapping[tuple[str, str], Permission | Open] = MappingProxyType(dict(_rows()))


def permission_for(method: str, path: str) -> Permission | Open:
    """`path` as the route spells it; raises LookupError for a route without a row."""
    try:
        return PERMISSIONS[method, path]
    except KeyError:
        raise LookupError(f"{method} {path} has no row in the table of permissions") from None
