"""Dialogs and menus on a phone and in the dark, and pages for whoever has colours of their own or wants no motion."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from ui.conftest import OpenPage
from ui.looking import NARROW, assert_accessible, assert_fits, assert_nothing_is_cut, follow, settled
from ui.serving import Served

# Dialogs by page and by the buttons that open them; nothing is sent from any of them.
DIALOGS: dict[str, tuple[str, ...]] = {
    "/schedules?text=price": ("Columns", "Save view"),
    "/schedules/price-sync": ("Trigger", "Pause", "Backfill", "Delete"),
    "/schedules/archive-mail": ("Resume",),
    "/runs?state=open&schedule=reindex": ("Stop all open runs of this schedule",),
    "/runs/{run_id}": ("Rerun",),
    "/approvals?tab=standing": ("Create standing approval",),
    "/workflows": ("Create workflow",),
    "/workflows/brief": ("Edit", "Delete", "Run"),
    "/calendars": ("Create calendar",),
    "/calendars/company-holidays": ("Clone", "Import dates", "Delete"),
    "/agents": ("Create team", "Create agent"),
    "/agents/writer": ("Create token", "Edit", "Delete", "Create prompt"),
    "/teams/desk": ("Edit", "Delete"),
    "/access": ("Create token", "Rotate", "Revoke"),
    "/access?tab=secrets": ("Create secret",),
    "/access?tab=namespaces": ("Create namespace",),
    "/": ("Shortcuts",),
}


def test_dialogs_fit_a_phone_and_can_be_read_in_the_dark(open_page: OpenPage, served: Served) -> None:
    page = open_page("/runs", theme="dark", width=NARROW["width"])
    settled(page)
    for path, names in DIALOGS.items():
        follow(page, path.format(run_id=served.fleet.run_id))
        if path == "/":
            page.get_by_role("button", name="Menu").click()
        for name in names:
            page.get_by_role("button", name=name, exact=True).first.click()
            dialog = page.get_by_role("dialog")
            expect(dialog, f"{name} on {path}").to_be_visible()
            expect(dialog.locator(".loading")).to_have_count(0)
            assert_fits(page)
            assert_nothing_is_cut(page)
            assert_accessible(page, inside="dialog[open]")
            page.keyboard.press("Escape")
            expect(dialog, f"{name} on {path}").to_have_count(0)


def test_a_menu_fits_a_phone_and_can_be_read_in_the_dark(open_page: OpenPage) -> None:
    page = open_page("/schedules?text=price-sync", theme="dark", width=NARROW["width"])
    page.get_by_role("button", name=re.compile("^Actions for")).first.click()
    expect(page.get_by_role("menuitem").first).to_be_focused()
    assert_fits(page)
    assert_accessible(page, inside="[role=menu]")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_label("Time zone")).to_be_visible()
    assert_fits(page)
    assert_accessible(page, inside=".side")


def test_states_are_told_apart_without_the_colours_of_the_page(open_page: OpenPage) -> None:
    page = open_page("/")
    page.emulate_media(forced_colors="active")
    settled(page)
    drawn = page.get_by_role("list", name="Legend").locator("path")
    expect(drawn).to_have_count(11)
    shapes: list[str] = drawn.evaluate_all(
        "all => all.map(each => each.getAttribute('d') + getComputedStyle(each).strokeDasharray)"
    )
    assert len(set(shapes)) == 11
    # What only a background would show is drawn by a line as well.
    for chosen, other in (
        (page.get_by_role("link", name="Overview", exact=True), page.get_by_role("link", name="Runs", exact=True)),
        (page.get_by_role("button", name="12 h", exact=True), page.get_by_role("button", name="24 h", exact=True)),
    ):
        lines = [each.evaluate("it => getComputedStyle(it).outlineStyle") for each in (chosen, other)]
        assert lines == ["solid", "none"]


def test_nothing_moves_for_whoever_wants_no_motion(open_page: OpenPage) -> None:
    page = open_page("/schedules/price-sync")
    settled(page)
    running = "() => document.getAnimations().length"
    page.evaluate("() => document.body.insertAdjacentHTML('beforeend', '<span class=\"spinner\"></span>')")
    assert page.evaluate(running) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(running) > 0  # so the question is one that can be answered with no
