"""Calendars in the browser: a year of days, how long they last, who uses them; created, changed, cloned, deleted."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from ui.conftest import Fresh, OpenPage
from ui.looking import assert_accessible, settled
from ui.watching import Watch

DATES = ["2030-12-24", "2030-12-31"]
OURS = {"name": "ours", "kind": "skip_dates", "dates": DATES}


def alone(open_page: OpenPage, fresh: Fresh, path: str, role: str = "admin") -> Page:
    page = open_page(path, token=fresh.tokens[role])
    settled(page)
    return page


def test_one_is_made_of_dates_as_they_are_pasted(open_page: OpenPage, fresh: Fresh) -> None:
    page = alone(open_page, fresh, "/calendars")
    expect(page.get_by_role("row").filter(has_text="weekdays")).to_contain_text("Every year")
    page.get_by_role("button", name="Create calendar").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ours")
    dialog.get_by_label("Dates").fill("2030-12-24, 2030-02-30")
    expect(dialog.get_by_role("alert")).to_contain_text("Invalid dates: 2030-02-30")
    expect(dialog.get_by_role("button", name="Create")).to_be_disabled()
    dialog.get_by_label("Dates").fill("2030-12-24, 2030-12-31")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="ours")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("Coverage: Until 2030-12-31.")
    expect(page.get_by_role("region", name="Schedules")).to_contain_text("No schedules use this calendar.")
    assert fresh.send("GET", "/api/calendars/ours")["dates"] == DATES


def test_days_are_put_in_and_taken_out_over_years_and_kept_together(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/calendars", OURS)
    page = alone(open_page, fresh, "/calendars/ours?year=2030")
    page.get_by_role("button", name="Tue 24 December 2030: excluded").click()
    expect(page.get_by_role("button", name="Tue 24 December 2030: included")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="2031 →").click()
    expect(page.get_by_text("Unsaved changes: 0 added, 1 removed")).to_be_visible()
    page.get_by_role("button", name="Wed 1 January 2031: included").click()
    expect(page.get_by_text("Unsaved changes: 1 added, 1 removed")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Unsaved changes")).to_have_count(0)
    assert fresh.send("GET", "/api/calendars/ours")["dates"] == ["2030-12-31", "2031-01-01"]
    page.get_by_role("button", name="Import dates").click()
    page.get_by_role("dialog").get_by_label("Dates, one per line").fill("2030-12-24\n2030-12-31")
    page.get_by_role("dialog").get_by_role("button", name="Import").click()
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="Wed 1 January 2031: excluded")).to_be_visible()


def test_what_somebody_else_saved_is_not_overwritten(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 412")
    fresh.send("POST", "/api/calendars", OURS)
    page = alone(open_page, fresh, "/calendars/ours?year=2030")
    page.get_by_role("button", name="Wed 25 December 2030: included").click()
    fresh.send("PUT", "/api/calendars/ours", {"dates": ["2030-12-26"]})
    for _ in range(2):  # after a refusal the page knows the newest version, and the draft is still that of an older one
        with page.expect_response(lambda answer: answer.request.method == "PUT") as refused:
            page.get_by_role("button", name="Save").click()
        assert refused.value.status == 412
        expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("version")
    assert fresh.send("GET", "/api/calendars/ours")["dates"] == ["2030-12-26"]
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="Thu 26 December 2030: excluded")).to_be_visible()


def test_who_obeys_it_is_shown_and_keeps_it_from_being_deleted(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 409")
    fresh.send("POST", "/api/calendars", OURS)
    daily = {"cron_expressions": ["0 2 * * *"], "workflow_type": "w", "name": "The payroll", "calendars": ["ours"]}
    fresh.send("POST", "/api/schedules", {"schedule_id": "payroll", **daily})
    page = alone(open_page, fresh, "/calendars/ours")
    expect(page.get_by_role("region", name="Schedules").get_by_role("link")).to_have_text("The payroll")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("payroll")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Clone").click()
    page.get_by_role("dialog").get_by_label("New name").fill("copy")
    page.get_by_role("dialog").get_by_role("button", name="Clone").click()
    expect(page.get_by_role("heading", level=1, name="copy")).to_be_visible()
    expect(page.get_by_role("region", name="Schedules")).to_contain_text("No schedules use this calendar.")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("copy deleted")).to_be_visible()
    expect(page.get_by_role("link", name="copy")).to_have_count(0)


def test_the_days_of_a_list_to_run_on_are_open_and_those_of_a_rule_stay(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/calendars", {"name": "market", "kind": "only_dates", "rule": "weekdays"})
    page = alone(open_page, fresh, "/calendars/market?year=2030")
    monday = page.get_by_role("button", name="Mon 7 January 2030: included")
    monday.click()
    expect(page.get_by_text("2030-01-07 is set by the rule weekdays and cannot be changed")).to_be_visible()
    page.get_by_role("button", name="Sat 5 January 2030: excluded").click()
    expect(page.get_by_role("button", name="Sat 5 January 2030: included")).to_be_visible()
    assert_accessible(page)
    page = alone(open_page, fresh, "/calendars/market?year=2030", role="viewer")
    expect(page.get_by_label("Mon 7 January 2030: included")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Clone|Delete|Import dates"))).to_have_count(0)
