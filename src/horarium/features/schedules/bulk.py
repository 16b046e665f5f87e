"""Bulk changes of schedules and runs: one transaction and one outcome for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar, assert_never

from horarium.core.decision.decide import released_at_once
from horarium.core.document.canonical import UpdateMode
from horarium.core.document.checks import entry_key, label
from horarium.core.document.states import OPEN, RunState, Status
from horarium.core.policy.queue import PolicyError
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs import open_rows
from horarium.features.runs import service as run_service
from horarium.features.runs.open_rows import RunSelection, SelectedRun
from horarium.features.schedules import lifecycle, list_rows, service, triggers
from horarium.features.schedules.change_model import (
    MAX_AT_ONCE,
    BulkAction,
    BulkOutcome,
    RunChoice,
    ScheduleChoice,
    StopAction,
)
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.filters import LISTED, ScheduleFilter, make_list_token, read_list_token
from horarium.instant import Instant, to_rfc3339
from horarium.platform.caller import Caller, require_confirmed
from horarium.platform.database import Connection
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.errors import OperationError, RunNotFound, ScheduleNotFound
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bulk:
    """Change to all selected schedules. `key`: the same key again triggers nothing twice.

    `labels` are added; None removes one.
    """

    action: BulkAction
    labels: Mapping[str, str | None] | None = None
    until: Instant | None = None
    reason: str | None = None
    dry_run: bool = False
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    schedule_id: str
    outcome: BulkOutcome
    status: Status | None = None
    run_id: bytes | None = None
    state: RunState | None = None
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """`missing` are ids that were asked for and have no schedule."""

    schedules: tuple[tuple[str, Status], ...]
    missing: tuple[str, ...] = ()
    next_page_token: str | None = None


def change_schedules(
    resources: Resources,
    caller: Caller,
    asked: Bulk,
    choice: ScheduleChoice,
    *,
    everything: bool = False,
    limit: int = MAX_AT_ONCE,
    next_page_token: str | None = None,
) -> tuple[list[Changed], str | None]:
    """The outcomes, newest schedule first, and where to go on."""
    caller.require(Permission.WRITE if asked.action in _WRITES else Permission.OPERATE)
    _check(asked, resources.clock.now())
    wanted = filter_of(choice, everything=everything)
    if not asked.dry_run:  # on every page: a token for the second one can be had without the first
        require_confirmed(caller, _started(resources, caller, asked, wanted))
    chosen = _choose(resources, caller, wanted, checked_limit(limit), next_page_token)
    done = [
        _schedule_outcome(resources, caller, asked, schedule_id, status) for schedule_id, status in chosen.schedules
    ]
    gone = [_failed_schedule(schedule_id, ScheduleNotFound(schedule_id)) for schedule_id in chosen.missing]
    return [*done, *gone], chosen.next_page_token


# Labels are a part of the definition.
_WRITES = (BulkAction.DELETE, BulkAction.LABEL)


def _started(resources: Resources, caller: Caller, asked: Bulk, wanted: ScheduleFilter) -> int:
    """Count the runs that all pages together start; of more schedules than are counted, at least these.

    A pause with an end starts them then: what is active now is counted as ended.
    """
    chosen, pauses = wanted.filter(), asked.action is BulkAction.PAUSE and asked.until is not None
    if caller.confirmed or chosen is None or not (pauses or asked.action in (BulkAction.TRIGGER, BulkAction.RESUME)):
        return 0
    held_only = asked.action is not BulkAction.TRIGGER

    def look(connection: Connection) -> int:
        found = list_rows.holding(connection, caller.namespace, chosen, held_only=held_only, limit=_MOST_COUNTED)
        if not held_only:
            return len(found)
        known = resources.known.load(connection, {each.planning for each in found})
        return sum(
            released_at_once(planning, active=0 if pauses else each.active, held=each.held)
            for each in found
            if not isinstance(planning := known[each.planning], Exception) and (pauses or each.status is Status.PAUSED)
        )

    return resources.database.read(look)


_MOST_COUNTED = 10_000


def filter_of(choice: ScheduleChoice, *, everything: bool) -> ScheduleFilter:
    """Raises InvalidDefinition for a filter that chooses nothing, or all without saying so."""
    given = (choice.ids, choice.labels, choice.name_contains, choice.status)
    if everything and any(given):
        raise InvalidDefinition({"all": ["cannot be combined with a filter"]})
    if not everything and not any(given):
        raise InvalidDefinition(
            {"filter": ["must not be empty; set all: true to select every schedule of the namespace"]}
        )
    if choice.status is not None and choice.status not in LISTED.values():
        raise InvalidDefinition({"filter.status": [f"must be one of {', '.join(LISTED)}"]})
    return ScheduleFilter(
        statuses=None if choice.status is None else [choice.status],
        text=choice.name_contains,
        labels=choice.labels or None,
        schedule_ids=choice.ids,
    )


def checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_AT_ONCE:
        raise InvalidDefinition({"limit": [f"must be between 1 and {MAX_AT_ONCE}"]})
    return limit


def _check(asked: Bulk, now: Instant) -> None:
    _check_labels(asked)
    if asked.until is None:
        return
    if asked.action is not BulkAction.PAUSE:
        raise InvalidDefinition({"until": [f"applies only to the action pause, not {asked.action}"]})
    if asked.until <= now:
        raise InvalidDefinition({"until": [f"must be in the future; the current time is {to_rfc3339(now)}"]})


def _check_labels(asked: Bulk) -> None:
    """By the rule of definitions, once for all schedules."""
    if asked.action is not BulkAction.LABEL:
        if asked.labels is not None:
            raise InvalidDefinition({"labels": [f"apply only to the action label, not {asked.action}"]})
        return
    if not asked.labels:
        raise InvalidDefinition({"labels": ["must contain at least one label"]})
    try:
        for name, value in asked.labels.items():
            if value is not None:
                label(f"labels.{entry_key('labels', name)[:64]}", value)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _choose(resources: Resources, caller: Caller, wanted: ScheduleFilter, limit: int, token: str | None) -> Chosen:
    namespace, filters = caller.namespace, wanted.fingerprint()
    after = None if token is None else read_list_token(token, namespace, filters)
    asked = wanted.filter()
    assert asked is not None  # a query alone can contradict itself

    def look(connection: Connection) -> Chosen:
        # The schedule that the page before ended with may be deleted by now: that was the wish.
        page = list_rows.list_page(connection, namespace, asked, after=after, limit=limit)
        if not page.rows:
            require_namespace(connection, namespace)
        found = tuple((row.schedule_id, row.status) for row in page.rows)
        following = None if page.after is None else make_list_token(namespace, filters, page.after)
        is_by_id = wanted.schedule_ids is not None and token is None and following is None
        return Chosen(found, _missing(wanted, found) if is_by_id else (), following)

    return resources.database.read(look)


def _missing(wanted: ScheduleFilter, found: Sequence[tuple[str, Status]]) -> tuple[str, ...]:
    """Only where ids alone were asked for: else the other filters may have left them out."""
    if wanted.statuses or wanted.text or wanted.labels:
        return ()
    there = {schedule_id for schedule_id, _ in found}
    return tuple(each for each in wanted.schedule_ids or () if each not in there)


def _schedule_outcome(resources: Resources, caller: Caller, asked: Bulk, schedule_id: str, status: Status) -> Changed:
    if asked.dry_run:
        return Changed(schedule_id, BulkOutcome.PLANNED, status)
    return tried(
        lambda: _done(resources, caller, asked, schedule_id), lambda wrong: _failed_schedule(schedule_id, wrong, status)
    )


def tried(act: Callable[[], T], failed: Callable[[HorariumError], T]) -> T:
    """Run `act` for one of many items: a fault of the item is its outcome, an unreachable database is raised."""
    try:
        return act()
    except (OperationError, InvalidDefinition) as wrong:
        return failed(wrong)
    except HorariumError as wrong:
        if not is_fault_of_a_row(wrong):
            raise
        return failed(wrong)


def _done(resources: Resources, caller: Caller, asked: Bulk, schedule_id: str) -> Changed:
    match asked.action:
        case BulkAction.PAUSE:
            done = lifecycle.pause(resources, caller, schedule_id, reason=asked.reason, until=asked.until)
        case BulkAction.RESUME:
            done = lifecycle.resume(resources, caller, schedule_id, reason=asked.reason)
        case BulkAction.DELETE:
            done = lifecycle.delete(resources, caller, schedule_id, reason=asked.reason)
        case BulkAction.LABEL:
            changes = {"labels": dict(asked.labels or {})}
            done = service.update(resources, caller.because(asked.reason), schedule_id, changes, how=UpdateMode.MERGE)
        case BulkAction.TRIGGER:
            return _triggered(resources, caller, asked, schedule_id)
        case _:
            assert_never(asked.action)
    return Changed(schedule_id, BulkOutcome(done.outcome.value), done.status)


def _triggered(resources: Resources, caller: Caller, asked: Bulk, schedule_id: str) -> Changed:
    done = triggers.trigger(
        resources, caller.because(asked.reason), schedule_id, key=_own_key(asked, caller, schedule_id)
    )
    reason = None if done.reason is None else done.reason.value
    return Changed(schedule_id, BulkOutcome(done.outcome.value), None, done.run_id, done.state, reason)


def _own_key(asked: Bulk, caller: Caller, schedule_id: str) -> str | None:
    """Derive a key for one schedule and caller, which others cannot guess and use up first."""
    if asked.key is None:
        return None
    whole = "\n".join((caller.principal or "", asked.key, schedule_id))
    return f"bulk:{sha256(whole.encode()).hexdigest()}"


def _failed_schedule(schedule_id: str, wrong: HorariumError, status: Status | None = None) -> Changed:
    return Changed(schedule_id, BulkOutcome.FAILED, status, reason=wrong.reason, message=wrong.message)


@dataclass(frozen=True, slots=True)
class StoppedOne:
    run_id: str
    schedule_id: str | None
    outcome: BulkOutcome
    state: RunState | None
    reason: str | None = None
    message: str | None = None


def stop_runs(
    resources: Resources,
    caller: Caller,
    action: StopAction,
    choice: RunChoice,
    *,
    everything: bool = False,
    dry_run: bool = False,
    limit: int = MAX_AT_ONCE,
    next_page_token: str | None = None,
) -> tuple[list[StoppedOne], str | None]:
    """The outcomes, oldest run first, and where to go on. Runs that have ended are not chosen."""
    caller.require(Permission.OPERATE)
    wanted, most = wanted_of(choice, everything=everything), checked_limit(limit)
    after = None if next_page_token is None else parse_id(next_page_token, "next_page_token")
    found = resources.database.read(
        lambda connection: open_rows.selected_runs(connection, caller.namespace, wanted, after=after, limit=most + 1)
    )
    chosen = found[:most]
    done = [_run_outcome(resources, caller, action, run, dry_run=dry_run) for run in chosen]
    until = chosen[-1].run_id if len(found) > most else None
    of_page = [run_id for run_id in _only_ids(choice) if _is_between(_parsed(run_id), after, until)]
    gone = [_gone(resources, caller, run_id, chosen) for run_id in of_page]
    following = None if until is None else id_text(until)
    return [*done, *(each for each in gone if each is not None)], following


def wanted_of(choice: RunChoice, *, everything: bool) -> RunSelection:
    given = (choice.ids, choice.schedule_ids, choice.labels, choice.states)
    if everything and any(given):
        raise InvalidDefinition({"all": ["cannot be combined with a filter"]})
    if not everything and not any(given):
        raise InvalidDefinition({"filter": ["must not be empty; set all: true to select every run of the namespace"]})
    return RunSelection(
        run_ids=None if choice.ids is None else [each for each in map(_parsed, choice.ids) if each is not None],
        schedule_ids=choice.schedule_ids,
        labels=choice.labels,
        states=None if choice.states is None else frozenset(map(_state, choice.states)),
    )


def _parsed(run_id: str) -> bytes | None:
    """Parse a run id; None for a malformed one, which is reported below."""
    try:
        return parse_id(run_id, "filter.ids")
    except InvalidDefinition:
        return None


def _state(word: str) -> RunState:
    names = {state.value: state for state in OPEN}
    if word.lower() not in names:
        raise InvalidDefinition({"filter.states": [f"must be one of {', '.join(sorted(names))}"]})
    return names[word.lower()]


def _only_ids(choice: RunChoice) -> tuple[str, ...]:
    """Where other filters were given too, they may have left a run out."""
    return () if choice.schedule_ids or choice.labels or choice.states else choice.ids or ()


def _is_between(run_id: bytes | None, after: bytes | None, until: bytes | None) -> bool:
    """Tell whether a run belongs to the page between two runs; a malformed id belongs to the first page."""
    if run_id is None:
        return after is None
    return (after is None or run_id > after) and (until is None or run_id <= until)


def _gone(resources: Resources, caller: Caller, run_id: str, chosen: list[SelectedRun]) -> StoppedOne | None:
    """Outcome of a run requested by its id that is not open: it has ended, or does not exist."""
    if _parsed(run_id) in {run.run_id for run in chosen}:
        return None

    def look() -> StoppedOne:
        row = run_service.get(resources, caller, run_id).row
        return StoppedOne(id_text(row.run_id), row.schedule_id, BulkOutcome.UNCHANGED, row.state)

    return tried(look, lambda wrong: _failed_run(run_id, None, wrong))


def _run_outcome(
    resources: Resources, caller: Caller, action: StopAction, run: SelectedRun, *, dry_run: bool
) -> StoppedOne:
    run_id = id_text(run.run_id)
    if dry_run:
        return StoppedOne(run_id, run.schedule_id, BulkOutcome.PLANNED, run.state)
    stop = run_service.cancel if action is StopAction.CANCEL else run_service.terminate

    def act() -> StoppedOne:
        done = stop(resources, caller, run_id)
        return StoppedOne(run_id, run.schedule_id, BulkOutcome(done.outcome.value), done.state)

    return tried(act, lambda wrong: _failed_run(run_id, run.schedule_id, wrong))


def _failed_run(run_id: str, schedule_id: str | None, wrong: HorariumError) -> StoppedOne:
    reason = RunNotFound.reason if isinstance(wrong, InvalidDefinition) else wrong.reason
    return StoppedOne(run_id, schedule_id, BulkOutcome.FAILED, None, reason, wrong.message)
