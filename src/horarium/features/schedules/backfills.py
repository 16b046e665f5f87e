"""Run past occurrences on request. Each runs once, so that a repeated request is harmless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from horarium.core.decision.decide import BackfillPlan, occurrences_to_fill, plan_backfill, remark
from horarium.core.decision.facts import Birth, Detail, Facts, Fire, Hold, Skip
from horarium.core.document.states import Origin, Position, Reason, Status, instance_id
from horarium.core.policy.queue import OverlapPolicy
from horarium.features.resources import Opened, Resources, open_schedule
from horarium.features.runs import open_rows, release_rows
from horarium.features.runs.open_rows import PastRuns
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.decisions import (
    bypass_on_record,
    gather_facts,
    refuse_beyond_quota,
    under_policies,
    write_decisions,
)
from horarium.instant import Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import ScheduleNotFound
from horarium.platform.ids import id_text
from horarium.platform.wire import FillOutcome, Permission


@dataclass(frozen=True, slots=True)
class BackfillOccurrence:
    """Outcome of one occurrence; a dry run names no run."""

    nominal: Instant
    outcome: FillOutcome
    run_id: bytes | None = None
    instance_id: str | None = None
    reason: Reason | None = None
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """`rows` are in the order in which they start; `stopped`: `max_runs` ended the list early.

    `message` says why there are none, or fewer than the window might have.
    """

    schedule_id: str
    rows: tuple[BackfillOccurrence, ...]
    dry_run: bool
    stopped: bool = False
    message: str | None = None

    @property
    def started(self) -> int:
        return sum(row.outcome is not FillOutcome.SKIPPED for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Sketch:
    """Data that was read before the write transaction: the schedule, the occurrences, and which of them had a run."""

    opened: Opened
    occurrences: list[Instant]
    past: PastRuns

    def fits(self, opened: Opened) -> bool:
        """Tell whether the occurrences are still those of the window: the spec is the same.

        Time may have passed meanwhile. It only adds occurrences, and the scheduler has just decided those.
        """
        before, row = self.opened.row, opened.row
        return (before.schedule_uid, before.planning) == (row.schedule_uid, row.planning)


def backfill(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    start: Instant,
    end: Instant,
    overlap_policy: OverlapPolicy | None = None,
    reverse: bool = False,
    dry_run: bool = False,
) -> BackfillResult:
    """[start, end), cut where the clock has got to; raises BackfillTooLarge beyond 1,000 occurrences.

    Occurrences are listed before the writer is taken, which all tenants share; a dry run does without it.
    """
    caller.require(Permission.OPERATE)
    wish = _BackfillRequest(resources, caller, schedule_id, start, end, overlap_policy, reverse)
    if dry_run:
        return resources.database.read(wish.rehearse)
    sketch = resources.database.read(wish.look)
    if not sketch.occurrences:
        return wish.nothing(sketch, dry_run=False)
    with bypass_on_record(resources, caller, schedule_id):
        answer, decisions = resources.database.write(lambda connection: wish.fill(connection, sketch))
    resources.telemetry.decided(caller.namespace, schedule_id, decisions, resources.clock.now(), Origin.BACKFILL)
    return answer


@dataclass(frozen=True, slots=True)
class _BackfillRequest:
    resources: Resources
    caller: Caller
    schedule_id: str
    start: Instant
    end: Instant
    overlap_policy: OverlapPolicy | None
    reverse: bool

    def look(self, connection: Connection) -> _Sketch:
        """As `open_schedule`, without a lock."""
        row = schedules.find(connection, self.caller.namespace, self.schedule_id)
        if row is None:
            raise ScheduleNotFound(self.schedule_id)
        planning = self.resources.known.load(connection, [row.planning])[row.planning]
        return self._sketch(connection, Opened(row, planning, self.resources.clock.now()))

    def rehearse(self, connection: Connection) -> BackfillResult:
        sketch = self.look(connection)
        if not sketch.occurrences:
            return self.nothing(sketch, dry_run=True)
        plan, _, _ = self._plan(connection, sketch.opened, sketch.occurrences, sketch.past, lock=False)
        return self._answer(sketch.opened, sketch.occurrences, plan.decisions, (), dry_run=True)

    def fill(self, connection: Connection, before: _Sketch) -> tuple[BackfillResult, tuple[Birth | Skip, ...]]:
        opened = open_schedule(self.resources, connection, self.caller, self.schedule_id)
        sketch = before if before.fits(opened) else self._sketch(connection, opened)
        if not sketch.occurrences:
            return self.nothing(sketch, dry_run=False), ()
        past = sketch.past.union(_past(connection, opened, sketch.occurrences, sketch.opened.row.next_sequence))
        plan, opened, known = self._plan(connection, opened, sketch.occurrences, past, lock=True)
        entry = write_decisions(
            self.resources,
            connection,
            self.caller,
            opened,
            plan.decisions,
            plan.position,
            Origin.BACKFILL,
            overlap_policy=self.overlap_policy,
            known=known,
        )
        # Whatever held them may be gone already, or may not hold back a backfill: then nobody's end releases them.
        if entry.counts.held and not entry.counts.active:
            release_rows.release(connection, self.resources.known, opened.row.schedule_uid, now=opened.now)
            self.resources.database.notify(connection, READY)
        run_ids = [run.run_id for run in entry.runs]
        return self._answer(opened, sketch.occurrences, plan.decisions, run_ids, dry_run=False), plan.decisions

    def nothing(self, sketch: _Sketch, *, dry_run: bool) -> BackfillResult:
        return self._answer(sketch.opened, [], (), (), dry_run=dry_run)

    def _answer(
        self,
        opened: Opened,
        occurrences: list[Instant],
        decisions: tuple[Birth | Skip, ...],
        run_ids: list[bytes] | tuple[()],
        *,
        dry_run: bool,
    ) -> BackfillResult:
        ids, name = iter(run_ids), opened.row.schedule_id
        rows = (_filled(name, each, None if isinstance(each, Skip) else next(ids, None)) for each in decisions)
        message = remark(opened.sound, self.start, self.end, occurrences)
        return BackfillResult(name, tuple(rows), dry_run, len(decisions) < len(occurrences), message)

    def _sketch(self, connection: Connection, opened: Opened) -> _Sketch:
        occurrences = occurrences_to_fill(opened.sound, _passed(opened), self.start, self.end)
        past = _past(connection, opened, occurrences) if occurrences else PastRuns(frozenset())
        return _Sketch(opened, occurrences, past)

    def _plan(
        self, connection: Connection, opened: Opened, occurrences: list[Instant], past: PastRuns, *, lock: bool
    ) -> tuple[BackfillPlan, Opened, Facts]:
        """With the schedule as it was planned, and the facts that it was planned by."""
        gathered, shared = gather_facts(connection, opened, Origin.BACKFILL, lock=lock, quotas=self.resources.quotas)
        opened = under_policies(opened, gathered)
        plan = plan_backfill(
            opened.sound,
            opened.row.position(),
            gathered,
            shared,
            occurrences,
            taken=past.nominals,
            forgotten_until=past.forgotten_until,
            overlap_policy=self.overlap_policy,
            reverse=self.reverse,
        )
        refuse_beyond_quota(self.caller.namespace, plan.decisions, opened.now)
        return plan, opened, gathered


def _past(connection: Connection, opened: Opened, occurrences: list[Instant], since_sequence: int = 1) -> PastRuns:
    uid, first, last = opened.row.schedule_uid, occurrences[0], occurrences[-1]
    return open_rows.past_runs(connection, uid, first, last, since_sequence=since_sequence)


def _passed(opened: Opened) -> Position:
    """While the clock of a schedule stands still, its past reaches up to now: a resume plans from then on."""
    position = opened.row.position()
    if position.status is Status.ACTIVE:
        return position
    return position._replace(decided_until=max(position.decided_until, opened.now))


def _filled(schedule_id: str, decision: Birth | Skip, run_id: bytes | None) -> BackfillOccurrence:
    match decision:
        case Skip(nominal, reason, detail):
            return BackfillOccurrence(nominal, FillOutcome.SKIPPED, reason=reason, detail=detail)
        case Fire() | Hold():
            outcome = FillOutcome.STARTED if isinstance(decision, Fire) else FillOutcome.BUFFERED
            text = "" if run_id is None else id_text(run_id)
            named = instance_id(schedule_id, Origin.BACKFILL, decision.nominal, text)
            return BackfillOccurrence(decision.nominal, outcome, run_id, named)
        case _:
            assert_never(decision)
