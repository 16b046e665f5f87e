"""Clocks that disagree: a zone that the browser does not know, a clock that is wrong, and a machine that has slept."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect
from ui.conftest import Fresh, OpenPage

from horarium.instant import HOUR, MINUTE, Instant, to_datetime
from horarium.platform.clock import SystemClock

# As a browser answers that was built before the zone came to be.
_UNKNOWN_ZONE = """
  Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, {
    construct(real, [locales, options]) {
      if (options?.timeZone === 'Europe/Istanbul') throw new RangeError('Invalid time zone specified');
      return new real(locales, options);
    },
  });
"""


def test_a_zone_that_the_browser_does_not_know_is_said_and_not_guessed(open_page: OpenPage) -> None:
    page = open_page(zone="Asia/Kathmandu")
    page.add_init_script(_UNKNOWN_ZONE)
    page.goto("./schedules/invoice-export")
    told = page.get_by_text("UTC (Europe/Istanbul is unknown to this browser)")
    expect(told.first).to_be_visible()
    page.goto("./schedules?text=invoice-export")
    expect(page.locator("[data-row] time").first).to_contain_text("is unknown to this browser")


def shown_now(page: Page) -> Locator:
    return page.locator(".axis-now text")


def around(now: Instant) -> re.Pattern[str]:
    """This minute and the next two, since the page may have taken a while to come."""
    return re.compile("|".join(f"{to_datetime(now + after * MINUTE):%H:%M}" for after in range(3)))


def test_now_is_the_service_s_also_where_the_browser_s_clock_is_wrong(open_page: OpenPage) -> None:
    page = open_page()
    page.clock.install(time=to_datetime(SystemClock().now() + 10 * MINUTE))
    page.goto("./?hours=6")
    expect(shown_now(page)).to_have_text(around(SystemClock().now()))


def test_after_a_sleep_the_page_is_told_the_time_and_goes_on_without_a_flood(open_page: OpenPage, fresh: Fresh) -> None:
    often = {"cron_expressions": ["0 * * * *"], "workflow_type": "report"}
    fresh.send("POST", "/api/schedules", {"schedule_id": "before", **often})
    page = open_page(token=fresh.tokens["admin"])
    page.clock.install(time=to_datetime(SystemClock().now()))
    page.goto("./?hours=6")
    expect(page.locator('[data-lane="before"]')).to_be_visible()
    asked: Counter[str] = Counter()
    page.on("request", lambda request: asked.update([urlsplit(request.url).path]))
    with page.expect_request("**/api/events"):  # the line of before is as dead as after any sleep
        page.clock.fast_forward(8 * HOUR // 1000)
        fresh.send("POST", "/api/schedules", {"schedule_id": "meanwhile", **often})
    expect(page.locator('[data-lane="meanwhile"]')).to_be_visible()
    expect(shown_now(page)).to_have_text(around(SystemClock().now()))
    assert max(asked.values()) <= 20, asked  # what is asked for every few seconds would have come a thousand times
