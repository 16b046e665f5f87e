"""Workflows in the browser: made, looked at, started, changed in versions, deleted."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY
from ui.looking import settled
from ui.watching import Watch

STEP = {"kind": "pull", "queue": "nobody-takes-from-it", "workflow_type": "step"}


def nodes(*ids: str) -> dict[str, Any]:
    """Each needs the one before it."""
    return {
        "name": "Brief",
        "nodes": [
            {"id": each, "action": STEP, "needs": list(ids[n - 1 : n]) if n else []} for n, each in enumerate(ids)
        ],
    }


def alone(open_page: OpenPage, fresh: Fresh, path: str, role: str = "admin") -> Page:
    page = open_page(path, token=fresh.tokens[role])
    settled(page)
    return page


def write(page: Page, document: dict[str, Any]) -> None:
    page.get_by_role("button", name="JSON").click()
    page.get_by_role("textbox", name="Workflow document").fill(json.dumps(document))


def test_the_first_is_made_where_there_is_none(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 422")  # a draft with a circle
    page = alone(open_page, fresh, "/workflows")
    expect(page.get_by_role("main")).to_contain_text("No workflows yet")
    page.get_by_role("button", name="Create workflow").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Valid", exact=True)).to_be_visible()
    circle = nodes("one", "two")
    circle["nodes"][0]["needs"] = ["two"]
    write(page, circle)
    expect(dialog.get_by_role("alert")).to_contain_text("cycle")
    write(page, nodes("one", "two"))
    expect(dialog.get_by_text("Valid", exact=True)).to_be_visible()
    expect(dialog.get_by_role("group", name="Workflow graph")).to_contain_text("two")
    dialog.get_by_label("ID").fill("brief")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="Brief")).to_be_visible()
    page.get_by_role("link", name="← Workflows").click()
    page.get_by_role("searchbox", name="Search workflows").fill("nothing like it")
    expect(page.get_by_role("main")).to_contain_text("No matching workflows")
    page.get_by_role("searchbox", name="Search workflows").fill("rie")
    expect(page.get_by_role("row").filter(has_text="brief")).to_be_visible()


def test_its_nodes_versions_and_schedules_are_shown_and_it_is_started(open_page: OpenPage, fresh: Fresh) -> None:
    for document in (nodes("one"), nodes("one", "two")):
        fresh.send("PUT", "/api/workflows/brief", document)
    morning = {"cron_expressions": [RARELY], "action": {"kind": "workflow", "workflow_id": "brief"}}
    fresh.send("POST", "/api/schedules", {"schedule_id": "morning", **morning})
    page = alone(open_page, fresh, "/workflows/brief", role="viewer")
    expect(page.get_by_role("region", name="Schedules").get_by_role("link", name="morning")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^(Run|Edit|Delete)$"))).to_have_count(0)
    page = alone(open_page, fresh, "/workflows/brief")
    page.get_by_role("button", name="two pull step").click()
    expect(page.get_by_label("Node two").last).to_contain_text('"needs"')
    page.get_by_label("Compare version 2 with").select_option("Version 1")
    expect(page.get_by_label("Version 1 and version 2")).to_contain_text('"id": "two"')
    page.get_by_role("link", name="Version 1").click()
    expect(page.get_by_role("main")).to_contain_text("This is version 1.")
    page.get_by_role("link", name="Show latest version").click()
    page.get_by_role("button", name="Run", exact=True).click()
    inputs = page.get_by_role("dialog").get_by_label("Inputs")
    inputs.fill('{"day":')
    expect(page.get_by_role("dialog").get_by_role("button", name="Run", exact=True)).to_be_disabled()
    inputs.fill('{"day": "today"}')
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/runs/*")
    [run] = fresh.send("GET", "/api/runs?workflow=brief")["runs"]
    assert fresh.send("GET", f"/api/runs/{run['run_id']}")["inputs"] == {"day": "today"}


def test_a_change_does_not_overwrite_that_of_somebody_else(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 412")
    fresh.send("PUT", "/api/workflows/brief", nodes("one"))
    page = alone(open_page, fresh, "/workflows/brief")
    page.get_by_role("button", name="Edit", exact=True).click()
    write(page, nodes("mine"))
    fresh.send("PUT", "/api/workflows/brief", nodes("theirs"))
    put = page.get_by_role("dialog").get_by_role("button", name="Save new version")
    for _ in range(2):  # after a refusal the page knows the newest version, and the draft is still that of an older one
        with page.expect_response(lambda answer: answer.request.method == "PUT") as refused:
            put.click()
        assert refused.value.status == 412
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("version")
    assert fresh.send("GET", "/api/workflows/brief")["version"] == 2
    expect(page.get_by_role("main").get_by_role("group", name="Graph of brief")).to_contain_text("theirs")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Edit", exact=True).click()
    write(page, nodes("mine"))
    put.click()
    expect(page.get_by_text("brief saved as version 3")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("main")).to_contain_text("No workflows yet")
