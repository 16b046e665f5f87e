"""Approvals in the browser: pending requests, one request, decisions about one and many, and standing approvals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY
from ui.looking import DIALOG, assert_accessible, settled
from ui.watching import Watch

from horarium.demo.agent import V1_0, AgentServer, DemoAgent

PULL = {"kind": "workflow", "workflow_type": "send", "queue": "nobody-takes-from-it"}
INPUTS = {"to": "all", "text": "Hello <b>there</b>", "day": None}


def ask(fresh: Fresh, schedule_id: str = "letter", **policy: Any) -> dict[str, Any]:
    """A question about a run that the house has asked for, so an operator may decide it."""
    fresh.send(
        "POST",
        "/api/schedules",
        {
            "schedule_id": schedule_id,
            "cron_expressions": [RARELY],
            "timezone": "Asia/Kathmandu",
            "action": {**PULL, "input": INPUTS},
            "approval_policy": {"requires_approval": True, **policy},
        },
    )
    run_id = fresh.send("POST", f"/api/schedules/{schedule_id}/trigger", {})["run_id"]
    found: dict[str, Any] = fresh.send("GET", f"/api/approvals?schedule_id={schedule_id}")["approvals"][0]
    assert found["run_id"] == run_id
    return found


def alone(open_page: OpenPage, fresh: Fresh, path: str, role: str = "operator", **more: Any) -> Page:
    page = open_page(path, token=fresh.tokens[role], **more)
    settled(page)
    return page


def status(fresh: Fresh, asked: dict[str, Any]) -> str:
    found: str = fresh.send("GET", f"/api/approvals/{asked['approval_id']}")["status"]
    return found


def test_a_question_is_opened_from_the_inbox_and_answered_with_yes(open_page: OpenPage, fresh: Fresh) -> None:
    asked = ask(fresh)
    page = alone(open_page, fresh, "/approvals")
    main = page.get_by_role("main")
    expect(main.get_by_text("Hello <b>there</b>")).to_be_visible()
    expect(main.get_by_text("Task send in queue")).to_be_visible()
    main.get_by_role("link", name="letter").click()
    expect(main).to_contain_text("This run requires approval before it starts.")
    expect(main).to_contain_text("Task send in queue nobody-takes-from-it")
    expect(main).to_contain_text("0 of 1")
    page.get_by_text("Action as JSON").click()
    expect(page.locator("pre[aria-label=Action]")).to_contain_text('"kind": "workflow"')
    assert status(fresh, asked) == "pending", "looking decides nothing"
    page.get_by_label("Reason").fill("read it, good")
    page.get_by_role("button", name="Approve").click()
    expect(main.get_by_role("cell", name="read it, good")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert status(fresh, asked) == "approved"


def test_names_stand_before_ids_and_a_prompt_shows_its_agent_and_url(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/agents", {"id": "writer", "name": "The writer", "url": "https://agents.example.com/w"})
    prompt = {"action": {"kind": "prompt", "prompt": "Write the brief"}, "assignee_id": "writer"}
    body = {"schedule_id": "brief", "name": "Morning brief", "cron_expressions": [RARELY], **prompt}
    fresh.send("POST", "/api/schedules", {**body, "approval_policy": {"requires_approval": True}})
    fresh.send("POST", "/api/schedules/brief/trigger", {})
    page = alone(open_page, fresh, "/runs")
    row = page.locator("[data-row]")
    expect(row.get_by_role("link", name="Morning brief")).to_be_visible()
    expect(row).to_contain_text("brief")
    expect(row).to_contain_text("agent The writer")
    page = alone(open_page, fresh, "/approvals")
    main = page.get_by_role("main")
    main.get_by_role("link", name="Morning brief").click()
    for text in ("Write the brief", "The writer", "writer", "https://agents.example.com/w"):
        expect(main).to_contain_text(text)
    expect(main.get_by_role("link", name="Morning brief")).to_be_visible()
    assert_accessible(page)


def test_inputs_are_changed_and_what_was_proposed_is_kept(open_page: OpenPage, fresh: Fresh) -> None:
    asked = ask(fresh)
    page = alone(open_page, fresh, f"/approvals/{asked['approval_id']}")
    page.get_by_role("button", name="Edit inputs").click()
    editor, send = page.get_by_role("textbox", name="Inputs"), "Approve with changes"
    editor.fill('{"to": ')
    expect(page.get_by_role("alert")).to_contain_text("Invalid JSON")
    expect(page.get_by_role("button", name=send)).to_be_disabled()
    editor.fill('{"to": null, "text": "Hello"}')
    expect(page.get_by_role("alert")).to_contain_text("A field cannot be set to null.")
    editor.fill('{"to": "team", "text": "Hello"}')
    expect(page.get_by_label("Changes", exact=True)).to_contain_text('"to": "team"')
    page.get_by_role("button", name=send).click()
    changed = page.get_by_label("Proposed and approved inputs")
    expect(changed).to_contain_text('"to": "all"')
    expect(changed).to_contain_text('"to": "team"')
    assert fresh.send("GET", f"/api/runs/{asked['run_id']}")["inputs"] == {"to": "team", "text": "Hello"}


def test_inputs_that_change_under_the_reader_are_seen_before_a_yes(open_page: OpenPage, fresh: Fresh) -> None:
    asked = ask(fresh, approvals_required=2, allow_requester=True)
    page = alone(open_page, fresh, f"/approvals/{asked['approval_id']}")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    voted = {"decision": "modify", "modifications": {"to": "nobody"}}
    address = f"/api/approvals/{asked['approval_id']}/decision"
    other = {"namespace": fresh.namespace, "token": fresh.tokens["admin"]}
    assert fresh.served.ask("POST", address, voted, **other).is_success
    expect(page.get_by_role("alert")).to_contain_text("The inputs changed after you opened this page.")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page.get_by_role("button", name="Continue with new inputs").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("main").get_by_text("Approved with changes").first).to_be_visible()


def test_whoever_comes_second_is_told(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 409")
    asked = ask(fresh, allow_requester=True)
    page = alone(open_page, fresh, f"/approvals/{asked['approval_id']}")
    other = {"namespace": fresh.namespace, "token": fresh.tokens["admin"]}

    def somebody_is_first(route: Route) -> None:
        address = f"/api/approvals/{asked['approval_id']}/decision"
        assert fresh.served.ask("POST", address, {"decision": "reject"}, **other).is_success
        route.continue_()

    page.route("**/decision", somebody_is_first)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text(re.compile("^Decision failed"))).to_be_visible()
    expect(page.get_by_role("main").get_by_text("Rejected").first).to_be_visible()


def test_a_no_where_the_run_is_looked_at(open_page: OpenPage, fresh: Fresh) -> None:
    asked = ask(fresh)
    page = alone(open_page, fresh, f"/runs/{asked['run_id']}")
    card = page.get_by_role("region", name="Awaiting approval")
    card.get_by_label("Reason").fill("last week's numbers")
    card.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("main")).to_contain_text("Rejected by")
    expect(page.get_by_role("main")).to_contain_text("last week's numbers")
    assert status(fresh, asked) == "rejected"


def test_many_are_decided_at_once_with_an_outcome_each(open_page: OpenPage, fresh: Fresh) -> None:
    asked = [ask(fresh, name) for name in ("one", "two")]
    other = ask(fresh, "three", approvers=["somebody-else"])
    page = alone(open_page, fresh, "/approvals")
    rows = page.locator("li[data-row]")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="three").get_by_role("checkbox")).to_have_count(0)  # it is not theirs to decide
    page.get_by_label("Select one").check()
    page.get_by_role("button", name="Select all 2 visible").click()
    expect(page.get_by_label("Select two")).to_be_checked()
    page.get_by_role("button", name="Approve", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Hello <b>there</b>")
    assert_accessible(page, inside=DIALOG)
    dialog.get_by_role("button", name="Approve 2 approval requests").click()
    expect(dialog.get_by_text("Done: 2 approved")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(rows).to_have_count(1)
    assert [status(fresh, each) for each in (*asked, other)] == ["approved", "approved", "pending"]

    page.get_by_label("Status").select_option("approved")
    expect(rows).to_have_count(2)
    page.get_by_label("Assigned to me").click()
    page.wait_for_url(re.compile("mine=true"))
    expect(page.get_by_role("heading", name="No matching approval requests")).to_be_visible()


def test_a_yes_is_given_beforehand_and_taken_back(open_page: OpenPage, fresh: Fresh) -> None:
    ask(fresh)
    page = alone(open_page, fresh, "/approvals?tab=standing")
    expect(page.get_by_role("heading", name="No standing approvals")).to_be_visible()
    page.get_by_role("button", name="Create standing approval").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Schedule").fill("letter")
    dialog.get_by_label("Gates").fill("publish, spend")
    dialog.get_by_label("Max uses").fill("5")
    dialog.get_by_label("Reason").fill("while I am away")
    assert_accessible(page, inside=DIALOG)
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row").filter(has_text="while I am away")
    expect(row).to_contain_text("0 of 5")
    row.get_by_role("button", name="Revoke", exact=True).click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert fresh.send("GET", "/api/approvals/standing")["standing"] == []


@pytest.fixture
def asking() -> Iterator[AgentServer]:
    with AgentServer(DemoAgent("asker", V1_0, 0)) as server:
        server.begin()
        yield server
        server.shutdown()


def test_an_agent_gets_its_answer(open_page: OpenPage, fresh: Fresh, asking: AgentServer) -> None:
    fresh.send("POST", "/api/agents", {"id": "asker", "url": asking.url})
    fresh.send(
        "POST",
        "/api/schedules",
        {
            "schedule_id": "flowers",
            "cron_expressions": [RARELY],
            "action": {"kind": "prompt", "prompt": "Order flowers. Ask first: which colour?"},
            "assignee_type": "agent",
            "assignee_id": "asker",
            "approval_policy": {"requires_approval": False},
        },
    )
    page = alone(open_page, fresh, "/approvals")
    fresh.send("POST", "/api/schedules/flowers/trigger", {})
    expect(page.get_by_text("which colour?")).to_be_visible()  # it came by itself
    page.get_by_role("link", name="flowers").click()
    send = page.get_by_role("button", name="Send reply")
    expect(send).to_be_disabled()
    page.get_by_label("Reply").fill("red")
    send.click()
    expect(page.get_by_role("main").get_by_text("red", exact=True)).to_be_visible()
    page.get_by_role("link", name="View run").click()
    expect(page.get_by_label("Result", exact=True)).to_contain_text("Done (red)")


def test_whoever_may_not_decide_sees_nothing_to_decide_with(open_page: OpenPage, fresh: Fresh) -> None:
    asked = ask(fresh)
    page = alone(open_page, fresh, f"/approvals/{asked['approval_id']}?ns={fresh.namespace}", role="viewer")
    expect(page.get_by_role("main")).to_contain_text("This run requires approval before it starts.")
    decisive = re.compile("Approve|Reject|Edit inputs")
    expect(page.get_by_role("main").get_by_role("button", name=decisive)).to_have_count(0)
    page.goto("./approvals")
    expect(page.locator("li[data-row]")).to_have_count(1)
    expect(page.get_by_role("checkbox", name=re.compile("Select"))).to_have_count(0)
    page.goto("./approvals?tab=standing")
    expect(page.get_by_role("heading", name="No standing approvals")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Create standing"))).to_have_count(0)
    assert status(fresh, asked) == "pending"


def test_a_decision_that_would_be_refused_is_disabled_and_says_why(open_page: OpenPage, fresh: Fresh) -> None:
    asked = ask(fresh)
    page = alone(open_page, fresh, f"/approvals/{asked['approval_id']}?ns={fresh.namespace}", role="admin")
    main = page.get_by_role("main")
    expect(main).to_contain_text("allow_requester: true")
    for name in ("Approve", "Reject", "Edit inputs"):
        expect(main.get_by_role("button", name=name)).to_be_disabled()
    page.goto("./approvals")
    expect(page.locator("li[data-row]")).to_have_count(1)
    expect(page.get_by_role("checkbox", name=re.compile("Select"))).to_have_count(0)
    assert_accessible(page)
