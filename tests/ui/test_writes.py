"""What is written is what was seen: times as the service reads them, and no text that could not be read."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from ui.conftest import Fresh, OpenPage
from ui.looking import settled

NIGHTLY = {
    "schedule_id": "nightly",
    "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Berlin"},
    "action": {"kind": "pull", "queue": "q", "workflow_type": "report", "input": {"day": "today"}},
}
WORKFLOW = {"nodes": [{"id": "fetch", "action": {"kind": "pull", "queue": "q", "workflow_type": "fetch"}}]}


def test_the_end_of_a_pause_is_read_by_the_service_and_shown_before_it_is_sent(
    open_page: OpenPage, fresh: Fresh
) -> None:
    fresh.send("POST", "/api/schedules", NIGHTLY)
    page = open_page("/schedules/nightly", token=fresh.tokens["admin"], zone="Asia/Kathmandu")
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Duration").select_option("4 hours")
    expect(dialog.locator("time")).to_be_visible()
    dialog.get_by_label("Duration").select_option("Until…")
    dialog.get_by_label(re.compile(r"^End \(Asia/")).fill("2031-03-01T09:00")  # browsers spell it in two ways
    expect(dialog.locator("time")).to_have_attribute("datetime", "2031-03-01T03:15:00Z")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(dialog).to_have_count(0)
    assert fresh.send("GET", "/api/schedules/nightly")["paused_until"] == "2031-03-01T03:15:00Z"


def test_a_null_goes_into_an_object_and_what_cannot_be_read_is_not_saved(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", NIGHTLY)
    page = open_page("/schedules/nightly/edit", token=fresh.tokens["admin"])
    settled(page)
    text = page.get_by_role("textbox", name="Schedule document")
    page.get_by_role("button", name="JSON").click()
    expect(text).to_have_value(re.compile('"today"'))
    before = text.input_value()
    text.fill(before.replace('"today"', "null,"))
    expect(page.get_by_role("button", name="Review changes")).to_be_disabled()
    expect(page.get_by_text("Fix the errors above")).to_be_visible()
    text.fill(before.replace('"today"', "null"))
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(page).to_have_url(re.compile(r"/schedules/nightly(\?|$)"))
    (newest, _) = fresh.send("GET", "/api/schedules/nightly/revisions")["revisions"]
    assert newest["document"]["action"]["input"] == {"day": None}


def test_a_workflow_that_cannot_be_read_is_not_put(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("PUT", "/api/workflows/brief", WORKFLOW)
    page = open_page("/workflows/brief", token=fresh.tokens["admin"])
    page.get_by_role("button", name="Edit", exact=True).click()
    dialog = page.get_by_role("dialog")
    text = dialog.get_by_role("textbox", name="Workflow document")
    expect(text).to_have_value(re.compile("fetch"))
    put = dialog.get_by_role("button", name="Save new version")
    expect(put).to_be_enabled()
    text.fill("nodes: [")
    expect(put).to_be_disabled()
    dialog.get_by_role("button", name="Restore last valid text").click()
    expect(text).to_have_value(re.compile("fetch"))
    expect(put).to_be_enabled()
