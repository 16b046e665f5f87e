"""Agents and teams in the browser: who stands above whom, whether they answer, and what they are told on time."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Request, expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY
from ui.fleet import DISCARD
from ui.looking import settled


def alone(open_page: OpenPage, fresh: Fresh, path: str, role: str = "admin") -> Page:
    page = open_page(path, token=fresh.tokens[role])
    settled(page)
    return page


def test_an_agent_is_made_below_another_asked_and_changed(open_page: OpenPage, fresh: Fresh) -> None:
    page = alone(open_page, fresh, "/agents")
    expect(page.get_by_role("main")).to_contain_text("No agents yet")
    fresh.send("POST", "/api/agents", {"id": "editor", "name": "The editor", "url": DISCARD})
    page.get_by_role("button", name="Create agent").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("ID").fill("writer")
    dialog.get_by_label("URL").fill(DISCARD)
    dialog.get_by_label("Concurrency").fill("3")
    dialog.get_by_label("Parent agent").fill("editor")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="writer")).to_be_visible()
    expect(page.get_by_role("meter", name="Active runs")).to_contain_text("0 of 3")
    page.get_by_role("button", name="Check now").click()
    expect(page.get_by_role("region", name="Health")).to_contain_text("Unreachable")
    page.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Name").fill("The writer")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name="The writer")).to_be_visible()
    page.get_by_role("button", name="Create token").click()
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_label("Secret", exact=True)).not_to_be_empty()
    dialog.get_by_role("button", name="Done").click()
    page.get_by_role("link", name="← Agents").click()
    rows = page.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("The editor")
    expect(rows.nth(2)).to_contain_text("└")
    expect(rows.nth(2)).to_contain_text("The writer")


def test_a_form_keeps_what_it_does_not_show_and_shows_the_warnings_of_the_write(
    open_page: OpenPage, fresh: Fresh
) -> None:
    policies = {"budget": {"max_daily_runs": 5}, "approval_policy": {"gates": ["publish"]}}
    fresh.send("POST", "/api/agents", {"id": "writer", "policies": policies, "native_scheduler": True})
    fresh.send("POST", "/api/teams", {"team_id": "desk", "members": ["writer"], "policies": policies})
    page = alone(open_page, fresh, "/agents/writer")
    bodies: list[dict[str, object]] = []

    def note(sent: Request) -> None:
        if sent.method == "PATCH":
            bodies.append(dict(sent.post_data_json or {}))

    page.on("request", note)
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_label("Name").fill("The writer")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("url: is not set")).to_be_visible()
    page.goto("./teams/desk")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_label("Name").fill("News desk")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name="News desk")).to_be_visible()
    assert ["policies" in body for body in bodies] == [False, False]
    agent, team = fresh.send("GET", "/api/agents/writer"), fresh.send("GET", "/api/teams/desk")
    assert (agent["name"], agent["native_scheduler"], agent["policies"]) == ("The writer", True, policies)
    assert (team["name"], team["policies"]) == ("News desk", policies)


def test_a_prompt_is_made_told_now_paused_and_resumed(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/agents", {"id": "writer"})
    page = alone(open_page, fresh, "/agents/writer")
    prompts = page.get_by_role("region", name="Scheduled prompts")
    expect(prompts).to_contain_text("None")
    page.get_by_role("button", name="Create prompt").click()
    page.get_by_role("dialog").get_by_label("Prompt").fill("What is new?")
    page.get_by_role("dialog").get_by_label("Name").fill("News")
    page.get_by_role("dialog").get_by_label("Cron").fill(RARELY)
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    row = prompts.get_by_role("row").filter(has_text="What is new?")
    expect(row).to_contain_text("Manual")
    row.get_by_role("button", name="Run now").click()
    expect(page.get_by_text("Prompt sent")).to_be_visible()
    assert len(fresh.send("GET", "/api/runs")["runs"]) == 1
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("Paused")
    row.get_by_role("button", name="Resume").click()
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    page = alone(open_page, fresh, "/agents/writer", role="viewer")
    expect(page.get_by_role("main")).to_contain_text("What is new?")
    changing = re.compile("Create prompt|Run now|Pause|Edit|Delete|Create token|Check now")
    expect(page.get_by_role("button", name=changing)).to_have_count(0)
    page.get_by_role("link", name="View all schedules").click()
    expect(page.get_by_role("main").get_by_label("Assignee")).to_have_value("writer")
    expect(page.get_by_role("table", name="Schedules").get_by_role("link", name="News")).to_be_visible()


def test_a_team_is_made_led_and_deleted_before_its_agent(open_page: OpenPage, fresh: Fresh) -> None:
    for agent in ("editor", "writer"):
        fresh.send("POST", "/api/agents", {"id": agent})
    page = alone(open_page, fresh, "/agents?tab=teams")
    expect(page.get_by_role("main")).to_contain_text("No teams yet")
    page.get_by_role("button", name="Create team").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("ID").fill("desk")
    dialog.get_by_label("Members").fill("editor\nwriter")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("region", name="Details")).to_contain_text("Round robin")
    given = {"schedule_id": "digest", "cron_expressions": [RARELY], "workflow_type": "digest"}
    fresh.send("POST", "/api/schedules", {**given, "assignee_type": "team", "assignee_id": "desk"})
    theirs = page.get_by_role("region", name="Schedules", exact=True)
    expect(theirs.get_by_role("listitem")).to_contain_text("Manual")
    fresh.send("DELETE", "/api/schedules/digest")
    expect(theirs).to_contain_text("None.")
    page.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Strategy").select_option("Lead")
    dialog.get_by_role("button", name="Save").click()
    members = page.get_by_role("region", name="Members").get_by_role("row")
    expect(members.nth(1)).to_contain_text("Lead")
    expect(members.nth(1)).to_contain_text("0 of 1")
    page.get_by_role("link", name="← Teams").click()
    expect(page.get_by_role("row").filter(has_text="desk")).to_contain_text("Lead: editor")
    page.get_by_role("link", name="desk").click()
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("desk deleted")).to_be_visible()
    page.goto("./agents/writer")
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("writer deleted")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(2)


def test_deleting_an_agent_with_its_schedules_needs_their_number(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("POST", "/api/agents", {"id": "writer"})
    given = {"cron_expressions": [RARELY], "action": {"prompt": "go"}, "assignee_id": "writer"}
    for number in range(2):
        fresh.send("POST", "/api/schedules", {"schedule_id": f"brief-{number}", **given})
    page = alone(open_page, fresh, "/agents/writer")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Delete these schedules instead").check()
    confirm = dialog.get_by_role("button", name="Delete agent and 2 schedules")
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Enter 2 to confirm").fill("2")
    confirm.click()
    expect(page.get_by_text("writer deleted")).to_be_visible()
    assert fresh.send("GET", "/api/schedules")["schedules"] == []


def test_who_does_which_workflow(open_page: OpenPage) -> None:
    page = open_page("/agents?tab=assignments", role="viewer")
    row = page.get_by_role("row").filter(has_text="brief-by-desk")
    expect(row.get_by_role("link", name="brief", exact=True)).to_be_visible()
    row.get_by_role("link", name="team desk").click()
    expect(page.get_by_role("heading", level=1, name="News desk")).to_be_visible()
