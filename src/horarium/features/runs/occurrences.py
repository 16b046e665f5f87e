"""Occurrences of a schedule with their runs, and reruns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from horarium.core.decision.decide import EndedRun, decide_rerun, rerun_planning
from horarium.core.decision.facts import Birth, Covers, Facts, Fire, Skip
from horarium.core.document.json_values import damage_of
from horarium.core.document.planning import Planning
from horarium.core.document.states import FINAL, Origin, Reason, RunState, Status, instance_id, occurrence_key
from horarium.core.policy.approval import NO_SKIPPING
from horarium.core.policy.queue import OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import HistoryRow
from horarium.features.history.service import find_any
from horarium.features.resources import Opened, Resources
from horarium.features.runs import definition_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.rows import RunFilter, RunRow
from horarium.features.runs.service import EVERYTHING, RunView, find_run, view
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.decisions import (
    bypass_on_record,
    gather_facts,
    refuse_beyond_quota,
    under_policies,
    write_decisions,
)
from horarium.features.schedules.drafts import check_input
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.schedules.triggers import check_secrets, own_inputs, position_after
from horarium.instant import Instant
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.errors import RunNotEnded, RunNotRepeatable, ScheduleBroken
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission, TriggerOutcome

_NOWHERE = "-"


@dataclass(frozen=True, slots=True)
class Skipped:
    """An occurrence without a run, or a whole row of them; `event` says which and why."""

    schedule_id: str
    schedule_name: str
    event: HistoryRow

    @property
    def key(self) -> str | None:
        """The key that a run of it would have had, of a whole row that of the first; a trigger by hand has none."""
        nominal = self.event.nominal
        return None if nominal is None else occurrence_key(id_text(self.event.schedule_uid), nominal)


@dataclass(frozen=True, slots=True)
class OccurrencePage:
    """Newest first."""

    rows: tuple[RunView | Skipped, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Position in each of the two lists; None = from its newest row."""

    before_run: bytes | None = None
    before_sequence: int | None = None


def list_occurrences(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    wanted: RunFilter = EVERYTHING,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> OccurrencePage:
    """Also of a deleted schedule. A filter by state shows skips only where `skipped` is one of the states."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    place = _Place() if next_page_token is None else _read_place(next_page_token)

    def look(connection: Connection) -> OccurrencePage:
        row = find_any(connection, caller, schedule_id)
        filters = replace(wanted, with_steps=False)
        runs = runs_read.page_of_schedule(
            connection, row.schedule_uid, filters, before=place.before_run, limit=limit + 1
        ).rows
        skipped = _skips(connection, row.schedule_uid, wanted, place.before_sequence, limit + 1)
        return _merge(resources, connection, row, list(runs), skipped, place, limit)

    return resources.database.read(look)


def _skips(connection: Connection, uid: bytes, wanted: RunFilter, before: int | None, limit: int) -> list[HistoryRow]:
    if wanted.states is not None and RunState.SKIPPED not in wanted.states:
        return []
    origins = tuple(Origin) if wanted.origins is None else wanted.origins
    return history_rows.newest_skips(connection, uid, origins=origins, before_sequence=before, limit=limit)


def _merge(
    resources: Resources,
    connection: Connection,
    schedule: ScheduleRow,
    runs: list[RunRow],
    skipped: list[HistoryRow],
    place: _Place,
    limit: int,
) -> OccurrencePage:
    """By when each was decided; at the same moment by the occurrence."""
    both: list[RunRow | HistoryRow] = [*runs, *skipped]
    both.sort(key=_age, reverse=True)
    # Each list keeps its own order whatever the clocks say, so that no page repeats or leaves out a row.
    shown = both[:limit]
    runs_shown = sum(isinstance(row, RunRow) for row in shown)
    skips_shown = len(shown) - runs_shown
    turn = iter(runs), iter(skipped)
    ordered = [next(turn[0]) if isinstance(row, RunRow) else next(turn[1]) for row in shown]
    viewed = iter(view(resources, connection, [row for row in ordered if isinstance(row, RunRow)], whole=False))
    rows = tuple(
        next(viewed) if isinstance(row, RunRow) else Skipped(schedule.schedule_id, schedule.name, row)
        for row in ordered
    )
    if len(both) <= limit:
        return OccurrencePage(rows, None)
    following = _Place(
        runs[runs_shown - 1].run_id if runs_shown else place.before_run,
        skipped[skips_shown - 1].sequence if skips_shown else place.before_sequence,
    )
    return OccurrencePage(rows, _token(following))


def _age(row: RunRow | HistoryRow) -> tuple[Instant, Instant]:
    if isinstance(row, RunRow):
        return row.created_at, row.nominal
    return row.recorded_at, row.nominal or 0


def _token(place: _Place) -> str:
    run = _NOWHERE if place.before_run is None else id_text(place.before_run)
    return f"{run}.{_NOWHERE if place.before_sequence is None else place.before_sequence}"


def _read_place(token: str) -> _Place:
    run, _, sequence = token.partition(".")
    if not (sequence == _NOWHERE or (sequence.isascii() and sequence.isdecimal() and len(sequence) < 19)):
        raise InvalidDefinition({"next_page_token": ["is not a valid page token"]})
    return _Place(
        None if run == _NOWHERE else parse_id(run, "next_page_token"),
        None if sequence == _NOWHERE else int(sequence),
    )


@dataclass(frozen=True, slots=True)
class Rerun:
    rerun_of: bytes
    schedule_id: str
    outcome: TriggerOutcome
    run_id: bytes | None = None
    instance_id: str | None = None
    state: RunState | None = None
    reason: Reason | None = None
    detail: object = None
    buffer_depth: int | None = None


def rerun(
    resources: Resources,
    caller: Caller,
    run_id: str,
    *,
    overlap_policy: OverlapPolicy | None = None,
    even_if_paused: bool = False,
    inputs: object = None,
) -> Rerun:
    """Raises RunNotFound, RunNotEnded, and RunNotRepeatable for what no schedule stands behind any more.

    `inputs` in place of those that the run had are a write, as those of a trigger are.
    """
    caller.require(Permission.OPERATE)
    _check_inputs(caller, inputs)

    def work(connection: Connection) -> tuple[Rerun, Birth | Skip, Instant]:
        run, opened = _open(resources, connection, caller, run_id)
        check_secrets(inputs, opened)
        values = _given(connection, run) if inputs is None and opened.sound.template else inputs
        run = run if inputs is None else replace(run, inputs=own_inputs(opened, inputs))
        if (why := damage_of(run.inputs)) is not None:
            raise RunNotRepeatable(f"the inputs of this run cannot be read ({why}); send inputs")
        gathered, shared = gather_facts(connection, opened, Origin.MANUAL, quotas=resources.quotas)
        opened = under_policies(opened, gathered)
        decision = decide_rerun(
            opened.sound,
            opened.row.position(),
            gathered,
            shared,
            _ended(run),
            now=opened.now,
            overlap_policy=overlap_policy,
            even_if_paused=even_if_paused,
        )
        refuse_beyond_quota(caller.namespace, [decision], opened.now)
        written = _write(resources, connection, caller, run, opened, decision, overlap_policy, gathered, values)
        return written, decision, opened.now

    with bypass_on_record(resources, caller, _schedule_of(resources, caller, run_id)):
        answer, decision, now = resources.database.write(work)
    resources.telemetry.decided(caller.namespace, answer.schedule_id, [decision], now, Origin.MANUAL)
    return answer


def _given(connection: Connection, run: RunRow) -> object:
    try:
        return definition_rows.template_inputs(connection, run.run_id)
    except ValueError as wrong:
        raise RunNotRepeatable(f"{wrong}; send inputs") from None


def _check_inputs(caller: Caller, inputs: object) -> None:
    if inputs is not None:
        caller.require(Permission.WRITE)
    if problems := check_input("inputs", inputs):
        raise InvalidDefinition(problems)


def _schedule_of(resources: Resources, caller: Caller, run_id: str) -> str | None:
    """Looked up only for whoever asks to skip something."""
    if caller.skipping == NO_SKIPPING:
        return None
    return resources.database.read(lambda connection: find_run(connection, caller, run_id)).schedule_id


def _write(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    run: RunRow,
    opened: Opened,
    decision: Birth | Skip,
    overlap_policy: OverlapPolicy | None,
    known: Facts,
    values: object,
) -> Rerun:
    entry = write_decisions(
        resources,
        connection,
        caller,
        opened,
        [decision],
        position_after(opened, decision, takes_turn=False),
        Origin.MANUAL,
        overlap_policy=overlap_policy,
        inputs=run.inputs,
        values=values,
        rerun_of=run.run_id,
        known=known,
    )
    if isinstance(decision, Skip):
        return _refused(run, opened, decision)
    return _born(run, opened, decision, entry.runs[0].run_id, entry.runs[0].state, entry.counts.held)


def _open(resources: Resources, connection: Connection, caller: Caller, run_id: str) -> tuple[RunRow, Opened]:
    """The schedule under lock, with the planning of the rerun in place of its own."""
    run = find_run(connection, caller, run_id)
    if run.parent_run_id is not None:
        raise RunNotRepeatable("a step cannot be rerun on its own; rerun its workflow run")
    if run.schedule_uid is None or run.revision is None:
        raise RunNotRepeatable("this run has no schedule; start a new run with another idempotency key")
    row = schedules.find_by_uid(connection, caller.namespace, run.schedule_uid, lock=True)
    if row is None or row.status is Status.DELETED:
        raise RunNotRepeatable(f"the schedule of this run, {run.schedule_id!r}, was deleted")
    run = find_run(connection, caller, run_id)  # read again after the wait
    if run.state not in FINAL:
        raise RunNotEnded(f"this run is in state {run.state}; only ended runs can be rerun")
    revision = schedules.find_revision(connection, row.schedule_uid, run.revision or row.revision)
    if revision is None:
        raise RunNotRepeatable("the definition of this run does not exist any more")
    known = resources.known.load(connection, [row.planning, revision.planning])
    frozen, current = (_sound(row, known[each]) for each in (revision.planning, row.planning))
    planning = rerun_planning(frozen, current, _ended(run))
    if run.workflow_version is not None:
        planning = replace(planning, asked_version=run.workflow_version)  # the same work, whatever was put since
    return run, Opened(replace(row, revision=revision.revision), planning, resources.clock.now())


def _sound(row: ScheduleRow, planning: Planning | Exception) -> Planning:
    if isinstance(planning, Exception):
        raise ScheduleBroken(f"{row.schedule_id!r} has an invalid definition: {planning}")
    return planning


def _ended(run: RunRow) -> EndedRun:
    covers = None
    if run.covers_first is not None and run.covers_last is not None and run.covers_count is not None:
        covers = Covers(run.covers_first, run.covers_last, run.covers_count)
    return EndedRun(run.nominal, run.rotation_index, covers, run.needs_approval)


def _refused(run: RunRow, opened: Opened, decision: Skip) -> Rerun:
    full = decision.reason is Reason.BUFFER_FULL
    outcome = TriggerOutcome.BUFFER_FULL if full else TriggerOutcome.SKIPPED
    return Rerun(run.run_id, opened.row.schedule_id, outcome, reason=decision.reason, detail=decision.detail)


def _born(run: RunRow, opened: Opened, decision: Birth, run_id: bytes, state: RunState, held: int) -> Rerun:
    is_fired = isinstance(decision, Fire)
    return Rerun(
        run.run_id,
        opened.row.schedule_id,
        TriggerOutcome.TRIGGERED if is_fired else TriggerOutcome.BUFFERED,
        run_id,
        instance_id(opened.row.schedule_id, Origin.MANUAL, decision.nominal, id_text(run_id)),
        state,
        buffer_depth=None if is_fired else held,
    )
