"""Tidies up what time has overtaken: lost leases, deadlines, runs to stop, held runs whose time has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import structlog
from sqlalchemy import Connection
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.engine.requests import key_of
from horarium.engine.settle import settle_one
from horarium.engine.settlement import plan_lost_lease
from horarium.instant import Instant
from horarium.policy.retry import LaunchRetry
from horarium.schedule.run import RunState
from horarium.store import ends, release, runs
from horarium.store.closing import End
from horarium.store.database import Database
from horarium.store.due import Plannings
from horarium.store.errors import CommitUnknown, StoreUnavailable
from horarium.store.runs import Unanswered, Work

T = TypeVar("T")

_BATCH = 200
HANDED_OUT = frozenset({RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING})
NOT_STARTED = frozenset({RunState.HELD, RunState.AWAITING_APPROVAL, RunState.READY})
AWAITING = frozenset({RunState.AWAITING_APPROVAL})


@dataclass(frozen=True, slots=True)
class Tidied:
    """What one step has done; `full`: there is more of it, so the next step follows at once."""

    lost_leases: int = 0
    timed_out: int = 0
    cancelled: int = 0
    released: int = 0
    expired_approvals: int = 0
    full: bool = False

    @property
    def total(self) -> int:
        return self.lost_leases + self.timed_out + self.cancelled + self.released + self.expired_approvals


class _Found(NamedTuple):
    """What is to be tidied, at one moment."""

    lost: list[Work]
    late: list[Work]
    unwanted: list[Work]
    waiting: list[bytes]
    unanswered: list[Unanswered]


class Janitor:
    """Any number of processes may run one: what two find at once only one can change.

    Each finding is a transaction of its own, so that a row that cannot be tidied is in nobody's way.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        launch_retry: LaunchRetry | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._log = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._launch_retry = launch_retry or LaunchRetry()
        self._known = Plannings()
        self._looked_at = b""

    def step(self) -> Tidied:
        now = self._clock.now()
        found = self._database.read(lambda connection: self._look(connection, now))
        # From where the last look ended: those that must go on waiting never hide the others.
        self._looked_at = found.waiting[-1] if len(found.waiting) == _BATCH else b""
        return Tidied(
            lost_leases=self._each(self._take_back, found.lost, now),
            timed_out=self._each(self._time_out, found.late, now),
            cancelled=self._each(self._cancel, found.unwanted, now),
            released=(released := self._each(self._release, found.waiting, now)),
            expired_approvals=self._each(self._expire, found.unanswered, now),
            full=released >= release.MOST_CHANGED
            or any(len(each) == _BATCH for each in (found.lost, found.late, found.unwanted, found.unanswered)),
        )

    def _look(self, connection: Connection, now: Instant) -> _Found:
        return _Found(
            lost=runs.lost_leases(connection, now, _BATCH),
            late=runs.past_deadline(connection, now, _BATCH),
            unwanted=runs.asked_to_stop(connection, _BATCH),
            waiting=release.waiting_schedules(connection, now, _BATCH, after=self._looked_at),
            unanswered=runs.unanswered_approvals(connection, now, _BATCH),
        )

    def _each(self, chore: Callable[[Connection, T, Instant], int], found: Sequence[T], now: Instant) -> int:
        """How many were tidied: another process may have been faster."""
        done = 0
        for one in found:
            try:
                done += self._database.write(partial(_call, chore, one, now))
            except (StoreUnavailable, CommitUnknown):
                raise
            except Exception as wrong:
                what = chore.__name__.strip("_")
                self._log.error("could not be tidied", chore=what, error=f"{type(wrong).__name__}: {wrong}")
        return done

    # ── the chores ───────────────────────────────────────────────────────────────────────────────

    def _take_back(self, connection: Connection, work: Work, now: Instant) -> bool:
        settled = plan_lost_lease(work, key=key_of(work), launch_retry=self._launch_retry, now=now)
        if work.schedule_uid is not None:
            release.lock_position(connection, work.schedule_uid)  # before the run, as everybody does
        if not runs.has_lost_lease(connection, work, now):
            return False  # its holder was only late
        return settle_one(connection, self._known, work, settled, now)

    def _time_out(self, connection: Connection, work: Work, now: Instant) -> bool:
        error = f"no end within {work.timeout_seconds} seconds"
        end = End(RunState.TIMED_OUT, error=error, error_class="timeout", cause="runtime_cap")
        return ends.end_run(connection, self._known, work.run_id, end, now=now, only_from=HANDED_OUT)

    def _cancel(self, connection: Connection, work: Work, now: Instant) -> bool:
        end = End(RunState.CANCELLED, error="cancelled before it started")
        return ends.end_run(connection, self._known, work.run_id, end, now=now, only_from=NOT_STARTED)

    def _release(self, connection: Connection, schedule_uid: bytes, now: Instant) -> int:
        return release.release(connection, self._known, schedule_uid, now=now)

    def _expire(self, connection: Connection, approval: Unanswered, now: Instant) -> bool:
        if not runs.expire_approval(connection, approval.approval_id, now):
            return False
        end = End(RunState.EXPIRED, error="nobody approved it in time")
        return ends.end_run(connection, self._known, approval.run_id, end, now=now, only_from=AWAITING)


def _call(chore: Callable[[Connection, T, Instant], int], one: T, now: Instant, connection: Connection) -> int:
    return int(chore(connection, one, now))
