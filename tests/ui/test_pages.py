"""Every page opens, can be read by everybody in both themes, fits a narrow screen, and has its picture taken."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from app_build import UI
from playwright.sync_api import Page, expect
from ui.conftest import OpenPage
from ui.fleet import HOSTILE, LONG, MARKUP, TURNED
from ui.looking import (
    ENLARGED,
    NARROW,
    THEMES,
    assert_accessible,
    assert_fits,
    assert_nothing_is_cut,
    in_theme,
    photograph,
    settled,
)
from ui.serving import Served


@dataclass(frozen=True)
class Shown:
    """A page: its route, its address here, and what must be seen on it. `{name}` is a field of the fleet."""

    route: str
    name: str
    seen: tuple[str, ...]
    path: str = ""

    def address(self, served: Served) -> str:
        fleet = served.fleet
        return (self.path or self.route).format(
            run_id=fleet.run_id, workflow_run_id=fleet.workflow_run_id, approval_id=fleet.approval_id
        )


PAGES = (
    Shown("/", "now", ("Overview",)),
    Shown("/schedules", "schedules", ("Schedules",)),
    Shown("/schedules/new", "create", ("Create schedule", "Preview")),
    Shown("/schedules/$scheduleId", "schedule", ("Prices from suppliers", "Upcoming runs"), "/schedules/price-sync"),
    Shown(
        "/schedules/$scheduleId/edit",
        "edit",
        ("YAML", "Preview"),
        "/schedules/nightly-report/edit",
    ),
    Shown("/runs", "runs", ("Runs",)),
    Shown("/runs/$runId", "run", ("Steps", "Details"), "/runs/{workflow_run_id}"),
    Shown("/approvals", "approvals", ("Approvals",)),
    Shown("/approvals/$approvalId", "approval", ("Action", "Decision"), "/approvals/{approval_id}"),
    Shown("/workflows", "workflows", ("Workflows",)),
    Shown("/workflows/$workflowId", "workflow", ("Graph", "Latest runs", "Versions"), "/workflows/brief"),
    Shown("/calendars", "calendars", ("Calendars",)),
    Shown("/calendars/$name", "calendar", ("company-holidays",), "/calendars/company-holidays"),
    Shown("/agents", "agents", ("Agents and Teams", "The writer")),
    Shown("/agents/$agentId", "agent", ("Scheduled prompts", "Health"), "/agents/writer"),
    Shown("/teams/$teamId", "team", ("News desk", "Members"), "/teams/desk"),
    Shown("/access", "access", ("API tokens and secrets",)),
    Shown("/audit", "audit", ("Audit",)),
    Shown("/cluster", "cluster", ("Cluster",)),
)
# So that a picture shows the two zones that most people have: the schedule's and their own.
ZONE = "Europe/Berlin"
ids = [shown.name for shown in PAGES]


def test_the_table_has_every_page() -> None:
    routes = re.findall(r'\bpage\("([^"]+)"', (UI / "src" / "routes.tsx").read_text("utf-8"))
    assert [shown.route for shown in PAGES] == routes


@pytest.mark.parametrize("shown", PAGES, ids=ids)
def test_a_page_is_readable_in_both_themes_and_on_a_narrow_screen(
    open_page: OpenPage, served: Served, shown: Shown
) -> None:
    page = open_page(shown.address(served), zone=ZONE)
    settled(page)
    assert_seen(page, shown)
    for theme in THEMES:
        in_theme(page, theme)
        assert_accessible(page, colours_alone=theme != THEMES[0])
        photograph(page, shown.name, theme)
    page.set_viewport_size(NARROW)
    assert_fits(page)
    # In the dark, and in a layout of its own: a table is a list here, and what is touched must be large enough.
    assert_accessible(page)
    for size in ENLARGED:
        page.set_viewport_size(size)
        assert_fits(page)
        assert_nothing_is_cut(page)


def assert_seen(page: Page, shown: Shown) -> None:
    for text in shown.seen:
        expect(page.get_by_role("main").get_by_text(text).first).to_be_visible()
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("name", ["now", "schedule", "runs"])
def test_a_page_far_from_utc(open_page: OpenPage, served: Served, name: str) -> None:
    """A quarter of an hour off every other zone, so a mistake shows."""
    [shown] = [each for each in PAGES if each.name == name]
    page = open_page(shown.address(served), zone="Asia/Kathmandu")
    settled(page)
    assert_seen(page, shown)
    expect(page.get_by_label("Time zone")).to_have_value(re.compile("Asia/(Kathmandu|Katmandu)"))


def test_hostile_names_are_shown_as_they_were_written(open_page: OpenPage) -> None:
    """`test_schedule.py` looks at the page of one of them."""
    page = open_page(namespace=HOSTILE, width=NARROW["width"])
    names = (MARKUP, TURNED, LONG)
    for path, shown in (("./", names), ("./schedules", names), ("./runs", ("hostile-0", "hostile-1", "hostile-2"))):
        page.goto(path)
        settled(page)
        for name in shown:
            expect(page.get_by_role("main").get_by_text(name).first).to_be_visible()
        expect(page.locator("img[src='x']")).to_have_count(0)
        assert_fits(page)
