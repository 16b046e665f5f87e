"""A list of very many schedules is drawn row by row as somebody looks at it, walked through and searched.

`benchmarks/ui.py` measures how long it takes.
"""

from __future__ import annotations

import runpy
from dataclasses import replace
from typing import Any

import pytest
from app_build import ROOT
from playwright.sync_api import Page, expect
from ui.conftest import Fresh, OpenPage
from ui.looking import assert_accessible
from ui.watching import Watch

from horarium.instant import DAY, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import open_database

ROW = "[role=row][data-index]"
ID = "herd-of-them-all"
# Of a window of 800 pixels, with what is drawn ahead.
MOST_DRAWN = 60
# Whoever drags to the end of 100,000 rows waits until all pages on the way there are known.
PATIENCE_MS = 300_000


def fill(fresh: Fresh, count: int) -> None:
    """Many at a time, as the benchmarks do: over HTTP it would take minutes."""
    ground = runpy.run_path(str(ROOT / "benchmarks" / "ground.py"))
    now = SystemClock().now()
    like = ground["pattern"]({**ground["HERD"], "schedule_id": ID, "cron_expr": "0 4 * * *"}, now=now)

    def one(number: int) -> tuple[Any, Instant]:
        return replace(like, document=like.document.replace(ID, f"herd-{number}")), now + 2 * DAY

    opened = open_database(fresh.served.database)
    try:
        ground["seed_each"](opened, count, one, now=now, title="", namespace=fresh.namespace, apart=1)
    finally:
        opened.close()


def open_list(open_page: OpenPage, fresh: Fresh, count: int) -> Page:
    """With its first rows, and as long as it will be: before the service has counted them nobody can drag further."""
    fill(fresh, count)
    page = open_page("/schedules", token=fresh.tokens["operator"])
    expect_row(page, 0, f"herd-{count - 1}")
    expect(page.get_by_role("table", name="Schedules")).to_have_attribute("aria-rowcount", str(count + 1))
    return page


def go_to(page: Page, index: int) -> None:
    """As somebody who drags the bar at the side of the window."""
    page.evaluate(
        """([row, index]) => {
          const { height } = document.querySelector(row).getBoundingClientRect();
          const { top } = document.querySelector("[role=rowgroup]:last-child").getBoundingClientRect();
          scrollTo(0, top + scrollY + height * index - innerHeight / 2);
        }""",
        [ROW, index],
    )


def expect_row(page: Page, index: int, name: str) -> None:
    row = page.locator(f"[role=row][aria-rowindex='{index + 2}']")
    expect(row.get_by_role("link", name=name, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator(ROW).count() <= MOST_DRAWN


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_long_list_is_walked_and_searched(open_page: OpenPage, fresh: Fresh, count: int) -> None:
    page = open_list(open_page, fresh, count)
    asked = page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    first, *later = (each for each in asked if "/api/schedules?" in each and "next_page_token" not in each)
    # What was asked for before anything was drawn is what the list asks for; when it is asked again, it is for more.
    assert "page_size=50" in first
    assert not any("page_size=50" in each for each in later)
    assert_accessible(page)
    page.get_by_label(f"Select herd-{count - 2}", exact=True).check()
    for index in (450, count // 2, count - 1, 1):
        go_to(page, index)
        expect_row(page, index, f"herd-{count - 1 - index}")
    expect(page.get_by_label(f"Select herd-{count - 2}", exact=True)).to_be_checked()
    page.get_by_role("main").get_by_label("Search").fill("herd-0")
    expect(page.locator(ROW)).to_have_count(1)
    expect_row(page, 0, "herd-0")


def test_whoever_comes_back_to_a_long_list_finds_the_place(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_list(open_page, fresh, 600)
    go_to(page, 420)
    expect_row(page, 420, "herd-179")
    page.get_by_role("link", name="herd-179", exact=True).click()
    expect(page.get_by_role("heading", name="herd-179")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="herd-179", exact=True)).to_be_in_viewport()


def test_rows_that_go_leave_the_others_where_they_are(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    """Also the one behind which a page begins."""
    watch.expect("status of 409")  # what begins there is asked for, and then looked for elsewhere
    page = open_list(open_page, fresh, 300)
    go_to(page, 200)
    expect_row(page, 200, "herd-99")
    for name in ("herd-250", "herd-150", "herd-149"):
        fresh.send("DELETE", f"/api/schedules/{name}")
    go_to(page, 49)
    expect(page.get_by_role("link", name="herd-251", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="herd-250", exact=True)).to_have_count(0)
    go_to(page, 150)
    expect(page.get_by_role("link", name="herd-151", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="herd-148", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="herd-150", exact=True)).to_have_count(0)
    go_to(page, 296)
    expect_row(page, 296, "herd-0")
