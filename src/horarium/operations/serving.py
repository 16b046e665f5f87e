"""What the processes that are alive can launch, as their heartbeats say."""

from __future__ import annotations

from horarium.decision.process_state import GONE_AFTER_SECONDS, silent_seconds
from horarium.instant import SECOND, Instant
from horarium.launchers.served import Served, read_served
from horarium.store.database import Connection
from horarium.store.processes import process_rows


class LiveServices:
    """Targets that live processes can launch. They are read once a second at most and serve for warnings."""

    def __init__(self) -> None:
        self._read_at: Instant | None = None
        self._found: tuple[Served, ...] = ()

    def load(self, connection: Connection, now: Instant) -> tuple[Served, ...]:
        if self._read_at is None or not 0 <= now - self._read_at < SECOND:
            alive = [row for row in process_rows(connection) if silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS]
            self._found, self._read_at = tuple(read_served(row.process.serves) for row in alive), now
        return self._found
