"""The page Overview: counts that lead to their lists, lanes over time, herds, and why for any moment."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect
from ui.conftest import Fresh, OpenPage
from ui.fleet import DISCARD
from ui.looking import DIALOG, assert_accessible, follow, settled
from ui.serving import Served, until

from horarium.instant import HOUR, to_rfc3339
from horarium.platform.clock import SystemClock

# What the service says, what stands on the page, and where it leads.
COUNTS = (
    ("failing", "2Failing", "/schedules?health=failing"),
    ("late", "3+Late", "/schedules?health=late"),
    ("stale", "4Stale", "/schedules?health=stale"),
    ("waiting_for_approval", "5Awaiting approval", "/approvals?status=pending"),
    ("running", "6Running", "/runs?state=running"),
    ("held", "7Buffered", "/runs?state=held"),
)
BOUNDED = ["late"]
# Room for all lanes of the fleet: those that nobody sees are not there, and how many it has depends on the hour.
MORE_THAN_A_PAGE = 101  # of lanes
TALL: ViewportSize = {"width": 1280, "height": 1600}


def lane(page: Page, schedule_id: str) -> Locator:
    return page.locator(f'[data-lane="{schedule_id}"]')


def lanes(page: Page) -> list[str]:
    """Those of one moment, read at once: a page that goes on would take some away between two questions."""
    shown: list[str] = page.locator("[data-lane]").evaluate_all("rows => rows.map(row => row.dataset.lane)")
    return shown


def test_counts_say_what_the_service_says_and_lead_to_the_lists(page: Page, served: Served) -> None:
    """Each has a number of its own here: that of a fleet which goes on would be another one when it is looked at."""
    overview = served.send("GET", "/api/overview")
    told = {name: int(re.findall(r"\d", shown)[0]) for name, shown, _ in COUNTS}
    answer = json.dumps({**overview, **told, "bounded": BOUNDED})
    page.route("**/api/overview", lambda route: route.fulfill(body=answer, content_type="application/json"))
    page.goto("./")
    counts = page.get_by_role("list", name="Overview")
    for _, shown, leads_to in COUNTS:
        link = counts.get_by_role("link").filter(has_text=shown)
        expect(link).to_have_attribute("href", re.compile(f"{re.escape(leads_to)}$"))
    broken = counts.get_by_role("link").filter(has_text="1Broken")
    expect(broken).to_have_attribute("href", re.compile(r"/schedules\?status=broken$"))
    # What was missed lately has no list of its own: it is shown here, where it was.
    counts.get_by_role("link", name=re.compile("Missed")).click()
    expect(page.get_by_role("button", name=re.compile("Reason: Scheduler was down"))).to_be_visible()
    expect(lane(page, "ledger-close")).to_be_visible()
    expect(lane(page, "invoice-export")).to_have_count(0)
    page.get_by_role("button", name=re.compile("Reason: Scheduler was down")).click()
    expect(lane(page, "invoice-export")).to_be_visible()


def test_lanes_show_first_what_needs_somebody_and_tell_the_schedule_s_own_clock(open_page: OpenPage) -> None:
    page = open_page("/?hours=12", zone="Asia/Kathmandu")
    page.set_viewport_size(TALL)
    for schedule_id in ("invoice-export", "stock-check"):
        expect(lane(page, schedule_id)).to_be_visible()
    shown = lanes(page)
    assert shown.index("invoice-export") < shown.index("stock-check")
    failed = lane(page, "invoice-export").get_by_role("button", name=re.compile("failed", re.IGNORECASE)).last
    # In the viewer's clock and, since it is another one, in the schedule's.
    expect(failed).to_have_attribute("aria-label", re.compile(r"\d\d:\d5.*Istanbul \+03:00"))
    # Twelve mailboxes at every full hour are a herd, and it is named by its number.
    expect(page.locator(".peak text").first).to_contain_text(re.compile(r"^\d\d at \d\d:\d\d"))


def test_a_run_that_goes_on_is_a_bar(page: Page) -> None:
    page.goto("./?hours=6")
    expect(lane(page, "crawl-suppliers").locator(".run-bar").first).to_be_visible()
    page.goto("./?hours=1")  # it began before that
    # At some minutes of the hour its mark stands with that of a skip: "2: 1 running, 1 skipped".
    running = lane(page, "crawl-suppliers").get_by_role("button", name=re.compile(r"^Running|\d running"))
    expect(running.first).to_be_visible()
    expect(lane(page, "crawl-suppliers").locator(".run-bar").first).to_be_visible()


def test_any_mark_and_any_moment_is_explained(page: Page) -> None:
    page.set_viewport_size(TALL)
    now = SystemClock().now()
    odd_hour = now - now % (2 * HOUR) - HOUR
    page.goto(f"./?hours=6&from={to_rfc3339(odd_hour)}")
    lane(page, "invoice-export").get_by_role("button", name=re.compile("failed", re.IGNORECASE)).last.click()
    dialog = page.get_by_role("dialog")
    for said in ("Fired", "Failed"):  # that it was decided to run, and what became of it
        expect(dialog.get_by_text(said, exact=True)).to_be_visible()
    expect(dialog.get_by_role("link", name="View run")).to_be_visible()
    expect(dialog.get_by_text("Schedule times")).to_be_visible()
    at = dialog.locator("time").first.get_attribute("datetime")
    dialog.get_by_role("button", name="Next").click()
    expect(dialog.locator("time").first).not_to_have_attribute("datetime", str(at))
    assert_accessible(page, inside=DIALOG)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    # A moment at which nothing happens: the lane has its marks after the even hours.
    lane(page, "ledger-close").locator("[data-plot]").click(position={"x": 3, "y": 3})
    expect(dialog.get_by_text("No occurrence")).to_be_visible()
    expect(dialog.get_by_text(re.compile("no match in")).first).to_be_visible()


def test_the_view_is_moved_by_keys_alone(page: Page) -> None:
    page.goto("./?hours=6")
    settled(page)
    mark = lane(page, "invoice-export").locator('[data-mark][tabindex="0"]')
    mark.focus()
    before = str(mark.get_attribute("data-mark"))
    page.keyboard.press("ArrowRight")
    expect(mark).not_to_have_attribute("data-mark", before)
    expect(mark).to_be_focused()
    assert str(mark.get_attribute("data-mark")) > before
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-lane] [data-mark]:focus")).to_have_count(1)
    expect(mark).not_to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    chart = page.get_by_role("group", name=re.compile("^Timeline"))
    chart.focus()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"hours=3\b"))
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("share=0"))


def test_zoom_pan_and_back_to_now(page: Page) -> None:
    page.goto("./")
    hours = page.get_by_role("group", name="Time range")
    hours.get_by_role("button", name="3 h", exact=True).click()
    expect(hours.get_by_role("button", name="3 h", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile(r"hours=3\b"))
    for _ in range(2):  # now is out of sight then, and the view stands still
        hours.get_by_role("button", name="Later").click()
    expect(page).to_have_url(re.compile("from="))
    expect(page.locator(".axis-now")).to_have_count(0)
    hours.get_by_role("button", name="Now", exact=True).click()
    expect(page.locator(".axis-now")).to_be_visible()
    plot = page.locator("[data-plot]").first
    plot.hover(position={"x": 500, "y": 5})
    page.mouse.down()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 380, box["y"] + 5, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("share=0"))
    expect(page.get_by_role("dialog")).to_have_count(0)  # a drag asks nothing


def test_lanes_are_found_and_filtered(page: Page) -> None:
    page.set_viewport_size(TALL)
    page.goto("./?hours=6")
    page.get_by_label("Filter schedules").fill("mailbox-0")
    expect(page).to_have_url(re.compile("text=mailbox-0"))
    expect(page.get_by_text(re.compile(r"^9 schedules\b"))).to_be_visible()
    expect(page.locator("[data-lane]")).to_have_count(9)
    assert all(each.startswith("mailbox-0") for each in lanes(page))
    page.get_by_label("Filter schedules").fill("")
    page.get_by_label("Filter by label (name=value)").fill("team=finance")
    expect(lane(page, "invoice-export")).to_be_visible()
    expect(lane(page, "stock-check")).to_have_count(0)
    page.get_by_label("Filter by label (name=value)").fill("")
    expect(lane(page, "stock-check")).to_be_visible()
    page.get_by_label("Needs attention").click()
    expect(lane(page, "stock-check")).to_have_count(0)
    expect(lane(page, "invoice-export")).to_be_visible()


def drawn(fresh: Fresh) -> None:
    """Three runs await approval, two of them of one schedule; two have failed; one schedule is paused."""
    asks = {"approval_policy": {"requires_approval": True}, "max_concurrency": 2, "overlap_policy": "allow_all"}
    call = {"action": {"kind": "http", "url": DISCARD}, "retry_policy": {"max_retries": 0}, "failing_after": 1}
    for schedule_id, more in {"twice": asks, "once": asks, "fails": {}, "fails-too": {}, "rests": {}}.items():
        document = {"schedule_id": schedule_id, "cron_expressions": ["0 0 29 2 *"], **call, **more}
        fresh.send("POST", "/api/schedules", document)
    for schedule_id in ("twice", "twice", "once", "fails", "fails-too"):
        fresh.send("POST", f"/api/schedules/{schedule_id}/trigger", {})
    fresh.send("POST", "/api/schedules/rests/pause", {})
    until(lambda: fresh.send("GET", "/api/overview")["failed_24h"] == 2)


def assert_counts_are_lengths(page: Page) -> dict[str, int]:
    """Each count of the page is the number of rows that its link opens; returns those that are not 0.

    A fleet goes on while it is looked at: a count that has become another one is read again.
    """
    names = page.get_by_role("list", name="Overview").locator(".count .small").all_inner_texts()
    assert len(names) == len(set(names)) == 9
    found = {}
    for name in names:
        for _ in range(5):
            follow(page, "/")
            link = page.get_by_role("list", name="Overview").get_by_role("link", name=name)
            number = link.locator(".count-number")
            expect(number).to_have_text(re.compile(r"^\d+$"))
            count = int(number.inner_text())
            link.click()
            expect(page.get_by_role("list", name="Overview")).to_have_count(1 if name.startswith("Missed") else 0)
            settled(page)
            if name.startswith("Missed"):
                expect(page.get_by_role("button", name=re.compile("Reason: Scheduler was down"))).to_be_visible()
            rows = page.locator("[data-mark]" if name.startswith("Missed") else "main [data-row]")
            try:
                expect(rows).to_have_count(count, timeout=5_000)
            except AssertionError:
                continue
            break
        else:
            pytest.fail(f"{name}: {count} on the page, {rows.count()} in its list")
        if count:
            found[name] = count
    return found


def test_every_count_is_the_number_of_rows_that_its_link_opens(open_page: OpenPage, fresh: Fresh) -> None:
    drawn(fresh)
    page = open_page("/", token=fresh.tokens["viewer"])
    page.set_viewport_size(TALL)
    expect(page.get_by_role("list", name="Overview")).to_be_visible()
    assert assert_counts_are_lengths(page) == {"Failing": 2, "Failed (24 h)": 2, "Awaiting approval": 3}


def test_dense_schedules_hide_no_others(open_page: OpenPage, fresh: Fresh) -> None:
    """They begin in an hour: until then nothing runs, and all of it is predicted."""
    soon = to_rfc3339(SystemClock().now() + HOUR)
    call = {"kind": "http", "url": DISCARD}
    for number in range(2):
        document = {"intervals": [{"every": "PT1S"}], "start_at": soon, "name": f"Dense {number}"}
        fresh.send("POST", "/api/schedules", {"schedule_id": f"dense-{number}", "action": call, **document})
    for number in range(MORE_THAN_A_PAGE):
        daily = {"cron_expressions": ["0 * * * *"], "start_at": soon}
        fresh.send("POST", "/api/schedules", {"schedule_id": f"other-{number:03}", "action": call, **daily})
    page = open_page("/?hours=12", token=fresh.tokens["viewer"])
    # Those of the second page too.
    expect(page.get_by_text(re.compile(rf"^{MORE_THAN_A_PAGE + 2} schedules\b"))).to_be_visible()
    expect(page.locator(".note.tone-warn")).to_have_count(0)  # nothing is shown as incomplete
    dense = lane(page, "dense-0")
    expect(dense.locator(".lane-bar").first).to_have_attribute("aria-label", re.compile(r"^[\d,]+ scheduled\b"))
    expect(lane(page, "other-000").locator(".lane-mark").first).to_be_visible()
    expect(lane(page, "other-000").locator(".lane-bar")).to_have_count(0)
    dense.locator(".lane-bar").nth(2).click()
    expect(page).to_have_url(re.compile(r"hours=3\b"))
    # Where the view becomes no closer, each occurrence is a mark of its own.
    page.goto(f"./?hours=0.1&from={to_rfc3339(SystemClock().now() + 2 * HOUR)}")
    expect(dense.locator(".lane-mark").first).to_be_visible()
    expect(dense.locator(".lane-bar")).to_have_count(0)


def test_the_night_on_which_the_clock_is_put_back_is_drawn(open_page: OpenPage) -> None:
    page = open_page("/?from=2026-10-25T00:00:00Z&hours=4", zone="Europe/Berlin")
    settled(page)
    expect(page.locator(".axis-shift")).to_have_text("clock −1 h")
    expect(page.locator(".axis text").filter(has_text="02:00")).to_have_count(2)


@pytest.mark.parametrize(("role", "may"), [("admin", True), ("viewer", False)])
def test_an_empty_fleet_teaches(open_page: OpenPage, fresh: Fresh, role: str, may: bool) -> None:
    page = open_page("/", token=fresh.tokens[role])
    expect(page.get_by_role("heading", name=re.compile("No schedules in"))).to_be_visible()
    make = page.get_by_role("link", name="Create schedule")
    expect(make).to_have_count(1 if may else 0)
    if may:
        make.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Create schedule")
