"""Specs of schedules: crons, intervals and one-offs united, inside a window, with jitter.

Time is counted in epoch seconds below `Spec`, which turns it into instants (microseconds). Every nominal time is a
whole second, from the year 1900 to the end of 9891.

Jitter is a hash of the schedule and the nominal time: after any restart, on any machine, the same occurrence has the
same delay. `next_fires` is the public function behind `horarium next`.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import islice, takewhile
from typing import TypeAlias, TypeVar

from horarium.core.recurrence.cron import compile_cron, has_hash
from horarium.core.recurrence.parts import CronSchedule, DstFold, DstGap, Interval, Union, parse_interval, unite
from horarium.core.recurrence.zone import EARLIEST, LATEST, Zone, load_zone
from horarium.errors import InvalidSpec
from horarium.instant import HOUR, SECOND, Instant, from_datetime, from_rfc3339, to_datetime

_MILLISECOND = 1_000


def jitter_delay(uid: bytes, nominal: Instant, jitter_ms: int, next_nominal: Instant | None) -> Instant:
    """Microseconds, whole milliseconds, in [0, jitter]; always less than the time to the next nominal.

    The range is narrowed, not the result cut, so that a jitter as long as the period spreads evenly
    instead of heaping up at its end.
    """
    if jitter_ms <= 0:
        return 0
    widest = jitter_ms
    if next_nominal is not None:
        widest = min(widest, (next_nominal - nominal) // _MILLISECOND - 1)
    if widest <= 0:
        return 0
    digest = blake2b(uid + nominal.to_bytes(8, "big", signed=True), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (widest + 1) * _MILLISECOND


DEFAULT_ZONE = "UTC"
"""That of a schedule which names none."""
_PREFIXES = ("CRON_TZ=", "TZ=")
_MAX_PARTS = 100
_REMEMBERED = 64
_MAX_ONE_OFFS = 10_000
# Up to so many, occurrences of several parts are counted by walking: to unite the parts costs more.
_FEW = 50


@dataclass(frozen=True, slots=True)
class OneOffs:
    """Single moments, in order; after the last there is none."""

    moments: tuple[int, ...]

    def next_after(self, t: int) -> int | None:
        index = bisect_right(self.moments, t)
        return self.moments[index] if index < len(self.moments) else None

    def previous_before(self, t: int) -> int | None:
        index = bisect_left(self.moments, t)
        return self.moments[index - 1] if index else None

    def contains(self, t: int) -> bool:
        index = bisect_left(self.moments, t)
        return index < len(self.moments) and self.moments[index] == t

    def count(self, after: int, until: int) -> int:
        return len(self.between(after, until))

    def between(self, after: int, until: int) -> tuple[int, ...]:
        """Those in (after, until]."""
        return self.moments[bisect_right(self.moments, after) : bisect_right(self.moments, until)]


Part: TypeAlias = CronSchedule | Interval | OneOffs
_Choice = TypeVar("_Choice", DstGap, DstFold)


@dataclass(frozen=True, slots=True)
class Spec:
    """`parts` unite; equal instants coincide. The window is inclusive and is asked of the nominal time."""

    parts: tuple[Part, ...]
    zone: Zone
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter_ms: int = 0
    _recent: dict[Instant, Instant | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def next_after(self, instant: Instant) -> Instant | None:
        """The earliest nominal time strictly after `instant`; None when there is none for eight years.

        A herd shares its spec and asks about the same instant: the last answers are remembered.
        """
        try:
            return self._recent[instant]
        except KeyError:
            if len(self._recent) >= _REMEMBERED:
                self._recent.clear()
            found = self._recent[instant] = self._next_after(instant)
            return found

    def _next_after(self, instant: Instant) -> Instant | None:
        if self.start_at is not None and instant < self.start_at:
            instant = self.start_at - 1
        t = max(instant // SECOND, EARLIEST)
        if len(self.parts) == 1:
            found = self.parts[0].next_after(t)
        else:
            found = min((n for part in self.parts if (n := part.next_after(t)) is not None), default=None)
        return self._nominal(found)

    def previous_before(self, instant: Instant) -> Instant | None:
        """The latest nominal time strictly before `instant`."""
        if self.end_at is not None and instant > self.end_at:
            instant = self.end_at + 1
        t = min(-(-instant // SECOND), LATEST)
        found = max((p for part in self.parts if (p := part.previous_before(t)) is not None), default=None)
        if found is None or found <= EARLIEST:
            return None
        nominal = found * SECOND
        return nominal if self.start_at is None or nominal >= self.start_at else None

    def contains(self, instant: Instant) -> bool:
        return self.next_after(instant - 1) == instant

    def occurrences(self, after: Instant) -> Iterator[Instant]:
        """Every nominal time strictly after `after`, one at a time; it may never end."""
        if len(self.parts) > 1:
            yield from self._merged(after)
            return
        nominal = self.next_after(after)
        while nominal is not None:
            yield nominal
            nominal = self.next_after(nominal)

    def count(self, after: Instant, until: Instant) -> int:
        """Count the occurrences in (after, until] by arithmetic, whatever the distance."""
        low, high = self._seconds(after, until)
        if high <= low:
            return 0
        if len(self.parts) == 1:
            return self.parts[0].count(low, high)
        # Steps and not occurrences: parts that coincide take a step each.
        steps = list(islice(takewhile(lambda t: t <= high, self._steps(low)), _FEW))
        return len(set(steps)) if len(steps) < _FEW else self._count_union(self._united(), low, high)

    def counter(self) -> Callable[[Instant, Instant], int]:
        """Return a `count` for many spans, each with many occurrences: the parts are united once."""
        united = self._united() if len(self.parts) > 1 else None

        def count(after: Instant, until: Instant) -> int:
            low, high = self._seconds(after, until)
            if high <= low:
                return 0
            return self.parts[0].count(low, high) if united is None else self._count_union(united, low, high)

        return count

    def steps(self, after: Instant, until: Instant) -> int:
        """Count the occurrences of each part in (after, until]: as many steps as a walk over all of them takes."""
        low, high = self._seconds(after, until)
        return sum(part.count(low, high) for part in self.parts) if low < high else 0

    def _seconds(self, after: Instant, until: Instant) -> tuple[int, int]:
        if self.start_at is not None:
            after = max(after, self.start_at - 1)
        if self.end_at is not None:
            until = min(until, self.end_at)
        return max(after // SECOND, EARLIEST), min(until // SECOND, LATEST - 1)

    def newest(self, after: Instant, until: Instant, most: int) -> tuple[Instant | None, int]:
        """Where the newest `most` occurrences of (after, until] begin, and how many they are; None = nowhere.

        Spans that double are counted from the end until they hold enough, and the last one is halved: no
        moment is counted more than twice, however far away the beginning is.
        """
        low, high, span, missing = until, until, HOUR, most
        while missing > 0:
            if high <= after:
                return self.next_after(after) if missing < most else None, most - missing
            low = max(after, high - span)
            here = self.count(low, high)
            if here >= missing:
                break
            high, span, missing = low, 2 * span, missing - here
        else:
            return None, 0
        while high - low > SECOND:
            middle = (low + high) // 2
            here = self.count(middle, high)
            if here >= missing:
                low = middle
            else:
                high, missing = middle, missing - here
        return self.next_after(low), most

    def _merged(self, after: Instant) -> Iterator[Instant]:
        """The occurrences of several parts; each step asks only the parts that have come round."""
        if self.start_at is not None:
            after = max(after, self.start_at - 1)
        last = None
        for t in self._steps(max(after // SECOND, EARLIEST)):
            if t == last:
                continue
            nominal = self._nominal(t)
            if nominal is None:
                return
            yield nominal
            last = t

    def _steps(self, t: int) -> Iterator[int]:
        """The occurrences of each part after `t`, in order; what two parts share comes twice."""
        heads = [(n, place) for place, part in enumerate(self.parts) if (n := part.next_after(t)) is not None]
        heapq.heapify(heads)
        while heads:
            t, place = heads[0]
            yield t
            following = self.parts[place].next_after(t)
            if following is None:
                heapq.heappop(heads)
            else:
                heapq.heapreplace(heads, (following, place))

    def _united(self) -> Union:
        crons = tuple(part for part in self.parts if isinstance(part, CronSchedule))
        return unite(crons, tuple(part for part in self.parts if isinstance(part, Interval)))

    def _count_union(self, united: Union, low: int, high: int) -> int:
        periodic = tuple(part for part in self.parts if not isinstance(part, OneOffs))
        total = united.count(low + 1, high + 1) if periodic else 0
        for part in self.parts:
            if isinstance(part, OneOffs):
                total += sum(not any(other.contains(t) for other in periodic) for t in part.between(low, high))
        return total

    def _nominal(self, found: int | None) -> Instant | None:
        if found is None or found >= LATEST:
            return None
        nominal = found * SECOND
        return nominal if self.end_at is None or nominal <= self.end_at else None

    def due(self, uid: bytes, nominal: Instant) -> Instant:
        """When to act on an occurrence: never early, and before the next one."""
        if self.jitter_ms == 0:
            return nominal
        return nominal + jitter_delay(uid, nominal, self.jitter_ms, self.next_after(nominal))


def compile_spec(
    *,
    cron_expressions: Sequence[str] = (),
    intervals: Sequence[Mapping[str, str | None]] = (),
    at: Sequence[str] = (),
    timezone: str | None = None,
    start_at: Instant | None = None,
    end_at: Instant | None = None,
    jitter_ms: int = 0,
    dst_gap: DstGap | str = DstGap.NEXT_VALID,
    dst_fold: DstFold | str = DstFold.FIRST,
    key: str | None = None,
) -> Spec:
    """Refuses with the field's name; whether it ever fires is a question for a moment (`refuse_if_never`)."""
    if max(len(cron_expressions), len(intervals)) > _MAX_PARTS or len(at) > _MAX_ONE_OFFS:
        raise InvalidSpec(f"spec: at most {_MAX_PARTS} crons or intervals and {_MAX_ONE_OFFS} one-offs")
    if not (cron_expressions or intervals or at):
        raise InvalidSpec("spec: needs at least one cron expression, interval or one-off time")
    if start_at is not None and end_at is not None and end_at < start_at:
        raise InvalidSpec("end_at: must not be before start_at", field="end_at")
    split = [split_zone(text) for text in cron_expressions]
    zone = _agree(timezone, [prefix for prefix, _ in split if prefix is not None])
    gap, fold = _choice(DstGap, dst_gap, "dst_gap"), _choice(DstFold, dst_fold, "dst_fold")
    parts: list[Part] = [_compile_expression(body, zone, gap, fold, key) for _, body in split]
    parts += [parse_interval(entry.get("every") or "", entry.get("offset")) for entry in intervals]
    if at:
        parts.append(OneOffs(tuple(sorted({_whole_second(text) for text in at}))))
    unique = tuple(dict.fromkeys(parts))
    return Spec(unique, zone, start_at, end_at, jitter_ms)


def refuse_if_never(spec: Spec, after: Instant) -> Instant:
    """The first occurrence after a moment, or a refusal: a schedule without a future is a mistake."""
    nominal = spec.next_after(after)
    if nominal is None:
        raise InvalidSpec(f"expression: never fires; {_why_never(spec, after)}", field="expression")
    return nominal


def _why_never(spec: Spec, after: Instant) -> str:
    if spec.end_at is not None and spec.end_at <= after:
        return "end_at is in the past"
    if all(isinstance(part, OneOffs) and part.next_after(after // SECOND) is None for part in spec.parts):
        return "the time is in the past; set a time in the future"
    return "the expression has no occurrence within eight years"


def split_zone(text: str) -> tuple[str | None, str]:
    """`CRON_TZ=Europe/London 0 9 * * *` → the zone and the rest."""
    stripped = text.lstrip()
    for prefix in _PREFIXES:
        if stripped.startswith(prefix):
            name, _, rest = stripped[len(prefix) :].partition(" ")
            load_zone(name)
            return name, rest
    return None, text


def _compile_expression(text: str, zone: Zone, gap: DstGap, fold: DstFold, key: str | None) -> Part:
    stripped = text.strip()
    if stripped[:6].upper() == "RRULE:":
        raise InvalidSpec("expression: RRULE is not supported; use a cron expression", field="expression")
    if stripped[:6].lower() == "@every":
        return parse_interval(stripped[6:].strip())
    # Only an expression with `H` depends on the schedule; all others share one compiled form.
    return CronSchedule(compile_cron(text, key=key if has_hash(text) else None), zone, gap, fold)


def _agree(timezone: str | None, prefixes: Sequence[str]) -> Zone:
    names = list(dict.fromkeys([*([] if timezone is None else [timezone]), *prefixes]))
    if len(names) > 1:
        shown = " and ".join(names[:2])
        raise InvalidSpec(f"timezone: {shown} differ; a schedule has one time zone", field="timezone")
    return load_zone(names[0] if names else DEFAULT_ZONE)


def _whole_second(text: str) -> int:
    instant = from_rfc3339(text, field="at")
    if instant % SECOND:
        raise InvalidSpec(f"at: {text!r} has a fraction; must be a whole second", field="at")
    return instant // SECOND


def _choice(kind: type[_Choice], value: str, name: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidSpec(f"{name}: {str(value)[:20]!r} is not valid; allowed: {known}", field=name) from None


_MOST = 100_000


def next_fires(
    expr: str,
    *,
    timezone: str | None = None,
    after: datetime | str,
    count: int = 1,
    dst_gap: str = "next_valid",
    dst_fold: str = "first",
    key: str | None = None,
) -> list[datetime]:
    """The first `count` fires of a cron expression or `@every` strictly after `after`, in UTC.

    `timezone` None means UTC, or the zone that the expression names. `key` is what `H` hashes.
    Raises `InvalidSpec`, also where nothing matches for eight years.
    """
    _check_types(expr, timezone, key, count)
    spec = compile_spec(cron_expressions=[expr], timezone=timezone, dst_gap=dst_gap, dst_fold=dst_fold, key=key)
    start = _instant(after)
    refuse_if_never(spec, start)
    return [to_datetime(nominal) for nominal in islice(spec.occurrences(start), count)]


def _check_types(expr: object, timezone: object, key: object, count: object) -> None:
    """A public function is called from everywhere; a wrong type gets a sentence, not a traceback."""
    for name, value in (("expression", expr), ("timezone", timezone), ("key", key)):
        if not (isinstance(value, str) or (value is None and name != "expression")):
            raise InvalidSpec(f"{name}: must be a string, not {type(value).__name__}", field=name)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST:
        raise InvalidSpec(f"count: must be between 1 and {_MOST}", field="count")


def _instant(after: object) -> Instant:
    if isinstance(after, str):
        instant = from_rfc3339(after, field="after")
    elif isinstance(after, datetime):
        instant = from_datetime(after, field="after")
    else:
        raise InvalidSpec(f"after: must be a datetime or an RFC 3339 string, not {type(after).__name__}", field="after")
    if not EARLIEST * SECOND <= instant <= LATEST * SECOND:
        raise InvalidSpec("after: must be between the years 1900 and 9892", field="after")
    return instant
