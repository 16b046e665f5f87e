"""Preview coming occurrences, count a year and explain an instant; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice, takewhile
from typing import Any, Final

from horarium.core.decision import explain as explaining
from horarium.core.decision import year as years
from horarium.core.decision.agenda import undecided_after
from horarium.core.decision.evaluator import Forecaster
from horarium.core.decision.explain import OccurrenceExplanation, RunNow, nominal_of
from horarium.core.decision.facts import NO_FACTS, NO_SIGNAL, Signal
from horarium.core.decision.forecast import ForecastRow, RecordedDecision
from horarium.core.decision.guards import reads_signal
from horarium.core.decision.statuses import Forecast
from horarium.core.decision.year import FIRST_YEAR, LAST_YEAR, Past, YearOverview
from horarium.core.document.calendar import local_date
from horarium.core.document.definition import Definition
from horarium.core.document.document import from_canonical
from horarium.core.document.json_values import shown_input
from horarium.core.document.planning import Planning
from horarium.core.document.rendering import NO_LITERALS, RunFacts, ScheduleName, literals_of, render
from horarium.core.document.states import Origin, Reason
from horarium.core.document.text_template import Literals, TemplateError
from horarium.core.policy.queue import PolicyError, inputs_for
from horarium.core.recurrence.spec import Spec
from horarium.errors import InvalidDefinition
from horarium.features.approvals.rows import waiting_below
from horarium.features.forecast import lane_rows
from horarium.features.history import rows as history
from horarium.features.history.service import find_any
from horarium.features.resources import Opened, Resources
from horarium.features.runs import open_rows
from horarium.features.runs import rows as runs_read
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.creation import MomentText, seen_signals, zone_of
from horarium.features.schedules.decisions import gather_facts
from horarium.features.schedules.health_rows import waiting_runs
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import DAY, MINUTE, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.errors import CannotRead
from horarium.platform.errors import ScheduleBroken
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission

HORIZON: Final = 31 * DAY
MAX_ROWS: Final = 200
_SHOWN_RUNS = 20
_QUARTER: Final = 15 * MINUTE
_MOST_EVENTS: Final = 50_000
"""Events that are counted for a year; of older occurrences the spec is asked."""


@dataclass(frozen=True, slots=True)
class Previewed:
    """`inputs` are those of the run, the same value for the same ones; an occurrence without a run has none.

    `prompt` is the rendered prompt of a template.
    """

    row: ForecastRow
    inputs: Any
    prompt: str | None = None


def moment_of(resources: Resources, caller: Caller, schedule_id: str, written: MomentText) -> Instant:
    """A local time is read in the zone of the schedule, unless another is named."""
    caller.require(Permission.READ)
    if not written.needs_schedule:
        return written.instant(resources.clock.now())
    opened = resources.database.read(lambda connection: _look_at(resources, connection, caller, schedule_id))
    return written.instant(opened.now, zone_of(opened))


def preview(
    resources: Resources, caller: Caller, schedule_id: str, *, rows: int = 10, after: Instant | None = None
) -> list[Previewed]:
    """At most 31 days or 200 rows ahead. Without `after`, from the first occurrence that is not decided."""
    caller.require(Permission.READ)
    if not 1 <= rows <= MAX_ROWS:
        raise InvalidDefinition({"n": [f"must be between 1 and {MAX_ROWS}"]})

    signal = _signal(resources, caller, schedule_id)

    def work(connection: Connection) -> list[Previewed]:
        opened = _look_at(resources, connection, caller, schedule_id)
        revision = schedules.find_revision(connection, opened.row.schedule_uid, opened.row.revision)
        if revision is None:
            raise CannotRead("schedule", schedule_id, f"revision: revision {opened.row.revision} not found")
        row = opened.row
        start = (
            undecided_after(row.decided_until, row.status, 0, opened.now, row.paused_until) if after is None else after
        )
        last = (opened.now if after is None else after) + HORIZON
        coming = _forecaster(resources, connection, opened, signal).rows(start)
        found = islice(takewhile(lambda each: each.tick_at <= last, coming), rows)
        try:
            return with_inputs(found, from_canonical(revision.document), opened.sound.spec)
        except PolicyError as wrong:  # a stored count makes no sense
            raise CannotRead("schedule", schedule_id, str(wrong)) from wrong

    return resources.database.read(work)


def look_at_year(resources: Resources, caller: Caller, schedule_id: str, year: int | None = None) -> YearOverview:
    """Without a year, that of now in the schedule's zone."""
    caller.require(Permission.READ)
    if year is not None and not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidDefinition({"year": [f"must be between {FIRST_YEAR} and {LAST_YEAR}"]})

    def work(connection: Connection) -> YearOverview:
        opened = _look_at(resources, connection, caller, schedule_id)
        planning, row = opened.sound, opened.row
        signal = seen_signals(
            resources.signals, [(row.schedule_uid, row.namespace, row.schedule_id, planning)], opened.now
        ).get(row.schedule_uid)
        forecaster = _forecaster(resources, connection, opened, signal or NO_SIGNAL)
        decided_until = undecided_after(row.decided_until, row.status, 0, opened.now, row.paused_until)
        return years.look_at_year(
            planning,
            forecaster.calendars,
            year or local_date(planning.spec.zone.key, opened.now).year,
            since=row.created_at,
            past=_past(connection, row),
            decided_until=decided_until,
            coming=forecaster.stretches,
        )

    return resources.database.read(work)


def _past(connection: Connection, row: ScheduleRow) -> Past:
    lane, whole_since = lane_rows.newest(connection, row.schedule_uid, row.next_sequence, _MOST_EVENTS)
    since = row.created_at if whole_since is None else max(row.created_at, whole_since)
    return Past(since, lane_rows.count_by_reason(connection, lane, since, _QUARTER))


def _forecaster(resources: Resources, connection: Connection, opened: Opened, signal: Signal) -> Forecaster:
    row = opened.row
    facts, shared = gather_facts(
        connection, opened, Origin.SCHEDULED, lock=False, signal=signal, quotas=resources.quotas, timed=True
    )
    return Forecaster(
        opened.sound,
        row.schedule_uid,
        row.position(),
        facts,
        now=opened.now,
        shared=shared,
        paused_until=row.paused_until,
    )


def with_inputs(rows: Iterable[ForecastRow], definition: Definition, spec: Spec) -> list[Previewed]:
    given, turns = definition.action.input, definition.inputs_rotation
    literals = literals_of(definition.action) if definition.action.template else NO_LITERALS
    inputs = cache(lambda index: shown_input(inputs_for(given, turns, index)))
    found = []
    for row in rows:
        if row.decision is not Forecast.DISPATCH:
            found.append(Previewed(row, None))
        elif definition.action.template:
            found.append(_rendered(row, definition, spec, literals))
        else:
            found.append(Previewed(row, inputs(row.rotation_index or 0)))
    return found


def _rendered(row: ForecastRow, definition: Definition, spec: Spec, literals: Literals) -> Previewed:
    """With the texts of the run as far as they are known: its id and creation are not."""
    schedule = ScheduleName(definition.schedule_id, definition.name)
    facts = RunFacts(definition.namespace, Origin.SCHEDULED.value, row.tick_at, row.due, spec, schedule)
    index = row.rotation_index or 0
    try:
        rendered = render(definition, facts, index=index, literals=literals)
    except TemplateError as wrong:
        raise ScheduleBroken(f"{definition.schedule_id!r} cannot be rendered: {wrong}") from None
    own = rendered.input or (inputs_for(None, definition.inputs_rotation, index),)
    return Previewed(row, shown_input(own[0]), rendered.texts.get("prompt"))


def explain(resources: Resources, caller: Caller, schedule_id: str, moment: Instant) -> OccurrenceExplanation:
    """Also of a deleted schedule; what history recorded wins over what we would decide today.

    Of a moment before the creation, an earlier schedule that had the id then is explained.
    """
    caller.require(Permission.READ)
    signal = _signal(resources, caller, schedule_id, moment)

    def work(connection: Connection) -> OccurrenceExplanation:
        opened = _look_at(resources, connection, caller, schedule_id)
        at, decided = _about(resources, connection, opened, moment)
        if decided is None and at < opened.row.created_at:
            earlier = schedules.find_then(connection, caller.namespace, schedule_id, at)
            if earlier is not None:
                opened = _opened(resources, connection, earlier)
                at, decided = _about(resources, connection, opened, moment)
        row = opened.row
        if decided is not None:
            recorded, then = decided
            run = _run_now(connection, caller, recorded)
            return explaining.explain(
                then, row.schedule_uid, row.position(), NO_FACTS, at=at, now=opened.now, recorded=recorded, run=run
            )
        facts, shared = gather_facts(
            connection, opened, Origin.SCHEDULED, lock=False, signal=signal, quotas=resources.quotas, timed=True
        )
        running = open_rows.open_run_ids(connection, row.schedule_uid, _SHOWN_RUNS)
        return explaining.explain(
            opened.sound,
            row.schedule_uid,
            row.position(),
            facts._replace(active_run_ids=tuple(id_text(run_id) for run_id in running)),
            at=at,
            now=opened.now,
            shared=shared,
            waiting=waiting_runs(connection, [row.schedule_uid]).get(row.schedule_uid),
            paused_until=row.paused_until,
            created_at=row.created_at,
        )

    return resources.database.read(work)


def _about(
    resources: Resources, connection: Connection, opened: Opened, moment: Instant
) -> tuple[Instant, tuple[RecordedDecision, Planning] | None]:
    """The occurrence that a moment is about, and what was decided of it."""
    planning = opened.planning
    at = moment if isinstance(planning, Exception) else nominal_of(planning, opened.row.schedule_uid, moment)
    return at, _decided(resources, connection, opened, at)


def _run_now(connection: Connection, caller: Caller, recorded: RecordedDecision) -> RunNow | None:
    """Present state of the run that history names, while it is retained."""
    named = recorded.payload.get("workflow_run_id")
    if not recorded.is_birth or named is None:
        return None
    row = runs_read.find(connection, caller.namespace, parse_id(named, "workflow_run_id"))
    if row is None:
        return None
    waiting, gates = waiting_below(connection, row.run_id)
    return RunNow(id_text(row.run_id), row.state, waiting, gates)


def _signal(resources: Resources, caller: Caller, schedule_id: str, at: Instant | None = None) -> Signal:
    """Fetch the provider's signal if the condition reads it; `at` may be decided already. No transaction is open."""
    if resources.signals is None:
        return NO_SIGNAL

    def is_needed(connection: Connection) -> bool:
        opened = _look_at(resources, connection, caller, schedule_id)
        if isinstance(opened.planning, Exception) or not reads_signal(opened.planning):
            return False
        return at is None or _decided(resources, connection, opened, at) is None

    if not resources.database.read(is_needed):
        return NO_SIGNAL
    return resources.signals.ask(caller.namespace, schedule_id, resources.clock.now())


def _decided(
    resources: Resources, connection: Connection, opened: Opened, at: Instant
) -> tuple[RecordedDecision, Planning] | None:
    """Recorded decision about an occurrence, with the planning that was in force then."""
    uid = opened.row.schedule_uid
    event = history.decision_about(connection, uid, at)
    if event is None:
        return None
    recorded = RecordedDecision(event.event_type.value, event.payload, event.recorded_at)
    # What an edit overtook is written together with the edit, and belongs to the revision before it.
    moment = event.recorded_at - (recorded.reason is Reason.SUPERSEDED)
    planning = schedules.planning_at(connection, uid, moment)
    known = None if planning is None else resources.known.load(connection, [planning])[planning]
    then = known if isinstance(known, Planning) else opened.sound
    return (recorded, then) if recorded.is_about(then, at) else None


def _look_at(resources: Resources, connection: Connection, caller: Caller, schedule_id: str) -> Opened:
    return _opened(resources, connection, find_any(connection, caller, schedule_id))


def _opened(resources: Resources, connection: Connection, row: ScheduleRow) -> Opened:
    planning = resources.known.load(connection, [row.planning])[row.planning]
    return Opened(row, planning, resources.clock.now())
