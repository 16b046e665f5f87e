"""Tidies up what time has overtaken: lost leases, deadlines, runs to stop or without a place, held ones to let go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.engine.requests import rules_of
from horarium.instant import Instant
from horarium.life.change import End
from horarium.life.event import ApprovalExpired, CancelledUnstarted, DeadlineReached, LeaseLost, WaitedTooLong
from horarium.life.live_run import Rules
from horarium.policy.limits import RunLimits
from horarium.policy.retry import LaunchRetry
from horarium.schedule.document import run_part_of
from horarium.schedule.run import RunState
from horarium.store.database import Connection, Database
from horarium.store.database.channels import READY
from horarium.store.errors import is_fault_of_a_row
from horarium.store.runs import overdue, release
from horarium.store.runs.definitions import Definitions
from horarium.store.runs.log_fields import LogFields, read_run_fields, read_schedule_fields
from horarium.store.runs.overdue import BEGIN, Place, Unanswered
from horarium.store.runs.work import Work
from horarium.store.runs.writer import Happened, Recorded, record_events
from horarium.store.schedules.due import Plannings

T = TypeVar("T")
U = TypeVar("U")

_BATCH = 200
# Workers that found nobody to report to try again every half a minute at last.
_HEARD_AFTER_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class Tidied:
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


class Released(NamedTuple):
    """Return the number of released runs and the time of the next release; None = no run is held for later."""

    runs: int
    next_at: Instant | None


class _After(NamedTuple):
    """Where the next look goes on in each list."""

    lost: Place = BEGIN
    late: Place = BEGIN
    unwanted: Place = BEGIN
    unanswered: Place = BEGIN
    busy: Place = BEGIN


def _behind(read: Sequence[Place]) -> Place:
    """After a full list behind its last, else from the beginning."""
    return read[-1] if len(read) == _BATCH else BEGIN


class _Found(NamedTuple):
    """Rows to clean up at one moment."""

    lost: list[Happened]
    late: list[Happened]
    unwanted: list[Happened]
    busy: list[Happened]
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

    def step(self) -> Tidied:
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
        return Tidied(
            len(lost),
            len(late),
            len(unwanted),
            sum(released),
            len(expired),
            len(busy),
            ended=tuple(each.change.state for each in recorded if isinstance(each.change, End)),
            full=sum(released) >= release.MOST_CHANGED or any(len(each) == _BATCH for each in lists),
        )

    def release_due(self, after: Instant, now: Instant) -> Released:
        """Release held runs whose time came after one instant and until the other, at their times.

        A step finds what this leaves, such as runs for which there was no room.
        """
        coming = self._database.read(lambda connection: release.next_releases(connection, after))
        due = [uid for uid, at in coming.items() if at <= now]
        released = self._alone(self._release, due, now)
        return Released(sum(released), now if due else min(coming.values(), default=None))

    def _look(self, connection: Connection, now: Instant) -> _Found:
        lost = overdue.lost_leases(connection, now, _BATCH, self._after.lost)
        late = overdue.past_deadline(connection, now, _BATCH, self._after.late, unheard=self._unheard())
        stop = overdue.asked_to_stop(connection, _BATCH, self._after.unwanted)
        unanswered = overdue.unanswered_approvals(connection, now, _BATCH, self._after.unanswered)
        busy = overdue.without_place(connection, now, _BATCH, self._after.busy)
        unwanted = CancelledUnstarted("Cancelled before it started", "requested")
        rules = self._rules(connection, [*lost, *late])
        return _Found(
            lost=[Happened(work.run_id, LeaseLost(work.lease_epoch), rules[work.run_id]) for work in lost],
            late=[Happened(work.run_id, DeadlineReached(), rules[work.run_id]) for work in late],
            unwanted=[Happened(work.run_id, unwanted) for work in stop],
            busy=[Happened(work.run_id, WaitedTooLong()) for work in busy],
            waiting=release.waiting_schedules(connection, now, _BATCH, after=self._looked_at),
            unanswered=unanswered,
            after=_After(
                _behind([Place(work.lease_until or 0, work.run_id) for work in lost]),
                _behind([Place(work.deadline or 0, work.run_id) for work in late]),
                _behind([Place(0, work.run_id) for work in stop]),
                _behind([Place(each.expires_at, each.run_id) for each in unanswered]),
                _behind([Place(work.busy_since or 0, work.run_id) for work in busy]),
            ),
        )

    def _unheard(self) -> Instant:
        """Deadline before which runs of a broker do not time out yet: for a while the start of the process, later 0.

        A run that timed out while no process was active may have succeeded: its report is accepted for a while.
        """
        waits = self._clock.monotonic() - self._began < _HEARD_AFTER_SECONDS
        return self._began_at if waits else 0

    def _rules(self, connection: Connection, works: Sequence[Work]) -> dict[bytes, Rules]:
        definitions = self._definitions.load(connection, works)
        return {work.run_id: rules_of(work, definitions[work.run_id], self._launch_retry) for work in works}

    # ── the chores ───────────────────────────────────────────────────────────────────────────────

    def _record(self, connection: Connection, happened: Sequence[Happened], now: Instant) -> list[Recorded]:
        """Judged again under lock: a holder may only have been late, or another process faster."""
        recorded = record_events(connection, self._known, happened, now=now)
        self._database.notify(connection, READY)
        return [each for each in recorded if each.counted]

    def _expire(self, connection: Connection, found: Sequence[Unanswered], now: Instant) -> list[Recorded]:
        """A run that ends closes its question. One whose run has gone on all the same is in nobody's way any more."""
        recorded = self._record(connection, [Happened(each.run_id, ApprovalExpired()) for each in found], now)
        for each in found:
            overdue.expire_approval(connection, each.approval_id, now)
        return recorded

    def _release(self, connection: Connection, schedules: Sequence[bytes], now: Instant) -> list[int]:
        (uid,) = schedules
        self._database.notify(connection, READY)
        return [release.release(connection, self._known, uid, now=now)]

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
        if isinstance(one, Happened | Unanswered):
            return read_run_fields(self._database, one.run_id)
        return read_schedule_fields(self._database, one) if isinstance(one, bytes) else {}


def _of_one(
    chore: Callable[[Connection, Sequence[T], Instant], list[U]], one: T, now: Instant, connection: Connection
) -> list[U]:
    return chore(connection, [one], now)
