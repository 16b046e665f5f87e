"""An instant is an int: microseconds since 1970-01-01T00:00:00Z. These are its conversions.

Integers compare, hash and add without a zone to forget, and are what the store keeps. Text and
`datetime` exist only at the doors.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from horarium.errors import InvalidSpec, NotAnInstant

Instant: TypeAlias = int

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

LAST: Instant = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The last instant that can be formatted as text."""

# RFC 3339 section 5.6; a space instead of `T` is allowed there, a missing offset is not.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:[0-5]\d)", re.ASCII)


def from_datetime(moment: datetime, *, field: str = "time") -> Instant:
    """A naive datetime is refused: guessing its zone is how schedulers come to be wrong."""
    if moment.tzinfo is None:
        raise InvalidSpec(f"{field}: the datetime has no time zone; pass an aware datetime", field=field)
    return (moment - _EPOCH) // _MICROSECOND


def to_datetime(instant: Instant) -> datetime:
    """Convert an instant. Raises NotAnInstant, which is an OverflowError, outside of the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=instant)
    except (OverflowError, TypeError):
        shown = repr(instant)[:60]
        raise NotAnInstant(f"{shown} microseconds are outside the years 1 to 9999") from None


def from_rfc3339(text: str, *, field: str = "time") -> Instant:
    """`2026-03-08T07:00:00Z` or with an offset; digits beyond microseconds are cut."""
    match = _RFC3339.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        shown = text if len(text) <= 64 else text[:61] + "..."
        raise InvalidSpec(f"{field}: {shown!r} is not an RFC 3339 time such as 2026-03-08T07:00:00Z", field=field)
    fraction = match[1] or ""
    cut = text.replace(fraction, fraction[:7], 1) if len(fraction) > 7 else text
    try:
        instant = from_datetime(datetime.fromisoformat(cut.upper()), field=field)
        to_datetime(instant)  # an offset may lead out of the years that can be shown
        return instant
    except (ValueError, OverflowError) as wrong:
        raise InvalidSpec(f"{field}: {text!r} is not a valid date and time ({wrong})", field=field) from None


def rfc3339_or_none(instant: Instant | None) -> str | None:
    return None if instant is None else to_rfc3339(instant)


@lru_cache(maxsize=4_096)  # a herd is due at one instant, and tells it many times
def to_rfc3339(instant: Instant) -> str:
    """UTC with `Z`; the fraction is shown only where there is one."""
    moment = to_datetime(instant)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S") if moment.year >= 1000 else moment.isoformat()[:19]
    return f"{text}.{moment.microsecond:06d}Z" if moment.microsecond else f"{text}Z"
