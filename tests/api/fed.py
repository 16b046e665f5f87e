"""What the feed tells, when it tells it: on PostgreSQL any transaction on the server may hold it back for a while."""

from __future__ import annotations

import time
from typing import Any

import httpx

_PATIENCE_SECONDS = 60


def fed(http: httpx.Client, kind: str, least: int = 1) -> list[dict[str, Any]]:
    """The entries of the kind, as soon as there are so many."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        entries = http.get("/api/feed", params={"page_size": 200}).json()["entries"]
        found = [entry for entry in entries if entry["kind"] == kind]
        if len(found) >= least or time.monotonic() > deadline:
            return found
        time.sleep(0.02)
