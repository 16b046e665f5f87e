"""Kinds of documents in a bundle, and the order of the releases of an application.

The client imports these values, so this module imports no reader of documents. Releases are numbered in the order in
which they were first seen. A release that is seen again has its old number, so that an old one that restarts during
the rollout of a new one is recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from json import dumps
from typing import Any


class BundleKind(StrEnum):
    """Kinds of documents in a bundle, in the order of application. Pruning uses the reverse order."""

    CALENDAR = "calendar"
    AGENT = "agent"
    TEAM = "team"
    WORKFLOW = "workflow"
    ASSIGNMENT = "assignment"
    SCHEDULE = "schedule"

    @property
    def member(self) -> str:
        """The list of a bundle that holds them."""
        return f"{self}s"


class ReleaseOrder(StrEnum):
    FIRST = "first"  # a new release, seen for the first time: it may pause what it declares no more
    NEWEST = "newest"  # seen before, and none is newer: it may take back such a pause
    OLDER = "older"  # a newer one has been seen: it may do neither


def release_order(release: str, known: Mapping[str, int]) -> tuple[ReleaseOrder, int]:
    """With its number; `known` are the numbers of those that were seen."""
    newest = max(known.values(), default=0)
    number = known.get(release, newest + 1)
    if release not in known:
        return ReleaseOrder.FIRST, number
    return (ReleaseOrder.NEWEST if number == newest else ReleaseOrder.OLDER), number


def fingerprint(templates: Iterable[Mapping[str, Any]]) -> str:
    """Names a release that does not say how it is called: the same declarations are the same release."""
    texts = sorted(dumps(each, sort_keys=True, default=str) for each in templates)
    return sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def declared_no_more(app: str) -> str:
    """The reason of a pause by which a schedule is told from those that somebody paused."""
    return f"the application {app!r} no longer declares this function"
