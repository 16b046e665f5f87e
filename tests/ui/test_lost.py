"""A service that goes away, answers that are lost, a session that ends: a page says so, and goes on by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from ui.conftest import Fresh, OpenPage, sign_in
from ui.cutting import Line, line_to
from ui.days import RARELY, hourly
from ui.looking import RETRIES
from ui.serving import Served
from ui.slowness import slow_answers, slow_scripts
from ui.watching import Watch

from horarium.instant import DAY, to_rfc3339
from horarium.platform.clock import SystemClock

BANNER = "Connection lost"
NO_ANSWER = "Service unreachable"
AGENDA = re.compile("/api/agenda")


def schedule(schedule_id: str) -> dict[str, object]:
    return {"schedule_id": schedule_id, "cron_expressions": [RARELY], "workflow_type": "report"}


@pytest.fixture
def line(served: Served) -> Iterator[Line]:
    with line_to(served.url) as open_line:
        yield open_line


@pytest.fixture
def over(browser: Browser, line: Line, fresh: Fresh) -> Iterator[Page]:
    """The admin of `fresh`, on the other side of the line."""
    context = browser.new_context(base_url=f"{line.url}/ui/")
    context.set_default_timeout(60_000)
    sign_in(context, line.url, fresh.tokens["admin"])
    slow_answers(context)
    page = context.new_page()
    slow_scripts(page)
    yield page
    context.close()


def test_a_lost_connection_is_told_and_taken_up_again_without_loss(over: Page, line: Line, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", schedule("before"))
    raised: list[str] = []
    over.on("pageerror", lambda error: raised.append(error.message))
    over.goto("./schedules")
    expect(over.get_by_role("link", name="before")).to_be_visible()
    line.cut()
    expect(over.get_by_text(BANNER)).to_be_visible()
    over.get_by_role("button", name="Sign out").click()
    expect(over.get_by_text(f"Sign-out failed: {NO_ANSWER}")).to_be_visible()
    expect(over.get_by_role("link", name="before")).to_be_visible()
    fresh.send("POST", "/api/schedules", schedule("meanwhile"))
    # The code of this page has not been asked for yet.
    over.get_by_role("navigation", name="Main").get_by_role("link", name="Calendars").click()
    expect(over).to_have_url(re.compile("/calendars$"))
    line.mend()
    expect(over.get_by_role("main").get_by_role("heading", level=1)).to_have_text("Calendars")
    expect(over.get_by_text(BANNER)).to_have_count(0)
    over.go_back()
    expect(over.get_by_role("link", name="meanwhile")).to_be_visible()
    assert raised == []


def test_a_list_that_could_not_be_asked_for_comes_by_itself(over: Page, line: Line, fresh: Fresh) -> None:
    """Also where nothing happens that the stream could tell."""
    fresh.send("POST", "/api/schedules", schedule("quiet"))
    fresh.send("POST", "/api/schedules", schedule("other"))
    over.goto("./schedules")
    expect(over.get_by_role("link", name="other", exact=True)).to_be_visible()
    line.cut()
    expect(over.get_by_text(BANNER)).to_be_visible()
    over.get_by_role("main").get_by_label("Search").fill("quiet")
    expect(over.get_by_text(NO_ANSWER)).to_be_visible()
    line.mend()
    expect(over.get_by_role("link", name="quiet", exact=True)).to_be_visible()
    expect(over.get_by_text(NO_ANSWER)).to_have_count(0)


def test_what_happens_before_the_stream_is_open_is_shown_as_well(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", schedule("before"))
    page = open_page(token=fresh.tokens["viewer"])
    held: list[Route] = []
    page.route("**/api/events", lambda route: held.append(route), times=1)
    with page.expect_request("**/api/events"):
        page.goto("./schedules")
    expect(page.get_by_role("link", name="before", exact=True)).to_be_visible()
    fresh.send("POST", "/api/schedules", schedule("meanwhile"))
    while not held:  # the request has gone, and its route is on the way
        page.wait_for_timeout(10)
    held[0].continue_()
    expect(page.get_by_role("link", name="meanwhile", exact=True)).to_be_visible()


def lose_answers(page: Page, pattern: str) -> None:
    """The service does what it is asked for, and nobody hears of it."""

    def heard(route: Route) -> None:
        route.fetch(max_retries=RETRIES)
        route.abort("connectionreset")

    page.route(re.compile(pattern), heard)


def test_what_is_asked_again_after_a_lost_answer_happens_once(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    fresh.send("POST", "/api/schedules", schedule("once"))
    run_id = fresh.send("POST", "/api/schedules/once/trigger", {})["run_id"]
    fresh.send("POST", f"/api/runs/{run_id}/terminate", {})
    page = open_page(f"/runs/{run_id}", token=fresh.tokens["operator"])
    page.get_by_role("button", name="Rerun").click()
    dialog = page.get_by_role("dialog", name="Rerun")
    watch.expect("ERR_CONNECTION_RESET")
    lose_answers(page, "/rerun$")
    dialog.get_by_role("button", name="Rerun").click()
    expect(dialog.get_by_text(NO_ANSWER)).to_be_visible()
    page.unroute_all(behavior="wait")
    dialog.get_by_role("button", name="Rerun").dblclick()
    expect(page).not_to_have_url(re.compile(run_id))
    assert len(fresh.send("GET", "/api/runs?schedule_id=once")["runs"]) == 2


def test_a_write_without_a_network_fails_at_once_and_is_not_done_later(
    open_page: OpenPage, fresh: Fresh, watch: Watch
) -> None:
    fresh.send("POST", "/api/schedules", schedule("later"))
    page = open_page("/schedules/later", token=fresh.tokens["operator"])
    page.get_by_role("button", name="Trigger", exact=True).click()
    dialog = page.get_by_role("dialog")
    watch.expect("ERR_INTERNET_DISCONNECTED")
    page.context.set_offline(True)
    dialog.get_by_role("button", name="Trigger").click()
    expect(dialog.get_by_text(NO_ANSWER)).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    page.context.set_offline(False)
    fresh.send("PATCH", "/api/schedules/later", {"name": "Heard of later"})
    expect(page.get_by_role("heading", level=1)).to_have_text("Heard of later")  # the page speaks to the service again
    expect(page.get_by_text(BANNER)).to_have_count(0)
    assert fresh.send("GET", "/api/runs?schedule_id=later")["runs"] == []


def test_a_token_that_is_taken_back_ends_what_is_shown(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    fresh.send("POST", "/api/schedules", schedule("of-the-admin"))
    issued = fresh.send("POST", "/api/tokens", {"name": "short", "role": "admin"})
    page = open_page("/schedules", token=issued["secret"])
    expect(page.get_by_role("link", name="of-the-admin")).to_be_visible()
    watch.expect("status of 401")
    fresh.send("DELETE", f"/api/tokens/{issued['token_id']}")
    expect(page.get_by_label("Token")).to_be_visible()
    expect(page.get_by_text("of-the-admin")).to_have_count(0)
    page.get_by_label("Token").fill(fresh.served.token("viewer", "warehouse"))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_text("Schedules")
    expect(page.get_by_text("of-the-admin")).to_have_count(0)


def test_a_namespace_that_is_not_there_is_said_and_no_other_is_shown(page: Page, watch: Watch) -> None:
    watch.expect("status of 40[34]")
    for given in ("not-there", "日本", "12", r'"\ud800"'):
        page.goto(f"./schedules?ns={given}")
        expect(page.get_by_role("main").get_by_text("namespace").first).to_be_visible()
        expect(page.get_by_text(BANNER)).to_have_count(0)
        expect(page.get_by_role("link", name="nightly-report")).to_have_count(0)


def test_a_link_whose_token_was_cut_off_is_refused_in_words(open_page: OpenPage, served: Served, watch: Watch) -> None:
    watch.expect("status of 401")
    page = open_page("/schedules#token=%E0%A4%A", role=None)
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.evaluate("token => { window.location.hash = `token=${token}` }", served.token("viewer"))
    page.get_by_role("button", name="Sign in as").click()
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_text("Schedules")
    expect(page).to_have_url(re.compile("/schedules$"))


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (429, '{"status": 429, "title": "x", "detail": "wait a moment", "reason": "rate_limited"}', "wait a moment"),
        (500, "<html>", "The service returned HTTP 500"),
        (200, "<html>", "Unexpected response: not JSON"),
    ],
)
def test_hours_that_could_not_be_asked_for_are_not_called_empty(
    page: Page, watch: Watch, status: int, body: str, said: str
) -> None:
    watch.expect(f"status of (403|{status})")
    page.route(AGENDA, lambda route: route.fulfill(status=status, body=body))
    # Nothing is heard, and the hours stand still: the page does not come to ask again by itself before it is told to.
    page.route("**/api/events", lambda route: route.fulfill(status=403))
    page.goto(f"./?hours=6&from={to_rfc3339(SystemClock().now() - DAY)}")
    fleet = page.get_by_role("region", name="Timeline")
    expect(fleet.get_by_role("alert").get_by_text(said)).to_be_visible()
    expect(fleet.get_by_text("No occurrences in this time range")).to_have_count(0)
    page.unroute(AGENDA)
    fleet.get_by_role("button", name="Retry").click()
    expect(fleet.get_by_role("alert")).to_have_count(0)


def test_the_focus_goes_back_to_where_a_dialog_was_opened_from(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", schedule("focused"))
    page = open_page("/schedules/focused", token=fresh.tokens["operator"])
    opener = page.get_by_role("button", name="Pause")
    for closing in ("Escape", "Cancel", "Pause"):
        opener.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(":focus")).to_have_count(1)
        if closing == "Escape":
            page.keyboard.press("Escape")
        else:
            dialog.get_by_role("button", name=closing, exact=True).press("Enter")
        expect(dialog).to_have_count(0)
        if closing != "Pause":  # then there is another button in its place
            expect(opener).to_be_focused()


def test_a_double_click_on_a_dry_run_is_only_that(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/schedules", {**schedule("hourly"), "cron_expressions": [hourly(SystemClock().now())]})
    page = open_page("/schedules/hourly", token=fresh.tokens["operator"])
    page.get_by_role("button", name="Backfill").click()
    dialog = page.get_by_role("dialog", name="Backfill")
    dialog.get_by_role("button", name="Preview").dblclick(delay=100)
    expect(dialog.get_by_role("button", name="Create 24 runs")).to_be_enabled()
    assert fresh.send("GET", "/api/runs?schedule_id=hourly")["runs"] == []


def test_the_page_of_what_is_not_there_has_a_title_and_a_way_back(page: Page, watch: Watch) -> None:
    watch.expect("status of 40[04]|status of 422")
    main = page.get_by_role("main")
    for path, back in (
        ("workflows/..%2Fx", "Workflows"),
        ("calendars/__proto__", "Calendars"),
        ("agents/edit", "Agents"),
        ("teams/a.b%2Fc", "Teams"),
    ):
        page.goto(f"./{path}")
        expect(main.get_by_role("link", name=f"← {back}")).to_be_visible()
        expect(main.get_by_role("heading", level=1)).to_be_visible()
        expect(main.get_by_role("alert").first).to_be_visible()
