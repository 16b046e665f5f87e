"""Fields of a cron expression: a bit mask each, and rules that depend on the month.

Bit v of `mask` is set where the value v matches. What depends on the month (last day, nearest
weekday, second Monday) stays a rule; `cron.py` turns it into bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from horarium.errors import InvalidSpec

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class CronFieldKind:
    """The range of a field, and the names that stand for its numbers."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]

    @property
    def last_step(self) -> int:
        """Where `*` and `a/n` end: 7 is Sunday again, so the week ends at 6."""
        return 6 if self.name == "day-of-week" else self.high


SECOND = CronFieldKind("second", 0, 59, {})
MINUTE = CronFieldKind("minute", 0, 59, {})
HOUR = CronFieldKind("hour", 0, 23, {})
DAY_OF_MONTH = CronFieldKind("day-of-month", 1, 31, {})
MONTH = CronFieldKind("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
DAY_OF_WEEK = CronFieldKind("day-of-week", 0, 7, {name: number for number, name in enumerate(_DAYS)})


@dataclass(frozen=True, slots=True)
class FieldSpan:
    """Every `step`-th value from `low` to `high`; one value where they are equal."""

    low: int
    high: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class LastDay:
    """`L`: the last day of the month."""


@dataclass(frozen=True, slots=True)
class LastWorkday:
    """`LW`: the last Monday-to-Friday day of the month."""


@dataclass(frozen=True, slots=True)
class NearestWorkday:
    """`15W`: the Monday-to-Friday day nearest to a day of the month, within that month."""

    day: int


@dataclass(frozen=True, slots=True)
class NthWeekday:
    """`MON#2`: the second Monday."""

    weekday: int
    nth: int


@dataclass(frozen=True, slots=True)
class LastWeekday:
    """`5L`: the last Friday."""

    weekday: int


MonthRule: TypeAlias = LastDay | LastWorkday | NearestWorkday | NthWeekday | LastWeekday


@dataclass(frozen=True, slots=True)
class CronField:
    """One parsed field. `starred` says that its text starts with `*` (or is `?`)."""

    kind: CronFieldKind
    text: str
    items: tuple[FieldSpan | MonthRule, ...]
    mask: int
    starred: bool

    @property
    def rules(self) -> tuple[MonthRule, ...]:
        return tuple(item for item in self.items if not isinstance(item, FieldSpan))

    @property
    def unrestricted(self) -> bool:
        """Tell whether every value matches."""
        whole = (1 << (self.kind.last_step + 1)) - (1 << self.kind.low)
        return self.mask & whole == whole


def parse_field(kind: CronFieldKind, text: str, key: str | None = None) -> CronField:
    """`key` is what `H` hashes: the schedule's id."""
    if text == "?":
        if kind not in (DAY_OF_MONTH, DAY_OF_WEEK):
            raise _refusal(kind, "`?` is allowed only in the two day fields")
        text = "*"
    items = tuple(_parse_item(kind, item, key) for item in text.split(","))
    mask = 0
    for item in items:
        if isinstance(item, FieldSpan):
            mask |= _span_mask(item)
    if kind is DAY_OF_WEEK and mask & 1 << 7:
        mask = mask & ~(1 << 7) | 1  # both 0 and 7 are Sunday
    return CronField(kind, text, items, mask, starred=text.startswith("*"))


def plain_text(field: CronField) -> str:
    """The field without `H`: such an item as the values it stands for, all others letter by letter."""
    written = zip(field.text.split(","), field.items, strict=True)
    return ",".join(
        _span_text(item) if text[0] in "Hh" and isinstance(item, FieldSpan) else text for text, item in written
    )


def _span_text(span: FieldSpan) -> str:
    if span.low == span.high:
        return str(span.low)
    return f"{span.low}-{span.high}" + ("" if span.step == 1 else f"/{span.step}")


def _parse_item(kind: CronFieldKind, item: str, key: str | None) -> FieldSpan | MonthRule:
    if not item:
        raise _refusal(kind, "a list item is empty")
    upper = item.upper()
    if upper.startswith("H") and (len(item) == 1 or item[1] in "(/"):
        return _parse_hash(kind, upper, key)
    if kind is DAY_OF_MONTH and (upper[0] == "L" or upper[-1] == "W"):
        return _parse_month_end(kind, upper)
    if kind is DAY_OF_WEEK and "#" in item:
        return _parse_nth(kind, item)
    if kind is DAY_OF_WEEK and upper[-1] == "L":
        if upper == "L":
            raise _refusal(kind, "`L` needs a weekday here: `5L` is the last Friday of the month")
        return LastWeekday(_number(kind, item[:-1]) % 7)
    return _parse_span(kind, item)


def _parse_span(kind: CronFieldKind, item: str) -> FieldSpan:
    body, slash, step_text = item.partition("/")
    step = _step(kind, step_text) if slash else 1
    if body == "*":
        return FieldSpan(kind.low, kind.last_step, step)
    first, dash, second = body.partition("-")
    low = _number(kind, first)
    if not dash:
        return FieldSpan(low, max(low, kind.last_step) if slash else low, step)
    high = _number(kind, second)
    if high < low:
        hint = ""
        if kind is DAY_OF_WEEK:
            hint = "; write `6,0` or `6-7` for the weekend" if (low, high) == (6, 0) else "; write two ranges"
        raise _refusal(kind, f"{_shown(body)} ends before it begins{hint}")
    return FieldSpan(low, high, step)


def _parse_month_end(kind: CronFieldKind, upper: str) -> MonthRule:
    if upper == "L":
        return LastDay()
    if upper == "LW":
        return LastWorkday()
    if upper.startswith("L-"):
        raise _refusal(
            kind,
            f"{_shown(upper)}: days before the last one are not supported; `L` is the last day, `LW` the last workday",
        )
    if upper[-1] == "W" and upper[:-1].isascii() and upper[:-1].isdigit():
        return NearestWorkday(_number(kind, upper[:-1]))
    raise _refusal(kind, f"{_shown(upper)} is not a valid value; use `L`, `LW` or `15W`")


def _parse_nth(kind: CronFieldKind, item: str) -> NthWeekday:
    day, _, nth = item.partition("#")
    if nth not in ("1", "2", "3", "4", "5"):
        raise _refusal(kind, f"{_shown(item)}: the number after `#` must be 1 to 5")
    return NthWeekday(_number(kind, day) % 7, int(nth))


def _parse_hash(kind: CronFieldKind, upper: str, key: str | None) -> FieldSpan:
    """`H`, `H(0-29)`, `H/15`, `H(0-29)/10`: a place in the range that depends on the key alone."""
    body, slash, step_text = upper.partition("/")
    # Days 29 to 31 are not in every month; a hashed day should be.
    low, high = kind.low, 28 if kind is DAY_OF_MONTH else kind.last_step
    if body != "H":
        inside = body[2:-1] if body.startswith("H(") and body.endswith(")") else ""
        first, dash, second = inside.partition("-")
        if not dash:
            raise _refusal(kind, f"{_shown(upper)} is not a valid hash; use `H`, `H(0-29)` or `H/15`")
        low, high = _number(kind, first), _number(kind, second)
        if high < low:
            raise _refusal(kind, f"{_shown(upper)} ends before it begins")
    if key is None:
        raise _refusal(kind, "`H` is a hash of the schedule ID; without a schedule, set a key")
    digest = blake2b(f"{kind.name}:{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    place = int.from_bytes(digest, "big")
    if not slash:
        value = low + place % (high - low + 1)
        return FieldSpan(value, value)
    step = _step(kind, step_text)
    return FieldSpan(low + place % min(step, high - low + 1), high, step)


def _step(kind: CronFieldKind, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _refusal(kind, f"the step {_shown(text)} is not a number" if text else "the step after `/` is missing")
    # A step beyond the range matches its first value only; the linter says so.
    step = _digits(text)
    if step == 0:
        raise _refusal(kind, "the step must not be 0")
    return step


def _number(kind: CronFieldKind, text: str) -> int:
    if text.isascii() and text.isdigit():
        value = _digits(text)
        if kind.low <= value <= kind.high:
            return value
        raise _refusal(kind, f"{_shown(text)} is outside {kind.low}-{kind.high}")
    value_of_name = kind.names.get(text.lower())
    if value_of_name is None:
        raise _refusal(kind, f"{_shown(text)} is not a valid value" if text else "a value is missing")
    return value_of_name


def _digits(text: str) -> int:
    """Ten thousand digits are not worth converting: all of them are out of range."""
    return int(text) if len(text) <= 6 else 999_999


def _span_mask(span: FieldSpan) -> int:
    if span.step == 1:
        return (1 << (span.high + 1)) - (1 << span.low)
    return sum(1 << value for value in range(span.low, span.high + 1, span.step))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 20 else text[:20] + "…")


def _refusal(kind: CronFieldKind, why: str) -> InvalidSpec:
    return InvalidSpec(f"{kind.name}: {why}", field=kind.name)
