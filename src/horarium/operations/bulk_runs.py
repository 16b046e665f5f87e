"""How many runs are cancelled or terminated by one request: one transaction and one outcome each."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.errors import HorariumError, InvalidDefinition
from horarium.ids import id_text, parse_id
from horarium.operations import runs
from horarium.operations.bulk import checked_limit, tried
from horarium.operations.caller import Caller
from horarium.operations.errors import RunNotFound
from horarium.operations.resources import Resources
from horarium.schedule.run import OPEN, RunState
from horarium.store.runs import choose
from horarium.store.runs.choose import OpenRun, RunsWanted
from horarium.wire.bulk import MAX_AT_ONCE, BulkOutcome, StopAction
from horarium.wire.bulk_bodies import RunChoice
from horarium.wire.roles import Permission


@dataclass(frozen=True, slots=True)
class StoppedOne:
    run_id: str
    schedule_id: str | None
    outcome: BulkOutcome
    state: RunState | None
    reason: str | None = None
    message: str | None = None


def stop_many(
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
        lambda connection: choose.open_runs(connection, caller.namespace, wanted, after=after, limit=most + 1)
    )
    chosen = found[:most]
    done = [_outcome(resources, caller, action, run, dry_run=dry_run) for run in chosen]
    until = chosen[-1].run_id if len(found) > most else None
    of_page = [run_id for run_id in _only_ids(choice) if _is_between(_parsed(run_id), after, until)]
    gone = [_gone(resources, caller, run_id, chosen) for run_id in of_page]
    following = None if until is None else id_text(until)
    return [*done, *(each for each in gone if each is not None)], following


def wanted_of(choice: RunChoice, *, everything: bool) -> RunsWanted:
    given = (choice.ids, choice.schedule_ids, choice.labels, choice.states)
    if everything and any(given):
        raise InvalidDefinition({"all": ["cannot be combined with a filter"]})
    if not everything and not any(given):
        raise InvalidDefinition({"filter": ["must not be empty; set all: true to select every run of the namespace"]})
    return RunsWanted(
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


def _gone(resources: Resources, caller: Caller, run_id: str, chosen: list[OpenRun]) -> StoppedOne | None:
    """Outcome of a run requested by its id that is not open: it has ended, or does not exist."""
    if _parsed(run_id) in {run.run_id for run in chosen}:
        return None

    def look() -> StoppedOne:
        row = runs.get(resources, caller, run_id).row
        return StoppedOne(id_text(row.run_id), row.schedule_id, BulkOutcome.UNCHANGED, row.state)

    return tried(look, lambda wrong: _failed(run_id, None, wrong))


def _outcome(resources: Resources, caller: Caller, action: StopAction, run: OpenRun, *, dry_run: bool) -> StoppedOne:
    run_id = id_text(run.run_id)
    if dry_run:
        return StoppedOne(run_id, run.schedule_id, BulkOutcome.PLANNED, run.state)
    stop = runs.cancel if action is StopAction.CANCEL else runs.terminate

    def act() -> StoppedOne:
        done = stop(resources, caller, run_id)
        return StoppedOne(run_id, run.schedule_id, BulkOutcome(done.outcome.value), done.state)

    return tried(act, lambda wrong: _failed(run_id, run.schedule_id, wrong))


def _failed(run_id: str, schedule_id: str | None, wrong: HorariumError) -> StoppedOne:
    reason = RunNotFound.reason if isinstance(wrong, InvalidDefinition) else wrong.reason
    return StoppedOne(run_id, schedule_id, BulkOutcome.FAILED, None, reason, wrong.message)
