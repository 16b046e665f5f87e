"""What is answered about all processes on a database, and what waits for them."""

from __future__ import annotations

from horarium.decision.process_state import ProcessState
from horarium.wire.answer import Answer, Rows, Time


class ClusterProcess(Answer, frozen=True, kw_only=True):
    """`schema_revision` is the newest that its program knows; one of an older release does not say everything.

    `stuck` are its loops that complete no step, `runs` those in its hands; the clock of its machine is
    `clock_offset_seconds` behind the database's.
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
    """One that takes runs from pull queues, by the name that it gave, while it holds some."""

    name: str
    state: ProcessState
    runs: int
    seconds_ago: float


class QueueDepth(Answer, frozen=True, kw_only=True):
    """Runs that wait, of one kind: `ready` to be handed out, `queued` at their target, `held` behind others."""

    kind: str
    queue: str | None
    ready: int
    queued: int
    held: int


class Cluster(Answer, frozen=True, kw_only=True):
    """`version` is that of the process that answers, `schema_revision` that of the tables.

    `tick_lag_seconds`: so long the oldest undecided occurrence has waited; `oldest_ready_seconds`: so long a run that
    nobody has taken, null where there is none. `more`: some of it was too much to count or to show. `notes` are
    sentences about what somebody should look at.
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
