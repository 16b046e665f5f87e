"""What a document would make of a schedule, new or changed: checked as a write would, looked at ahead, and not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from horarium.decision import lifecycle
from horarium.decision.births import BirthPolicies
from horarium.decision.evaluator import FACTS, Forecaster
from horarium.decision.facts import NO_FACTS, NO_SIGNAL, Fact, Facts, Shared, Signal, UnreadablePolicies
from horarium.decision.fires import FireChanges, coming, compare_fires
from horarium.decision.guards import reads_signal
from horarium.decision.year import FIRST_YEAR, LAST_YEAR, YearOverview, look_at_year
from horarium.errors import InvalidDefinition
from horarium.instant import Instant
from horarium.operations.caller import Caller
from horarium.operations.draft_checks import (
    NAMELESS,
    NOBODY,
    WHOLE,
    Asked,
    Checked,
    Invalid,
    check_asked,
    kept_document,
)
from horarium.operations.previews import Previewed, with_inputs
from horarium.operations.resources import Opened, Resources
from horarium.recurrence.spec_words import spec_words
from horarium.schedule.calendar import local_date
from horarium.schedule.canonical import spec_document
from horarium.schedule.definition import Definition
from horarium.schedule.document import named_in
from horarium.schedule.effective import Effective
from horarium.schedule.patch import Update
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position
from horarium.schedule.run import Origin
from horarium.schedule.spec_warnings import spec_warnings
from horarium.schedule.told_policies import ToldPolicies, policies_of, tell
from horarium.store.database import Connection
from horarium.store.schedules import facts as store_facts
from horarium.wire.roles import Permission

MAX_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    """`errors` are by the path of their field; under `document` stands what is about none.

    Where only the *when* can be read, words, fires and year are those of the spec alone. `may_write`: by the role, and
    by who owns the schedule that is changed.
    """

    errors: Mapping[str, Sequence[str]]
    document: Mapping[str, Any] | None = None
    words: str | None = None
    warnings: tuple[str, ...] = ()
    fires: tuple[Previewed, ...] = ()
    year: YearOverview | None = None
    changes: FireChanges | None = None
    policies: ToldPolicies | None = None
    may_write: bool = True


def draft(
    resources: Resources,
    caller: Caller,
    document: object,
    *,
    schedule_id: str | None = None,
    how: Update = Update.PARTS,
    rows: int = 10,
    year: int | None = None,
) -> ScheduleDraft:
    """Show the effects of creating the schedule or, with a `schedule_id`, of changing that schedule."""
    caller.require(Permission.READ)
    if not 0 <= rows <= MAX_ROWS:
        raise InvalidDefinition({"n": [f"must be between 0 and {MAX_ROWS}"]})
    if year is not None and not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidDefinition({"year": [f"must be between {FIRST_YEAR} and {LAST_YEAR}"]})
    asked = Asked(document, schedule_id, how, rows, year, resources.clock.now())
    found = resources.database.read(partial(check_asked, resources, caller=caller, asked=asked))
    may_write = caller.may(Permission.WRITE)
    if isinstance(found, Invalid):
        return replace(_of_spec(found, asked), may_write=may_write and not found.forbidden)
    signal = _signal(resources, caller, found, asked)
    seen = resources.database.read(lambda connection: _look_ahead(connection, found, asked, signal))
    return replace(seen, may_write=may_write)


# ── looking ahead ─────────────────────────────────────────────────────────────────────────────────────


def _signal(resources: Resources, caller: Caller, found: Checked, asked: Asked) -> Signal:
    """Nobody outside is asked about a schedule that is not there."""
    if resources.signals is None or not reads_signal(found.draft.planning):
        return NO_SIGNAL
    if found.opened is None:
        return Signal(error="signals are not available until the schedule exists")
    return resources.signals.ask(caller.namespace, found.opened.row.schedule_id, asked.now)


def _look_ahead(connection: Connection, found: Checked, asked: Asked, signal: Signal) -> ScheduleDraft:
    definition = found.draft.definition
    facts, shared = _facts(connection, found, asked.now, signal)
    policies = facts.policies
    unreadable = (
        (f"{WHOLE}: the schedule cannot run, because its policies cannot be read: {policies.why}",)
        if isinstance(policies, UnreadablePolicies)
        else ()
    )
    key = None if found.opened is None and named_in(asked.document) is None else definition.schedule_id
    return ScheduleDraft(
        {},
        kept_document(definition, key),
        spec_words(spec_document(definition.spec), definition.schedule_id),
        (*found.warnings, *unreadable, *spec_warnings(definition.spec, key, now=asked.now)),
        () if unreadable else tuple(_fires(found, facts, shared, asked)),
        _look_at_year(found, facts, shared, asked),
        None if found.opened is None else _changes(connection, found, found.opened, asked.now),
        _policies(definition, policies, shared),
    )


def _facts(connection: Connection, found: Checked, now: Instant, signal: Signal) -> tuple[Facts, Shared]:
    """Facts that the guards would see now, with the policies of the draft instead of the stored ones."""
    definition = found.draft.definition
    own = Effective(definition.approval, definition.retry, definition.failure, definition.limits)
    planning = replace(found.draft.planning, own_policies=own)
    active, held = (0, 0) if found.opened is None else (found.opened.row.active, found.opened.row.held)
    subject = store_facts.Subject(found.uid, definition.namespace, planning, active, held)
    known, shared = store_facts.gather(
        connection,
        [subject],
        now,
        Origin.SCHEDULED,
        lock=False,
        kinds=FACTS,
        signals={found.uid: signal},
        timed=store_facts.is_timed,
    )
    return known.get(found.uid, NO_FACTS), shared[definition.namespace]


def _fires(found: Checked, facts: Facts, shared: Shared, asked: Asked) -> list[Previewed]:
    """However far away they are. Of a schedule that is not there yet nobody knows the jitter."""
    rows = list(islice(_forecaster(found, facts, shared, asked.now).rows(asked.now), asked.rows))
    shown = rows if found.opened is not None else [row.unjittered() for row in rows]
    return with_inputs(shown, found.draft.definition, found.draft.planning.spec)


def _forecaster(found: Checked, facts: Facts, shared: Shared, now: Instant) -> Forecaster:
    return Forecaster(
        found.draft.planning,
        found.uid,
        found.position,
        facts,
        now=now,
        shared=shared,
        paused_until=None if found.opened is None else found.opened.row.paused_until,
    )


def _look_at_year(found: Checked, facts: Facts, shared: Shared, asked: Asked) -> YearOverview:
    planning, decided = found.draft.planning, found.position.decided_until
    readable = not isinstance(facts.policies, UnreadablePolicies)
    return look_at_year(
        planning,
        facts.calendars,
        _year(planning, asked),
        since=asked.now if found.opened is None else found.opened.row.created_at,
        decided_until=decided,
        coming=_forecaster(found, facts, shared, asked.now).stretches if readable else None,
    )


def _changes(connection: Connection, found: Checked, opened: Opened, now: Instant) -> FireChanges:
    before = None if isinstance(opened.planning, Exception) else opened.planning
    return changes_between(
        connection,
        opened.row.namespace,
        None if before is None else (before, opened.row.position()),
        (found.draft.planning, found.position),
        now,
    )


def changes_between(
    connection: Connection,
    namespace: str,
    before: tuple[Planning, Position] | None,
    after: tuple[Planning, Position],
    now: Instant,
) -> FireChanges:
    """From now on, under the calendars as they are now; None = nobody can say what fired before."""
    sides = {b"before": before, b"after": after}
    subjects = [
        store_facts.Subject(side, namespace, given[0], 0, 0) for side, given in sides.items() if given is not None
    ]
    known, _ = store_facts.gather(connection, subjects, now, lock=False, kinds=frozenset({Fact.CALENDARS}))
    old, new = (
        () if given is None else coming(*given, known.get(side, NO_FACTS), now=now) for side, given in sides.items()
    )
    return compare_fires(old, new, after[0].spec.zone, now=now)


def _policies(
    definition: Definition, policies: BirthPolicies | UnreadablePolicies | None, shared: Shared
) -> ToldPolicies | None:
    """Those that the next run would be born with."""
    if isinstance(policies, UnreadablePolicies):
        return None
    if policies is not None:
        turn = 0 if policies.team is None else shared.turns.get(policies.team.team_id, 0)
        effective = policies.bundle(policies.member(turn)).effective
        if effective is not None:
            return tell(effective, definition.queue)
    return policies_of(None, definition)


def _of_spec(found: Invalid, asked: Asked) -> ScheduleDraft:
    """Draft of an invalid document, as far as it can be described."""
    if found.spec is None:
        return ScheduleDraft(found.errors, found.document)
    key = found.key or NAMELESS
    planning = Planning(found.spec.compile(key))
    position = lifecycle.begin(planning, NOBODY, now=asked.now)
    forecaster = Forecaster(planning, NOBODY, position, NO_FACTS, now=asked.now)
    rows = forecaster.rows(asked.now)
    shown = [Previewed(row.unjittered(), None) for row in islice(rows, asked.rows)]
    return ScheduleDraft(
        found.errors,
        found.document,
        spec_words(spec_document(found.spec), key),
        spec_warnings(found.spec, found.key, now=asked.now),
        tuple(shown),
        look_at_year(
            planning,
            {},
            _year(planning, asked),
            since=asked.now,
            decided_until=position.decided_until,
            coming=forecaster.stretches,
        ),
    )


def _year(planning: Planning, asked: Asked) -> int:
    return asked.year or local_date(planning.spec.zone.key, asked.now).year
