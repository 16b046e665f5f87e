"""Correct what time has overtaken: lost leases, deadlines, stop requests, runs without a place, held runs; and counts.

The repair of counts, and of active schedules without a plan, runs at the start and rarely afterwards. It logs a
warning for each correction, since there was a bug or a damaged row. The janitor releases held runs that a corrected
count allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.document.document import run_part_of
from horarium.core.document.states import RunState, Status
from horarium.core.lifecycle.live_run import Rules
from horarium.core.lifecycle.outcome import (
    ApprovalExpired,
    CancelledUnstarted,
    DeadlinePassed,
    End,
    LostLease,
    WaitedTooLong,
)
from horarium.core.policy.approval import LaunchRetry
from horarium.core.policy.limits import RunLimits
from horarium.engine.requests import rules_of
from horarium.features.cluster import repair_rows
from horarium.features.cluster.repair_rows import Replanned
from horarium.features.runs import release_rows, work_rows
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.transition_rows import (
    LogFields,
    RecordedChange,
    ReportedEvent,
    read_run_fields,
    read_schedule_fields,
    record_events,
)
from horarium.features.runs.work_rows import BEGIN, LookPosition, RunWork, Unanswered
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import Instant
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.database.wakeups import DUE, READY

T = TypeVar("T")
U = TypeVar("U")

_BATCH = 200
# Workers that found nobody to report to try again every half a minute at last.
_REPORT_GRACE_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class JanitorResult:
    """Counts of one cleanup step; `ended`: the states in which it ended runs. `full`: there is more."""

    lost_leases: int = 0
    timed_out: int = 0
    cancelled: int = 0
    released: int = 0
    expired_approvals: int = 0
    without_place: int = 0
    ended: tuple[RunState, ...] = ()
    full: bool = False

    @property
    def total(self) -> int:
        found = (self.lost_leases, self.timed_out, self.cancelled, self.released, self.expired_approvals)
        return sum(found) + self.without_place


class ReleaseResult(NamedTuple):
    """Return the number of released runs and the time of the next release; None = no run is held for later."""

    runs: int
    next_at: Instant | None


class _After(NamedTuple):
    """Where the next look goes on in each list."""

    lost: LookPosition = BEGIN
    late: LookPosition = BEGIN
    unwanted: LookPosition = BEGIN
    unanswered: LookPosition = BEGIN
    busy: LookPosition = BEGIN


def _behind(read: Sequence[LookPosition]) -> LookPosition:
    """After a full list behind its last, else from the beginning."""
    return read[-1] if len(read) == _BATCH else BEGIN


class _Found(NamedTuple):
    """Rows to clean up at one moment."""

    lost: list[ReportedEvent]
    late: list[ReportedEvent]
    unwanted: list[ReportedEvent]
    busy: list[ReportedEvent]
    waiting: list[bytes]
    unanswered: list[Unanswered]
    after: _After


class Janitor:
    """Any number of processes may run one: what two find at once only one can change.

    Findings of a kind are one transaction. If it fails each is tried alone, so that a row that cannot be
    tidied is in nobody's way.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        launch_retry: LaunchRetry | None = None,
        log: FilteringBoundLogger | None = None,
        caps: RunLimits | None = None,
    ) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._launch_retry = launch_retry or LaunchRetry()
        self._known = Plannings()
        self._definitions = Definitions(run_part_of, caps)
        self._looked_at = b""
        self._after = _After()
        self._began, self._began_at = clock.monotonic(), clock.now()

    def step(self) -> JanitorResult:
        now = self._clock.now()
        found = self._database.read(lambda connection: self._look(connection, now))
        # From where the last look ended: those that must go on waiting never hide the others.
        self._looked_at = found.waiting[-1] if len(found.waiting) == _BATCH else b""
        # What was lost is looked for before it is called late: somebody may still find out what became of it.
        lost, late, unwanted, busy = (
            self._together(self._record, each, now) for each in (found.lost, found.late, found.unwanted, found.busy)
        )
        # What could not be tidied must not stand at the head of its list for ever, in front of everybody else's.
        self._after = found.after
        released = self._alone(self._release, found.waiting, now)
        expired = self._together(self._expire, found.unanswered, now)
        recorded = [*lost, *late, *unwanted, *busy, *expired]
        lists = (found.lost, found.late, found.unwanted, found.busy, found.unanswered)
        return JanitorResult(
            len(lost),
            len(late),
            len(unwanted),
            sum(released),
            len(expired),
            len(busy),
            ended=tuple(each.change.state for each in recorded if isinstance(each.change, End)),
            full=sum(released) >= release_rows.MOST_CHANGED or any(len(each) == _BATCH for each in lists),
        )

    def release_due(self, after: Instant, now: Instant) -> ReleaseResult:
        """Release held runs whose time came after one instant and until the other, at their times.

        A step finds what this leaves, such as runs for which there was no room.
        """
        coming = self._database.read(lambda connection: release_rows.next_releases(connection, after))
        due = [uid for uid, at in coming.items() if at <= now]
        released = self._alone(self._release, due, now)
        return ReleaseResult(sum(released), now if due else min(coming.values(), default=None))

    def _look(self, connection: Connection, now: Instant) -> _Found:
        lost = work_rows.lost_leases(connection, now, _BATCH, self._after.lost)
        late = work_rows.past_deadline(connection, now, _BATCH, self._after.late, unheard=self._unheard())
        stop = work_rows.stop_requested(connection, _BATCH, self._after.unwanted)
        unanswered = work_rows.unanswered_approvals(connection, now, _BATCH, self._after.unanswered)
        busy = work_rows.without_place(connection, now, _BATCH, self._after.busy)
        unwanted = CancelledUnstarted("Cancelled before it started", "requested")
        rules = self._rules(connection, [*lost, *late])
        return _Found(
            lost=[ReportedEvent(work.run_id, LostLease(work.lease_epoch), rules[work.run_id]) for work in lost],
            late=[ReportedEvent(work.run_id, DeadlinePassed(), rules[work.run_id]) for work in late],
            unwanted=[ReportedEvent(work.run_id, unwanted) for work in stop],
            busy=[ReportedEvent(work.run_id, WaitedTooLong()) for work in busy],
            waiting=release_rows.waiting_schedules(connection, now, _BATCH, after=self._looked_at),
            unanswered=unanswered,
            after=_After(
                _behind([LookPosition(work.lease_until or 0, work.run_id) for work in lost]),
                _behind([LookPosition(work.deadline or 0, work.run_id) for work in late]),
                _behind([LookPosition(0, work.run_id) for work in stop]),
                _behind([LookPosition(each.expires_at, each.run_id) for each in unanswered]),
                _behind([LookPosition(work.busy_since or 0, work.run_id) for work in busy]),
            ),
        )

    def _unheard(self) -> Instant:
        """Deadline before which runs of a broker do not time out yet: for a while the start of the process, later 0.

        A run that timed out while no process was active may have succeeded: its report is accepted for a while.
        """
        waits = self._clock.monotonic() - self._began < _REPORT_GRACE_SECONDS
        return self._began_at if waits else 0

    def _rules(self, connection: Connection, works: Sequence[RunWork]) -> dict[bytes, Rules]:
        definitions = self._definitions.load(connection, works)
        return {work.run_id: rules_of(work, definitions[work.run_id], self._launch_retry) for work in works}

    # ── the chores ───────────────────────────────────────────────────────────────────────────────

    def _record(self, connection: Connection, happened: Sequence[ReportedEvent], now: Instant) -> list[RecordedChange]:
        """Judged again under lock: a holder may only have been late, or another process faster."""
        recorded = record_events(connection, self._known, happened, now=now)
        self._database.notify(connection, READY)
        return [each for each in recorded if each.counted]

    def _expire(self, connection: Connection, found: Sequence[Unanswered], now: Instant) -> list[RecordedChange]:
        """A run that ends closes its question. One whose run has gone on all the same is in nobody's way any more."""
        recorded = self._record(connection, [ReportedEvent(each.run_id, ApprovalExpired()) for each in found], now)
        for each in found:
            work_rows.expire_approval(connection, each.approval_id, now)
        return recorded

    def _release(self, connection: Connection, schedules: Sequence[bytes], now: Instant) -> list[int]:
        (uid,) = schedules
        self._database.notify(connection, READY)
        return [release_rows.release(connection, self._known, uid, now=now)]

    # ── how they are done ────────────────────────────────────────────────────────────────────────

    def _together(
        self, chore: Callable[[Connection, Sequence[T], Instant], list[U]], found: Sequence[T], now: Instant
    ) -> list[U]:
        if not found:
            return []
        try:
            return self._database.write(lambda connection: chore(connection, found, now))
        except Exception as wrong:  # one of them cannot be tidied; the others are not lost with it
            if not is_fault_of_a_row(wrong):
                raise
            return self._alone(chore, found, now)

    def _alone(
        self, chore: Callable[[Connection, Sequence[T], Instant], list[U]], found: Sequence[T], now: Instant
    ) -> list[U]:
        done: list[U] = []
        for one in found:
            try:
                done += self._database.write(partial(_of_one, chore, one, now))
            except Exception as wrong:
                if not is_fault_of_a_row(wrong):
                    raise
                what, about = chore.__name__.strip("_"), self._about(one)
                self._log.error("cleanup_failed", **about, chore=what, error=f"{type(wrong).__name__}: {wrong}")
        return done

    def _about(self, one: object) -> LogFields:
        """The fields of a log event about one finding: a run, an approval, or the uid of a schedule."""
        if isinstance(one, ReportedEvent | Unanswered):
            return read_run_fields(self._database, one.run_id)
        return read_schedule_fields(self._database, one) if isinstance(one, bytes) else {}


def _of_one(
    chore: Callable[[Connection, Sequence[T], Instant], list[U]], one: T, now: Instant, connection: Connection
) -> list[U]:
    return chore(connection, [one], now)


REPAIR_SECONDS = 3_600.0
"""Delay after a completed pass."""

_LOOKS = 500
_UNPLANNED = 100


@dataclass(frozen=True, slots=True)
class Repaired:
    """Counts of one repair step; `more`: the pass continues."""

    recounted: int = 0
    planned: int = 0
    keys: int = 0
    more: bool = False


class Repair:
    """Any number of processes may run one: what two find, one mends, and the other sees it under the lock."""

    def __init__(self, database: Database, clock: Clock, log: FilteringBoundLogger | None = None) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._known = Plannings()
        self._after = b""

    def step(self) -> Repaired:
        begins = not self._after
        planned, left = self._plan_again() if begins else (0, False)
        keys = self._recount_keys() if begins else 0
        looked = self._database.read(partial(repair_rows.wrong_counts, after=self._after, looks=_LOOKS))
        recounted = sum(self._recount(uid) for uid in looked.uids)
        if not left:  # a full batch of lost plans: begin again with the rest of them
            self._after = looked.after or b""
        return Repaired(recounted, planned, keys, more=left or looked.after is not None)

    def _recount(self, uid: bytes) -> bool:
        found = self._database.write(partial(repair_rows.recount, uid=uid))
        if found is None:
            return False
        self._log.warning(
            "counts_repaired",
            namespace=found.namespace,
            schedule_id=found.schedule_id,
            active=f"{found.before.active} → {found.after.active}",
            held=f"{found.before.held} → {found.after.held}",
        )
        return True

    def _recount_keys(self) -> int:
        wrong = self._database.read(repair_rows.wrong_key_counts)
        mended = 0
        for owner in wrong:
            found = self._database.write(partial(repair_rows.recount_key, owner=owner))
            if found is not None:
                mended += 1
                self._log.warning("counts_repaired", key=owner, active=f"{found[0]} → {found[1]}")
        return mended

    def _plan_again(self) -> tuple[int, bool]:
        """Plan schedules without a plan. Return their number and whether there may be more."""
        lost = self._database.read(partial(repair_rows.unplanned, limit=_UNPLANNED))
        mended = 0
        for uid in lost:
            found = self._database.write(partial(self._plan, uid=uid))
            if found is not None:
                mended += 1
                self._log.warning(
                    "schedule_replanned",
                    namespace=found.namespace,
                    schedule_id=found.schedule_id,
                    status=found.status.value,
                )
        return mended, mended == _UNPLANNED

    def _plan(self, connection: Connection, uid: bytes) -> Replanned | None:
        found = repair_rows.plan_again(connection, self._known, uid, self._clock.now())
        if found is not None and found.status is Status.ACTIVE:
            self._database.notify(connection, DUE)
        return found
