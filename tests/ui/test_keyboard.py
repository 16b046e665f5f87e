"""Whole walks by the keyboard alone: nothing here touches a mouse, and nothing gets the focus but by a key."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY, hourly
from ui.looking import settled
from ui.serving import until
from ui.test_pages import PAGES, Shown
from ui.watching import Watch

from horarium.instant import DAY, HOUR, to_rfc3339
from horarium.platform.clock import SystemClock

PULL = {"kind": "workflow", "workflow_type": "report", "queue": "nobody-takes-from-it"}
# More stops than any way from one control to another has.
_FARTHEST = 250


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def reach(page: Page, target: Locator, key: str = "Tab") -> None:
    """One stop after the other, as somebody goes who sees where the focus is."""
    target.wait_for()
    expect(target).to_be_enabled()  # before, no key leads there
    for _ in range(_FARTHEST):
        if target.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never reaches {target}")


def write_over(page: Page, target: Locator, text: str) -> None:
    reach(page, target)
    press(page, "ControlOrMeta+a")
    page.keyboard.insert_text(text)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def in_main(page: Page, name: str) -> Locator:
    """Return the button of the page; its dialog may have one of the same name."""
    return page.get_by_role("main").get_by_role("button", name=name, exact=True)


def title(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("main").get_by_role("heading", level=1, name=text)


def make(fresh: Fresh, schedule_id: str, **fields: Any) -> None:
    document = {"schedule_id": schedule_id, "cron_expressions": [hourly(SystemClock().now())], "action": PULL, **fields}
    fresh.send("POST", "/api/schedules", document)


def test_somebody_signs_in_and_makes_a_schedule_with_the_form(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 401")  # who it is, asked before anybody has signed in
    page = open_page("/", role=None)
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.insert_text(fresh.tokens["admin"])
    press(page, "Enter")
    make_first = page.get_by_role("link", name="Create schedule")
    reach(page, make_first)
    press(page, "Enter")
    expect(title(page, "Create schedule")).to_be_focused()
    write_over(page, page.get_by_label("Display name"), "By hand")
    write_over(page, page.get_by_label("ID", exact=True), "by-hand")
    write_over(page, page.get_by_role("textbox", name="Cron expression 1"), "0 7 * * *")
    expect(page.get_by_text(re.compile("at 07:00 every day")).first).to_be_visible()
    reach(page, button(page, "Create"))
    press(page, "Enter")
    expect(title(page, "By hand")).to_be_focused()
    assert fresh.send("GET", "/api/schedules/by-hand")["spec"]["cron_expressions"] == ["0 7 * * *"]


def test_one_is_found_opened_paused_resumed_triggered_and_filled(open_page: OpenPage, fresh: Fresh) -> None:
    make(fresh, "jk-letters", start_at=to_rfc3339(SystemClock().now() - 30 * DAY))
    page = open_page("/", token=fresh.tokens["admin"])
    settled(page)
    find = page.get_by_role("searchbox", name="Search schedules")
    press(page, "/")
    expect(find).to_be_focused()
    press(page, *"jk-letters", "?", "Backspace")  # letters, where somebody types
    expect(find).to_have_value("jk-letters")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press(page, "Enter")
    expect(title(page, "Schedules")).to_be_focused()
    expect(page.locator("[data-row]")).to_have_count(1)
    press(page, "j", "Enter")
    expect(title(page, "jk-letters")).to_be_focused()

    dialog = page.get_by_role("dialog")
    reach(page, in_main(page, "Pause"))
    press(page, "Enter")
    write_over(page, dialog.get_by_label("Reason"), "the auditors are here")
    press(page, "Enter")
    # The button that was pressed is another one now, and the focus is where it was.
    expect(in_main(page, "Resume")).to_be_focused()
    expect(page.get_by_role("main").get_by_text("the auditors are here")).to_be_visible()
    press(page, "Enter")
    reach(page, dialog.get_by_role("button", name="Resume", exact=True))
    press(page, "Enter")
    expect(in_main(page, "Pause")).to_be_focused()

    reach(page, in_main(page, "Trigger"), "Shift+Tab")
    press(page, "Enter")
    reach(page, dialog.get_by_role("button", name="Trigger", exact=True))
    press(page, "Enter")
    expect(in_main(page, "Trigger")).to_be_focused()
    assert len(fresh.send("GET", "/api/runs?schedule_id=jk-letters")["runs"]) == 1

    reach(page, in_main(page, "Backfill"))
    press(page, "Enter")
    now = SystemClock().now()
    since = now - now % DAY - 3 * DAY
    write_over(page, dialog.get_by_label("Start"), to_rfc3339(since))
    write_over(page, dialog.get_by_label("End (exclusive)"), to_rfc3339(since + 3 * HOUR))
    reach(page, dialog.get_by_role("button", name="Preview"))
    press(page, "Enter")
    expect(dialog.get_by_role("button", name="Create 3 runs")).to_be_focused()
    press(page, "Enter")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    press(page, "Escape")
    expect(in_main(page, "Backfill")).to_be_focused()


def test_an_edit_is_looked_at_and_saved(open_page: OpenPage, fresh: Fresh) -> None:
    make(fresh, "nightly", cron_expressions=["0 2 * * *"])
    page = open_page("/schedules/nightly", token=fresh.tokens["admin"])
    reach(page, page.get_by_role("link", name="Edit", exact=True))
    press(page, "Enter")
    expect(title(page, "Edit nightly")).to_be_focused()
    write_over(page, page.get_by_role("textbox", name="Cron expression 1"), "0 3 * * *")
    expect(page.get_by_text(re.compile("at 03:00 every day")).first).to_be_visible()
    reach(page, button(page, "Review changes"))
    press(page, "Enter")
    dialog = page.get_by_role("dialog", name="Review changes")
    expect(dialog.get_by_text(re.compile(r"^\W*\d+ fires moved"))).to_be_visible()
    press(page, "Escape")
    expect(button(page, "Review changes")).to_be_focused()
    press(page, "Enter")
    reach(page, dialog.get_by_role("button", name="Save", exact=True))
    press(page, "Enter")
    expect(title(page, "nightly")).to_be_focused()
    assert fresh.send("GET", "/api/schedules/nightly")["spec"]["cron_expressions"] == ["0 3 * * *"]


def test_questions_are_answered_one_with_other_inputs_and_the_rest_at_once(open_page: OpenPage, fresh: Fresh) -> None:
    for name in ("one", "two", "three"):
        asking = {"cron_expressions": [RARELY], "approval_policy": {"requires_approval": True}}
        make(fresh, name, action={**PULL, "input": {"to": "all"}}, **asking)
        fresh.send("POST", f"/api/schedules/{name}/trigger", {})
    page = open_page("/schedules", token=fresh.tokens["operator"])
    settled(page)
    rows = page.locator("li[data-row]")
    press(page, "g", "a")
    expect(title(page, "Approvals")).to_be_focused()
    expect(rows).to_have_count(3)
    press(page, "j", "Enter")
    reach(page, button(page, "Edit inputs"))
    press(page, "Enter")
    expect(page.get_by_role("textbox", name="Inputs")).to_be_focused()
    write_over(page, page.get_by_role("textbox", name="Inputs"), '{"to": "team"}')
    reach(page, button(page, "Approve with changes"))
    press(page, "Enter")
    expect(page.get_by_role("main").get_by_text("Approved with changes").first).to_be_visible()
    expect(page.locator("h1:focus")).to_have_count(1)  # nothing is left to decide with

    press(page, "g", "a")
    expect(rows).to_have_count(2)
    for choice in page.get_by_role("checkbox", name=re.compile("^Select ")).all():
        reach(page, choice)
        press(page, "Space")
    press(page, "k")  # a box to tick is no place to write in
    expect(rows.first.get_by_role("link")).to_be_focused()
    reach(page, button(page, "Approve"), "Shift+Tab")
    press(page, "Enter")
    dialog = page.get_by_role("dialog")
    reach(page, dialog.get_by_role("button", name="Approve 2 approval requests"))
    press(page, "Enter")
    expect(dialog.get_by_role("status")).to_have_text("Done: 2 approved")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="No pending approval requests")).to_be_visible()
    expect(page.locator("main :focus")).to_have_count(1)
    assert fresh.send("GET", "/api/approvals?status=pending")["approvals"] == []


def test_the_row_that_goes_gives_the_focus_to_the_next(open_page: OpenPage, fresh: Fresh) -> None:
    for name in ("first", "second", "third"):  # the newest stands first
        make(fresh, name)
    page = open_page("/schedules", token=fresh.tokens["admin"])
    expect(page.locator("[data-row]")).to_have_count(3)
    press(page, "j", "j")
    expect(page.get_by_role("link", name="second", exact=True)).to_be_focused()
    fresh.send("DELETE", "/api/schedules/second")
    expect(page.get_by_role("link", name="first", exact=True)).to_be_focused()
    press(page, "k")
    expect(page.get_by_role("link", name="third", exact=True)).to_be_focused()


def test_a_run_is_cancelled(open_page: OpenPage, fresh: Fresh) -> None:
    make(fresh, "report")
    run_id = fresh.send("POST", "/api/schedules/report/trigger", {})["run_id"]
    until(lambda: fresh.send("GET", f"/api/runs/{run_id}")["state"] == "queued")  # before, it would just be gone
    page = open_page("/runs", token=fresh.tokens["operator"])
    expect(page.locator("[data-row]")).to_have_count(1)
    press(page, "j", "Enter")
    reach(page, button(page, "Cancel run"))
    press(page, "Enter")
    reach(page, page.get_by_role("dialog").get_by_role("button", name="Cancel run"))
    press(page, "Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".actions :focus")).to_have_count(1)
    assert fresh.send("GET", f"/api/runs/{run_id}")["stop_requested_at"]


def test_the_timeline_is_zoomed_and_one_of_its_marks_explained(open_page: OpenPage) -> None:
    page = open_page("/?hours=6")
    settled(page)
    reach(page, page.get_by_role("group", name=re.compile("^Timeline")))
    press(page, "+")
    expect(page).to_have_url(re.compile(r"hours=3\b"))
    press(page, "-")
    expect(page).to_have_url(re.compile(r"hours=6\b"))
    reach(page, page.locator('[data-lane="invoice-export"] [data-mark][tabindex="0"]'))
    press(page, "Enter")
    expect(page.get_by_role("dialog", name="Explanation").get_by_text("Schedule times")).to_be_visible()
    press(page, "Escape")
    expect(page.locator('[data-lane="invoice-export"] [data-mark]:focus')).to_have_count(1)


def test_every_place_has_a_key_that_is_told_and_leads_there(open_page: OpenPage) -> None:
    page = open_page("/schedules/nightly-report")
    settled(page)
    press(page, "?")
    told = page.get_by_role("dialog", name="Keyboard shortcuts").get_by_role("region", name="Go to")
    expect(told).to_be_visible()
    letters = told.locator("dt").evaluate_all("all => all.map(each => each.lastElementChild.textContent)")
    places = told.locator("dd").all_inner_texts()
    press(page, "g", "r")  # what is in front has the keys
    press(page, "Escape")
    expect(told).to_have_count(0)
    expect(title(page, "Nightly report")).to_be_visible()
    links = page.get_by_role("navigation", name="Main").get_by_role("link").all_inner_texts()
    assert {re.sub(r"\s*\d.*", "", each, flags=re.DOTALL) for each in links} == set(places)
    for letter, place in zip(letters, places, strict=True):
        press(page, "g", letter)
        expect(title(page, place)).to_be_focused()


def test_the_first_stop_leads_past_the_navigation(open_page: OpenPage) -> None:
    page = open_page("/schedules")
    settled(page)
    press(page, "Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    press(page, "Enter")
    expect(title(page, "Schedules")).to_be_focused()
    expect(page).to_have_url(re.compile(r"/ui/schedules$"))


# What can be seen of the focus, and whether it is hidden behind what stays in sight.
_STOP = """() => {
  const it = document.activeElement;
  if (it === null || it === document.body) return null;
  const ring = (style) => (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2) ||
    (style.stroke !== 'none' && parseFloat(style.strokeWidth) >= 2);
  const [box] = it.getClientRects(); // of a link over two lines the first: around both there is more than the link
  const x = Math.min(box.left + box.width / 2, innerWidth - 1);
  const y = Math.min(box.top + box.height / 2, innerHeight - 1);
  const top = document.elementFromPoint(x, y);
  return {
    what: it.outerHTML.slice(0, 160),
    isSeen: [it, ...it.querySelectorAll(':scope > rect')].some((each) => ring(getComputedStyle(each))),
    above: top?.outerHTML.slice(0, 160),
    isHidden: box.width > 0 && box.height < innerHeight && !(it.contains(top) || top?.contains(it)),
  };
}"""


@pytest.mark.parametrize("shown", [each for each in PAGES if each.name in ("now", "schedules", "schedule", "create")])
def test_the_focus_is_seen_at_every_stop_and_none_is_a_trap(open_page: OpenPage, shown: Shown) -> None:
    page = open_page(shown.path or shown.route)
    settled(page)
    stops: list[str] = []
    while len(stops) < _FARTHEST:
        page.keyboard.press("Tab")
        stop = page.evaluate(_STOP)
        if stop is None or (stops and "skip-link" in stop["what"]):  # round, by way of the browser's own controls
            break
        assert stop["isSeen"], f"no ring: {stop['what']}"
        assert not stop["isHidden"], f"{stop['what']} is behind {stop['above']}"
        stops.append(stop["what"])
    assert 20 < len(stops) < _FARTHEST, f"a trap, at the end of {stops[-3:]}"
