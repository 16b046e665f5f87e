"""Answers about the processes on a database and the queue depths."""

from __future__ import annotations

from horarium.decision.process_state import ProcessState
from horarium.wire.answer import Answer, Rows, Time


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
