"""Weeks in which rows that grow with time are partitioned: their bounds, their table names, and missing ones.

PostgreSQL only. A week begins on Monday at 00:00 UTC. `history` is partitioned by the instant of recording. Tables that
belong to a run are partitioned by the id of the run, which begins with the instant of its creation, so that a range of
ids is a range of time. Rows of a week without a partition go into the partition `…_default`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from horarium.instant import DAY, Instant
from horarium.platform.ids import id_at

WEEK: Instant = 7 * DAY
AHEAD = 4
"""Weeks that are made before they begin."""

HISTORY = "history"
ARCHIVE = "runs_archive"
TABLES = (HISTORY, "run_events", "run_logs", ARCHIVE)

Bound: TypeAlias = Instant | bytes | None
"""Where a partition begins or ends; None = nowhere."""

# 1 January 1970 was a Thursday.
FIRST_MONDAY = -3 * DAY
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# What a calendar of ours can name.
_LAST = (date(9999, 1, 1).toordinal() - _EPOCH_DAY) * DAY
_PART = re.compile(rf"^({'|'.join(TABLES)})_(?:default|[0-9]{{4}}w[0-9]{{2}})(?=_|$)")


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
    """A partition of `table`. Without bounds it takes the rows that fit no other."""

    table: str
    name: str
    low: Bound
    high: Bound

    @property
    def is_default(self) -> bool:
        return self.low is None and self.high is None


def week_of(instant: Instant) -> Week:
    return Week(instant - (instant - FIRST_MONDAY) % WEEK)


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
    return missing_of(table, there, weeks_wanted(now))


def missing_of(table: str, there: Iterable[Partition], weeks: Iterable[Week]) -> list[Partition]:
    """The same of weeks that somebody names, as far as a calendar reaches."""
    taken = [each for each in there if each.table == table and not each.is_default]
    known = (week for week in weeks if 0 <= week.start <= _LAST)
    wanted = (Partition(table, f"{table}_{week.name}", *bounds(table, week)) for week in known)
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


def has_same(table: str, part: Partition, there: Iterable[Partition]) -> bool:
    """Tell whether the other table still has a partition of the same time."""
    return any(each.table == table and not each.is_default and _overlap(each, part) for each in there)


def weeks_of(table: str, there: Iterable[Partition]) -> tuple[Instant, Instant] | None:
    """From the beginning of the first week to the end of the last one that has a table; None = none has."""
    found = [(each.low, each.high) for each in there if each.table == table]
    weeks = [(low, high) for low, high in found if isinstance(low, int) and isinstance(high, int)]
    return (min(low for low, _ in weeks), max(high for _, high in weeks)) if weeks else None


def begun(table: str, there: Iterable[Partition], before: Instant) -> list[Partition]:
    """Those of a table by instants that may hold something from before."""
    return [each for each in there if each.table == table and not (isinstance(each.low, int) and each.low >= before)]


def past(there: Iterable[Partition], before: Instant) -> list[Partition]:
    """Those that hold nothing from `before` on, the oldest first."""
    over = [each for each in there if each.high is not None and _ends_by(each.high, before)]
    return sorted(over, key=lambda each: (each.table, each.high))


def _ends_by(high: Instant | bytes, before: Instant) -> bool:
    return high <= id_at(before) if isinstance(high, bytes) else high <= before


def named_for_all(name: str) -> str:
    """The name that an index or key of a partition has in its table: `history_2026w47_feed` is `history_feed`."""
    return _PART.sub(r"\1", name)


# As `pg_get_expr` writes it; numbers stand in quotes where they are too long for the shortest type.
_BOUNDS = re.compile(r"FOR VALUES FROM \((?:MINVALUE|'?([^')]+)'?)\) TO \((?:MAXVALUE|'?([^')]+)'?)\)")


def read_bounds(text: str) -> tuple[Bound, Bound]:
    """Parse the bounds in the database catalogue; the default partition has none.

    Raises ValueError for a partition that Horarium did not create.
    """
    if text == "DEFAULT":
        return None, None
    found = _BOUNDS.fullmatch(text)
    if found is None:
        raise ValueError(f"unknown partition bounds: {text}")
    low, high = (_bound(each) for each in found.groups())
    return low, high


def _bound(text: str | None) -> Bound:
    if text is None:
        return None
    return bytes.fromhex(text[2:]) if text.startswith("\\x") else int(text)


def literal(bound: Bound, *, otherwise: str) -> str:
    """For SQL, which takes no parameters where a partition is made."""
    match bound:
        case bytes():
            return f"'\\x{bound.hex()}'"
        case int():
            return f"'{bound}'"
        case None:
            return otherwise


def column_of(table: str) -> str:
    """By which the table is partitioned."""
    return "recorded_at" if table == HISTORY else "run_id"


def indexes_of(partition: Partition, of_table: Sequence[tuple[str, str]]) -> list[str]:
    """The statements that give a table the indexes of the one that it will be a part of, under names of its own.

    `of_table` has the name and the definition of each; what is missing PostgreSQL would make itself, with a name that
    says nothing.
    """
    begin = re.compile(r"^CREATE (UNIQUE )?INDEX \S+ ON (?:ONLY )?\S+ ")
    made: list[str] = []
    for name, definition in of_table:
        own = f"{partition.name}{name.removeprefix(partition.table)}"
        if name.startswith(f"{partition.table}_") and begin.match(definition):
            made.append(begin.sub(rf"CREATE \1INDEX {own} ON {partition.name} ", definition))
    return made
