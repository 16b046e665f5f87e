"""The route of the overview: counts of items that may need attention."""

from __future__ import annotations

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.requests import ALL_NAMESPACES, ListCallerOf, ResourcesOf
from horarium.api.routing import READ, Routes
from horarium.instant import to_datetime
from horarium.operations import overviews
from horarium.wire.overview import Overview, ScheduleCounts

routes = Routes("/api", tag="overview")


@routes(
    "GET",
    "/overview",
    needs=READ,
    summary="Count the items that need attention",
    answer=Overview,
    example=Overview(
        namespace="default",
        as_of=examples.LATER,
        since=examples.AT,
        schedules=ScheduleCounts(active=214, paused=3, finished=12, broken=1),
        failing=2,
        stale=0,
        late=0,
        waiting_for_approval=4,
        missed_lately=0,
        failed_24h=3,
        held=1,
        ready=0,
        launching=0,
        queued=2,
        running=17,
        bounded=(),
    ),
)
def get_overview(resources: ResourcesOf, caller: ListCallerOf) -> Reply:
    """Each count equals the length of a list and is capped, so the cost does not grow with the stored data."""
    found = overviews.look(resources, caller)
    return Reply(
        Overview(
            namespace=caller.scope or ALL_NAMESPACES,
            as_of=to_datetime(found.as_of),
            since=to_datetime(found.since),
            schedules=ScheduleCounts(**{status.value: each.count for status, each in found.schedules.items()}),
            waiting_for_approval=found.waiting_for_approval.count,
            missed_lately=found.missed_lately.count,
            failed_24h=found.failed_24h.count,
            bounded=tuple(found.bounded()),
            **{str(word): each.count for word, each in (*found.health.items(), *found.runs.items())},
        )
    )
