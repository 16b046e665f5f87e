"""What became of a schedule that somebody wanted changed."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.decision.forecast_rows import NOT_TRIGGERABLE, NextRun
from horarium.instant import Instant
from horarium.operations.resources import Opened
from horarium.operations.upcoming import Planned, next_due, next_runs
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.store.database import Connection
from horarium.wire.outcomes import WriteOutcome


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """`changed` are the top-level names of the document that differ; `version` is the ETag from now on.

    `exhausted`: it is deleted, because its runs are used up, and what was asked for says no more than it did.
    `retries` are those of a failed run, told where the definition was written.
    `released`: so many held runs it lets go at once. `paused_until`: when the pause that was asked for ends by itself.
    """

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    outcome: WriteOutcome
    version: int
    status: Status
    next_due: Instant | None
    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    next_run: NextRun = NOT_TRIGGERABLE
    exhausted: bool = False
    released: int = 0
    paused_until: Instant | None = None
    retries: int | None = None


def unchanged(connection: Connection, opened: Opened) -> ScheduleChange:
    row = opened.row
    position = row.position()._replace(next_due=next_due(row, opened.planning, opened.now))
    return moved(connection, opened, WriteOutcome.UNCHANGED, row.version, position)


def moved(
    connection: Connection,
    opened: Opened,
    outcome: WriteOutcome,
    version: int,
    position: Position,
    *,
    planning: Planning | None = None,
    changed: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> ScheduleChange:
    """`position` and `planning` are those from now on."""
    row = opened.row
    # A new pause ends as it says itself, whatever the one before it said.
    until = None if outcome is WriteOutcome.PAUSED else row.paused_until
    known = planning or opened.planning
    planned = Planned(row.schedule_uid, row.namespace, row.schedule_id, position, known, row.active, row.held, until)
    return ScheduleChange(
        row.schedule_uid,
        row.namespace,
        row.schedule_id,
        outcome,
        version,
        position.status,
        position.next_due,
        changed,
        warnings,
        next_runs(connection, [planned], opened.now, opened.signals)[row.schedule_uid],
    )
