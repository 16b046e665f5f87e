"""How tests read the feed, on a server that other tests use, too."""

from __future__ import annotations

import time
from collections.abc import Callable

from horarium.features.history import entry_rows
from horarium.features.history.entry_rows import START, FeedCursor
from horarium.platform.database import Database


def read_feed(
    database: Database, namespace: str | None, after: FeedCursor = START, limit: int = 100, *, awaits: int = 0
) -> tuple[list[int], FeedCursor]:
    """Transactions of other tests on the same server hold the feed back too, so what is awaited may take a moment."""
    for _ in range(500):
        rows, cursor = database.read(lambda c: entry_rows.onward(c, namespace, after=after, limit=limit))
        if len(rows) >= awaits:
            break
        time.sleep(0.01)
    return [row.event.sequence for row in rows], cursor


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for a reader that transactions of other tests, which end while it looks, may hold back for a moment."""
    for _ in range(500):
        if holds():
            return
        time.sleep(0.01)
    assert holds()
