"""Entries of Celery beat, read from the description of an app and checked, and remarks about their options.

The description is JSON, written by a process that has Celery (`app_description.py`). It may come from an untrusted
file, so all of it is checked here, and bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeAlias

from horarium.core.policy.queue import MAX_WHOLE, PolicyError, shown, whole_number
from horarium.core.recurrence.zone import EARLIEST, LATEST
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.bundles.document import MAX_DOCUMENTS
from horarium.instant import Instant, from_rfc3339, to_rfc3339

# ── Entries ───────────────────────────────────────────────────────────────────────────────────────────


FORMAT = 1
_MAX_TEXT = 1_000
_MAX_FIRES = 50_000
_MAX_SPANS = 50
_MAX_SECONDS = 3_650 * 86_400

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CrontabField:
    """`text` is what somebody wrote, None where it was no text; `values` are what Celery made of it."""

    text: str | None
    values: frozenset[int]


@dataclass(frozen=True, slots=True)
class Crontab:
    minute: CrontabField
    hour: CrontabField
    day_of_month: CrontabField
    month_of_year: CrontabField
    day_of_week: CrontabField


@dataclass(frozen=True, slots=True)
class Every:
    """`relative` rounds to whole minutes, hours or days, whichever the interval has."""

    seconds: float
    relative: bool = False


@dataclass(frozen=True, slots=True)
class ClockedSchedule:
    at: Instant


@dataclass(frozen=True, slots=True)
class Foreign:
    """A schedule that nothing here is like: the sun, or a class of somebody's own."""

    kind: str
    text: str


When: TypeAlias = Crontab | Every | ClockedSchedule | Foreign


@dataclass(frozen=True, slots=True)
class FireSpan:
    """When the real class fires in (after, until], in epoch seconds."""

    after: int
    until: int
    fires: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BeatEntry:
    """One thing that beat sends. `queue` is the one that the app's own routes lead to."""

    name: str
    task: str
    when: When
    timezone: str | None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    routed_by: str | None = None
    """Exchange and routing key, where no queue leads there."""
    not_json: str | None = None
    own_clock: bool = False
    own_class: str | None = None
    known_task: bool | None = None
    enabled: bool = True
    one_off: bool = False
    sent: int = 0
    start_at: Instant | None = None
    end_at: Instant | None = None
    time_limit: int | None = None
    note: str | None = None
    spans: tuple[FireSpan, ...] = ()
    not_stepped: str | None = None


@dataclass(frozen=True, slots=True)
class CeleryApp:
    """`transport` is the broker's, such as `redis`; its address is not told.

    A crontab that is late by more than `starting_deadline` seconds is not sent any more.
    """

    name: str
    now: Instant
    entries: tuple[BeatEntry, ...]
    transport: str | None = None
    version: str | None = None
    starting_deadline: int | None = None


def read_description(document: object) -> CeleryApp:
    """Raises InvalidDefinition, which names the entry and the field."""
    top = _Reader(document, "")
    if top.get("horarium_celery") != FORMAT:
        raise InvalidDefinition({"horarium_celery": [f"must be {FORMAT}; this is not a description of a Celery app"]})
    rows = top.sequence("entries", most=MAX_DOCUMENTS)
    entries = tuple(_entry(_Reader(row, f"entries.{index}")) for index, row in enumerate(rows))
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        twice = next(name for name, following in pairwise(sorted(names)) if name == following)
        raise InvalidDefinition({"entries": [f"{twice[:64]!r} appears twice"]})
    return CeleryApp(
        top.needed_text("app"),
        top.needed_instant("now"),
        entries,
        top.text("transport"),
        top.text("celery"),
        top.whole("starting_deadline"),
    )


def _entry(row: _Reader) -> BeatEntry:
    return BeatEntry(
        name=row.needed_text("name"),
        task=row.text("task") or "",
        when=_when(row.object("schedule")),
        timezone=row.text("timezone"),
        args=tuple(row.sequence("args")),
        kwargs=row.object("kwargs").document,
        options=row.object("options").document,
        queue=row.text("queue"),
        routed_by=row.text("routed_by"),
        not_json=row.text("not_json"),
        own_clock=row.flag("own_clock", False),
        own_class=row.text("own_class"),
        known_task=row.flag("known_task", None),
        enabled=row.flag("enabled", True),
        one_off=row.flag("one_off", False),
        sent=row.whole("sent") or 0,
        start_at=row.instant("start_at"),
        end_at=row.instant("end_at"),
        time_limit=row.whole("time_limit"),
        note=row.text("note"),
        spans=tuple(_span(_Reader(each, row.path("spans"))) for each in row.sequence("spans", most=_MAX_SPANS)),
        not_stepped=row.text("not_stepped"),
    )


_RANGES = {"minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month_of_year": (1, 12), "day_of_week": (0, 6)}


def _when(row: _Reader) -> When:
    match kind := row.needed_text("kind"):
        case "crontab":
            return Crontab(**{name: _field(row.object(name), *bounds) for name, bounds in _RANGES.items()})
        case "interval":
            seconds = row.get("seconds")
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _MAX_SECONDS:
                row.refuse("seconds", f"must be a number of seconds up to ten years, not {shown(seconds)}")
            return Every(float(seconds), row.flag("relative", False))
        case "clocked":
            return ClockedSchedule(row.needed_instant("at"))
        case _:
            return Foreign(kind, row.text("text") or kind)


def _field(row: _Reader, low: int, high: int) -> CrontabField:
    values = frozenset(row.number("values", value, low, high) for value in row.sequence("values", most=100))
    if not values:
        row.refuse("values", "must not be empty")
    return CrontabField(row.text("text"), values)


def _span(row: _Reader) -> FireSpan:
    after, until = (row.number(name, row.get(name), EARLIEST, LATEST) for name in ("after", "until"))
    fires = tuple(row.number("fires", each, after, until) for each in row.sequence("fires", most=_MAX_FIRES))
    return FireSpan(after, until, tuple(sorted(set(fires))))


class _Reader:
    """One object of the description: each question names its place if the answer is wrong."""

    def __init__(self, document: object, place: str) -> None:
        self._place = place
        if not isinstance(document, Mapping):
            raise InvalidDefinition({place or "description": [f"must be an object, not {shown(document)}"]})
        self.document: Document = document

    def path(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def refuse(self, name: str, why: str) -> Any:
        raise InvalidDefinition({self.path(name): [why]})

    def get(self, name: str) -> Any:
        return self.document.get(name)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > _MAX_TEXT or "\x00" in value:
            self.refuse(name, f"must be a string of at most {_MAX_TEXT} characters, not {shown(value)}")
        return str(value)

    def needed_text(self, name: str) -> str:
        return self.text(name) or str(self.refuse(name, "is required"))

    def flag(self, name: str, default: Any) -> Any:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            self.refuse(name, f"must be true or false, not {shown(value)}")
        return default if value is None else value

    def number(self, name: str, value: object, low: int, high: int) -> int:
        try:
            return whole_number(name, value, least=low, most=high)
        except PolicyError as wrong:
            self.refuse(name, wrong.text)
            raise

    def whole(self, name: str) -> int | None:
        value = self.get(name)
        return None if value is None else self.number(name, value, 0, 2**31 - 1)

    def instant(self, name: str) -> Instant | None:
        text = self.text(name)
        return None if text is None else from_rfc3339(text, field=self.path(name))

    def needed_instant(self, name: str) -> Instant:
        found = self.instant(name)
        return int(self.refuse(name, "is required")) if found is None else found

    def object(self, name: str) -> _Reader:
        value = self.get(name)
        return _Reader({} if value is None else value, self.path(name))

    def sequence(self, name: str, *, most: int = 100_000) -> list[Any]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most:
            self.refuse(name, f"must be an array of at most {most} entries, not {shown(value)}")
        return list(value)


# ── Options ───────────────────────────────────────────────────────────────────────────────────────────


_MAX_PRIORITY = 9
_REDIS = ("redis", "rediss", "sentinel")
# What decides when or what is done, and has no place in an action.
_MATTERS = ("countdown", "eta", "link", "link_error", "chain", "chord", "headers", "group_id", "root_id", "parent_id")
_MAPPED_ELSEWHERE = ("queue", "exchange", "routing_key", "priority", "expires", "time_limit")


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


def option_remarks(app: CeleryApp, entry: BeatEntry, timeout_seconds: int) -> Iterator[Remark]:
    options = entry.options
    for name in _MATTERS:
        if name in options:
            yield Remark(Weight.APPROXIMATE, name, f"{_short(options[name])} has no equivalent and is omitted")
    as_here = {"serializer"} if options.get("serializer") == "json" else set()
    left = sorted(set(options) - set(_MATTERS) - set(_MAPPED_ELSEWHERE) - as_here)
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


def _expires_remarks(entry: BeatEntry) -> Iterator[Remark]:
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


def expires_seconds(entry: BeatEntry) -> int | None:
    """Longest time that a message waits."""
    value = _number(entry.options.get("expires"))
    return None if value is None else max(0, math.ceil(value))


def expires_at(entry: BeatEntry) -> Instant | None:
    value = entry.options.get("expires")
    if not isinstance(value, str):
        return None
    try:
        return from_rfc3339(value)
    except InvalidSpec:
        return None


def priority(app: CeleryApp, entry: BeatEntry) -> int | None:
    """Clipped as messages have it; with Redis the smaller comes first, here the greater."""
    value = entry.options.get("priority")
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    clipped = max(0, min(_MAX_PRIORITY, value))
    return _MAX_PRIORITY - clipped if _is_redis(app) else clipped


def _is_redis(app: CeleryApp) -> bool:
    return app.transport in _REDIS


def time_limit(entry: BeatEntry) -> int | None:
    """Seconds; the option goes before what the task or the app says."""
    said = _number(entry.options.get("time_limit"))
    return math.ceil(said) if said is not None and said > 0 else entry.time_limit or None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= MAX_WHOLE else None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
