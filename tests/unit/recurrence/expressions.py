"""Random expressions that use all of the cron dialect, as hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

# Clocks change in the small hours and at midnight: those hours are drawn as often as all others together.
NIGHT = [0, 1, 2, 3, 4, 22, 23]


@st.composite
def ranges(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high))
    return f"{first}-{draw(st.integers(first, high))}"


def steps(bodies: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    return st.tuples(bodies, st.integers(1, most)).map(lambda pair: f"{pair[0]}/{pair[1]}")


def values(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


def items(low: int, high: int) -> st.SearchStrategy[str]:
    """`a`, `a-b`, `a-b/n`, `a/n`; a step may be larger than its range."""
    return values(low, high) | ranges(low, high) | steps(ranges(low, high), high + 3) | steps(values(low, high), high)


def lists(item: st.SearchStrategy[str], most: int = 3) -> st.SearchStrategy[str]:
    return st.lists(item, min_size=1, max_size=most).map(",".join)


def any_case(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(texts, st.sampled_from([str.lower, str.upper, str.capitalize])).map(lambda pair: pair[1](pair[0]))


STAR = st.just("*")

# Few seconds: the walker tries every one of them.
second_fields = lists(values(0, 59)) | st.sampled_from(["*/20", "*/29", "0-4", "10-40/15", "45/7", "0", "0"])
minute_fields = lists(items(0, 59)) | STAR | steps(STAR, 70) | lists(values(0, 59))
hour_fields = (
    lists(items(0, 23))
    | STAR
    | steps(STAR, 30)
    | lists(st.sampled_from(NIGHT).map(str))
    | lists(st.sampled_from(NIGHT).map(str))
)


@st.composite
def name_ranges(draw: st.DrawFn, names: list[str]) -> str:
    first = draw(st.integers(0, len(names) - 1))
    return f"{names[first]}-{names[draw(st.integers(first, len(names) - 1))]}"


month_fields = (
    STAR | STAR | steps(STAR, 14) | lists(items(1, 12) | any_case(st.sampled_from(MONTHS) | name_ranges(MONTHS)))
)

date_letters = st.sampled_from(["L", "LW", "l", "Lw"]) | st.integers(1, 31).map("{}W".format)
date_fields = STAR | st.just("?") | steps(STAR, 33) | lists(items(1, 31) | date_letters)

# `a/n` ends at 6, so it is drawn apart from ranges, which may end at 7.
weekday_numbers = values(0, 7) | ranges(0, 7) | steps(ranges(0, 7), 9) | steps(values(0, 6), 7)
weekday_names = any_case(st.sampled_from(WEEKDAYS) | name_ranges(WEEKDAYS))
weekday_heads = values(0, 7) | any_case(st.sampled_from(WEEKDAYS))
weekday_letters = st.tuples(weekday_heads, st.integers(1, 5)).map(
    lambda pair: f"{pair[0]}#{pair[1]}"
) | weekday_heads.map("{}L".format)
weekday_fields = STAR | st.just("?") | steps(STAR, 8) | lists(weekday_numbers | weekday_names | weekday_letters)

day_fields = st.tuples(date_fields, month_fields, weekday_fields).map(" ".join)
every_day = st.sampled_from(["* * *", "? * *", "* * ?", "1-31 * *", "* 1-12 0-6"])
five_fields = st.tuples(minute_fields, hour_fields, every_day | day_fields).map(" ".join)
six_fields = st.tuples(second_fields, minute_fields, hour_fields, every_day | day_fields).map(" ".join)
expressions = five_fields | six_fields

dst_gaps = st.sampled_from(["next_valid", "skip"])
dst_folds = st.sampled_from(["first", "second", "both"])
