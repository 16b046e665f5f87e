"""The list of schedules: found and filtered, seen at a glance, acted on one by one or many at once."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Locator, Page, Route, expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY
from ui.looking import DIALOG, NARROW, assert_accessible, assert_fits
from ui.watching import Watch

# One more than a page of the list, and than one request for many.
MORE_THAN_A_PAGE = 101


def rows(page: Page) -> Locator:
    return page.locator("[data-row]")


def row(page: Page, schedule_id: str) -> Locator:
    return rows(page).filter(has=page.get_by_text(schedule_id, exact=True))


def choose_in_menu(page: Page, schedule_id: str, item: str) -> None:
    row(page, schedule_id).get_by_role("button", name=re.compile("^Actions for")).click()
    page.get_by_role("menuitem", name=item).click()


def make(fresh: Fresh, *schedule_ids: str, **more: Any) -> None:
    """They are for a worker that never comes: what is triggered waits."""
    action = {"kind": "workflow", "workflow_type": "report", "queue": "reports"}
    like = {"cron_expressions": [RARELY], "action": action, **more}
    for each in schedule_ids:
        fresh.send("POST", "/api/schedules", {"schedule_id": each, **like})


# ── seen ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_tells_when_what_came_of_it_and_how_it_is_doing(open_page: OpenPage) -> None:
    page = open_page("/schedules?text=crawl-suppliers", zone="Asia/Kathmandu")
    seen = row(page, "crawl-suppliers")
    expect(seen).to_contain_text("at minutes 0 and 40 of each hour")
    expect(seen.locator("time")).to_contain_text("UTC")
    expect(seen.locator("time")).to_contain_text(re.compile("Kath?mandu"))
    strip = seen.get_by_role("group", name=re.compile(r"^Last \d+: "))
    strip.focus()
    page.keyboard.press("End")
    expect(page.get_by_role("tooltip")).to_contain_text("Previous run still active")
    strip.blur()
    strip.click(position={"x": 10, "y": 6})  # the focus comes after the pointer, and leaves it where it is
    expect(strip).to_be_focused()
    expect(strip.locator(".strip-at")).to_have_attribute("x", "7")
    page.goto("./schedules?text=invoice-export")
    seen = row(page, "invoice-export")
    expect(seen.get_by_role("img", name=re.compile("^Duration: median"))).to_be_visible()
    seen.get_by_role("group", name=re.compile(r"^Last \d+: .*failed")).focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("tooltip")).to_contain_text("duration")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/runs/"))


def test_views_filters_and_columns_are_kept(open_page: OpenPage) -> None:
    page = open_page("/schedules")
    page.get_by_role("link", name="Broken").click()
    expect(rows(page)).to_have_count(1)
    expect(row(page, "import-orders").get_by_text("Broken").first).to_be_visible()
    page.get_by_role("link", name="Failing").click()
    expect(row(page, "invoice-export").get_by_text("Failing")).to_be_visible()
    page.get_by_role("link", name="All", exact=True).click()

    page.get_by_role("searchbox", name="Search", exact=True).fill("report")
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile("text=report"))
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Filter by label (name=value)").fill("team=shop")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^\d+ schedules, newest first$"))).to_be_visible()
    expect(rows(page).filter(has_text="mailbox")).to_have_count(0)

    page.get_by_role("button", name="Save view").click()
    page.get_by_label("Name", exact=True).fill("The shop's")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Labels", exact=True).uncheck()
    page.get_by_role("button", name="Close").click()
    page.goto("./schedules")
    page.get_by_role("link", name="The shop's").click()
    expect(page).to_have_url(re.compile("team"))
    expect(page.get_by_role("columnheader", name="Next run")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Labels")).to_have_count(0)
    page.get_by_role("button", name="Delete view").click()
    expect(page.get_by_role("link", name="The shop's")).to_have_count(0)


def test_a_filter_that_fits_nothing_says_so_and_an_empty_namespace_teaches(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/schedules?status=asleep&health=7&label=x&text=nothing-has-this-name")
    expect(page.get_by_role("heading", name="No matching schedules")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(rows(page).first).to_be_visible()
    empty = open_page("/schedules", token=fresh.tokens["admin"])
    empty.get_by_role("link", name="Create schedule").last.click()
    expect(empty).to_have_url(re.compile("/schedules/new"))


def test_who_may_only_look_sees_nothing_to_write_with(open_page: OpenPage) -> None:
    page = open_page("/schedules?text=price-sync", role="viewer")
    row(page, "price-sync").get_by_role("button", name=re.compile("^Actions for")).click()
    expect(page.get_by_role("menuitem")).to_have_text(["Open", "History"])
    expect(page.get_by_role("checkbox")).to_have_count(0)
    expect(page.get_by_role("link", name="Create schedule")).to_have_count(0)


# ── one ──────────────────────────────────────────────────────────────────────────────────────────────


def test_one_schedule_is_paused_resumed_triggered_and_deleted(open_page: OpenPage, fresh: Fresh) -> None:
    make(fresh, "ours")
    page = open_page("/schedules", token=fresh.tokens["admin"], width=NARROW["width"])
    choose_in_menu(page, "ours", "Pause…")
    page.get_by_label("Duration").select_option("1 day")
    page.get_by_label("Reason").fill("the office moves")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(row(page, "ours").get_by_text("Paused until")).to_be_visible()
    paused = fresh.send("GET", "/api/schedules/ours")
    assert (paused["status"], paused["pause_reason"]) == ("paused", "the office moves")
    assert paused["paused_until"] is not None

    choose_in_menu(page, "ours", "Trigger…")
    page.get_by_label("Inputs (JSON)").fill("{day: 1}")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.get_by_role("alert")).to_contain_text("Invalid JSON")
    page.get_by_label("Inputs (JSON)").fill('{"day": 1}')
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()  # it is paused
    page.get_by_label("Run even if paused").check()
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.get_by_text("ours triggered")).to_be_visible()
    [run] = fresh.send("GET", "/api/runs?schedule_id=ours")["runs"]
    assert fresh.send("GET", f"/api/runs/{run['run_id']}")["inputs"] == {"day": 1}

    choose_in_menu(page, "ours", "Resume…")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(row(page, "ours").get_by_text("Paused until")).to_have_count(0)
    choose_in_menu(page, "ours", "History")
    events = page.get_by_role("dialog").get_by_role("row")
    expect(events.filter(has_text="SchedulePaused")).to_contain_text("the office moves")
    events.filter(has_text="ScheduleTriggered").get_by_role("button").click()
    expect(page.get_by_label(re.compile("^Payload of event"))).to_contain_text(run["run_id"])
    assert_fits(page)
    assert_accessible(page, inside=DIALOG)
    page.get_by_role("button", name="Close").click()
    choose_in_menu(page, "ours", "Delete…")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_range_is_labelled_and_those_that_were_refused_are_named(open_page: OpenPage, fresh: Fresh) -> None:
    make(fresh, *(f"job-{number}" for number in range(5)))
    fresh.send("POST", "/api/schedules/job-2/pause", {})
    page = open_page("/schedules", token=fresh.tokens["admin"])
    page.get_by_label("Select job-3").check()
    page.get_by_label("Select job-1").click(modifiers=["Shift"])
    expect(page.get_by_text("3 schedules selected")).to_be_visible()
    page.get_by_role("button", name="Label", exact=True).click()
    page.get_by_label("Labels to set").fill("team=data\ntier=gold")
    page.get_by_role("button", name="Label 3 schedules").click()
    expect(page.get_by_text("Done: 3 updated")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(rows(page).filter(has_text="team=data")).to_have_count(3)
    labels = [fresh.send("GET", f"/api/schedules/job-{number}")["labels"] for number in range(5)]
    assert labels == [{}, *([{"team": "data", "tier": "gold"}] * 3), {}]

    page.get_by_label("Select all visible").check()
    page.get_by_role("button", name="Trigger", exact=True).click()
    page.get_by_role("button", name="Trigger 5 schedules").click()
    expect(page.get_by_text(re.compile("^Done: .*4 triggered"))).to_be_visible()
    refused = page.get_by_role("dialog").get_by_role("row").filter(has_text="job-2")
    expect(refused).to_be_visible()
    assert_accessible(page, inside=DIALOG)


def test_more_than_a_page_comes_as_one_scrolls_and_is_acted_on_page_by_page(
    open_page: OpenPage, fresh: Fresh, watch: Watch
) -> None:
    make(fresh, *(f"job-{number}" for number in range(MORE_THAN_A_PAGE)), owner="us")
    page = open_page("/schedules", token=fresh.tokens["admin"])
    expect(page.get_by_text(f"{MORE_THAN_A_PAGE} schedules, newest first")).to_be_attached()
    assert rows(page).count() < MORE_THAN_A_PAGE // 2  # those that nobody sees are not there
    page.get_by_label("Select job-100").check()
    page.get_by_role("button", name=re.compile("^Select all .*matching$")).click()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text(f"{MORE_THAN_A_PAGE} schedules", exact=True)).to_be_visible()
    assert not leaving_warns(page)

    held: list[Route] = []
    page.route("**/api/schedules/bulk*", lambda route: held.append(route), times=1)
    with page.expect_request("**/api/schedules/bulk*"):
        page.get_by_role("button", name=f"Pause {MORE_THAN_A_PAGE} schedules").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stopping…")).to_be_visible()
    release(page, held)
    expect(page.get_by_text("Stopped: 100 paused")).to_be_visible()
    watch.expect("ERR_FAILED")
    page.route("**/api/schedules/bulk*", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Service unreachable")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text(f"Done: {MORE_THAN_A_PAGE} paused")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    still = fresh.send("GET", "/api/schedules?status=active")
    assert still["schedules"] == []

    page.mouse.move(600, 500)
    page.mouse.wheel(0, 20_000)
    expect(page.get_by_role("link", name="job-0", exact=True)).to_be_visible()
    expect(page.get_by_role("table", name="Schedules")).to_have_attribute("aria-rowcount", str(MORE_THAN_A_PAGE + 1))


def release(page: Page, held: list[Route]) -> None:
    """Let the held request reach the service, once its route is there."""
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()


def leaving_warns(page: Page) -> bool:
    """Return whether the page would make the browser ask before a reload."""
    script = "() => !dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    return bool(page.evaluate(script))


def test_a_bulk_action_continues_after_its_dialog_closes_and_ends_with_a_message(
    open_page: OpenPage, fresh: Fresh
) -> None:
    make(fresh, *(f"job-{number}" for number in range(MORE_THAN_A_PAGE)))
    fresh.send("POST", "/api/schedules/job-0/pause", {})
    page = open_page("/schedules", token=fresh.tokens["admin"])
    page.get_by_label("Select job-100").check()
    page.get_by_role("button", name=re.compile("^Select all .*matching$")).click()
    page.get_by_role("button", name="Trigger", exact=True).click()
    expect(page.get_by_role("button", name=f"Trigger {MORE_THAN_A_PAGE} schedules")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/schedules/bulk*", lambda route: held.append(route), times=2)
    page.get_by_role("button", name=f"Trigger {MORE_THAN_A_PAGE} schedules").click()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    work = page.get_by_role("region", name="Bulk actions")
    expect(work.get_by_role("status")).to_contain_text("In progress")
    assert leaving_warns(page)

    page.get_by_role("link", name="Calendars").click()
    expect(page.get_by_role("heading", name="Calendars", level=1)).to_be_visible()
    release(page, held)
    expect(work).to_contain_text(f"100 of {MORE_THAN_A_PAGE}")
    expect(work.get_by_role("progressbar")).to_have_js_property("value", 100)
    page.get_by_role("button", name="Sign out").click()
    asked = page.get_by_role("dialog", name="Sign out?")
    asked.get_by_role("button", name="Cancel").click()
    assert_accessible(page)

    release(page, held)
    expect(work.get_by_role("status")).to_have_text("Done: 100 triggered, 1 failed")
    assert not leaving_warns(page)
    work.get_by_text("1 failed", exact=True).click()
    failed = work.get_by_role("row").filter(has_text="job-0")
    expect(failed).to_contain_text("Schedule not active")
    failed.get_by_role("link", name="job-0").click()
    expect(page).to_have_url(re.compile("/schedules/job-0"))
    work.get_by_role("button", name="Dismiss").click()
    expect(work).to_have_count(0)


def test_signing_out_stops_a_bulk_action(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    make(fresh, *(f"job-{number}" for number in range(MORE_THAN_A_PAGE)))
    page = open_page("/schedules", token=fresh.tokens["admin"])
    page.get_by_label("Select job-100").check()
    page.get_by_role("button", name=re.compile("^Select all .*matching$")).click()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("button", name=f"Pause {MORE_THAN_A_PAGE} schedules")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/schedules/bulk*", lambda route: held.append(route), times=1)
    page.get_by_role("button", name=f"Pause {MORE_THAN_A_PAGE} schedules").click()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Stop and sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert not leaving_warns(page)
    assert len(fresh.send("GET", "/api/schedules?status=active&page_size=200")["schedules"]) == MORE_THAN_A_PAGE
    watch.expect("ERR_FAILED|status of 401")
    held.pop().abort()


def test_many_that_only_the_list_can_filter_are_deleted(open_page: OpenPage, fresh: Fresh) -> None:
    make(fresh, "ours-1", "ours-2", owner="us")
    make(fresh, "theirs", owner="them")
    page = open_page("/schedules?owner=us", token=fresh.tokens["admin"])
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Select ours-1").check()
    page.get_by_role("button", name=re.compile("^Select all .*matching$")).click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("button", name="Delete 2 schedules")).to_be_disabled()
    number = page.get_by_label("Enter 2 to confirm")
    number.fill("3")
    expect(page.get_by_role("button", name="Delete 2 schedules")).to_be_disabled()
    number.fill("2")
    assert_accessible(page, inside=DIALOG)
    make(fresh, "ours-3", owner="us")  # not among those that were counted
    page.get_by_role("button", name="Delete 2 schedules").click()
    expect(page.get_by_text("Done: 2 deleted")).to_be_visible()
    left = {each["schedule_id"] for each in fresh.send("GET", "/api/schedules")["schedules"]}
    assert left == {"ours-3", "theirs"}
    fresh.send("DELETE", "/api/schedules/ours-3")
    expect(page.get_by_text("No matching schedules")).to_be_attached()
    expect(page.get_by_text("Done: 2 deleted")).to_be_visible()  # also when the list behind it is empty by now


def test_the_keyboard_alone_opens_a_schedule(open_page: OpenPage) -> None:
    page = open_page("/schedules")
    expect(rows(page).first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/ui/schedules/[^?/]+"))
