"""Every accepted expression has words: short ones, true ones, and different ones for different meanings."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.recurrence.expressions import expressions

from horarium.core.recurrence.cron import Cron, compile_cron
from horarium.core.recurrence.field import CronField, LastWeekday, NthWeekday
from horarium.core.recurrence.words import MONTH_NAMES, WEEKDAY_NAMES, describe, join_words, ordinal, values_of
from horarium.errors import InvalidSpec

TIMES = [
    ("* * * * *", "every minute"),
    ("*/5 * * * *", "every 5 minutes"),
    ("*/30 * * * *", "every 30 minutes"),
    ("0,30 * * * *", "every 30 minutes"),
    ("*/7 * * * *", "every 7 minutes from minute 0 of each hour"),
    ("*/40 * * * *", "at minutes 0 and 40 of each hour"),
    ("*/70 * * * *", "every hour on the hour"),
    ("5/15 * * * *", "every 15 minutes from minute 5 of each hour"),
    ("0-30/10 * * * *", "every 10 minutes from minute 0 to 30 of each hour"),
    ("10-20 * * * *", "every minute from minute 10 to 20 of each hour"),
    ("5 * * * *", "at minute 5 of each hour"),
    ("5,35 * * * *", "at minutes 5 and 35 of each hour"),
    ("1-3,5,8 * * * *", "at minutes 1 to 3, 5 and 8 of each hour"),
    ("0 * * * *", "every hour on the hour"),
    ("0 */2 * * *", "every 2 hours"),
    ("15 */2 * * *", "every 2 hours from 00:15"),
    ("0 1-23/2 * * *", "every 2 hours from 01:00"),
    ("0 */5 * * *", "every 5 hours from 00:00 to 20:00"),
    ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
    ("30 9-17/4 * * *", "every 4 hours from 09:30 to 17:30"),
    ("0 9 * * *", "at 09:00 every day"),
    ("0 0,12 * * *", "at 00:00 and 12:00 every day"),
    ("0,30 9,17 * * *", "at 09:00, 09:30, 17:00 and 17:30 every day"),
    ("* 9 * * *", "every minute from 09:00 to 09:59"),
    ("10-20 9 * * *", "every minute from 09:10 to 09:20"),
    ("*/7 9 * * *", "every 7 minutes from 09:00 to 09:56"),
    ("* 9-17 * * *", "every minute from 09:00 to 17:59"),
    ("*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:45"),
    ("*/7 9-17 * * *", "every 7 minutes from minute 0 of each hour, from 09:00 to 17:59"),
    ("*/15 */2 * * *", "every 15 minutes in every 2nd hour from 00:00 to 22:59"),
    ("*/15 9,12,16 * * *", "every 15 minutes in hours 9, 12 and 16"),
    ("5,10,40 9-17 * * *", "at minutes 5, 10 and 40 of each hour, from 09:00 to 17:59"),
]
SECONDS = [
    ("* * * * * *", "every second"),
    ("*/10 * * * * *", "every 10 seconds"),
    ("*/7 * * * * *", "every 7 seconds from second 0 of each minute"),
    ("30 * * * * *", "at second 30 of each minute"),
    ("0 0 9 * * MON-FRI", "at 09:00, Monday to Friday"),
    ("5,35 0 9 * * *", "at 09:00:05 and 09:00:35 every day"),
    ("0,30 15 9 * * *", "at 09:15:00 and 09:15:30 every day"),
    ("30 */5 * * * *", "at second 30 of each minute, in every 5th minute from minute 0 to 55 of each hour"),
    ("* 3 * * * *", "every second, in minute 3 of each hour"),
    ("*/10 0-5 9-17 * * *", "every 10 seconds, in minutes 0 to 5 of each hour, from 09:00 to 17:59"),
    ("*/10 * 9 * * *", "every 10 seconds from 09:00 to 09:59"),
]
DAYS = [
    ("0 9 * * 1-5", "at 09:00, Monday to Friday"),
    ("0 9 * * 5", "at 09:00 on Fridays"),
    ("0 9 * * 0", "at 09:00 on Sundays"),
    ("0 9 * * 7", "at 09:00 on Sundays"),
    ("0 9 * * 6,0", "at 09:00 on Saturdays and Sundays"),
    ("0 9 * * fri-7", "at 09:00, Friday to Sunday"),
    ("0 9 * * 1,3,5", "at 09:00 on Mondays, Wednesdays and Fridays"),
    ("0 9 ? * 1", "at 09:00 on Mondays"),
    ("0 9 * * ?", "at 09:00 every day"),
    ("0 9 * * MON#2", "at 09:00 on the second Monday of the month"),
    ("0 9 * * 1#1,1#3", "at 09:00 on the first and third Monday of the month"),
    ("0 9 * * MON#1,FRIL", "at 09:00 on the first Monday and the last Friday of the month"),
    ("0 9 * * 5L", "at 09:00 on the last Friday of the month"),
    ("0 9 * * 1,3L", "at 09:00 on Mondays and on the last Wednesday of the month"),
    ("0 9 * * 1-3,5L", "at 09:00 from Monday to Wednesday and on the last Friday of the month"),
    ("0 0 13 * *", "at 00:00 on the 13th of the month"),
    ("0 0 1,15 * *", "at 00:00 on the 1st and 15th of the month"),
    ("0 0 10-12 * *", "at 00:00 from the 10th to the 12th of the month"),
    ("0 0 10-12,20 * *", "at 00:00 on the 10th to 12th and 20th of the month"),
    ("0 0 */2 * *", "at 00:00 on every 2nd day of the month from the 1st"),
    ("0 0 1-10/3 * *", "at 00:00 on every 3rd day of the month from the 1st to the 10th"),
    ("0 0 */2,L * *", "at 00:00 on every 2nd day of the month from the 1st and on the last day of the month"),
    ("0 0 L * *", "at 00:00 on the last day of the month"),
    ("0 0 LW * *", "at 00:00 on the last workday of the month"),
    ("0 0 15W * *", "at 00:00 on the workday nearest the 15th of the month"),
    ("0 0 1,15,L * *", "at 00:00 on the 1st, 15th and last day of the month"),
    ("0 0 1W,15W,L * *", "at 00:00 on the last day and workdays nearest the 1st and 15th of the month"),
]
BOTH_DAYS = [
    ("0 0 13 * 5", "at 00:00 on the 13th of the month, or on Fridays"),
    ("0 0 1 * 1-5", "at 00:00 on the 1st of the month, or from Monday to Friday"),
    ("0 0 13 1 5", "at 00:00 on the 13th of the month, or on Fridays, only in January"),
    ("0 0 1-31 * 5", "at 00:00 on any day of the month, or on Fridays"),
    ("0 0 13 * 0-6", "at 00:00 on the 13th of the month, or on any day of the week"),
    (
        "0 0 1,15 * */2",
        "at 00:00 on the 1st and 15th of the month, and only on Tuesdays, Thursdays, Saturdays and Sundays",
    ),
    ("0 0 */2 * 1-5", "at 00:00 on every 2nd day of the month from the 1st, and only from Monday to Friday"),
]
MONTHS = [
    ("30 4 1 1 *", "at 04:30 on 1 January"),
    ("0 0 1 1,7 *", "at 00:00 on 1 January and 1 July"),
    ("0 0 30 2 *", "at 00:00 on 30 February"),
    ("0 0 1,15 6-8 *", "at 00:00 on the 1st and 15th of the month, from June to August"),
    ("0 0 1 */5 1", "at 00:00 on the 1st of the month, or on Mondays, only in January, June and November"),
    ("0 9 * 1-3 MON#2", "at 09:00 on the second Monday of the month, from January to March"),
    ("0 0 * 1 *", "at 00:00 every day in January"),
    ("*/5 * * 11,12,1,2 *", "every 5 minutes, from November to February"),
    ("0 9 * 1,2 1-5", "at 09:00, Monday to Friday, in January and February"),
]
MACROS = [
    ("@yearly", "at 00:00 on 1 January"),
    ("@annually", "at 00:00 on 1 January"),
    ("@monthly", "at 00:00 on the 1st of the month"),
    ("@weekly", "at 00:00 on Sundays"),
    ("@daily", "at 00:00 every day"),
    ("@midnight", "at 00:00 every day"),
    ("@hourly", "every hour on the hour"),
    ("@every PT90M", "every 1 hour 30 minutes, counted from the Unix epoch in UTC"),
    ("@every P1D", "every day, counted from the Unix epoch in UTC"),
    ("@every P2W", "every 2 weeks, counted from the Unix epoch in UTC"),
    ("@every PT36H", "every 1 day 12 hours, counted from the Unix epoch in UTC"),
    ("@every P5000W", "every 5,000 weeks, counted from the Unix epoch in UTC"),
]


@pytest.mark.parametrize(
    ("expr", "words"),
    [pytest.param(*case, id=case[0]) for case in TIMES + SECONDS + DAYS + BOTH_DAYS + MONTHS + MACROS],
)
def test_an_expression_reads_as_a_person_would_say_it(expr: str, words: str) -> None:
    assert describe(expr) == words


@pytest.mark.parametrize(
    ("expr", "timezone", "words"),
    [
        ("0 9 * * *", "Europe/Istanbul", "at 09:00 every day (Europe/Istanbul time)"),
        ("0 9 * * *", "UTC", "at 09:00 every day (UTC)"),
        ("CRON_TZ=Europe/London 0 9 * * 1", None, "at 09:00 on Mondays (Europe/London time)"),
        ("TZ=Asia/Tokyo 0 9 * * 1", "Asia/Tokyo", "at 09:00 on Mondays (Asia/Tokyo time)"),
        ("@every PT1H", "Asia/Tokyo", "every hour, counted from the Unix epoch in UTC"),
    ],
)
def test_a_zone_is_named_where_it_matters(expr: str, timezone: str | None, words: str) -> None:
    assert describe(expr, timezone=timezone) == words


def test_a_hash_is_shown_as_the_place_that_the_key_chose() -> None:
    place = values_of(compile_cron("H 3 * * *", key="nightly").minute)
    assert describe("H 3 * * *", key="nightly") == f"at 03:{place[0]:02d} every day (H depends on the key)"


def test_a_hash_is_noted_beside_the_zone() -> None:
    assert describe("0 3 * * H", key="a", timezone="Asia/Tokyo").endswith("(Asia/Tokyo time; H depends on the key)")


def test_thursday_is_not_taken_for_a_hash() -> None:
    assert describe("0 3 * * thu", key="a") == "at 03:00 on Thursdays"


@pytest.mark.parametrize("expr", ["", "60 * * * *", "H * * * *", "RRULE:FREQ=DAILY", "* * * * * * *"])
def test_what_is_refused_has_no_words(expr: str) -> None:
    with pytest.raises(InvalidSpec):
        describe(expr)


# ── what holds for all of them ───────────────────────────────────────────────────────────────────────

CLOCK = re.compile(r"\d\d:\d\d")


def is_named(field: CronField, words: str) -> bool:
    """Whether a reader could tell that the field says something."""
    if field.kind.name in words and "whenever" in words:
        return True
    match field.kind.name:
        case "second":
            return "second" in words or re.search(r"\d\d:\d\d:\d\d", words) is not None
        case "minute":
            return "minute" in words or "hour" in words or CLOCK.search(words) is not None
        case "hour":
            return "hour" in words or CLOCK.search(words) is not None
        case "day-of-month":
            return "month" in words or any(f"{day} {name}" in words for day in values_of(field) for name in MONTH_NAMES)
        case "month":
            return any(MONTH_NAMES[month - 1] in words for month in values_of(field))
        case _:
            days = {rule.weekday for rule in field.rules if isinstance(rule, NthWeekday | LastWeekday)}
            return any(WEEKDAY_NAMES[day] in words for day in days | set(values_of(field)))


def restricted(cron: Cron) -> list[CronField]:
    return [f for f in cron.fields if not f.unrestricted and not (f.kind.name == "second" and f.mask == 1)]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(expressions)
def test_every_restricted_field_is_named_in_fewer_than_a_thousand_characters(expr: str) -> None:
    words = describe(expr, timezone="America/Argentina/ComodRivadavia")
    assert len(words) < 1_000
    assert "  " not in words
    unnamed = [field.kind.name for field in restricted(compile_cron(expr)) if not is_named(field, words)]
    assert unnamed == [], words


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.sampled_from(["H", "H/15", "H(0-5)", "0"]), st.sampled_from(["H", "H(1-4)", "H/6"]), st.text(max_size=8))
def test_hashes_have_words_whatever_the_key(minute: str, hour: str, key: str) -> None:
    assert "H depends on the key" in describe(f"{minute} {hour} H * H", key=key)


@pytest.mark.parametrize(
    ("star", "rule"),
    [("", "; either day field may match"), ("*/40,", "; both day fields must match")],
    ids=["either", "both"],
)
def test_an_expression_that_would_fill_a_page_is_shown_as_it_was_written(star: str, rule: str) -> None:
    places = ",".join(str(value) for value in range(60) if value % 5 in (0, 2))
    dates = star + ",".join(f"{day},{day + 1}W" for day in range(2, 30, 2))
    weekdays = ",".join(f"{day}#{nth}" for day in range(7) for nth in range(1, 6))
    words = describe(f"{places} {places} 0,2,5,7,10,12 {dates} 1,3,6,8,11 {weekdays},0L,1L,2L")
    assert words.startswith(f"whenever these match: second {places}, minute {places}, hour 0,2,5,7,10,12")
    assert words.endswith(rule)
    assert len(words) < 1_000


def same_words(exprs: list[str]) -> list[list[str]]:
    """Expressions that share their words although they do not mean the same."""
    meanings: dict[str, dict[tuple[object, ...], str]] = {}
    for expr in exprs:
        meaning = tuple((field.mask, field.rules) for field in compile_cron(expr).fields)
        meanings.setdefault(describe(expr), {})[meaning] = expr
    return [list(group.values()) for group in meanings.values() if len(group) > 1]


STEPPED_MINUTES = [f"{low}-{high}/{step}" for low in (0, 1, 5) for high in (30, 45, 58, 59) for step in range(1, 31)]
STEPPED_HOURS = [f"{low}-{high}/{step}" for low in (0, 1, 9) for high in (9, 17, 22, 23) for step in range(1, 13)]
LISTS = ["0", "5", "*", "0,30", "5,40", "1,2,3,7"]
WEEKDAY_SETS = [",".join(map(str, days)) for size in range(1, 8) for days in combinations(range(7), size)]
MONTH_SETS = [",".join(map(str, months)) for size in (1, 2, 3, 4, 9) for months in combinations(range(1, 13), size)]


STEPPED_DATES = [f"{low}-{high}/{step}" for low in (1, 3) for high in range(20, 32) for step in range(1, 16)]


@pytest.mark.parametrize(
    "exprs",
    [
        pytest.param([f"{m} {h} * * *" for m in STEPPED_MINUTES for h in ("*", "9", "9-17", "*/5")], id="minutes"),
        pytest.param([f"{m} {h} * * *" for m in LISTS for h in STEPPED_HOURS], id="hours"),
        pytest.param([f"{s} {m} 9-17 * * *" for s in STEPPED_MINUTES for m in LISTS], id="seconds"),
        pytest.param([f"0 0 {dates} * *" for dates in STEPPED_DATES], id="dates"),
        pytest.param([f"0 0 * * {days}" for days in WEEKDAY_SETS], id="weekdays"),
        pytest.param([f"0 0 1,2,4 {months} *" for months in MONTH_SETS], id="months"),
    ],
)
def test_different_meanings_have_different_words(exprs: list[str]) -> None:
    assert same_words(exprs) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (22, "22nd"),
        (31, "31st"),
    ],
)
def test_ordinals_end_as_they_are_spoken(number: int, text: str) -> None:
    assert ordinal(number) == text


@pytest.mark.parametrize(("pieces", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_lists_end_with_and(pieces: list[str], text: str) -> None:
    assert join_words(pieces) == text
