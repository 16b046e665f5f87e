"""Revisions of a schedule with their differences, and the effect of a document on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from horarium.core.decision import decide as schedule_changes
from horarium.core.decision.evaluator import FACTS, Forecaster
from horarium.core.decision.facts import NO_FACTS, NO_SIGNAL, Fact, Facts, SharedFacts, Signal, UnreadablePolicies
from horarium.core.decision.guards import reads_signal
from horarium.core.decision.run_policies import CreationPolicies, FullPolicies, full_policies, policies_of
from horarium.core.decision.year import (
    FIRST_YEAR,
    LAST_YEAR,
    FireComparison,
    YearOverview,
    coming_fires,
    compare_fires,
    look_at_year,
)
from horarium.core.document.calendar import local_date
from horarium.core.document.canonical import UpdateMode, spec_document
from horarium.core.document.definition import Definition
from horarium.core.document.descriptions import spec_warnings, spec_words
from horarium.core.document.document import named_in
from horarium.core.document.effective_policies import Effective
from horarium.core.document.json_values import damage_of
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Position
from horarium.errors import InvalidDefinition
from horarium.features.bundles.document import DocumentDifference, differences
from horarium.features.forecast.service import Previewed, with_inputs
from horarium.features.history.service import find_any
from horarium.features.resources import Opened, Resources
from horarium.features.schedules import fact_rows as store_facts
from horarium.features.schedules import lookup_rows as store
from horarium.features.schedules import rows
from horarium.features.schedules.draft_checks import (
    NAMELESS,
    NOBODY,
    WHOLE,
    CheckedDraft,
    DraftRequest,
    Invalid,
    check_asked,
    kept_document,
)
from horarium.features.schedules.filters import MalformedPageToken
from horarium.features.schedules.lookup_rows import Author
from horarium.features.schedules.rows import RevisionRow, ScheduleRow
from horarium.instant import Instant
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.wire import Permission

MAX_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class DraftResult:
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
    changes: FireComparison | None = None
    policies: FullPolicies | None = None
    may_write: bool = True


def draft(
    resources: Resources,
    caller: Caller,
    document: object,
    *,
    schedule_id: str | None = None,
    how: UpdateMode = UpdateMode.PARTS,
    rows: int = 10,
    year: int | None = None,
) -> DraftResult:
    """Show the effects of creating the schedule or, with a `schedule_id`, of changing that schedule."""
    caller.require(Permission.READ)
    if not 0 <= rows <= MAX_ROWS:
        raise InvalidDefinition({"n": [f"must be between 0 and {MAX_ROWS}"]})
    if year is not None and not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidDefinition({"year": [f"must be between {FIRST_YEAR} and {LAST_YEAR}"]})
    asked = DraftRequest(document, schedule_id, how, rows, year, resources.clock.now())
    found = resources.database.read(partial(check_asked, resources, caller=caller, asked=asked))
    may_write = caller.may(Permission.WRITE)
    if isinstance(found, Invalid):
        return replace(_of_spec(found, asked), may_write=may_write and not found.forbidden)
    signal = _signal(resources, caller, found, asked)
    seen = resources.database.read(lambda connection: _look_ahead(connection, found, asked, signal))
    return replace(seen, may_write=may_write)


# ── looking ahead ─────────────────────────────────────────────────────────────────────────────────────


def _signal(resources: Resources, caller: Caller, found: CheckedDraft, asked: DraftRequest) -> Signal:
    """Nobody outside is asked about a schedule that is not there."""
    if resources.signals is None or not reads_signal(found.draft.planning):
        return NO_SIGNAL
    if found.opened is None:
        return Signal(error="signals are not available until the schedule exists")
    return resources.signals.ask(caller.namespace, found.opened.row.schedule_id, asked.now)


def _look_ahead(connection: Connection, found: CheckedDraft, asked: DraftRequest, signal: Signal) -> DraftResult:
    definition = found.draft.definition
    facts, shared = _facts(connection, found, asked.now, signal)
    policies = facts.policies
    unreadable = (
        (f"{WHOLE}: the schedule cannot run, because its policies cannot be read: {policies.why}",)
        if isinstance(policies, UnreadablePolicies)
        else ()
    )
    key = None if found.opened is None and named_in(asked.document) is None else definition.schedule_id
    return DraftResult(
        {},
        kept_document(definition, key),
        spec_words(spec_document(definition.spec), definition.schedule_id),
        (*found.warnings, *unreadable, *spec_warnings(definition.spec, key, now=asked.now)),
        () if unreadable else tuple(_fires(found, facts, shared, asked)),
        _look_at_year(found, facts, shared, asked),
        None if found.opened is None else _changes(connection, found, found.opened, asked.now),
        _policies(definition, policies, shared),
    )


def _facts(connection: Connection, found: CheckedDraft, now: Instant, signal: Signal) -> tuple[Facts, SharedFacts]:
    """Facts that the guards would see now, with the policies of the draft instead of the stored ones."""
    definition = found.draft.definition
    own = Effective(definition.approval, definition.retry, definition.failure, definition.limits)
    planning = replace(found.draft.planning, own_policies=own)
    active, held = (0, 0) if found.opened is None else (found.opened.row.active, found.opened.row.held)
    subject = store_facts.DecisionSubject(found.uid, definition.namespace, planning, active, held)
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


def _fires(found: CheckedDraft, facts: Facts, shared: SharedFacts, asked: DraftRequest) -> list[Previewed]:
    """However far away they are. Of a schedule that is not there yet nobody knows the jitter."""
    rows = list(islice(_forecaster(found, facts, shared, asked.now).rows(asked.now), asked.rows))
    shown = rows if found.opened is not None else [row.unjittered() for row in rows]
    return with_inputs(shown, found.draft.definition, found.draft.planning.spec)


def _forecaster(found: CheckedDraft, facts: Facts, shared: SharedFacts, now: Instant) -> Forecaster:
    return Forecaster(
        found.draft.planning,
        found.uid,
        found.position,
        facts,
        now=now,
        shared=shared,
        paused_until=None if found.opened is None else found.opened.row.paused_until,
    )


def _look_at_year(found: CheckedDraft, facts: Facts, shared: SharedFacts, asked: DraftRequest) -> YearOverview:
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


def _changes(connection: Connection, found: CheckedDraft, opened: Opened, now: Instant) -> FireComparison:
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
) -> FireComparison:
    """From now on, under the calendars as they are now; None = nobody can say what fired before."""
    sides = {b"before": before, b"after": after}
    subjects = [
        store_facts.DecisionSubject(side, namespace, given[0], 0, 0)
        for side, given in sides.items()
        if given is not None
    ]
    known, _ = store_facts.gather(connection, subjects, now, lock=False, kinds=frozenset({Fact.CALENDARS}))
    old, new = (
        () if given is None else coming_fires(*given, known.get(side, NO_FACTS), now=now)
        for side, given in sides.items()
    )
    return compare_fires(old, new, after[0].spec.zone, now=now)


def _policies(
    definition: Definition, policies: CreationPolicies | UnreadablePolicies | None, shared: SharedFacts
) -> FullPolicies | None:
    """Those that the next run would be born with."""
    if isinstance(policies, UnreadablePolicies):
        return None
    if policies is not None:
        turn = 0 if policies.team is None else shared.turns.get(policies.team.team_id, 0)
        effective = policies.bundle(policies.member(turn)).effective
        if effective is not None:
            return full_policies(effective, definition.queue)
    return policies_of(None, definition)


def _of_spec(found: Invalid, asked: DraftRequest) -> DraftResult:
    """Draft of an invalid document, as far as it can be described."""
    if found.spec is None:
        return DraftResult(found.errors, found.document)
    key = found.key or NAMELESS
    planning = Planning(found.spec.compile(key))
    position = schedule_changes.begin_position(planning, NOBODY, now=asked.now)
    forecaster = Forecaster(planning, NOBODY, position, NO_FACTS, now=asked.now)
    rows = forecaster.rows(asked.now)
    shown = [Previewed(row.unjittered(), None) for row in islice(rows, asked.rows)]
    return DraftResult(
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


def _year(planning: Planning, asked: DraftRequest) -> int:
    return asked.year or local_date(planning.spec.zone.key, asked.now).year


DEFAULT_LIMIT = 20
MAX_LIMIT = 100
_MAX_REVISION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    row: RevisionRow
    author: Author


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """`next_page_token` None = there is none before these."""

    schedule: ScheduleRow
    revisions: tuple[RevisionEntry, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`changes` None = one of them cannot be planned any more, so that nobody knows when it would fire."""

    before: int
    after: int
    fields: tuple[DocumentDifference, ...]
    changes: FireComparison | None


def read(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> RevisionPage:
    """Newest first, also of a deleted schedule."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size, default=DEFAULT_LIMIT, most=MAX_LIMIT)
    before = None if next_page_token is None else _place(next_page_token)

    def look(connection: Connection) -> RevisionPage:
        row = find_any(connection, caller, schedule_id)
        found, more = store.revision_page(connection, row.schedule_uid, before=before, limit=limit)
        known = _authors(connection, row, found)
        written = tuple(RevisionEntry(each, known.get(each.revision) or _remembered(row, each)) for each in found)
        return RevisionPage(row, written, str(found[-1].revision) if more and found else None)

    return resources.database.read(look)


def compare(
    resources: Resources, caller: Caller, schedule_id: str, *, before: int | None = None, after: int | None = None
) -> Comparison:
    """Compare two revisions and the upcoming fires that differ; by default the newest two."""
    caller.require(Permission.READ)

    def look(connection: Connection) -> Comparison:
        row = find_any(connection, caller, schedule_id)
        later = row.revision if after is None else after
        earlier = max(1, later - 1) if before is None else before
        one, other = _revision(connection, row, "from", earlier), _revision(connection, row, "to", later)
        known = resources.known.load(connection, [one.planning, other.planning])
        old, new, position = known[one.planning], known[other.planning], row.position()
        changes = None
        if isinstance(old, Planning) and isinstance(new, Planning):
            now = resources.clock.now()
            changes = changes_between(connection, row.namespace, (old, position), (new, position), now)
        return Comparison(earlier, later, differences(one.document, other.document), changes)

    return resources.database.read(look)


def _revision(connection: Connection, row: ScheduleRow, name: str, number: int) -> RevisionRow:
    found = rows.find_revision(connection, row.schedule_uid, number) if 1 <= number <= _MAX_REVISION else None
    if found is None:
        raise InvalidDefinition({name: [f"revision {number} not found; the newest is {row.revision}"]})
    if (why := damage_of(found.document)) is not None:
        raise InvalidDefinition({name: [f"the revision {number} cannot be read: {why}"]})
    return found


def _authors(connection: Connection, row: ScheduleRow, found: Sequence[RevisionRow]) -> Mapping[int, Author]:
    if not found:
        return {}
    return store.authors(connection, row.schedule_uid, found, next_sequence=row.next_sequence)


def _remembered(row: ScheduleRow, revision: RevisionRow) -> Author:
    """Author of the first or the newest revision, which the schedule stores itself, however old they are."""
    if revision.revision == 1:
        return Author(row.created_by)
    return Author(row.edited_by) if revision.revision == row.revision else Author()


def _place(token: str) -> int:
    if not (token.isascii() and token.isdigit() and len(token) <= len(str(_MAX_REVISION)) and int(token)):
        raise MalformedPageToken("next_page_token", "is not a valid page token")
    return min(int(token), _MAX_REVISION)
