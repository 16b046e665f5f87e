"""Next occurrences of a schedule, the response to its change, and instants written in requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from horarium.core.decision.certainty import is_guarded, is_independent
from horarium.core.decision.evaluator import FACTS, Forecaster
from horarium.core.decision.facts import NO_FACTS, Facts, SharedFacts, Signal, UnreadablePolicies
from horarium.core.decision.forecast import NOT_TRIGGERABLE, NextRun
from horarium.core.decision.guards import CalendarSpans, reads_signal
from horarium.core.decision.statuses import NoRun
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position, Status
from horarium.core.recurrence.zone import Zone, exactly, load_zone, read_moment
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.resources import Opened
from horarium.features.schedules import fact_rows
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import Instant
from horarium.launchers.signals import Signals
from horarium.platform.database import Connection
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.wire import WriteOutcome

NEXT_FIRES = 5
# What a document holds where a guard may refuse the next occurrence of an active schedule.
GUARDED_BY = ("calendars", "max_runs", "budget", "assignee_id", "workflow_assignment_id", "pre_dispatch_condition")


@dataclass(frozen=True, slots=True)
class NextFire:
    nominal: Instant
    due: Instant


class Planned(NamedTuple):
    """A schedule whose next run is asked for; `active` and `held` count its open runs."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    position: Position
    planning: Planning | Exception
    active: int = 0
    held: int = 0
    paused_until: Instant | None = None


def planned_row(row: ScheduleRow, planning: Planning | Exception) -> Planned:
    return Planned(
        row.schedule_uid,
        row.namespace,
        row.schedule_id,
        row.position(),
        planning,
        row.active,
        row.held,
        row.paused_until,
    )


def next_fires(row: ScheduleRow, planning: Planning, now: Instant, count: int = NEXT_FIRES) -> tuple[NextFire, ...]:
    """Upcoming fires, with those due and undecided; for a paused schedule those after a resume."""
    if row.status is Status.DELETED:
        return ()
    after = row.decided_until if row.status is Status.ACTIVE else max(row.decided_until, now)
    spec = planning.spec
    return tuple(
        NextFire(nominal, spec.due(row.schedule_uid, nominal)) for nominal in islice(spec.occurrences(after), count)
    )


def next_due(row: ScheduleRow, planning: Planning | Exception, now: Instant) -> Instant | None:
    """When it acts next, or would if it were resumed now."""
    if row.status is not Status.PAUSED or isinstance(planning, Exception):
        return row.next_due
    return next((fire.due for fire in next_fires(row, planning, now, count=1)), None)


def is_plain(row: ScheduleRow, document: Mapping[str, Any], now: Instant) -> bool:
    """Report whether its next run is its next fire, as far as the row and the document show."""
    idle = row.status is Status.ACTIVE and not row.active and not row.held
    return idle and not _is_due(row.next_due, now) and all(document.get(name) is None for name in GUARDED_BY)


def _is_due(next_due: Instant | None, now: Instant) -> bool:
    """Report whether an occurrence is due and not decided: the catch-up policy may skip it."""
    return next_due is not None and next_due < now


def seen_signals(
    signals: Signals | None, asking: Iterable[tuple[bytes, str, str, Planning | Exception]], now: Instant
) -> dict[bytes, Signal]:
    """Return the newest answers of the signal provider by schedule uid, without waiting for it.

    `asking` are uid, namespace, id and planning of schedules; only conditions that read the signal need one.
    """
    if signals is None:
        return {}
    return {
        uid: signals.glance(namespace, schedule_id, now)
        for uid, namespace, schedule_id, planning in asking
        if isinstance(planning, Planning) and reads_signal(planning)
    }


def next_runs(
    connection: Connection, planned: Sequence[Planned], now: Instant, signals: Signals | None
) -> dict[bytes, NextRun]:
    """By schedule, with one query for each kind of fact, and none for schedules that nothing can refuse."""
    asking = [each for each in planned if _needs_facts(each)]
    subjects = [
        fact_rows.DecisionSubject(each.schedule_uid, each.namespace, each.planning, each.active, each.held)
        for each in asking
        if isinstance(each.planning, Planning)
    ]
    # Only runs that are open can stand in the way of the next one.
    known, shared = (
        fact_rows.gather(
            connection,
            subjects,
            now,
            lock=False,
            kinds=FACTS,
            signals=seen_signals(
                signals, ((each.schedule_uid, each.namespace, each.schedule_id, each.planning) for each in asking), now
            ),
            timed=fact_rows.has_open_runs,
        )
        if subjects
        else ({}, {})
    )
    asked = {each.schedule_uid for each in asking}
    spans: defaultdict[str, CalendarSpans] = defaultdict(CalendarSpans)
    return {
        each.schedule_uid: _next_run(
            each,
            known.get(each.schedule_uid, NO_FACTS),
            shared.get(each.namespace),
            spans[each.namespace],
            now,
            look=each.schedule_uid in asked,
        )
        for each in planned
    }


def _needs_facts(each: Planned) -> bool:
    planning = each.planning
    if isinstance(planning, Exception) or not _can_run(each):
        return False
    is_busy = (each.active or each.held) and not is_independent(planning)
    return bool(is_busy) or is_guarded(planning)


def _can_run(each: Planned) -> bool:
    status = each.position.status
    return status is Status.ACTIVE or (status is Status.PAUSED and each.paused_until is not None)


def _next_run(
    each: Planned, known: Facts, shared: SharedFacts | None, spans: CalendarSpans, now: Instant, *, look: bool
) -> NextRun:
    planning, position = each.planning, each.position
    # What cannot be read will be set aside by the tick.
    if isinstance(planning, Exception) or isinstance(known.policies, UnreadablePolicies):
        return NOT_TRIGGERABLE
    if not look and position.status is Status.ACTIVE and not _is_due(position.next_due, now):
        return NextRun(position.next_due, NoRun.FINISHED if position.next_due is None else None)
    try:
        return Forecaster(
            planning,
            each.schedule_uid,
            position,
            known,
            now=now,
            shared=shared,
            paused_until=each.paused_until,
            spans=spans,
        ).next_run()
    except Exception as wrong:  # stored numbers that make no sense: the other schedules of a list are shown
        if not is_fault_of_a_row(wrong):
            raise
        return NOT_TRIGGERABLE


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


@dataclass(frozen=True, slots=True)
class Written:
    """`field` is the request's name for it; `timezone` is that of the request, None = it names none."""

    text: str
    timezone: str | None = None
    field: str = "until"

    @property
    def needs_schedule(self) -> bool:
        """Tell whether it may be a local time in a zone that only a schedule defines."""
        return self.timezone is None and exactly(self.text.strip(), field=self.field) is None

    def instant(self, now: Instant, zone: Zone | None = None) -> Instant:
        """Raises InvalidDefinition. Without `zone`, and none of its own, a local time is refused."""
        try:
            named = zone if self.timezone is None else load_zone(self.timezone)
            return read_moment(self.text, field=self.field, now=now, zone=named).instant
        except InvalidSpec as wrong:
            name = wrong.field or self.field
            raise InvalidDefinition({name: [wrong.message.removeprefix(f"{name}: ")]}) from None


def written_end(until: str | None, timezone: str | None) -> Written | None:
    """Read the end from a body with both fields; a zone without an end is an error."""
    if until is None and timezone is not None:
        raise InvalidDefinition({"timezone": ["has no effect without `until`"]})
    return None if until is None else Written(until, timezone)


def zone_of(opened: Opened) -> Zone | None:
    """None = the schedule cannot be read, and so has none."""
    return opened.planning.spec.zone if isinstance(opened.planning, Planning) else None
