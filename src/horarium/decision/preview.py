"""What the coming occurrences would bring, as far as one look at the world can tell; nothing is written.

Facts are a snapshot: how a run that has not happened would change a condition, nobody knows. Overlap
is not predicted either, because no run says beforehand how long it will take. Rotation counts the
predicted dispatches only, and what counts per day starts anew each UTC day.
"""

from __future__ import annotations

from dataclasses import dataclass

from horarium.decision.ahead import Ahead
from horarium.decision.facts import Facts, Shared
from horarium.decision.forecast import Forecast
from horarium.decision.guards import guards_for
from horarium.decision.plan import Detail
from horarium.instant import DAY, Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position
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
) -> tuple[Row, ...]:
    """At most 31 days or 200 rows ahead, whichever comes first."""
    ahead = Ahead(planning, position, facts, shared, guards_for(planning, Origin.SCHEDULED), now)
    found: list[Row] = []
    for nominal in planning.spec.occurrences(after):
        if len(found) >= min(rows, MAX_ROWS) or nominal > after + HORIZON:
            break
        due, refusal = planning.spec.due(uid, nominal), ahead.refusal(nominal)
        if refusal is None:
            found.append(Row(nominal, due, Forecast.DISPATCH, rotation_index=ahead.tally.bear(held=False)))
        else:
            found.append(Row(nominal, due, Forecast.SKIP, *refusal))
    return tuple(found)
