"""How long a duration lasts, in whole seconds: ISO-8601, or as a person writes it, such as `1h30m`."""

from __future__ import annotations

import re

from horarium.errors import InvalidSpec

MINUTE = 60
HOUR = 3_600
DAY = 86_400
WEEK = 604_800
_LONGEST = 36_525 * DAY  # a hundred years; beyond it somebody mistyped

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9})S)?)?",
    re.ASCII,
)
_CALENDAR_PART = re.compile(r"P[^T]*\d[YM]", re.ASCII)
# As a person writes it. Patterns are compiled where they are used: most texts are ISO-8601.
_SHORT = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_UNIT = r"(s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)"
_STEP = rf"(\d{{1,9}})\s*{_UNIT}(?![a-z])\s*"
_UNITS = {"weeks": WEEK, "days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": 1}


def parse_duration(text: str, *, field: str) -> int:
    """`PT30M` → 1800. Months and years are refused: they have no fixed length."""
    upper = text.upper() if len(text) <= 64 else ""
    match = _DURATION.fullmatch(upper)
    if match is None or not any(match.groups()):
        raise InvalidSpec(f"{field}: {_why_not(text, upper)}", field=field)
    seconds = sum(int(match[name]) * unit for name, unit in _UNITS.items() if match[name])
    if seconds > _LONGEST:
        raise InvalidSpec(f"{field}: {text!r} exceeds 100 years", field=field)
    return seconds


def read_length(text: str, *, field: str) -> int | None:
    """`1h30m`, `7 days` or `PT30M` → seconds; None = it is no length of time at all.

    Raises InvalidSpec for ISO-8601 that cannot be meant, and for more than a hundred years.
    """
    lower = " ".join(text.lower().split()) if len(text) <= 64 else ""
    if re.fullmatch(rf"(?:{_STEP})+", lower, re.ASCII):
        seconds = sum(int(count) * _SHORT[unit[0]] for count, unit in re.findall(_STEP, lower, re.ASCII))
        if seconds > _LONGEST:
            raise InvalidSpec(f"{field}: {text!r} exceeds 100 years", field=field)
        return seconds
    if lower.startswith("p") and any(each.isdigit() for each in lower):
        return parse_duration(lower, field=field)
    return None


def format_duration(seconds: int) -> str:
    """The shortest usual form: 5400 → `PT1H30M`, 86400 → `P1D`."""
    if seconds == 0:
        return "PT0S"
    days, rest = divmod(seconds, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    date_part = f"{days}D" if days else ""
    time_part = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if n)
    return f"P{date_part}" + (f"T{time_part}" if time_part else "")


def _why_not(text: str, upper: str) -> str:
    if not upper:
        return "must not be empty" if not text else f"{text[:20]!r}… is too long for a duration"
    if _CALENDAR_PART.match(upper):
        return f"{text!r}: months and years have no fixed length; use a cron expression such as `0 0 1 * *`"
    if "." in upper or "," in upper:
        return f"{text!r}: must contain only integers; the smallest unit is one second"
    return f"{text!r} is not an ISO-8601 duration such as PT30M, PT1H or P1D"
