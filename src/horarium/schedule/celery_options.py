"""What the options of an entry of Celery beat become, and what is to be said about them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from horarium.errors import InvalidSpec
from horarium.instant import Instant, from_rfc3339, to_rfc3339
from horarium.policy.names import MAX_WHOLE
from horarium.schedule.celery_entries import CeleryApp, Entry

_MAX_PRIORITY = 9
_REDIS = ("redis", "rediss", "sentinel")
# What decides when or what is done, and has no place in an action.
_MATTERS = ("countdown", "eta", "link", "link_error", "chain", "chord", "headers", "group_id", "root_id", "parent_id")
_SAID_ELSEWHERE = ("queue", "exchange", "routing_key", "priority", "expires", "time_limit")


class Weight(StrEnum):
    NOTE = "note"
    APPROXIMATE = "approximate"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Remark:
    """`about` is one word: the option or the trait of the entry that it speaks of."""

    weight: Weight
    about: str
    text: str


def option_remarks(app: CeleryApp, entry: Entry, timeout_seconds: int) -> Iterator[Remark]:
    options = entry.options
    for name in _MATTERS:
        if name in options:
            yield Remark(Weight.APPROXIMATE, name, f"{_short(options[name])} has no equivalent and is omitted")
    as_here = {"serializer"} if options.get("serializer") == "json" else set()
    left = sorted(set(options) - set(_MATTERS) - set(_SAID_ELSEWHERE) - as_here)
    if left:
        yield Remark(Weight.NOTE, "options", f"{', '.join(left)[:200]} omitted")
    if "expires" in options:
        yield from _expires_remarks(entry)
    if (found := priority(app, entry)) is not None:
        turned = (
            f"; in Redis 0 is the highest priority, in Horarium the highest number is: {found}"
            if _is_redis(app)
            else ""
        )
        yield Remark(Weight.NOTE, "priority", f"{_short(options['priority'])}{turned}")
    if time_limit(entry) is None:
        text = f"none; Horarium stops a task {timeout_seconds} s after dispatch"
        yield Remark(Weight.NOTE, "time_limit", text)


def _expires_remarks(entry: Entry) -> Iterator[Remark]:
    expires = entry.options["expires"]
    if (seconds := expires_seconds(entry)) is not None:
        text = (
            f"beat drops a message after {_short(expires)} s; Horarium sets misfire_grace_seconds to {seconds} "
            "and drops a message when its run times out"
        )
        yield Remark(Weight.NOTE, "expires", text)
    elif (moment := expires_at(entry)) is not None:
        yield Remark(Weight.NOTE, "expires", f"no messages from {to_rfc3339(moment)} on; translated to end_at")
    else:
        yield Remark(Weight.APPROXIMATE, "expires", f"{_short(expires)} is omitted")


def expires_seconds(entry: Entry) -> int | None:
    """Longest time that a message waits."""
    value = _number(entry.options.get("expires"))
    return None if value is None else max(0, math.ceil(value))


def expires_at(entry: Entry) -> Instant | None:
    value = entry.options.get("expires")
    if not isinstance(value, str):
        return None
    try:
        return from_rfc3339(value)
    except InvalidSpec:
        return None


def priority(app: CeleryApp, entry: Entry) -> int | None:
    """Clipped as messages have it; with Redis the smaller comes first, here the greater."""
    value = entry.options.get("priority")
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    clipped = max(0, min(_MAX_PRIORITY, value))
    return _MAX_PRIORITY - clipped if _is_redis(app) else clipped


def _is_redis(app: CeleryApp) -> bool:
    return app.transport in _REDIS


def time_limit(entry: Entry) -> int | None:
    """Seconds; the option goes before what the task or the app says."""
    said = _number(entry.options.get("time_limit"))
    return math.ceil(said) if said is not None and said > 0 else entry.time_limit or None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= MAX_WHOLE else None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
