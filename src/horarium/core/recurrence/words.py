"""Descriptions of an expression in words: `0 9 * * 1-5` is "at 09:00, Monday to Friday".

The words are made from what a field matches and not from how it is written, so `*/30` and `0,30` read
alike and a step that does not divide its range is never called even.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import NamedTuple, assert_never

from horarium.core.recurrence.cron import Cron
from horarium.core.recurrence.field import CronField, LastDay, LastWeekday, LastWorkday, NearestWorkday, NthWeekday
from horarium.core.recurrence.parts import CronSchedule, Interval
from horarium.core.recurrence.spec import compile_spec, split_zone

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NTH = ("first", "second", "third", "fourth", "fifth")
_UNITS = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
# A person lists a few clock times and calendar dates; beyond these counts a pattern reads better.
_FEW_TIMES = 6
_FEW_DATES = 4
# The answer stays below 1,000 characters; the rest is room for the zone.
_LONGEST = 900


def describe(expr: str, *, timezone: str | None = None, key: str | None = None) -> str:
    """Plain words for any expression that we accept; raises `InvalidSpec` for the others."""
    prefix, _ = split_zone(expr)
    spec = compile_spec(cron_expressions=[expr], timezone=timezone, key=key)
    [part] = spec.parts
    if isinstance(part, Interval):
        # "every day", but "every 1 day 6 hours"
        length = duration_words(part.every)
        every = length.removeprefix("1 ") if length.count(" ") == 1 else length
        return f"every {every}, counted from the Unix epoch in UTC"
    assert isinstance(part, CronSchedule)  # one expression is never a one-off
    notes = []
    if timezone is not None or prefix is not None:
        notes.append("UTC" if spec.zone.key == "UTC" else f"{spec.zone.key} time")
    if any(uses_hash(field) for field in part.cron.fields):
        notes.append("H depends on the key")
    words = cron_words(part.cron)
    return f"{words} ({'; '.join(notes)})" if notes else words


def cron_words(cron: Cron) -> str:
    """When a cron fires on its wall clock, whatever the zone."""
    time, names_the_clock = _time_words(cron)
    days, months = _day_words(cron), _month_words(cron.month)
    several = _both_days(cron)
    if not several and (dates := _calendar_dates(cron)):
        words = f"{time} on {dates}"
    elif days:
        separator = f", only {months}" if several else f", {months}"
        words = f"{time}{days}{separator if months else ''}"
    elif months:
        words = f"{time} every day {months}" if names_the_clock else f"{time}, {months}"
    else:
        words = f"{time} every day" if names_the_clock else time
    return words if len(words) <= _LONGEST else _verbatim(cron)


def duration_words(seconds: int) -> str:
    """5400 → `1 hour 30 minutes`."""
    words = []
    for size, unit in _UNITS:
        number, seconds = divmod(seconds, size)
        if number:
            words.append(f"{number:,} {unit}{'s' if number != 1 else ''}")
    return " ".join(words)


def uses_hash(field: CronField) -> bool:
    """No name of a month or a day starts with H."""
    return any(item.upper().startswith("H") for item in field.text.split(","))


def ordinal(number: int) -> str:
    """13 → `13th`, 22 → `22nd`."""
    suffix = "th" if number // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def join_words(pieces: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(pieces[:-1]), pieces[-1]]))


# ── the time of day ──────────────────────────────────────────────────────────────────────────────────


class _Time(NamedTuple):
    """`names_the_clock`: the words are a list of clock times, which wants a day beside it."""

    words: str
    names_the_clock: bool = False


def _time_words(cron: Cron) -> _Time:
    seconds, minutes, hours = values_of(cron.second), values_of(cron.minute), values_of(cron.hour)
    few = len(seconds) * len(minutes) * len(hours) <= _FEW_TIMES
    if seconds != [0]:
        if few:
            return _clock_times(hours, minutes, seconds)
        return _Time(_with_hours(_with_minutes(_beats(cron.second, "minute"), cron.minute), cron.hour, 59))
    if len(minutes) == 1 and (words := _hourly(hours, minutes[0])):
        return _Time(words)
    step = _step(minutes)
    if len(hours) == 1 and step:
        every = "every minute" if step == 1 else f"every {step} minutes"
        return _Time(f"{every} from {_clock(hours[0], minutes[0])} to {_clock(hours[0], minutes[-1])}")
    if few and not step:
        return _clock_times(hours, minutes, seconds)
    words = _beats(cron.minute, "hour")
    return _Time(_with_hours(words, cron.hour, 59 if "each" in words else minutes[-1]))


def _hourly(hours: list[int], minute: int) -> str:
    """One minute of many hours: a rhythm, where they have one."""
    step, first, last = _step(hours), hours[0], hours[-1]
    if len(hours) == 24:
        return "every hour on the hour" if minute == 0 else f"at minute {minute} of each hour"
    if not step:
        return ""
    every = "every hour" if step == 1 else f"every {step} hours"
    if 24 % step == 0 and last + step > 23:
        return every if first == minute == 0 else f"{every} from {_clock(first, minute)}"
    return f"{every} from {_clock(first, minute)} to {_clock(last, minute)}"


def _beats(field: CronField, whole: str) -> str:
    """The rhythm of seconds in a minute, or of minutes in an hour."""
    unit, values = field.kind.name, values_of(field)
    step, first, last = _step(values), values[0], values[-1]
    if field.unrestricted:
        return f"every {unit}"
    if values == [0, 30]:
        return f"every 30 {unit}s"
    if not step:
        return f"at {_numbered(unit, values)} of each {whole}"
    every = f"every {unit}" if step == 1 else f"every {step} {unit}s"
    if last + step <= 59 or step == 1:
        return f"{every} from {unit} {first} to {last} of each {whole}"
    # Said of an uneven step too: it starts again with each hour, and the last gap is shorter.
    even = first == 0 and 60 % step == 0
    return every if even else f"{every} from {unit} {first} of each {whole}"


def _with_minutes(seconds: str, minute: CronField) -> str:
    if minute.unrestricted:
        return seconds
    values = values_of(minute)
    step = _step(values)
    if step and step > 1:
        which = f"every {ordinal(step)} minute from minute {values[0]} to {values[-1]}"
    else:
        which = _numbered("minute", values)
    return f"{seconds}, in {which} of each hour"


def _with_hours(words: str, hour: CronField, last_minute: int) -> str:
    if hour.unrestricted:
        return words
    values = values_of(hour)
    step, begin, end = _step(values), _clock(values[0], 0), _clock(values[-1], last_minute)
    comma = "," if "each" in words else ""
    if values[-1] - values[0] == len(values) - 1:
        return f"{words}{comma} from {begin} to {end}"
    if step:
        return f"{words}{comma} in every {ordinal(step)} hour from {begin} to {_clock(values[-1], 59)}"
    return f"{words}{comma} in {_numbered('hour', values)}"


def _clock_times(hours: list[int], minutes: list[int], seconds: list[int]) -> _Time:
    shown = [
        _clock(hour, minute) + (f":{second:02d}" if seconds != [0] else "")
        for hour, minute, second in product(hours, minutes, seconds)
    ]
    return _Time(f"at {join_words(shown)}", names_the_clock=True)


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02d}:{minute:02d}"


# ── the days ─────────────────────────────────────────────────────────────────────────────────────────


def _both_days(cron: Cron) -> bool:
    """Tell whether both day fields restrict the days, so that the words need the rule that joins them."""
    date, weekday = cron.day_of_month, cron.day_of_week
    if date.starred or weekday.starred:
        return not (date.unrestricted or weekday.unrestricted)
    return not (date.unrestricted and weekday.unrestricted)


def _day_words(cron: Cron) -> str:
    date, weekday = cron.day_of_month, cron.day_of_week
    if _both_days(cron):
        rule = "and only" if date.starred or weekday.starred else "or"
        return f" {_date_words(date)}, {rule} {_weekday_words(weekday)}"
    if not date.unrestricted:
        return f" {_date_words(date)}"
    if weekday.unrestricted:
        return ""
    words = _weekday_words(weekday)
    return f", {words.removeprefix('from ')}" if words.startswith("from ") and not weekday.rules else f" {words}"


def _date_words(field: CronField) -> str:
    if field.unrestricted:
        return "on any day of the month"
    values, rules = values_of(field), _date_rules(field)
    step = _step(values)
    if step is None:
        return f"on the {join_words(_spans(values, ordinal) + rules)} of the month"
    first, last = ordinal(values[0]), ordinal(values[-1])
    if step == 1:
        plain = f"from the {first} to the {last} of the month"
    else:
        until = "" if values[-1] + step > 31 else f" to the {last}"
        plain = f"on every {ordinal(step)} day of the month from the {first}{until}"
    return f"{plain} and on the {join_words(rules)} of the month" if rules else plain


def _date_rules(field: CronField) -> list[str]:
    """The workdays come last: they bring a list of their own."""
    ends: list[str] = []
    nearest: list[int] = []
    for rule in field.rules:
        match rule:
            case LastDay():
                ends.append("last day")
            case LastWorkday():
                ends.append("last workday")
            case NearestWorkday(day):
                nearest.append(day)
            case NthWeekday() | LastWeekday():
                raise AssertionError("a rule of the other day field")
            case _:
                assert_never(rule)
    days = [ordinal(day) for day in sorted(set(nearest))]
    workdays = [f"workday{'s' if len(days) > 1 else ''} nearest the {join_words(days)}"] if days else []
    return [*dict.fromkeys(ends), *workdays]


def _weekday_words(field: CronField) -> str:
    if field.unrestricted:
        return "on any day of the week"
    rules = _weekday_rules(field)
    on_rules = f"on {join_words(rules)} of the month" if rules else ""
    values = sorted(values_of(field), key=lambda day: (day - 1) % 7)  # people start at Monday
    if not values:
        return on_rules
    if run := _circular_run(values, 7):
        plain = f"from {WEEKDAY_NAMES[run[0]]} to {WEEKDAY_NAMES[run[1]]}"
    else:
        plain = f"on {join_words([WEEKDAY_NAMES[day] + 's' for day in values])}"
    return f"{plain} and {on_rules}" if rules else plain


def _weekday_rules(field: CronField) -> list[str]:
    """`the first and third Monday`: one piece a weekday, in the order they were written."""
    places: dict[int, dict[str, None]] = {}
    for rule in field.rules:
        match rule:
            case NthWeekday(weekday, nth):
                places.setdefault(weekday, {})[_NTH[nth - 1]] = None
            case LastWeekday(weekday):
                places.setdefault(weekday, {})["last"] = None
            case LastDay() | LastWorkday() | NearestWorkday():
                raise AssertionError("a rule of the other day field")
            case _:
                assert_never(rule)
    return [f"the {join_words(list(nths))} {WEEKDAY_NAMES[day]}" for day, nths in places.items()]


def _month_words(field: CronField) -> str:
    if field.unrestricted:
        return ""
    values = values_of(field)
    if run := _circular_run(values, 12):
        return f"from {MONTH_NAMES[run[0] - 1]} to {MONTH_NAMES[run[1] - 1]}"
    return f"in {join_words([MONTH_NAMES[month - 1] for month in values])}"


def _calendar_dates(cron: Cron) -> str:
    """`1 January and 1 July`: a few dates of a few months, with no weekday in play."""
    date, months = cron.day_of_month, values_of(cron.month)
    if date.unrestricted or date.rules or len(values_of(date)) * len(months) > _FEW_DATES:
        return ""
    return join_words([f"{day} {MONTH_NAMES[month - 1]}" for month, day in product(months, values_of(date))])


# ── shapes of sets of numbers ────────────────────────────────────────────────────────────────────────


def values_of(field: CronField) -> list[int]:
    """The plain values that a field matches, in order."""
    return [value for value in range(field.kind.high + 1) if field.mask >> value & 1]


def _step(values: list[int]) -> int | None:
    """The one distance between three or more values; None where they have no single one."""
    steps = {second - first for first, second in pairwise(values)}
    return steps.pop() if len(values) >= 3 and len(steps) == 1 else None


def _circular_run(values: list[int], size: int) -> tuple[int, int] | None:
    """First and last of three or more neighbours on a ring: Friday, Saturday, Sunday."""
    if not 3 <= len(values) < size:
        return None
    ring = {value % size for value in values}
    starts = [value for value in values if (value - 1) % size not in ring]
    ends = [value for value in values if (value + 1) % size not in ring]
    return (starts[0], ends[0]) if len(starts) == 1 else None


def _numbered(unit: str, values: list[int]) -> str:
    return f"{unit}{'s' if len(values) > 1 else ''} {join_words(_spans(values, str))}"


def _spans(values: list[int], show: Callable[[int], str]) -> list[str]:
    """Neighbours drawn together: 1, 3, 4, 5 → `1`, `3 to 5`."""
    pieces: list[str] = []
    rest = list(values)
    while rest:
        length = next((n for n in range(1, len(rest)) if rest[n] != rest[0] + n), len(rest))
        if length < 3:
            pieces.append(show(rest.pop(0)))
        else:
            pieces.append(f"{show(rest[0])} to {show(rest[length - 1])}")
            rest = rest[length:]
    return pieces


def _verbatim(cron: Cron) -> str:
    """For the monsters whose words would fill a page: the fields as they were written."""
    fields = [f"{field.kind.name} {field.text}" for field in cron.fields if not field.unrestricted]
    days = ""
    if _both_days(cron):
        both = cron.day_of_month.starred or cron.day_of_week.starred
        days = "; both day fields must match" if both else "; either day field may match"
    return f"whenever these match: {', '.join(fields)}{days}"
