"""The next moments of one expression: the public function behind `horarium next`."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from horarium.errors import InvalidSpec
from horarium.instant import SECOND, Instant, from_datetime, from_rfc3339, to_datetime
from horarium.recurrence.spec import compile_spec, refuse_if_never
from horarium.recurrence.zone import EARLIEST, LATEST

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
    for field, value in (("expression", expr), ("timezone", timezone), ("key", key)):
        if not (isinstance(value, str) or (value is None and field != "expression")):
            raise InvalidSpec(f"{field}: must be a string, not {type(value).__name__}", field=field)
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
