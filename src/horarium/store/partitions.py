"""How what grows with time is kept by weeks: which weeks there are, what their tables are called, what is missing.

PostgreSQL only. A week begins on Monday at 00:00 UTC. `history` is parted by the instant of recording; what belongs to
a run by the id of the run, which begins with the instant of its birth, so that a range of ids is a range of time. What
lies in no week that was made goes into the partition `…_default`, and what was there before migration 0019 is
`…_before`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from horarium.ids import id_at
from horarium.instant import DAY, Instant

WEEK: Instant = 7 * DAY
AHEAD = 4
"""Weeks that are made before they begin."""

HISTORY = "history"
OF_RUNS = ("run_events", "run_logs", "runs_archive")
TABLES = (HISTORY, *OF_RUNS)

Bound: TypeAlias = Instant | bytes | None
"""Where a partition begins or ends; None = nowhere."""

# 1 January 1970 was a Thursday.
_FIRST_MONDAY = -3 * DAY
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# What a calendar of ours can name.
_LAST = (date(9999, 1, 1).toordinal() - _EPOCH_DAY) * DAY
_PART = re.compile(r"^([a-z_]+?)_(?:default|before|[0-9]{4}w[0-9]{2})(?=_|$)")


@dataclass(frozen=True, slots=True)
class Week:
    """`start` is in it, `end` is not."""

    start: Instant

    @property
    def end(self) -> Instant:
        return self.start + WEEK

    @property
    def name(self) -> str:
        """`2026w47`, as ISO 8601 counts weeks."""
        year, week, _ = date.fromordinal(self.start // DAY + _EPOCH_DAY).isocalendar()
        return f"{year:04}w{week:02}"


@dataclass(frozen=True, slots=True)
class Partition:
    """Of `table`. Without bounds it takes what no other takes."""

    table: str
    name: str
    low: Bound
    high: Bound

    @property
    def is_default(self) -> bool:
        return self.low is None and self.high is None


def week_of(instant: Instant) -> Week:
    return Week(instant - (instant - _FIRST_MONDAY) % WEEK)


def weeks_wanted(now: Instant) -> list[Week]:
    """This one and those ahead; none where no calendar reaches."""
    first = week_of(now)
    if not 0 <= first.start <= _LAST:
        return []
    return [Week(first.start + number * WEEK) for number in range(AHEAD + 1)]


def bounds(table: str, week: Week) -> tuple[Bound, Bound]:
    if table == HISTORY:
        return week.start, week.end
    return id_at(week.start), id_at(week.end)


def missing(table: str, there: Iterable[Partition], now: Instant) -> list[Partition]:
    """The weeks to be made, the first one first; not where another partition takes a part of one."""
    taken = [each for each in there if each.table == table and not each.is_default]
    wanted = (Partition(table, f"{table}_{week.name}", *bounds(table, week)) for week in weeks_wanted(now))
    return [each for each in wanted if not any(_overlap(each, other) for other in taken)]


def _overlap(one: Partition, other: Partition) -> bool:
    return _is_before(one.low, other.high) and _is_before(other.low, one.high)


def _is_before(low: Bound, high: Bound) -> bool:
    if low is None or high is None:
        return True
    if isinstance(low, bytes) and isinstance(high, bytes):
        return low < high
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low < high


def past(there: Iterable[Partition], before: Instant) -> list[Partition]:
    """Those that hold nothing from `before` on, the oldest first."""
    over = [each for each in there if not each.is_default and each.high is not None and _ends_by(each.high, before)]
    return sorted(over, key=lambda each: each.name)


def _ends_by(high: Instant | bytes, before: Instant) -> bool:
    return high <= id_at(before) if isinstance(high, bytes) else high <= before


def named_for_all(name: str) -> str:
    """The name that an index or key of a partition has in its table: `history_2026w47_feed` is `history_feed`."""
    return _PART.sub(r"\1", name)
