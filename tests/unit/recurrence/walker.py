"""The judge of the cron engine: it tries every wall time that matches and asks the zone when that is.

It is written from the text of the dialect alone and shares nothing with the engine: sets of ints
instead of masks, a scan of the month instead of arithmetic, the standard library's `zoneinfo`
(PEP 495) instead of tables. Obviously right comes before fast.
"""

from __future__ import annotations

import importlib.resources
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
DAY = timedelta(days=1)
WEEK_SECONDS = 7 * 86_400


# ---- the expression -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """An expression as the walker reads it; the day fields stay text and are read month by month."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    day_of_month: str
    months: frozenset[int]
    day_of_week: str
    fixed: bool

    @property
    def times_per_day(self) -> int:
        return len(self.seconds) * len(self.minutes) * len(self.hours)


@lru_cache(maxsize=4096)
def read(expr: str) -> Walk:
    """Only for expressions that are known to be valid; a wrong one gives a wrong answer here."""
    fields = MACROS.get(expr.lower(), expr).upper().split()
    second, minute, hour, day_of_month, month, day_of_week = ["0", *fields] if len(fields) == 5 else fields
    return Walk(
        seconds=numbers(second, 0, 59),
        minutes=numbers(minute, 0, 59),
        hours=numbers(hour, 0, 23),
        day_of_month=day_of_month,
        months=numbers(month, 1, 12, ["", *MONTHS]),
        day_of_week=day_of_week,
        fixed=not minute.startswith("*") and not hour.startswith("*"),
    )


def numbers(field: str, low: int, high: int, names: list[str] | None = None) -> frozenset[int]:
    def value(text: str) -> int:
        return names.index(text) if names and text in names else int(text)

    found: set[int] = set()
    for item in field.split(","):
        body, _, step = item.partition("/")
        if body in ("*", "?"):
            first, last = low, high
        elif "-" in body:
            first, last = (value(end) for end in body.split("-"))
        else:
            first = value(body)
            last = high if step else first
        found.update(range(first, last + 1, int(step or 1)))
    return frozenset(found)


def month_days(year: int, month: int) -> list[date]:
    day = date(year, month, 1)
    days = []
    while day.month == month:
        days.append(day)
        day += DAY
    return days


def cron_weekday(day: date) -> int:
    return day.isoweekday() % 7


def is_weekday(day: date) -> bool:
    return day.isoweekday() <= 5


def days_by_date(field: str, days: list[date]) -> set[date]:
    """Day-of-month: numbers, `L`, `LW`, `nW`."""
    found: set[date] = set()
    for item in field.split(","):
        if item == "L":
            found.add(days[-1])
        elif item == "LW":
            found.add([day for day in days if is_weekday(day)][-1])
        elif item.endswith("W"):
            found.update(nearest_weekday(int(item[:-1]), days))
        else:
            found.update(day for day in days if day.day in numbers(item, 1, 31))
    return found


def nearest_weekday(n: int, days: list[date]) -> set[date]:
    """A Saturday moves back, a Sunday forward, but never out of the month; no day n, no answer."""
    if n > len(days):
        return set()
    for nearby in (n, n - 1, n + 1, n - 2, n + 2):
        if 1 <= nearby <= len(days) and is_weekday(days[nearby - 1]):
            return {days[nearby - 1]}
    raise AssertionError("every five days have a weekday")


def days_by_weekday(field: str, days: list[date]) -> set[date]:
    """Day-of-week: numbers and names (0 and 7 are Sunday), `n#k`, `nL`."""
    found: set[date] = set()
    for item in field.split(","):
        if special := re.fullmatch(r"(\w+?)(?:#(\d)|L)", item):
            (number,) = numbers(special[1], 0, 6, WEEKDAYS)
            same = [day for day in days if cron_weekday(day) == number % 7]
            found.update(same[-1:] if special[2] is None else same[int(special[2]) - 1 : int(special[2])])
        else:
            wanted = {number % 7 for number in numbers(item, 0, 6, WEEKDAYS)}
            found.update(day for day in days if cron_weekday(day) in wanted)
    return found


@lru_cache(maxsize=20_000)
def matching_days(day_of_month: str, day_of_week: str, year: int, month: int) -> frozenset[date]:
    """Both restricted = either; a field that starts with a star (or is `?`) restricts nothing by that rule."""
    days = month_days(year, month)
    by_date, by_weekday = days_by_date(day_of_month, days), days_by_weekday(day_of_week, days)
    if day_of_month[0] in "*?" or day_of_week[0] in "*?":
        return frozenset(by_date & by_weekday)
    return frozenset(by_date | by_weekday)


def is_day(walk: Walk, day: date) -> bool:
    if day.month not in walk.months:
        return False
    return day in matching_days(walk.day_of_month, walk.day_of_week, day.year, day.month)


# ---- the zone -------------------------------------------------------------------------------------------


@cache
def zone_names() -> tuple[str, ...]:
    listed = importlib.resources.files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return tuple(sorted(listed.split()))


@cache
def zone_bytes(name: str) -> bytes:
    return importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


@cache
def _first_names() -> dict[bytes, str]:
    return {zone_bytes(name): name for name in reversed(zone_names())}


def is_link(name: str) -> bool:
    """Whether a zone that comes earlier has the very same rules."""
    return _first_names()[zone_bytes(name)] != name


@cache
def _zone_of(data: bytes) -> ZoneInfo:
    return ZoneInfo.from_file(io.BytesIO(data))


def zone(name: str) -> ZoneInfo:
    """Never the system's zones; links share one object, so that what was asked of one serves the other."""
    return _zone_of(zone_bytes(name))


def difference(tz: ZoneInfo, at: int) -> timedelta:
    found = datetime.fromtimestamp(at, tz).utcoffset()
    assert found is not None
    return found


def offset(tz: ZoneInfo, at: int) -> int:
    return int(difference(tz, at).total_seconds())


def reading(tz: ZoneInfo, at: int) -> datetime:
    """What the clock on the wall shows."""
    return datetime.fromtimestamp(at, tz).replace(tzinfo=None, fold=0)


@dataclass(frozen=True)
class Change:
    """From `at` on, the zone is at `after`; one second earlier it was at `before`."""

    at: int
    before: int
    after: int

    @property
    def size(self) -> int:
        return self.after - self.before


def first_at(tz: ZoneInfo, low: int, high: int) -> int:
    """The first instant with the offset of `high`, where `low` has another and only one change lies between."""
    wanted = difference(tz, high)
    while high - low > 1:
        middle = (low + high) // 2
        if difference(tz, middle) == wanted:
            high = middle
        else:
            low = middle
    return high


@cache
def changes(tz: ZoneInfo, first_year: int, last_year: int) -> tuple[Change, ...]:
    """Offset changes, found by looking once a week: no zone has changed twice in a week since 1970."""
    at = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(last_year + 1, 1, 1, tzinfo=UTC).timestamp())
    weeks = range(at, end + WEEK_SECONDS, WEEK_SECONDS)
    differences = [difference(tz, week) for week in weeks]
    return tuple(
        Change(first_at(tz, week, week + WEEK_SECONDS), offset(tz, week), offset(tz, week + WEEK_SECONDS))
        for week, before, after in zip(weeks, differences, differences[1:], strict=False)
        if before != after
    )


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a wall time lies: `instants` that read so (none, one, two), and where its gap ends."""

    instants: tuple[int, ...]
    gap_end: int | None


@lru_cache(maxsize=30_000)  # the wall times of one comparison; a few hundred thousand would take 200 MB
def place(tz: ZoneInfo, wall: datetime) -> Placed:
    """PEP 495: fold 0 reads the wall time with the offset before a change, fold 1 with the one after it."""
    early, late = (int(wall.replace(tzinfo=tz, fold=fold).timestamp()) for fold in (0, 1))
    instants = tuple(sorted({at for at in (early, late) if reading(tz, at) == wall}))
    if instants:
        return Placed(instants, None)
    return Placed((), first_at(tz, late, early))


# ---- the rule -------------------------------------------------------------------------------------------


def fires_of(placed: Placed, fixed: bool, dst_gap: str, dst_fold: str) -> tuple[int, ...]:
    """A wildcard follows real time; a fixed time is moved out of a gap and chosen in a repeated hour."""
    if not fixed:
        return placed.instants
    if placed.gap_end is not None:
        return (placed.gap_end,) if dst_gap == "next_valid" else ()
    return {"first": placed.instants[:1], "second": placed.instants[-1:], "both": placed.instants}[dst_fold]


def wall_times(walk: Walk, first: date, last: date) -> Iterator[datetime]:
    day = first
    while day <= last:
        if is_day(walk, day):
            for hour in sorted(walk.hours):
                for minute in sorted(walk.minutes):
                    for second in sorted(walk.seconds):
                        yield datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 - wall
        day += DAY


def fires(
    expr: str, tz: ZoneInfo, after: int, until: int, *, dst_gap: str = "next_valid", dst_fold: str = "first"
) -> list[int]:
    """All occurrences in (after, until], in epoch seconds."""
    walk = read(expr)
    # Two days of margin: the longest gap, Samoa's, is one day.
    first, last = reading(tz, after).date() - 2 * DAY, reading(tz, until).date() + 2 * DAY
    found: set[int] = set()
    for wall in wall_times(walk, first, last):
        found.update(fires_of(place(tz, wall), walk.fixed, dst_gap, dst_fold))
    return sorted(at for at in found if after < at <= until)


def ever_fires(expr: str, after: int, years: int = 8) -> bool:
    """Whether any date within the bound matches; the time of day always exists somewhere."""
    walk = read(expr)
    start = datetime.fromtimestamp(after, UTC).date()
    return any(is_day(walk, start + DAY * n) for n in range(years * 366))


def grid(every: str, after: int, until: int) -> list[int]:
    """`@every`: multiples of the duration since the epoch, whatever the zone."""
    parts = re.fullmatch(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", every)
    assert parts is not None
    seconds = sum(int(n or 0) * unit for n, unit in zip(parts.groups(), (604_800, 86_400, 3600, 60, 1), strict=True))
    return [at for at in range(after - after % seconds, until + 1, seconds) if at > after]
