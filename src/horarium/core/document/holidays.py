"""Rules that name days of any year: the holidays of a country, the weekends, the weekdays.

    holidays:US            the public holidays of a country (ISO 3166, two letters), observed days included
    holidays:US-CA         the same for one of its subdivisions
    weekends, weekdays     Saturday and Sunday; Monday to Friday

A rule names days and has no zone of its own; the calendar that carries it gives both the zone and
the meaning. The days of a year are computed when that year is first asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TypeAlias, assert_never

from horarium.core.policy.queue import shown
from horarium.errors import InvalidCalendar

_HOLIDAYS = re.compile(r"holidays:([A-Za-z]{2})(?:-([A-Za-z0-9]{1,8}))?", re.ASCII)
_NAMED_SUBDIVISIONS = 12


@dataclass(frozen=True, slots=True)
class PublicHolidays:
    """`country` and `subdivision` are spelled as the `holidays` package spells them."""

    country: str
    subdivision: str | None = None


@dataclass(frozen=True, slots=True)
class DaysOfWeek:
    """`days` as `date.weekday()` counts them: Monday is 0."""

    name: str
    days: frozenset[int]


Rule: TypeAlias = PublicHolidays | DaysOfWeek

WEEKENDS = DaysOfWeek("weekends", frozenset({5, 6}))
WEEKDAYS = DaysOfWeek("weekdays", frozenset({0, 1, 2, 3, 4}))
_WEEK_RULES: Mapping[str, DaysOfWeek] = {rule.name: rule for rule in (WEEKENDS, WEEKDAYS)}


def is_rule_name(text: str) -> bool:
    """True for what can only be meant as a rule, `@Zone` or not, even if its country is unknown."""
    return text.partition("@")[0].lower() in _WEEK_RULES or text[:9].lower() == "holidays:"


@lru_cache(maxsize=1_024)
def parse_rule(text: str) -> Rule:
    """Raises InvalidCalendar for a country or subdivision that the `holidays` package does not have."""
    if (week := _WEEK_RULES.get(text.lower())) is not None:
        return week
    match = _HOLIDAYS.fullmatch(text[:9].lower() + text[9:])
    if match is None:
        raise InvalidCalendar(
            f"rule: {shown(text)} is not a rule; write holidays:US, holidays:US-CA, weekends or weekdays"
        )
    return _known(match[1].upper(), match[2])


def rule_text(rule: Rule) -> str:
    match rule:
        case DaysOfWeek(name=name):
            return name
        case PublicHolidays(country=country, subdivision=None):
            return f"holidays:{country}"
        case PublicHolidays(country=country, subdivision=subdivision):
            return f"holidays:{country}-{subdivision}"
        case _:
            assert_never(rule)


def rule_day_name(rule: Rule, day: date) -> str | None:
    """Name `day` as a day of the rule (`Christmas Day`, `Saturday`), or None if it is none."""
    match rule:
        case DaysOfWeek(days=days):
            return _WEEKDAY_NAMES[day.weekday()] if day.weekday() in days else None
        case PublicHolidays(country=country, subdivision=subdivision):
            return _holidays_of(country, subdivision, day.year).get(day)
        case _:
            assert_never(rule)


def rule_covers(rule: Rule) -> tuple[date, date] | None:
    """The years for which the package knows the country; None for days of the week, which never end."""
    match rule:
        case DaysOfWeek():
            return None
        case PublicHolidays(country=country):
            return _years_of(country)
        case _:
            assert_never(rule)


_WEEKDAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# The package costs 60 ms to import and its first country 80 ms more, so it is imported where it is
# used: a service without holiday rules never pays.


def _known(country: str, subdivision: str | None) -> PublicHolidays:
    import holidays

    countries = holidays.list_supported_countries(include_aliases=False)
    if country not in countries:
        raise InvalidCalendar(
            f"rule: the country {country!r} is unknown; use a two-letter ISO 3166 code such as US or TR"
        )
    if subdivision is None:
        return PublicHolidays(country)
    spellings = {known.upper(): known for known in countries[country]}
    if subdivision.upper() not in spellings:
        some = ", ".join(sorted(countries[country])[:_NAMED_SUBDIVISIONS])
        hint = f"it has the subdivisions {some} …" if some else "the country has no subdivisions"
        raise InvalidCalendar(f"rule: the subdivision {subdivision!r} of {country} is unknown; {hint}")
    return PublicHolidays(country, spellings[subdivision.upper()])


# About 15 dates a year: 2,048 entries are some 5 MB at the most.
@lru_cache(maxsize=2_048)
def _holidays_of(country: str, subdivision: str | None, year: int) -> Mapping[date, str]:
    import holidays

    # Without a language the package asks the environment, and two machines would name a day differently.
    return dict(holidays.country_holidays(country, subdiv=subdivision, years=year, language="en_US"))


@lru_cache(maxsize=256)
def _years_of(country: str) -> tuple[date, date]:
    import holidays

    rules = holidays.country_holidays(country)
    return date(rules.start_year, 1, 1), date(rules.end_year, 12, 31)
