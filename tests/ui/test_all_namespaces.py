"""The view of all namespaces: for an admin of the installation, on the pages that have one."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY
from ui.looking import assert_accessible, settled

PULL = {"kind": "workflow", "workflow_type": "send", "queue": "nobody-takes-from-it"}
NAMESPACES = "Namespace"
ALL = "All namespaces"


def test_an_admin_of_the_installation_sees_all_namespaces_and_goes_into_one(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send(
        "POST",
        "/api/schedules",
        {
            "schedule_id": "far-away", "cron_expressions": [RARELY], "action": PULL,
            "approval_policy": {"requires_approval": True},
        },
    )  # fmt: skip
    fresh.send("POST", "/api/schedules/far-away/trigger", {})
    page = open_page("/runs?schedule=&ns=default")
    settled(page)
    expect(page.locator("tr[data-row]", has_text="far-away")).to_have_count(0)
    page.get_by_label(NAMESPACES).select_option(ALL)
    row = page.locator("tr[data-row]", has_text=fresh.namespace)
    expect(row).to_contain_text("far-away")
    expect(page.get_by_label(re.compile("^Select run"))).to_have_count(0)
    assert_accessible(page)
    row.get_by_role("link", name="far-away").click()
    expect(page.get_by_label(NAMESPACES)).to_have_value(fresh.namespace)
    expect(page).to_have_url(re.compile(rf"ns={fresh.namespace}"))

    page = open_page("/approvals?all=true")
    asked = page.locator("li[data-row]", has_text=fresh.namespace)
    expect(page.get_by_label(NAMESPACES)).to_have_value("*")
    asked.get_by_role("link", name="far-away").click()
    expect(page.get_by_label(NAMESPACES)).to_have_value(fresh.namespace)

    page = open_page("/?all=true")
    expect(page.get_by_role("row", name=re.compile(fresh.namespace))).to_contain_text("far-away")
    page.get_by_role("link", name=re.compile("Awaiting approval")).click()
    expect(page.locator("li[data-row]", has_text=fresh.namespace)).to_have_count(1)


def test_nobody_else_is_offered_all_namespaces(open_page: OpenPage, fresh: Fresh) -> None:
    page = open_page("/runs?all=true", token=fresh.tokens["viewer"])
    settled(page)
    expect(page.get_by_text(fresh.namespace).first).to_be_visible()
    expect(page.get_by_role("option", name=ALL)).to_have_count(0)
