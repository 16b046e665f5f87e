"""What a bundle of an organisation does: agents with their prompts, refreshed by each import, beside people's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from api.bundling import apply, changes, ids, refused

from horarium.features.bundles.organisation import seeded_id

AUDIT, RETRO = seeded_id("lead", "Daily audit"), seeded_id("writer", "Retro")


@pytest.fixture
def service_url(sqlite_template: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'horarium.db')}"


def org(**audit: Any) -> dict[str, Any]:
    daily = {"name": "Daily audit", "cron_expr": "0 9 * * *", "prompt": "Look around", **audit}
    retro = {
        "name": "Retro",
        "cron_expr": "0 17 * * 5",
        "timezone": "America/New_York",
        "prompt": "Write",
        "enabled": False,
    }
    lead = {"id": "lead", "schedules": [daily], "children": [{"id": "writer", "schedules": [retro]}]}
    return {"bundle": "org", "agents": [lead]}


def shown(http: httpx.Client, schedule_id: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/api/schedules/{schedule_id}").json()
    return found


def test_an_import_makes_agents_and_their_prompts_and_the_next_one_refreshes_them(http: httpx.Client) -> None:
    planned = apply(http, **org(), dry_run=True)["changes"]
    assert [(each["kind"], each["name"], each["fires_added"]) for each in planned] == [
        ("agent", "lead", 0),
        ("agent", "writer", 0),
        ("schedule", AUDIT, 7),
        ("schedule", RETRO, 0),
    ]
    assert ids(http) == []
    assert set(changes(http, **org()).values()) == {"create"}
    assert http.get("/api/agents/writer").json()["parent_id"] == "lead"
    audit, retro = shown(http, AUDIT), shown(http, RETRO)
    assert (audit["name"], audit["source"], audit["bundle"], audit["paused"]) == (
        "Daily audit",
        "template",
        "org",
        False,
    )
    assert (audit["action"], audit["assignee_id"]) == ({"kind": "prompt", "prompt": "Look around"}, "lead")
    assert (retro["paused"], retro["spec"]["timezone"]) == (True, "America/New_York")
    assert set(changes(http, **org()).values()) == {"unchanged"}

    # What people paused or resumed stays so, whatever the file says.
    http.post(f"/api/schedules/{AUDIT}/pause")
    http.post(f"/api/schedules/{RETRO}/resume")
    [told] = [each for each in apply(http, **org(cron_expr="0 8 * * *", prompt="Look\r"))["changes"] if each["diff"]]
    assert (told["name"], {each["path"] for each in told["diff"]}) == (
        AUDIT,
        {"spec.cron_expressions", "action.prompt"},
    )
    audit = shown(http, AUDIT)
    assert (audit["paused"], audit["spec"]["cron_expressions"], audit["action"]["prompt"]) == (
        True,
        ["0 8 * * *"],
        "Look",
    )
    assert shown(http, RETRO)["paused"] is False

    # What the file has no more goes with prune, and not before.
    left = {"bundle": "org", "agents": [{"id": "lead"}]}
    assert set(changes(http, **left).values()) == {"unchanged"}
    assert changes(http, **left, prune=True) == {
        "lead": "unchanged",
        AUDIT: "delete",
        RETRO: "delete",
        "writer": "delete",
    }


def test_a_schedule_of_the_same_name_that_somebody_made_is_left_alone(http: httpx.Client) -> None:
    http.put("/api/agents/lead", json={})
    own = {
        "schedule_id": "mine",
        "name": "Daily audit",
        "cron_expr": "0 1 * * *",
        "prompt": "Mine",
        "assignee_id": "lead",
    }
    assert http.post("/api/schedules", json=own).status_code == 201
    told = {each["name"]: each for each in apply(http, **org())["changes"]}
    assert told[AUDIT]["change"] == "keep"
    assert "'mine'), which is unchanged" in told[AUDIT]["warnings"][0]
    assert (ids(http), shown(http, "mine")["source"]) == (sorted(["mine", RETRO]), "runtime")
    # Nor does a bundle of an organisation take it over: names it by its own id, which is free when the other goes.
    assert changes(http, **org(), adopt=True)[AUDIT] == "keep"
    http.delete("/api/schedules/mine")
    assert changes(http, **org())[AUDIT] == "create"
    # A template that somebody has renamed does not take a name back that is another's by now.
    http.patch(f"/api/schedules/{AUDIT}", json={"name": "Renamed"})
    assert http.post("/api/schedules", json=own).status_code == 201
    assert (changes(http, **org())[AUDIT], shown(http, AUDIT)["name"]) == ("keep", "Renamed")


def test_all_that_is_wrong_is_told_under_its_place_and_nothing_is_done(http: httpx.Client) -> None:
    told = refused(http, **org(cron_expr="0 9 * *", prompt=" ", timezone="Nowhere"))
    place = "agents.0.schedules.0"
    assert (told["status"], set(told["errors"])) == (
        422,
        {f"{place}.{name}" for name in ("cron_expr", "prompt", "timezone")},
    )
    told = refused(http, **org(prompt_file="audit.md"))
    assert (told["status"], list(told["errors"])) == (422, [f"{place}.prompt_file"])
    assert (ids(http), http.get("/api/agents").json()["agents"]) == ([], [])
