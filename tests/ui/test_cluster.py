"""The pages Cluster and Audit: what an admin of the house sees, and what others are told."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, expect
from ui.conftest import Fresh, OpenPage
from ui.fleet import SECOND_TENANT
from ui.looking import RETRIES, settled
from ui.watching import Watch


def test_processes_queues_readiness_and_numbers(page: Page) -> None:
    page.goto("./cluster")
    settled(page)
    processes = page.get_by_role("region", name="Processes", exact=True)
    expect(processes.get_by_text("Alive")).to_be_visible()
    expect(processes.get_by_text(re.compile("ticker, janitor"))).to_be_visible()
    expect(page.get_by_role("region", name="Queues", exact=True).get_by_role("row").nth(1)).to_be_visible()
    expect(page.get_by_role("region", name="Readiness").get_by_text("Schema", exact=True)).to_be_visible()
    metrics = page.get_by_role("region", name="Metrics")
    expect(metrics.locator("dd").first).to_have_text(re.compile(r"^[\d,]+$"))
    address = metrics.get_by_role("link", name=re.compile("All metrics")).get_attribute("href")
    assert address is not None
    assert page.request.get(address, max_retries=RETRIES).status == 200
    page.route(re.compile("/api/cluster/processes$"), with_one_gone)
    page.reload()
    expect(page.get_by_text(re.compile("; 1 gone$"))).to_be_visible()
    expect(processes.get_by_text("Gone")).to_be_visible()
    expect(processes.get_by_text("Stuck")).to_have_count(0)


def with_one_gone(route: Route) -> None:
    answer = route.fetch(max_retries=RETRIES)
    found = answer.json()
    found["processes"].append({**found["processes"][0], "name": "dead", "state": "gone", "stuck": ["ticker"]})
    route.fulfill(response=answer, json=found)


def test_a_tenant_is_told_that_the_machines_are_not_theirs(open_page: OpenPage) -> None:
    page = open_page("/cluster", namespace=SECOND_TENANT)
    settled(page)
    expect(page.get_by_text(re.compile("role admin in the namespace default"))).to_be_visible()
    expect(page.get_by_role("region", name="Processes", exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="Readiness").get_by_text("Schema", exact=True)).to_be_visible()


def test_the_audit_tells_who_did_what_and_has_no_gaps(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/audit", token=fresh.tokens["admin"])
    settled(page)
    table = page.get_by_role("region", name="Audit entries")
    expect(page.get_by_text("No gaps")).to_be_visible()
    expect(table.get_by_text("Issue token").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^Details of entry")).first.click()
    expect(table.get_by_text("Hash").first).to_be_visible()
    page.get_by_label("Action").fill("no_such_act")
    page.get_by_role("button", name="Apply filters").click()
    expect(page.get_by_role("heading", name="No matching entries")).to_be_visible()
    expect(page).to_have_url(re.compile("act=no_such_act"))
    page.get_by_role("button", name="Clear filters").click()
    expect(table.get_by_text("Issue token").first).to_be_visible()


def test_a_wrong_time_is_said_in_the_service_s_words(page: Page, watch: Watch) -> None:
    watch.expect("status of 422")
    page.goto("./audit?since=yesterday")
    expect(page.get_by_role("alert").first).to_contain_text("must be a time such as")


def test_the_audit_is_for_admins(open_page: OpenPage) -> None:
    page = open_page("/audit", role="viewer")
    expect(page.get_by_role("heading", name="Admin role required")).to_be_visible()
