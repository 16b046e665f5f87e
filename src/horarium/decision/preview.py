"""What the coming occurrences would bring, as far as one look at the world can tell; nothing is written.

Facts are a snapshot: how a run that has not happened would change a condition, nobody knows. Overlap
is not predicted either, because no run says beforehand how long it will take. Rotation counts the
predicted dispatches only, and what counts per day starts anew each UTC day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile

from horarium.decision.ahead import Ahead
from horarium.decision.facts import Facts, Shared
from horarium.decision.forecast import Forecast
from horarium.decision.guards import guards_for
from horarium.decision.plan import Detail
from horarium.instant import DAY, Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, status_at
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin

HORIZON = 31 * DAY
MAX_ROWS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """`rotation_index` names the inputs that a dispatch would use; None = the schedule's own."""

    tick_at: Instant
    due: Instant
    decision: Forecast
    reason: Reason | None = None
    detail: Detail | None = None
    rotation_index: int | None = None


def preview(
    planning: Planning,
    uid: bytes,
    position: Position,
    facts: Facts,
    *,
    after: Instant,
    now: Instant,
    rows: int = 10,
    shared: Shared | None = None,
    paused_until: Instant | None = None,
) -> tuple[Row, ...]:
    """At most 31 days or 200 rows ahead, whichever comes first."""
    coming = forecasts(planning, uid, position, facts, after=after, now=now, shared=shared, paused_until=paused_until)
    near = takewhile(lambda row: row.tick_at <= after + HORIZON, coming)
    return tuple(islice(near, max(0, min(rows, MAX_ROWS))))


def forecasts(
    planning: Planning,
    uid: bytes,
    position: Position,
    facts: Facts,
    *,
    after: Instant,
    now: Instant,
    shared: Shared | None = None,
    paused_until: Instant | None = None,
) -> Iterator[Row]:
    """One by one, for as long as somebody asks; `paused_until` is when a pause ends by itself."""
    ahead = Ahead(planning, position, facts, shared, guards_for(planning, Origin.SCHEDULED), now)
    for nominal in planning.spec.occurrences(after):
        ahead.tally.status = status_at(ahead.tally.status, paused_until, nominal)
        due, refusal = planning.spec.due(uid, nominal), ahead.refusal(nominal)
        if refusal is None:
            yield Row(nominal, due, Forecast.DISPATCH, rotation_index=ahead.tally.bear(held=False))
        else:
            yield Row(nominal, due, Forecast.SKIP, *refusal)
