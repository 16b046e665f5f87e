"""Counts the bytes that each namespace stores: a piece of every table at each step, then rests until the next pass.

One process at a time does it. Between two passes what is written is added to the last count (`store/usage.py`), so
that an estimate is never older than a pass for what grows; what retention deletes is seen by the next one.
"""

from __future__ import annotations

from collections import Counter

from horarium.clock import Clock
from horarium.instant import SECOND
from horarium.store import bytes_stored, installation
from horarium.store.bytes_stored import BEGIN, Place
from horarium.store.database import Connection, Database

PASS_SECONDS = 60.0
"""Delay after a completed pass, and the time that other processes leave to one that has started."""


class UsageCount:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._place: Place | None = None
        self._bytes: Counter[str] = Counter()
        self._base: dict[str, int] = {}

    def step(self) -> bool:
        """Count a part of the stored bytes, and tell whether there is more to count now."""
        if self._place is None and not self._begin():
            return False
        assert self._place is not None  # it has begun
        place = self._place
        piece = self._database.read(lambda connection: bytes_stored.count_some(connection, place))
        self._bytes.update(piece.bytes)
        self._place = piece.after
        if self._place is None:
            found, base = dict(self._bytes), self._base
            self._database.write(lambda connection: bytes_stored.save(connection, found, base))
        return self._place is not None

    def _begin(self) -> bool:
        """Unless somebody has begun a moment ago, and will tell."""
        now = self._clock.now()

        def claim(connection: Connection) -> dict[str, int] | None:
            since = now - installation.bytes_counted_at(connection)
            if 0 <= since < PASS_SECONDS * SECOND:
                return None
            installation.set_bytes_counted_at(connection, now)
            return bytes_stored.sums(connection)

        base = self._database.write(claim)
        if base is None:
            return False
        self._place, self._bytes, self._base = BEGIN, Counter(), base
        return True
