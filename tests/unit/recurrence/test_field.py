"""A field of a cron expression is a set of values, and what needs to see the month is a rule."""

from __future__ import annotations

import pytest

from horarium.core.recurrence.field import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    CronFieldKind,
    LastDay,
    LastWeekday,
    LastWorkday,
    MonthRule,
    NearestWorkday,
    NthWeekday,
    parse_field,
    plain_text,
)
from horarium.errors import InvalidSpec

KINDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


def values(kind: CronFieldKind, text: str, key: str | None = None) -> list[int]:
    mask = parse_field(kind, text, key).mask
    return [value for value in range(64) if mask >> value & 1]


VALUES = [
    (MINUTE, "*", list(range(60))),
    (MINUTE, "5", [5]),
    (MINUTE, "05", [5]),
    (MINUTE, "1,3,2,3", [1, 2, 3]),
    (MINUTE, "10-12", [10, 11, 12]),
    (MINUTE, "7-7", [7]),
    (MINUTE, "*/20", [0, 20, 40]),
    (MINUTE, "50/4", [50, 54, 58]),
    (MINUTE, "0-10/5,59", [0, 5, 10, 59]),
    (MINUTE, "*/100", [0]),
    (MINUTE, "3/999999999999", [3]),
    (HOUR, "*/7", [0, 7, 14, 21]),
    (HOUR, "22/1", [22, 23]),
    (DAY_OF_MONTH, "*/10", [1, 11, 21, 31]),
    (DAY_OF_MONTH, "?", list(range(1, 32))),
    (MONTH, "jan,MAR-May,12", [1, 3, 4, 5, 12]),
    (MONTH, "feb/5", [2, 7, 12]),
    (DAY_OF_WEEK, "*", list(range(7))),
    (DAY_OF_WEEK, "?", list(range(7))),
    (DAY_OF_WEEK, "0", [0]),
    (DAY_OF_WEEK, "7", [0]),
    (DAY_OF_WEEK, "sun", [0]),
    (DAY_OF_WEEK, "5-7", [0, 5, 6]),
    (DAY_OF_WEEK, "MON-FRI", [1, 2, 3, 4, 5]),
    (DAY_OF_WEEK, "4/1", [4, 5, 6]),
    (DAY_OF_WEEK, "7/2", [0]),
    (SECOND, "*/30", [0, 30]),
]


@pytest.mark.parametrize(("kind", "text", "expected"), VALUES, ids=[f"{row[0].name} {row[1]}" for row in VALUES])
def test_a_field_matches_these_values(kind: CronFieldKind, text: str, expected: list[int]) -> None:
    assert values(kind, text) == expected


RULES: list[tuple[CronFieldKind, str, tuple[MonthRule, ...], str]] = [
    (DAY_OF_MONTH, "L", (LastDay(),), "L"),
    (DAY_OF_MONTH, "lw", (LastWorkday(),), "lw"),
    (DAY_OF_MONTH, "15W", (NearestWorkday(15),), "15W"),
    (DAY_OF_MONTH, "1,15w,L", (NearestWorkday(15), LastDay()), "1,15w,L"),
    (DAY_OF_WEEK, "MON#2", (NthWeekday(1, 2),), "MON#2"),
    (DAY_OF_WEEK, "7#5", (NthWeekday(0, 5),), "7#5"),
    (DAY_OF_WEEK, "5L", (LastWeekday(5),), "5L"),
    (DAY_OF_WEEK, "fril,7L", (LastWeekday(5), LastWeekday(0)), "fril,7L"),
]


@pytest.mark.parametrize(("kind", "text", "rules", "plain"), RULES, ids=[row[1] for row in RULES])
def test_a_rule_is_kept_for_the_month(kind: CronFieldKind, text: str, rules: tuple[MonthRule, ...], plain: str) -> None:
    field = parse_field(kind, text)
    assert field.rules == rules
    assert plain_text(field) == plain
    assert parse_field(kind, plain).rules == rules


REFUSED = [
    (MINUTE, "", "empty"),
    (MINUTE, "1,,2", "empty"),
    (MINUTE, "60", "outside 0-59"),
    (HOUR, "24", "outside 0-23"),
    (DAY_OF_MONTH, "0", "outside 1-31"),
    (DAY_OF_MONTH, "32", "outside 1-31"),
    (MONTH, "13", "outside 1-12"),
    (DAY_OF_WEEK, "8", "outside 0-7"),
    (MINUTE, "9" * 5_000, "outside 0-59"),
    (MINUTE, "x", "not a valid value"),
    (MINUTE, "-5", "missing"),
    (MINUTE, "5-", "missing"),
    (MINUTE, "٣", "not a valid value"),
    (MINUTE, "10-5", "ends before"),
    (DAY_OF_WEEK, "sat-sun", "6,0"),
    (DAY_OF_WEEK, "fri-mon", "two ranges"),
    (MINUTE, "*/0", "must not be 0"),
    (MINUTE, "*/", "missing"),
    (MINUTE, "*/x", "not a number"),
    (MINUTE, "*/5/5", "not a number"),
    (MINUTE, "?", "only in the two day fields"),
    (MONTH, "?", "only in the two day fields"),
    (MONTH, "mon", "not a valid value"),
    (DAY_OF_WEEK, "jan", "not a valid value"),
    (DAY_OF_WEEK, "L", "needs a weekday"),
    (DAY_OF_WEEK, "xL", "not a valid value"),
    (DAY_OF_WEEK, "1#0", "1 to 5"),
    (DAY_OF_WEEK, "1#6", "1 to 5"),
    (DAY_OF_WEEK, "1#", "1 to 5"),
    (DAY_OF_WEEK, "9#1", "outside"),
    (DAY_OF_MONTH, "L-3", "not supported"),
    (DAY_OF_MONTH, "LX", "not a valid value"),
    (DAY_OF_MONTH, "W", "not a valid value"),
    (DAY_OF_MONTH, "32W", "outside"),
    (DAY_OF_MONTH, "1-5W", "not a valid value"),
    (MINUTE, "5L", "not a valid value"),
    (MINUTE, "H", "set a key"),
]


@pytest.mark.parametrize(
    ("kind", "text", "why"), REFUSED, ids=[f"{row[0].name} {row[1][:8] or 'empty'}" for row in REFUSED]
)
def test_what_a_field_cannot_mean_is_refused_by_name(kind: CronFieldKind, text: str, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why) as refused:
        parse_field(kind, text)
    assert refused.value.field == kind.name
    assert refused.value.message.startswith(f"{kind.name}: ")
    assert len(refused.value.message) < 200


# ── hashes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_hash_is_one_value_that_every_month_and_week_has(kind: CronFieldKind) -> None:
    high = 28 if kind is DAY_OF_MONTH else kind.last_step
    seen = {values(kind, "H", str(n))[0] for n in range(3_000)}
    assert seen == set(range(kind.low, high + 1))
    assert all(len(values(kind, "h", str(n))) == 1 for n in range(20))


@pytest.mark.parametrize(
    ("kind", "text", "low", "high", "step"),
    [(MINUTE, "H(10-19)", 10, 19, None), (MINUTE, "H/15", 0, 59, 15), (MINUTE, "H(0-29)/10", 0, 29, 10),
     (MINUTE, "H(5-6)/10", 5, 6, 10), (HOUR, "H(9-9)", 9, 9, None)],
)  # fmt: skip
def test_a_hash_stays_in_its_range(kind: CronFieldKind, text: str, low: int, high: int, step: int | None) -> None:
    for n in range(200):
        found = values(kind, text, str(n))
        if step is None:
            assert len(found) == 1
        else:
            assert found == list(range(found[0], high + 1, step))
            assert found[0] < low + step
        assert low <= found[0] <= found[-1] <= high


def test_a_hash_depends_on_the_key_and_the_field_alone() -> None:
    assert values(MINUTE, "H", "a") == values(MINUTE, "H", "a")
    pairs = {(values(MINUTE, "H", str(n))[0], values(SECOND, "H", str(n))[0]) for n in range(50)}
    assert any(minute != second for minute, second in pairs)
    assert len(values(MINUTE, "H", "\ud800")) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [("H(5)", "not a valid hash"), ("H(", "not a valid hash"), ("H()", "not a valid hash"), ("H(9-5)", "ends before"),
     ("H(0-60)", "outside"), ("H/0", "must not be 0"), ("H/", "missing"), ("H5", "not a valid value")],
)  # fmt: skip
def test_a_malformed_hash_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why):
        parse_field(MINUTE, text, "key")


# ── what else a field knows ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "text", "starred", "unrestricted"),
    [
        (MINUTE, "*", True, True),
        (MINUTE, "*/2", True, False),
        (MINUTE, "*/1", True, True),
        (MINUTE, "0-59", False, True),
        (MINUTE, "5,*", False, True),
        (DAY_OF_WEEK, "?", True, True),
        (DAY_OF_WEEK, "0-6", False, True),
        (DAY_OF_WEEK, "1-7", False, True),
        (DAY_OF_WEEK, "1-6", False, False),
        (DAY_OF_MONTH, "1-30", False, False),
    ],
)
def test_a_star_and_a_full_range_are_different_things(
    kind: CronFieldKind, text: str, starred: bool, unrestricted: bool
) -> None:
    field = parse_field(kind, text)
    assert (field.starred, field.unrestricted) == (starred, unrestricted)


@pytest.mark.parametrize(
    ("kind", "text"), [(row[0], row[1]) for row in VALUES], ids=[f"{row[0].name} {row[1]}" for row in VALUES]
)
def test_the_plain_text_of_a_field_means_the_same(kind: CronFieldKind, text: str) -> None:
    assert values(kind, plain_text(parse_field(kind, text))) == values(kind, text)
