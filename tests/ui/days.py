"""Days that tests name: so chosen that nothing falls due while a test runs, and that no date of a test is ever over."""

from __future__ import annotations

import calendar
from datetime import date, timedelta

from horarium.instant import MINUTE, Instant, to_datetime
from horarium.platform.clock import SystemClock

SUNDAY, _SATURDAY = 6, 5


def far_from(today: date) -> date:
    """Half a year on; no 29 February, so that it is there a year before as well."""
    return (today + timedelta(days=182)).replace(day=14)


def hourly(now: Instant) -> str:
    """A cron that was due half an hour ago, and is not due again before the test is over."""
    return f"{(now // MINUTE + 30) % 60} * * * *"


def coming(weekday: int, today: date) -> date:
    """Not today, of which a part is over, nor tomorrow, which it may be already in another zone."""
    soon = today + timedelta(days=2)
    return soon + timedelta(days=(weekday - soon.weekday()) % 7)


def year_before_a_leap_year(today: date) -> int:
    """One that has not begun."""
    year = today.year + 1
    return next(each for each in range(year, year + 9) if calendar.isleap(each + 1))


def first_sunday(year: int) -> date:
    return coming(SUNDAY, date(year, 1, 1) - timedelta(days=2))


def in_words(day: date) -> str:
    """As a cell of a year is named."""
    return f"{day:%a} {day.day} {day:%B %Y}"


TODAY = to_datetime(SystemClock().now()).date()
FAR = far_from(TODAY)
# A cron of one minute a year.
RARELY = f"0 3 {FAR.day} {FAR.month} *"
SATURDAY = coming(_SATURDAY, TODAY)
