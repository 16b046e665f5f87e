"""Making and changing a schedule: form and text are one document, and what it means is told before it is kept."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect
from ui.conftest import Fresh, OpenPage
from ui.looking import DIALOG, assert_accessible, assert_fits, settled
from ui.watching import Watch

NIGHTLY = {
    "schedule_id": "nightly",
    "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Berlin"},
    "action": {"kind": "pull", "queue": "q", "workflow_type": "report"},
    "note": "as it was",
}


# While the next page is on its way, for as long as this one is still shown.
_PRESS_AGAIN = "() => [...document.querySelectorAll('button')].find((each) => each.textContent === 'Create')?.click()"


def test_the_first_schedule_is_two_clicks_away(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/", token=fresh.tokens["admin"])
    page.get_by_role("link", name="Create schedule").click()
    expect(page.get_by_text("Monday to Friday")).to_be_visible()
    coming: list[Route] = []
    page.route(re.compile("/assets/Schedule-"), lambda route: coming.append(route))
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text(re.compile(" created$"))).to_be_visible()
    page.evaluate(_PRESS_AGAIN)
    for each in coming:
        each.continue_()
    expect(page.get_by_role("heading", level=1, name="Morning health check")).to_be_visible()
    (made,) = fresh.send("GET", "/api/schedules")["schedules"]
    assert made["action"]["kind"] == "http"


def test_form_and_text_are_one_document(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/schedules/new?template=pull", token=fresh.tokens["admin"])
    settled(page)
    text = page.get_by_role("textbox", name="Schedule document")
    page.get_by_label("Display name").fill("From the form")
    expect(text).to_have_value(re.compile("name: From the form"))
    page.get_by_role("button", name="JSON").click()
    expect(text).to_have_value(re.compile('"name": "From the form"'))
    written = text.input_value()
    text.fill(written.replace("From the form", "From the text").replace('"queue": "default"', '"queue": "slow"'))
    expect(page.get_by_label("Display name")).to_have_value("From the text")
    expect(page.get_by_label("Queue")).to_have_value("slow")
    text.fill('{"name": ')
    expect(page.get_by_text(re.compile("^Invalid text:"))).to_be_visible()
    expect(page.get_by_label("Display name")).to_have_value("From the text")
    text.fill('{"name": "Half of it", "action": "h", "overlap_policy": "of-old"}')  # as it is while somebody types
    expect(page.get_by_label("Display name")).to_have_value("Half of it")
    expect(page.get_by_label("Overlap policy")).to_have_value("of-old")
    text.fill('{"pre_dispatch_condition": {"/last_24h_stats/failed": {"lt": 3}}}')
    page.get_by_text("Test condition").click()
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("Matches: a run would start.")).to_be_visible()


def test_what_is_wrong_is_told_at_its_field_and_leads_there(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/schedules/new?template=pull", token=fresh.tokens["admin"], width=390)
    settled(page)
    cron = page.get_by_role("textbox", name="Cron expression 1")
    cron.fill("61 2 * * *")
    told = page.get_by_role("button", name=re.compile(r"^spec\.cron_expressions"))
    expect(told).to_be_visible()
    expect(page.get_by_role("button", name="Create")).to_be_disabled()
    told.click()
    expect(cron).to_be_focused()
    cron.fill("30 2 * * *")
    page.get_by_role("main").get_by_label("Time zone").fill("America/New_York")
    expect(page.get_by_text(re.compile("at 02:30 every day")).first).to_be_visible()
    # The hour that is left out in spring is told before anybody is surprised by it.
    expect(page.get_by_text(re.compile("does not exist")).first).to_be_visible()
    assert_fits(page)


def test_a_step_is_reassigned_to_a_fallback_that_the_form_asks_for(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/agents", {"id": "stand-in", "url": "https://agents.example.com/stand-in"})
    page = open_page("/schedules/new?template=pull", token=fresh.tokens["admin"])
    settled(page)
    fallback = page.get_by_label("Fallback assignee")
    expect(fallback).to_have_count(0)
    page.get_by_label("If a workflow step fails").select_option("fallback")
    told = page.get_by_role("button", name="failure_policy.fallback_assignee_id")
    expect(told).to_be_visible()
    expect(page.get_by_role("button", name="Create")).to_be_disabled()
    told.click()
    expect(fallback).to_be_focused()
    expect(fallback).to_have_attribute("aria-invalid", "true")
    fallback.fill("nobody")
    expect(page.get_by_text("no agent or team 'nobody' exists")).to_be_visible()
    fallback.fill("stand-in")
    expect(page.get_by_text("no agent or team")).to_have_count(0)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text(re.compile(" created$"))).to_be_visible()
    (made,) = fresh.send("GET", "/api/schedules")["schedules"]
    assert made["failure_policy"] == {"mode": "fallback", "fallback_assignee_id": "stand-in"}


def test_a_template_shows_the_texts_of_the_next_run(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/schedules/new?template=pull", token=fresh.tokens["admin"])
    settled(page)
    text = page.get_by_role("textbox", name="Schedule document")
    text.fill(
        '{"name": "Brief", "spec": {"cron_expressions": ["0 2 * * *"]}, "action": {"kind": "prompt", "prompt": '
        '"Brief {{ nominal | date(\'at %H:%M\') }} about {{ inputs.topic }}", "input": {"topic": "tea"}}}'
    )
    unrendered = page.get_by_text("{{ nominal | date('at %H:%M') }} is sent without rendering", exact=False)
    expect(unrendered.first).to_be_visible()
    expect(page.get_by_label("Rendered prompt")).to_have_count(0)
    page.get_by_label("Render {{ … }} templates").check()
    expect(text).to_have_value(re.compile('template: true|"template": true'))
    expect(page.get_by_label("Rendered prompt")).to_have_text("Brief at 02:00 about tea")
    page.get_by_label("Render {{ … }} templates").uncheck()
    expect(page.get_by_label("Rendered prompt")).to_have_count(0)


def test_an_edit_shows_which_fires_move_before_it_is_kept(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", NIGHTLY)
    page = open_page("/schedules/nightly/edit", token=fresh.tokens["admin"])
    settled(page)
    page.get_by_role("textbox", name="Cron expression 1").fill("0 3 * * *")
    page.get_by_label("Note").fill("")
    page.get_by_role("button", name="Review changes").click()  # at once: what the form shows is still of an older text
    dialog = page.get_by_role("dialog", name="Review changes")
    expect(dialog.get_by_text(re.compile(r"^\W*\d+ fires moved"))).to_be_visible()
    assert_accessible(page, inside=DIALOG)
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(page).to_have_url(re.compile(r"/schedules/nightly(\?|$)"))
    kept = fresh.send("GET", "/api/schedules/nightly")
    assert kept["spec"]["cron_expressions"] == ["0 3 * * *"]
    assert not kept.get("note")


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    open_page: OpenPage, fresh: Fresh, watch: Watch
) -> None:
    watch.expect("status of 412")
    fresh.send("POST", "/api/schedules", NIGHTLY)
    page = open_page("/schedules/nightly/edit", token=fresh.tokens["admin"])
    settled(page)
    page.get_by_label("Note").fill("mine")
    fresh.send("PATCH", "/api/schedules/nightly", {"note": "theirs"})
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(re.compile("another user changed this schedule"))).to_be_visible()
    page.get_by_role("button", name="Discard mine").click()
    expect(page.get_by_label("Note")).to_have_value("theirs")
    assert fresh.send("GET", "/api/schedules/nightly")["note"] == "theirs"
    page.get_by_label("Display name").fill("mine")
    fresh.send("PATCH", "/api/schedules/nightly", {"note": "theirs again"})
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Reapply my changes").click()
    expect(page.get_by_label("Note")).to_have_value("theirs again")
    expect(page.get_by_label("Display name")).to_have_value("mine")


def test_a_condition_is_tried_on_what_it_would_see(open_page: OpenPage, fresh: Fresh) -> None:
    condition = {"/last_24h_stats/failed": {"lt": 3}}
    fresh.send("POST", "/api/schedules", {**NIGHTLY, "pre_dispatch_condition": condition})
    page = open_page("/schedules/nightly/edit", token=fresh.tokens["admin"])
    settled(page)
    page.get_by_text("Test condition").click()
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("Matches: a run would start.")).to_be_visible()
    page.get_by_role("textbox", name="Context").fill('{"last_24h_stats": {"failed": 7}}')
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("Does not match: no run would start.")).to_be_visible()


def test_a_viewer_is_told_that_it_may_only_look(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", NIGHTLY)
    page = open_page("/schedules/new", token=fresh.tokens["viewer"])
    expect(page.get_by_text("Your token cannot create schedules")).to_be_visible()
    page.goto("./schedules/nightly/edit")
    expect(page.get_by_text("Your token cannot edit schedules")).to_be_visible()
