"""Responses about the processes on a database, queue depths and counts of items that need attention."""

from __future__ import annotations

from horarium.core.decision.presence import ProcessState
from horarium.platform.wire import Answer, Rows, Time


class ClusterProcess(Answer, frozen=True, kw_only=True):
    """A process. `schema_revision`: newest revision that it supports; processes of an older release do not report
    everything. `stuck`: loops that complete no step. `runs`: its active runs. `clock_offset_seconds`: delay of its
    clock relative to the database.
    """

    name: str
    host: str
    pid: int | None
    roles: tuple[str, ...]
    state: ProcessState
    version: str | None
    schema_revision: str | None
    started_at: Time | None
    beat_at: Time
    seconds_ago: float
    runs: int
    stuck: tuple[str, ...]
    clock_offset_seconds: float | None


class ClusterWorker(Answer, frozen=True, kw_only=True):
    """A worker that holds runs of pull queues, by the name that it reported."""

    name: str
    state: ProcessState
    runs: int
    seconds_ago: float


class QueueDepth(Answer, frozen=True, kw_only=True):
    """Waiting runs of one kind: `ready` for dispatch, `queued` at the target, `held` (buffered) behind other runs."""

    kind: str
    queue: str | None
    ready: int
    queued: int
    held: int


class Cluster(Answer, frozen=True, kw_only=True):
    """Processes on this database. `version`: version of the responding process. `schema_revision`: revision of the
    tables.

    `tick_lag_seconds`: age of the oldest undecided occurrence. `oldest_ready_seconds`: age of the oldest run that waits
    for dispatch (null = none). `more`: the lists or counts are incomplete. `notes`: problems that need attention.
    """

    version: str
    schema_revision: str | None
    processes: Rows[ClusterProcess]
    workers: tuple[ClusterWorker, ...]
    tick_lag_seconds: float
    oldest_ready_seconds: float | None
    queues: tuple[QueueDepth, ...]
    more: bool
    notes: tuple[str, ...]


class ScheduleCounts(Answer, frozen=True, kw_only=True):
    """Live schedules by status, as listed by `GET /api/schedules?status=`."""

    active: int
    paused: int
    finished: int
    broken: int


class Overview(Answer, frozen=True, kw_only=True):
    """Counts of items that need attention. `bounded` names capped counts: the real number is at least that.

    `failing`, `stale` and `late` count schedules (`GET /api/schedules?health=`), `waiting_for_approval` approval
    requests (`GET /api/approvals`), `held` to `running` runs (`GET /api/runs?state=`), `missed_lately` missed
    occurrences since `since` (`GET /api/agenda?reason=missed`), `failed_24h` unsuccessful runs that ended since then
    (`GET /api/runs?state=failed&state=timed_out&state=launch_failed&state=unknown&finished_after=`).
    """

    namespace: str
    as_of: Time
    since: Time
    schedules: ScheduleCounts
    failing: int
    stale: int
    late: int
    waiting_for_approval: int
    missed_lately: int
    failed_24h: int
    held: int
    ready: int
    launching: int
    queued: int
    running: int
    bounded: tuple[str, ...]
