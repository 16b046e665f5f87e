"""The next moments of one expression: the public function behind `horarium next`."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from horarium.errors import InvalidSpec
from horarium.instant import Instant, from_datetime, from_rfc3339, to_datetime
from horarium.recurrence.spec import compile_spec, refuse_if_never

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
    if not 1 <= count <= _MOST:
        raise InvalidSpec(f"count: give a number from 1 to {_MOST}", field="count")
    spec = compile_spec(cron_expressions=[expr], timezone=timezone, dst_gap=dst_gap, dst_fold=dst_fold, key=key)
    start = _instant(after)
    refuse_if_never(spec, start)
    return [to_datetime(nominal) for nominal in islice(spec.occurrences(start), count)]


def _instant(after: datetime | str) -> Instant:
    if isinstance(after, str):
        return from_rfc3339(after, field="after")
    return from_datetime(after, field="after")
