"""Tidies up what time has overtaken: lost leases, deadlines, runs to stop, held runs whose time has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from horarium.clock import Clock
from horarium.engine.requests import key_of
from horarium.engine.settle import settle_one
from horarium.engine.settlement import plan_lost_lease
from horarium.instant import Instant
from horarium.policy.retry import LaunchRetry
from horarium.schedule.run import RunState
from horarium.store import ends, runs
from horarium.store.database import Database
from horarium.store.due import Plannings
from horarium.store.ends import End

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Tidied:
    """What one step found to do; a full batch asks for another step at once."""

    lost_leases: int = 0
    timed_out: int = 0
    cancelled: int = 0
    released: int = 0
    expired_approvals: int = 0

    @property
    def total(self) -> int:
        return self.lost_leases + self.timed_out + self.cancelled + self.released + self.expired_approvals


class Janitor:
    """Any number of processes may run one: rows that another one holds are passed over."""

    def __init__(self, database: Database, clock: Clock, launch_retry: LaunchRetry | None = None) -> None:
        self._database = database
        self._clock = clock
        self._launch_retry = launch_retry or LaunchRetry()
        self._known = Plannings()

    def step(self) -> Tidied:
        now = self._clock.now()
        return Tidied(
            lost_leases=self._write(self._lost_leases, now),
            timed_out=self._write(self._time_out, now),
            cancelled=self._write(self._cancel, now),
            released=self._release(now),
            expired_approvals=self._write(self._expire, now),
        )

    def _write(self, chore: Callable[[Connection, Instant], int], now: Instant) -> int:
        return self._database.write(lambda connection: chore(connection, now))

    def _lost_leases(self, connection: Connection, now: Instant) -> int:
        lost = runs.lost_leases(connection, now, _BATCH)
        for work in lost:
            settled = plan_lost_lease(work, key=key_of(work), launch_retry=self._launch_retry, now=now)
            settle_one(connection, self._known, work, settled, now)
        return len(lost)

    def _time_out(self, connection: Connection, now: Instant) -> int:
        late = runs.past_deadline(connection, now, _BATCH)
        for work in late:
            error = f"no end within {work.timeout_seconds} seconds"
            end = End(RunState.TIMED_OUT, error=error, error_class="timeout", cause="runtime_cap")
            ends.end_run(connection, self._known, work.run_id, end, now=now)
        return len(late)

    def _cancel(self, connection: Connection, now: Instant) -> int:
        unwanted = runs.asked_to_stop(connection, _BATCH)
        for work in unwanted:
            end = End(RunState.CANCELLED, error="cancelled before it started")
            ends.end_run(connection, self._known, work.run_id, end, now=now)
        return len(unwanted)

    def _release(self, now: Instant) -> int:
        waiting = self._database.read(lambda connection: ends.waiting_schedules(connection, now, _BATCH))
        return sum(
            self._database.write(partial(ends.release, known=self._known, schedule_uid=uid, now=now)) for uid in waiting
        )

    def _expire(self, connection: Connection, now: Instant) -> int:
        late = runs.unanswered_approvals(connection, now, _BATCH)
        for run_id in late:
            ends.end_run(
                connection, self._known, run_id, End(RunState.EXPIRED, error="nobody approved it in time"), now=now
            )
        return len(late)
