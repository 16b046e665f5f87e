"""Somebody signs in by an address, below a path, works, and signs out; a page of a neighbour gets nowhere meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from node_here import Node
from playwright.sync_api import Browser, Page, expect
from ui.watching import Watch
from world import serving

from horarium.testing import TestService, service

BASE = "/tools/jobs"
NEIGHBOUR = "http://127.0.0.1:9/"
GUEST = {"name": "a guest", "role": "viewer"}
SCHEDULE = {"schedule_id": "nightly", "cron_expressions": ["0 2 * * *"], "workflow_type": "report"}


@pytest.fixture
def below(node: Node, sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[str, TestService]]:
    """A service in this process, seen below a path by a proxy that leaves it."""
    kept = tmp_path / "horarium.db"
    kept.write_bytes(sqlite_template.read_bytes())
    with service(database=f"sqlite:///{kept}", settings={"base_path": BASE}) as running, serving(running.parts) as url:
        yield url, running


def test_an_address_signs_in_and_a_neighbour_gets_nowhere(browser: Browser, below: tuple[str, TestService]) -> None:
    url, running = below
    http = running.http()
    http.post("/api/schedules", json=SCHEDULE)
    code = http.post("/api/session/link").json()["code"]
    watch, context = Watch(url), browser.new_context()
    context.set_default_timeout(60_000)
    page = context.new_page()
    watch.on(page)
    watch.expect("status of 401")  # it asks who it is before it signs in, and after it has signed out
    page.goto(f"{url}{BASE}/ui/schedules#token={code}")
    assert_it_is_said_whose_token_it_is(page, "admin", "admin", "default and all others")
    expect(page).to_have_url(f"{url}{BASE}/ui/schedules")
    assert context.cookies() == []
    page.get_by_role("button", name="Sign in as admin").click()
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_text("Schedules")
    expect(page.get_by_text("nightly").first).to_be_visible()
    expect(page).to_have_url(f"{url}{BASE}/ui/schedules")
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_text("Schedules")
    follow(page, code)  # it was used
    expect(page.get_by_role("main")).to_contain_text("already used")
    page.get_by_role("button", name="Keep current session").click()
    assert pause_from_a_neighbour(page, url) == 403
    assert http.get("/api/schedules/nightly").json()["status"] == "active"
    assert_a_link_changes_nobody_unasked(page, http.post("/api/tokens", json=GUEST).json()["secret"])
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert context.cookies() == []
    assert watch.unexpected() == []
    context.close()


def follow(page: Page, code: str) -> None:
    """Into the address of a page that is open already, which loads nothing anew."""
    page.evaluate("other => { window.location.hash = `token=${other}` }", code)


def assert_it_is_said_whose_token_it_is(page: Page, *facts: str) -> None:
    values = page.get_by_role("main").get_by_role("definition")
    expect(values).to_have_text(list(facts))


def assert_a_link_changes_nobody_unasked(page: Page, other: str) -> None:
    who = page.get_by_role("banner")
    follow(page, other)
    assert_it_is_said_whose_token_it_is(page, "a guest", "viewer", "default")
    expect(page.get_by_role("main")).to_contain_text("You are signed in as admin (admin)")
    page.get_by_role("button", name="Keep current session").click()
    expect(who).to_contain_text("admin")
    assert other not in page.url
    follow(page, other)
    page.get_by_role("button", name="Sign in as a guest").click()
    expect(who).to_contain_text("a guest · viewer")


def pause_from_a_neighbour(page: Page, url: str) -> int:
    """What a form gets that is on another port of this machine: to the browser that is the same site."""
    form = f'<form method="post" action="{url}{BASE}/api/schedules/nightly/pause"><button>Win a prize</button></form>'
    other = page.context.new_page()
    other.route(NEIGHBOUR, lambda route: route.fulfill(body=form, content_type="text/html"))
    other.goto(NEIGHBOUR)
    with other.expect_navigation() as heard:
        other.get_by_role("button").click()
    assert "cookie" in heard.value.request.all_headers()
    status = heard.value.status
    other.close()
    return status
