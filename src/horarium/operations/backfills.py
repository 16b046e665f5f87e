"""How past occurrences are run by request: each once, so that asking twice is harmless."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from sqlalchemy import Connection

from horarium.decision.backfill import occurrences_to_fill, plan_backfill
from horarium.decision.plan import Birth, Decision, Fire, Hold, Skip
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.operations.caller import Caller, Permission
from horarium.operations.desk import Desk, Opened, open_schedule
from horarium.operations.entering import enter, look
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.position import Position, Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin, instance_id
from horarium.store import open_runs


class FillOutcome(StrEnum):
    STARTED = "started"
    BUFFERED = "buffered"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Filled:
    """What became of one occurrence; a dry run names no run."""

    nominal: Instant
    outcome: FillOutcome
    run_id: bytes | None = None
    instance_id: str | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Backfilled:
    """`rows` are in the order in which they start; `stopped`: `max_runs` ended the list early."""

    schedule_id: str
    rows: tuple[Filled, ...]
    dry_run: bool
    stopped: bool = False

    @property
    def started(self) -> int:
        return sum(row.outcome is not FillOutcome.SKIPPED for row in self.rows)


class _DryRun(Exception):
    """Carries the answer out of a transaction that must leave nothing behind."""

    def __init__(self, answer: Backfilled) -> None:
        super().__init__("a dry run")
        self.answer = answer


def backfill(
    desk: Desk,
    caller: Caller,
    schedule_id: str,
    *,
    start: Instant,
    end: Instant,
    overlap_policy: OverlapPolicy | None = None,
    reverse: bool = False,
    dry_run: bool = False,
) -> Backfilled:
    """[start, end), cut where the clock has got to; raises BackfillTooLarge beyond 1,000 occurrences."""
    caller.require(Permission.OPERATE)
    told: list[Decision] = []

    def work(connection: Connection) -> Backfilled:
        opened = open_schedule(desk, connection, caller, schedule_id)
        occurrences = occurrences_to_fill(opened.sound, _passed(opened), start, end)
        if not occurrences:
            return Backfilled(schedule_id, (), dry_run)
        gathered, shared = look(connection, opened, Origin.BACKFILL)
        plan = plan_backfill(
            opened.sound,
            opened.row.position(),
            gathered,
            shared,
            occurrences,
            taken=open_runs.taken(connection, opened.row.schedule_uid, occurrences[0], occurrences[-1]),
            overlap_policy=overlap_policy,
            reverse=reverse,
        )
        stopped = len(plan.decisions) < len(occurrences)
        if dry_run:
            raise _DryRun(_answer(opened, plan.decisions, (), dry_run=True, stopped=stopped))
        told[:] = plan.decisions
        entry = enter(
            desk,
            connection,
            caller,
            opened,
            plan.decisions,
            plan.position,
            Origin.BACKFILL,
            overlap_policy=overlap_policy,
        )
        return _answer(opened, plan.decisions, [run.run_id for run in entry.runs], dry_run=False, stopped=stopped)

    try:
        answer = desk.database.write(work)
    except _DryRun as done:
        return done.answer
    born = [decision for decision in told if not isinstance(decision, Skip)]
    desk.telemetry.decided(caller.namespace, schedule_id, born, desk.clock.now(), Origin.BACKFILL)
    return answer


def _passed(opened: Opened) -> Position:
    """While the clock of a schedule stands still, its past reaches up to now: a resume plans from then on."""
    position = opened.row.position()
    if position.status is Status.ACTIVE:
        return position
    return position._replace(decided_until=max(position.decided_until, opened.now))


def _answer(
    opened: Opened,
    decisions: tuple[Birth | Skip, ...],
    run_ids: list[bytes] | tuple[()],
    *,
    dry_run: bool,
    stopped: bool,
) -> Backfilled:
    ids = iter(run_ids)
    rows = tuple(_filled(opened.row.schedule_id, decision, None if isinstance(decision, Skip) else next(ids, None))
                 for decision in decisions)  # fmt: skip
    return Backfilled(opened.row.schedule_id, rows, dry_run, stopped)


def _filled(schedule_id: str, decision: Birth | Skip, run_id: bytes | None) -> Filled:
    match decision:
        case Skip(nominal, reason):
            return Filled(nominal, FillOutcome.SKIPPED, reason=reason)
        case Fire() | Hold():
            outcome = FillOutcome.STARTED if isinstance(decision, Fire) else FillOutcome.BUFFERED
            text = "" if run_id is None else id_text(run_id)
            named = instance_id(schedule_id, Origin.BACKFILL, decision.nominal, text)
            return Filled(decision.nominal, outcome, run_id, named)
        case _:
            assert_never(decision)
