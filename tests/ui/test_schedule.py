"""The page of one schedule: what comes and why, what it did, what it is and was, and all that can be done with it."""

from __future__ import annotations

import re
from datetime import date, timedelta

from playwright.sync_api import APIResponse, Page, Route, expect
from ui.conftest import Fresh, OpenPage
from ui.days import FAR, RARELY, SATURDAY, SUNDAY, TODAY, first_sunday, in_words, year_before_a_leap_year
from ui.fleet import HOSTILE, LONG, MARKUP
from ui.looking import DIALOG, NARROW, PANEL, RETRIES, assert_accessible, assert_fits, settled
from ui.watching import Watch

PULL = {"kind": "pull", "workflow_type": "report", "queue": "nobody-takes-from-it"}


def test_what_comes_is_told_with_its_reason_and_any_moment_is_explained(open_page: OpenPage, watch: Watch) -> None:
    watch.expect("status of 422")  # the service reads what is written
    page = open_page("/schedules/price-sync", zone="Asia/Kathmandu")
    coming = page.get_by_role("table", name="Upcoming runs")
    expect(coming.get_by_role("row")).to_have_count(11)
    expect(coming.get_by_role("row").nth(1)).to_contain_text(re.compile("Kat(h)?mandu"))
    page.get_by_role("button", name="Show 50").click()
    expect(coming.get_by_role("row")).to_have_count(51)

    page.get_by_label("Date/time").fill(f"{SATURDAY}T10:30:00+01:00")
    page.get_by_role("button", name="Show from").click()
    expect(coming.get_by_role("row").nth(1)).to_contain_text("Excluded by calendar")
    expect(page).to_have_url(re.compile(f"from={SATURDAY}T"))
    coming.get_by_role("row").nth(1).get_by_role("link").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Excluded by calendar")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    page.get_by_label("Date/time").fill("tomorrow at nine")
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("is not a time")
    page.get_by_label("Date/time").fill(f"{SATURDAY} 10:30")  # on the clocks of the schedule's zone
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page).to_have_url(re.compile(f"at={SATURDAY}T\\d\\d%3A30%3A00Z"))
    expect(page.get_by_role("dialog")).to_contain_text("10:30")


def test_a_year_is_shown_by_days_and_a_day_by_its_decisions(open_page: OpenPage) -> None:
    before = year_before_a_leap_year(TODAY)
    sunday = first_sunday(before)
    monday = sunday + timedelta(days=1)
    page = open_page(f"/schedules/nightly-report?year={before}")
    year = page.get_by_role("group", name=f"Occurrences in {before} by day, in Europe/Berlin")
    year.get_by_role("button", name=f"{in_words(sunday)}: no fires").focus()
    page.keyboard.press("ArrowRight")
    expect(year.get_by_role("button", name=f"{in_words(monday)}: 1 fire")).to_be_focused()
    page.keyboard.press("Enter")
    day = page.get_by_role("dialog", name=f"{monday:%A} {monday.day} {monday:%B %Y}")
    expect(day.get_by_role("row")).to_have_count(2)
    expect(day.get_by_role("row").nth(1)).to_contain_text("02:30")
    expect(day.get_by_role("row").nth(1)).to_contain_text("Scheduled")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=f"{before + 1} →").click()
    leap = page.get_by_role("group", name=f"Occurrences in {before + 1} by day, in Europe/Berlin")
    fires = "no fires" if date(before + 1, 2, 29).weekday() == SUNDAY else "1 fire"
    expect(leap.get_by_role("button", name=f"{in_words(date(before + 1, 2, 29))}: {fires}")).to_be_visible()
    page.get_by_role("button", name="This year").click()
    page.locator("[aria-current='date']").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page).to_have_url(re.compile("day="))


def test_a_day_that_a_zone_has_left_out_has_nothing(open_page: OpenPage, fresh: Fresh) -> None:
    document = {"schedule_id": "daily", "cron_expressions": [RARELY], "timezone": "Pacific/Apia", "action": PULL}
    fresh.send("POST", "/api/schedules", document)
    page = open_page("/schedules/daily?day=2011-12-30", token=fresh.tokens["viewer"])  # Samoa went to the other side
    expect(page.get_by_role("dialog", name="Friday 30 December 2011")).to_contain_text("No occurrences on this day")


def test_runs_are_bars_that_lead_to_their_pages_and_are_chosen_by_state(open_page: OpenPage) -> None:
    page = open_page("/schedules/invoice-export?tab=runs")
    bars = page.get_by_role("group", name="Run durations over time")
    bars.get_by_role("link").last.focus()
    page.keyboard.press("Home")
    expect(bars.get_by_role("link").first).to_be_focused()
    expect(bars.get_by_role("link").first).to_have_attribute("aria-label", re.compile("Succeeded · duration"))
    expect(page.get_by_role("img", name=re.compile("Start delay: median"))).to_be_visible()
    assert_accessible(page, inside=PANEL)

    page.get_by_label("State").select_option("failed")
    listed = page.get_by_role("table", name="Runs, newest first")
    expect(listed.get_by_text("Succeeded")).to_have_count(0)
    expect(listed.get_by_text("the bank answered 503: maintenance").first).to_be_visible()
    expect(page).to_have_url(re.compile("state=failed"))
    page.get_by_label("Origin").select_option("backfill")
    expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(listed).to_be_visible()
    bars.get_by_role("link").last.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/runs/*")


def test_what_was_missed_or_skipped_stands_among_the_runs(open_page: OpenPage) -> None:
    page = open_page("/schedules/ledger-close?tab=runs&state=skipped")
    listed = page.get_by_role("table", name="Runs, newest first")
    expect(listed.get_by_text("Missed").first).to_be_visible()
    listed.get_by_role("link").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_definition_is_told_in_words_and_two_revisions_are_compared(open_page: OpenPage) -> None:
    page = open_page("/schedules/nightly-report?tab=definition")
    expect(page.get_by_label("Definition (JSON)")).to_contain_text('"30 2 * * 1-6"')
    page.get_by_role("button", name="YAML").click()
    expect(page.get_by_label("Definition (YAML)")).to_contain_text("timezone: Europe/Berlin")
    page.get_by_text(re.compile(r"\d+ default policies")).click()
    expect(page.get_by_role("cell", name="retry_policy")).to_be_visible()
    page.get_by_role("button", name="Show changes in revision 2").click()
    compared = page.get_by_role("region", name="Changes from revision 1 to 2")
    expect(compared.get_by_role("cell", name="spec.cron_expressions")).to_be_in_viewport()
    expect(compared.get_by_role("heading", name=re.compile("fires moved"))).to_be_visible()
    page.get_by_label("Compare to revision 3").click()
    compared = page.get_by_role("region", name="Changes from revision 1 to 3")
    compared.get_by_text("Document diff").click()
    expect(compared.get_by_label("Documents of revisions 1 and 3")).to_contain_text("0 2 * * *")
    assert_accessible(page, inside=PANEL)

    page.goto("./schedules/stock-check?tab=definition")
    expect(page.get_by_text("last_24h_stats › total")).to_be_visible()
    page.goto("./schedules/newsletter?tab=definition")
    expect(page.get_by_text("required before a run starts", exact=False)).to_be_visible()


def test_history_is_a_tab_of_its_own(open_page: OpenPage) -> None:
    page = open_page("/schedules/nightly-report")
    page.get_by_role("tab", name="Upcoming").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Definition")).to_be_focused()
    page.get_by_role("tab", name="History").click()
    expect(page).to_have_url(re.compile("tab=history"))
    expect(page.get_by_text("ScheduleCreated")).to_be_visible()


def test_history_has_also_what_happens_while_it_is_asked_for(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", {"schedule_id": "busy", "cron_expressions": [RARELY], "action": PULL})
    page = open_page("/schedules/busy?tab=history", token=fresh.tokens["viewer"])
    main = page.get_by_role("main")
    expect(main.get_by_text("ScheduleCreated")).to_be_visible()
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/busy/history?*", lambda route: held.append((route, route.fetch(max_retries=RETRIES))), times=1)
    fresh.send("POST", "/api/schedules/busy/pause", {})
    expect(main.get_by_text("until resumed")).to_be_visible()
    while not held:  # the answer that knows nothing of what follows
        page.wait_for_timeout(10)
    fresh.send("POST", "/api/schedules/busy/resume", {})
    expect(main.get_by_text("until resumed")).to_have_count(0)
    held[0][0].fulfill(response=held[0][1])
    expect(main.get_by_text("SchedulePaused")).to_be_visible()
    expect(main.get_by_text("ScheduleResumed")).to_be_visible()


def test_history_has_what_happens_before_the_stream_opens(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", {"schedule_id": "early", "cron_expressions": [RARELY], "action": PULL})
    page = open_page(token=fresh.tokens["viewer"])
    main = page.get_by_role("main")
    held: list[Route] = []
    page.route("**/api/events", lambda route: held.append(route), times=1)
    with page.expect_request("**/api/events"):
        page.goto("./schedules/early?tab=history")
    expect(main.get_by_text("ScheduleCreated")).to_be_visible()
    fresh.send("POST", "/api/schedules/early/pause", {})
    while not held:  # The request was sent, but its route is still pending.
        page.wait_for_timeout(10)
    held[0].continue_()
    expect(main.get_by_text("SchedulePaused")).to_be_visible()


def test_a_schedule_is_triggered_paused_resumed_filled_and_deleted(
    open_page: OpenPage, fresh: Fresh, watch: Watch
) -> None:
    watch.expect("status of 422")  # a window that ends before it starts
    night = f"0 0-2 {FAR.day} {FAR.month} *"
    document = {"schedule_id": "hourly", "name": "By the hour", "cron_expressions": [night], "action": PULL}
    fresh.send("POST", "/api/schedules", document)
    page = open_page("/schedules/hourly", token=fresh.tokens["admin"])
    settled(page)
    main = page.get_by_role("main")

    page.get_by_role("main").get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the auditors are here")
    page.get_by_role("dialog").get_by_role("button", name="Pause", exact=True).click()
    expect(main.get_by_text("the auditors are here")).to_be_visible()
    expect(main.get_by_text("until resumed")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True).click()
    expect(main.get_by_text("until resumed")).to_have_count(0)

    page.get_by_role("tab", name="Runs").click()
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Trigger", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Trigger", exact=True).click()
    expect(page.get_by_role("table", name="Runs, newest first").get_by_text("Manual")).to_be_visible()

    fill(page)
    expect(page.get_by_role("table", name="Runs, newest first").get_by_text("Backfill").first).to_be_visible()

    page.get_by_role("main").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(main.get_by_text("History is available")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button", name="Trigger", exact=True)).to_have_count(0)


def fill(page: Page) -> None:
    """Dry first: rows and count are seen before anything is made. The night is that of the year before."""
    day = FAR.replace(year=FAR.year - 1)
    page.get_by_role("main").get_by_role("button", name="Backfill", exact=True).click()
    dialog = page.get_by_role("dialog", name="Backfill")
    dialog.get_by_label("Start").fill("once upon a time")
    expect(dialog.get_by_role("alert")).to_contain_text("is not a time")
    dialog.get_by_label("Start").fill(f"{day}T01:00:00+01:00")
    dialog.get_by_label("End (exclusive)").fill(f"{day}T00:00:00+01:00")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("alert")).to_contain_text("end_time")
    dialog.get_by_label("End (exclusive)").fill(f"{day}T04:00:00+01:00")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_text("3 runs would be created")).to_be_visible()
    expect(dialog.get_by_role("row")).to_have_count(4)
    assert_accessible(page, inside=DIALOG)
    dialog.get_by_role("button", name="Create 3 runs").click()
    expect(dialog.get_by_text("3 runs created")).to_be_visible()
    expect(dialog.get_by_role("progressbar", name="Finished runs")).to_have_attribute("aria-valuemax", "3")
    dialog.get_by_role("button", name="Close").click()


def test_a_viewer_sees_no_control_that_changes_anything(open_page: OpenPage) -> None:
    page = open_page("/schedules/nightly-report", role="viewer")
    settled(page)
    expect(page.get_by_role("table", name="Upcoming runs")).to_be_visible()
    for name in ("Trigger", "Pause", "Backfill", "Delete"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)


def test_hostile_names_and_addresses_are_text(open_page: OpenPage) -> None:
    page = open_page(
        "/schedules/hostile-0?tab=%5B%5D&year=1e9&day=2026-02-30&from=x&at=1&state=constructor", namespace=HOSTILE
    )
    settled(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(MARKUP)
    expect(page.get_by_role("table", name="Upcoming runs")).to_be_visible()
    page.set_viewport_size(NARROW)
    page.goto("./schedules/hostile-2")
    expect(page.get_by_role("heading", level=1)).to_have_text(LONG)
    for tab in ("Upcoming", "Runs", "History", "Definition"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        settled(page)
        assert_fits(page)
