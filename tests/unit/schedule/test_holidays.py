"""Rules: the days of a country, the days of the week, and how their names are read."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import horarium
from horarium.core.document.holidays import (
    WEEKDAYS,
    WEEKENDS,
    DaysOfWeek,
    PublicHolidays,
    Rule,
    is_rule_name,
    parse_rule,
    rule_covers,
    rule_day_name,
    rule_text,
)
from horarium.errors import InvalidCalendar


@pytest.mark.parametrize(
    ("text", "rule", "canonical"),
    [
        ("holidays:US", PublicHolidays("US"), "holidays:US"),
        ("HOLIDAYS:tr", PublicHolidays("TR"), "holidays:TR"),
        ("holidays:US-CA", PublicHolidays("US", "CA"), "holidays:US-CA"),
        ("holidays:us-ca", PublicHolidays("US", "CA"), "holidays:US-CA"),
        ("holidays:AU-nsw", PublicHolidays("AU", "NSW"), "holidays:AU-NSW"),
        ("weekends", WEEKENDS, "weekends"),
        ("Weekdays", WEEKDAYS, "weekdays"),
    ],
)
def test_a_rule_is_read_in_any_case_and_written_in_one(text: str, rule: Rule, canonical: str) -> None:
    assert parse_rule(text) == rule
    assert rule_text(rule) == canonical
    assert parse_rule(canonical) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("holidays:XX", "the country 'XX' is unknown"),
        ("holidays:US-ZZ", "the subdivision 'ZZ' of US is unknown; it has the subdivisions AK, AL"),
        ("holidays:TR-34", "the subdivision '34' of TR is unknown; the country has no subdivisions"),
        ("holidays:USA", "is not a rule"),
        ("holidays:US-", "is not a rule"),
        ("holidays:US\n", "is not a rule"),
        ("holidays", "is not a rule"),
        ("", "is not a rule"),
        ("holidays:" + "9" * 10_000, "is not a rule"),
    ],
)
def test_an_unknown_rule_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidCalendar, match=message) as refused:
        parse_rule(text)
    assert len(refused.value.message) < 300


@pytest.mark.parametrize(
    ("text", "day", "name"),
    [
        ("holidays:US", date(2026, 7, 3), "Independence Day (observed)"),
        ("holidays:US", date(2026, 7, 4), "Independence Day"),
        ("holidays:US", date(2021, 12, 31), "New Year's Day (observed)"),  # belongs to 2022
        ("holidays:US", date(2026, 7, 6), None),
        ("holidays:US", date(2026, 3, 31), None),
        ("holidays:US-CA", date(2026, 3, 31), "Cesar Chavez Day"),
        ("holidays:TR", date(2031, 10, 29), "Republic Day"),
        ("weekends", date(2031, 7, 5), "Saturday"),
        ("weekends", date(2031, 7, 6), "Sunday"),
        ("weekends", date(2031, 7, 7), None),
        ("weekdays", date(2031, 7, 7), "Monday"),
        ("weekdays", date(2031, 7, 11), "Friday"),
        ("weekdays", date(2031, 7, 12), None),
    ],
)
def test_a_rule_names_its_days_in_english(text: str, day: date, name: str | None) -> None:
    assert rule_day_name(parse_rule(text), day) == name


def test_every_day_is_either_of_the_week_or_of_its_end() -> None:
    assert WEEKDAYS.days.isdisjoint(WEEKENDS.days)
    assert WEEKDAYS.days | WEEKENDS.days == set(range(7))


def test_a_country_is_covered_by_years_and_days_of_the_week_for_ever() -> None:
    covers = rule_covers(PublicHolidays("TR"))
    assert covers is not None
    assert covers[0] < date(1970, 1, 1)
    assert covers[1] > date(2090, 1, 1)
    assert rule_covers(DaysOfWeek("weekends", frozenset({5, 6}))) is None


@pytest.mark.parametrize("text", ["weekends", "WEEKDAYS", "weekends@Asia/Tokyo", "holidays:", "Holidays:XX"])
def test_a_name_can_be_meant_as_a_rule_even_if_it_is_a_bad_one(text: str) -> None:
    assert is_rule_name(text)


@pytest.mark.parametrize("text", ["", "weekend", "holidays", "my-holidays:US"])
def test_other_names_are_no_rules(text: str) -> None:
    assert not is_rule_name(text)


def test_the_holidays_package_is_not_imported_before_a_country_is_asked_for() -> None:
    code = (
        "import sys; from horarium.core.document.holidays import parse_rule; parse_rule('weekends'); "
        "assert 'holidays' not in sys.modules; parse_rule('holidays:US'); assert 'holidays' in sys.modules"
    )
    source = str(Path(horarium.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": source})
