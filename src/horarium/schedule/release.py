"""Which release of an application is the newest, and what that lets it do.

Releases are numbered in the order in which they were first seen. A release that is seen again has its old number, so
that an old one that restarts while a new one is rolled out is known for what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from json import dumps
from typing import Any


class Turn(StrEnum):
    FIRST = "first"  # a new release, seen for the first time: it may pause what it declares no more
    NEWEST = "newest"  # seen before, and none is newer: it may take back such a pause
    OLDER = "older"  # a newer one has been seen: it may do neither


def turn_of(release: str, known: Mapping[str, int]) -> tuple[Turn, int]:
    """With its number; `known` are the numbers of those that were seen."""
    newest = max(known.values(), default=0)
    number = known.get(release, newest + 1)
    if release not in known:
        return Turn.FIRST, number
    return (Turn.NEWEST if number == newest else Turn.OLDER), number


def fingerprint(templates: Iterable[Mapping[str, Any]]) -> str:
    """Names a release that does not say how it is called: the same declarations are the same release."""
    texts = sorted(dumps(each, sort_keys=True, default=str) for each in templates)
    return sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def declared_no_more(app: str) -> str:
    """The reason of a pause by which a schedule is told from those that somebody paused."""
    return f"the application {app!r} no longer declares this function"
