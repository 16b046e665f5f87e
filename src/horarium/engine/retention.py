"""Delete what is older than the operator wants to keep: a little at each step, then rest until the next pass.

Any number of processes may run one. Each step is a few small transactions; rows that another process holds are
skipped, and are found by the next pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.policy.limits import RetentionSubject
from horarium.features.history import rows as history_rows
from horarium.features.runs import archive_rows, retention_rows
from horarium.features.runs.retention_rows import Found, Swept
from horarium.features.schedules.due_rows import Plannings
from horarium.features.tenants import removal_rows
from horarium.instant import DAY, HOUR, Instant, to_rfc3339
from horarium.platform.clock import Clock
from horarium.platform.database import (
    Connection,
    Database,
    audit_chain,
    idempotency,
    installation,
    limits,
    partition_upkeep,
    processes,
)
from horarium.platform.database.limits import Before, Cutoffs, Weeks
from horarium.platform.database.partitions import HISTORY, begun, weeks_of

PASS_SECONDS = 600.0
"""Delay after a completed pass."""

NOTICE_DAYS = 7
"""Delay between announcing a default retention and applying it."""

# What is told beforehand is told roughly.
_MAX_COUNTED = 100_000
# Rows looked at in one step, and schedules locked in one transaction: a ticker passes over those meanwhile.
_LOOKS = 200
_GROUP = 20
# A process that has been silent for so long is not slow.
_DEAD_AFTER = DAY
# No limit asks about a day that is over; the last ones are kept for the runs that end late.
_COUNTED_DAYS = 7


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """None or 0 = for ever. `runs_by_default`: nobody has chosen the days of runs, so their end is announced first."""

    keep_history_days: int | None = None
    keep_runs_days: int | None = None
    idempotency_hours: int = 24
    keep_audit_days: int | None = None
    runs_by_default: bool = False


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """Deleted rows of one step, by kind; `more`: the pass continues."""

    runs: int = 0
    history: int = 0
    schedules: int = 0
    revisions: int = 0
    plannings: int = 0
    answers: int = 0
    leases: int = 0
    counters: int = 0
    notices: int = 0
    more: bool = False
    audit: int = 0


@dataclass(slots=True)
class _Walk:
    """Progress of a pass over one table; `found` is to be deleted. `after` None = the pass is over."""

    after: bytes | None = b""
    found: list[bytes] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.after is None and not self.found

    def take(self, look: Callable[[bytes], Found]) -> list[bytes]:
        if not self.found and self.after is not None:
            seen = look(self.after)
            self.found, self.after = list(seen.ids), seen.after
        return self.found[:_GROUP]

    def done(self, group: list[bytes]) -> None:
        del self.found[: len(group)]


class RetentionLoop:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        options: RetentionOptions | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._log = log or structlog.get_logger()
        self._forgets_from: Instant | None = None
        self._database = database
        self._clock = clock
        self._options = options or RetentionOptions()
        self._known = Plannings()
        self._begin()

    def _begin(self) -> None:
        self._runs, self._history, self._schedules = _Walk(), _Walk(), _Walk()
        self._revisions, self._plannings = _Walk(), _Walk()
        self._weeks: Weeks | None = None
        self._looked = False
        self._archived, self._left_over = _Walk(), _Walk()

    def step(self) -> RetentionResult:
        """One group of each kind of thing; with the last step of a pass the next one begins anew."""
        now = self._clock.now()
        keep_history, keep_runs = self.cutoffs(now)
        runs = events = told = schedules = revisions = plannings = 0
        walks: list[_Walk] = []
        if keep_runs is not None:
            runs = self._forget_runs(keep_runs) + self._forget_archived(keep_runs)
            walks += [self._runs, self._archived, self._left_over]
        if keep_history is not None:
            self._look_at_weeks(keep_history)
            by_rows = limits.cutoffs_of_single_rows(keep_history, self._weeks)
            told = self._forget_notices(by_rows)
            events = self._forget_history(by_rows, now)
            schedules = self._forget_schedules(keep_history)
            walks += [self._history, self._schedules]
        if walks:  # where nothing is ever forgotten, nothing is left behind
            revisions, plannings = self._forget_orphans()
            walks += [self._revisions, self._plannings]
        entries = self._forget_audit(now)
        is_removing = self._remove_namespace(now)
        answers, dead, counters = self._database.write(lambda connection: self._forget_small(connection, now))
        full = max(answers, counters, told, entries) == retention_rows.LIMIT
        more = not all(walk.is_over for walk in walks) or full or is_removing
        if not more:
            self._begin()
        return RetentionResult(
            runs, events, schedules, revisions, plannings, answers, dead, counters, told, more, entries
        )

    def cutoffs(self, now: Instant) -> tuple[Cutoffs | None, Cutoffs | None]:
        """Cutoffs of history and of runs; None = nothing is deleted."""
        days = self._options.keep_runs_days if self._may_forget_runs(now) else None

        def look(connection: Connection) -> tuple[Cutoffs | None, Cutoffs | None]:
            return (
                limits.read_cutoffs(connection, RetentionSubject.HISTORY, self._options.keep_history_days, now),
                limits.read_cutoffs(connection, RetentionSubject.RUNS, days, now),
            )

        return self._database.read(look)

    def _may_forget_runs(self, now: Instant) -> bool:
        """Days that nobody has chosen begin to count a week after they were announced, once for all processes."""
        if not self._options.runs_by_default or not self._options.keep_runs_days:
            return True
        if self._forgets_from is None:
            self._forgets_from = self._announce(now)
        return now >= self._forgets_from

    def _announce(self, now: Instant) -> Instant:
        days = self._options.keep_runs_days or 0

        def work(connection: Connection) -> tuple[Instant, int]:
            installation.announce_forgetting(connection, now + NOTICE_DAYS * DAY)
            since = installation.forgets_from(connection)
            assert since is not None  # announced just now, or before
            before = since - days * DAY
            return since, retention_rows.count_old_runs(connection, finished_before=before, most=_MAX_COUNTED)

        since, old = self._database.write(work)
        if old and now < since:
            self._log.warning(
                "runs_retention_notice",
                runs=f"{old} or more" if old == _MAX_COUNTED else old,
                older_than_days=days,
                since=to_rfc3339(since),
                remedy="set keep_runs_days (0 = forever) before that time",
            )
        return since

    def _forget_runs(self, before: Before) -> int:
        def look(after: bytes) -> Found:
            return self._database.read(
                lambda connection: retention_rows.old_runs(
                    connection, finished_before=before, after=after, looks=_LOOKS
                )
            )

        return self._sweep(self._runs, look, retention_rows.delete_runs)

    def _forget_archived(self, before: Cutoffs) -> int:
        def own(after: bytes) -> Found:
            return self._database.read(
                lambda connection: archive_rows.archived_of_own_days(
                    connection, finished_before=before, after=after, looks=_LOOKS
                )
            )

        def left_over(after: bytes) -> Found:
            return self._database.read(
                lambda connection: archive_rows.archived_left_over(
                    connection, finished_before=before, after=after, looks=_LOOKS
                )
            )

        forgotten = self._sweep(self._archived, own, archive_rows.delete_archived)
        return forgotten + self._sweep(self._left_over, left_over, archive_rows.delete_archived)

    def _forget_history(self, before: Before, now: Instant) -> int:
        def look(after: bytes) -> Found:
            return self._database.read(
                lambda connection: retention_rows.schedules_with_old_history(
                    connection, recorded_before=before, after=after, looks=_LOOKS
                )
            )

        def trim(connection: Connection, uids: list[bytes]) -> Swept:
            return retention_rows.trim_history(connection, uids, recorded_before=before, now=now)

        return self._sweep(self._history, look, trim)

    def _look_at_weeks(self, before: Cutoffs) -> None:
        """Once a pass. Where old weeks are dropped whole, most passes have nothing to look for; but whether it is so is
        not asked of a large past that lies in no week, since that takes longer than to look.
        """
        if self._looked:
            return
        self._looked = True

        def look(connection: Connection) -> bool:
            there = partition_upkeep.there(connection)
            self._weeks = weeks_of(HISTORY, there)
            by_rows = limits.cutoffs_of_single_rows(before, self._weeks)
            if self._weeks is None or not partition_upkeep.is_little(connection, begun(HISTORY, there, by_rows.latest)):
                return True
            return retention_rows.has_old_history(connection, recorded_before=by_rows)

        if not self._database.read(look):
            self._history.after = None

    def _forget_notices(self, before: Before) -> int:
        return self._database.write(
            lambda connection: history_rows.purge_notices(
                connection, recorded_before=before, limit=retention_rows.LIMIT
            )
        )

    def _forget_audit(self, now: Instant) -> int:
        keep = self._options.keep_audit_days
        if keep is None:
            return 0
        before = now - keep * DAY
        return self._database.write(
            lambda connection: audit_chain.trim(connection, recorded_before=before, limit=retention_rows.LIMIT)
        )

    def _forget_schedules(self, before: Before) -> int:
        def look(after: bytes) -> Found:
            return self._database.read(
                lambda connection: retention_rows.deleted_schedules(
                    connection, deleted_before=before, after=after, looks=_LOOKS
                )
            )

        def purge(connection: Connection, uids: list[bytes]) -> Swept:
            return Swept(retention_rows.purge_schedules(connection, uids, deleted_before=before), whole=True)

        return self._sweep(self._schedules, look, purge)

    def _forget_orphans(self) -> tuple[int, int]:
        """Revisions and planning texts that nobody names any more."""

        def revisions(after: bytes) -> Found:
            return self._database.read(
                lambda connection: removal_rows.orphaned_revisions(connection, after=after, looks=_LOOKS)
            )

        def plannings(after: bytes) -> Found:
            return self._database.read(
                lambda connection: removal_rows.unnamed_plannings(connection, after=after, looks=_LOOKS)
            )

        def purge_plannings(connection: Connection, names: list[bytes]) -> Swept:
            return Swept(removal_rows.purge_plannings(connection, names), whole=True)

        return (
            self._sweep(self._revisions, revisions, removal_rows.purge_revisions),
            self._sweep(self._plannings, plannings, purge_plannings),
        )

    def _sweep(
        self, walk: _Walk, look: Callable[[bytes], Found], sweep: Callable[[Connection, list[bytes]], Swept]
    ) -> int:
        group = walk.take(look)
        if not group:
            return 0
        swept = self._database.write(lambda connection: sweep(connection, group))
        if swept.whole:
            walk.done(group)
        return swept.rows

    def _remove_namespace(self, now: Instant) -> bool:
        """A little of a namespace that was deleted; whether to go on with it at once."""
        going = self._database.read(removal_rows.being_removed)
        if not going:
            return False
        step = self._database.write(
            lambda connection: removal_rows.remove_some(connection, self._known, going[0], now=now)
        )
        return step is not removal_rows.RemovalStep.WAIT

    def _forget_small(self, connection: Connection, now: Instant) -> tuple[int, int, int]:
        created_before = now - self._options.idempotency_hours * HOUR
        return (
            idempotency.purge(connection, created_before=created_before, limit=retention_rows.LIMIT),
            processes.purge_leases(connection, beat_before=now - _DEAD_AFTER),
            retention_rows.purge_counters(connection, day_before=now // DAY - _COUNTED_DAYS),
        )
