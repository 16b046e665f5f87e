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

from horarium.clock import SystemClock
from horarium.instant import DAY, Instant
from horarium.store.database import open_database

ROW = "[role=row][data-index]"
ID = "herd-of-them-all"
# Of a window of 800 pixels, with what is drawn ahead.
MOST_DRAWN = 60
MOST_STEPS = 200


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


def scroll_to(page: Page, index: int) -> None:
    """To the end of what is loaded, again and again, until the row is drawn."""
    row = page.locator(f"{ROW}[data-index='{index}']")
    for _ in range(MOST_STEPS):
        if row.count():
            return
        last = page.locator(ROW).last
        before = last.get_attribute("data-index")
        last.scroll_into_view_if_needed()
        page.wait_for_function(
            "([rows, before]) => [...document.querySelectorAll(rows)].at(-1)?.dataset.index !== before",
            arg=[ROW, before],
        )
    raise AssertionError(f"row {index} was not drawn")


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_long_list_is_walked_and_searched(open_page: OpenPage, fresh: Fresh, count: int) -> None:
    fill(fresh, count)
    page = open_page("/schedules", token=fresh.tokens["operator"])
    rows = page.locator(ROW)
    expect(rows.first).to_contain_text(f"herd-{count - 1}")
    scroll_to(page, 450)
    assert rows.count() <= MOST_DRAWN
    page.get_by_role("main").get_by_label("Search").fill("herd-0")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("herd-0")
