"""How a bundle tells of an organisation."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.policy.queue import checked_id
from horarium.errors import InvalidDefinition
from horarium.features.agents.definition import MAX_DEPTH
from horarium.features.bundles.document import Bundle, BundleKind, read_bundle
from horarium.features.bundles.organisation import seeded_id

DAILY: dict[str, Any] = {"name": "Daily audit", "cron_expr": "0 9 * * *", "prompt": "Look\r\naround"}


def read(*agents: object, **others: Any) -> Bundle:
    return read_bundle(None, {"agents": [*agents], **others})


def wrong(*agents: object, **others: Any) -> dict[str, Any]:
    with pytest.raises(InvalidDefinition) as refused:
        read(*agents, **others)
    return dict(refused.value.errors)


def test_children_name_their_parents_and_prompts_are_schedules() -> None:
    found = read(
        {"id": "lead", "schedules": [DAILY], "children": [{"id": "writer", "url": "http://w.test", "schedules": []}]},
        {"id": "other", "schedules": [{**DAILY, "timezone": "Asia/Tokyo", "enabled": False}]},
        schedules=[{"schedule_id": "flat"}],
    )
    agents = found.of(BundleKind.AGENT)
    assert list(agents) == ["lead", "writer", "other"]
    assert agents["writer"] == {"id": "writer", "url": "http://w.test", "parent_id": "lead"}
    flat, first, second = found.of(BundleKind.SCHEDULE).values()
    assert (flat, found.is_seeded("flat"), found.is_seeded(first["schedule_id"])) == (
        {"schedule_id": "flat"},
        False,
        True,
    )
    assert (first["prompt"], first["timezone"], first["paused"], first["assignee_id"]) == (
        "Look\naround",
        "UTC",
        False,
        "lead",
    )
    assert (second["timezone"], second["paused"]) == ("Asia/Tokyo", True)
    places = {place: name for (_, name), place in found.places.items()}
    assert places["agents.0.children.0"] == "writer"
    assert places["agents.1.schedules.0"] == second["schedule_id"]


def test_a_text_of_schedules_is_the_setting_of_the_agent() -> None:
    found = read(
        {"id": "a", "schedules": "all"},
        {"id": "b", "token_schedules": "none", "schedules": [DAILY], "children": [{"id": "c", "schedules": "own"}]},
    )
    settings = {name: agent.get("schedules") for name, agent in found.of(BundleKind.AGENT).items()}
    assert settings == {"a": "all", "b": "none", "c": "own"}
    assert all("token_schedules" not in agent for agent in found.of(BundleKind.AGENT).values())
    assert [each["assignee_id"] for each in found.of(BundleKind.SCHEDULE).values()] == ["b"]
    twice = wrong({"id": "a", "schedules": "all", "token_schedules": "none"})
    assert list(twice) == ["agents.0.token_schedules"]


def test_the_id_follows_from_agent_and_name_alone() -> None:
    assert seeded_id("lead", "Daily audit").startswith("lead--daily-audit-")
    names = ["Daily audit", "daily audit", "daily-audit", "Günlük", "日次", "日報", "x" * 300, "x" * 301]
    pairs = [(agent, name) for agent in ("lead", "lead--daily", "a" * 128) for name in names]
    ids = {seeded_id(*pair) for pair in pairs}
    assert len(ids) == len(pairs)
    assert [checked_id("id", each) for each in ids]


WRONG: dict[str, tuple[object, str, str]] = {
    "no object": ("nightly", "", "must be an object"),
    "no name": ({**DAILY, "name": None}, ".name", "is required"),
    "a blank name": ({**DAILY, "name": " "}, ".name", "non-blank"),
    "a name that nobody can keep": ({**DAILY, "name": "a\x00b"}, ".name", "cannot be stored"),
    "a name twice": (DAILY, ".name", "another schedule named 'Daily audit'"),
    "no cron": ({"name": "n", "prompt": "p"}, ".cron_expr", "is required"),
    "no prompt": ({"name": "n", "cron_expr": "0 9 * * *"}, ".prompt", "is required"),
    "a file": ({"name": "n", "cron_expr": "0 9 * * *", "prompt_file": "p.md"}, ".prompt_file", "send the content"),
    "a file beside a prompt": ({**DAILY, "name": "n", "prompt_file": "p.md"}, ".prompt_file", "send the content"),
    "an unknown field": ({**DAILY, "name": "n", "retries": 1}, ".retries", "unknown field"),
    "enabled": ({**DAILY, "name": "n", "enabled": "no"}, ".enabled", "true or false"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_schedule_is_told_under_its_place(name: str) -> None:
    row, path, text = WRONG[name]
    found = wrong({"id": "x", "children": [{"id": "lead", "schedules": [DAILY, row]}]})
    assert list(found) == [f"agents.0.children.0.schedules.1{path}"]
    assert text in found[f"agents.0.children.0.schedules.1{path}"][0]


def test_what_is_no_agent_is_told_under_its_place() -> None:
    assert list(wrong({"id": "a", "children": ["b"]})) == ["agents.0.children.0"]
    assert list(wrong({"id": "a", "children": [{"name": "b"}]})) == ["agents.0.children.0"]
    assert list(wrong({"id": "a", "children": {"id": "b"}})) == ["agents.0.children"]
    assert list(wrong({"id": "a", "schedules": 5})) == ["agents.0.schedules"]
    assert list(wrong({"id": "a", "children": [{"id": "a"}]})) == ["agents.0.children.0"]
    assert list(wrong({"id": "a", "children": [{"id": "b", "parent_id": "c"}]})) == ["agents.0.children.0.parent_id"]
    assert "parent_id" in read({"id": "a", "children": [{"id": "b", "parent_id": "a"}]}).of(BundleKind.AGENT)["b"]


def test_an_organisation_has_a_bottom() -> None:
    agent: dict[str, Any] = {"id": "a0"}
    for number in range(1, MAX_DEPTH):
        agent = {"id": f"a{number}", "children": [agent]}
    assert len(read(agent).of(BundleKind.AGENT)) == MAX_DEPTH
    assert [path.count("children") for path in wrong({"id": "top", "children": [agent]})] == [MAX_DEPTH]
    assert len(wrong({"id": "a", "schedules": [5] * 1_000})) == 20
