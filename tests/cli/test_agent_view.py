"""Agents for eyes: what a check found, line by line, and a tree in which nobody is left out."""

from __future__ import annotations

import pytest

from horarium.core.document.assignee import AgentContext, AgentProtocol, AgentSchedules
from horarium.features.agents.document_commands import agent_lines, check_lines, in_tree
from horarium.features.agents.model import Agent, AgentCard, AgentChecked, AgentInterface
from horarium.instant import to_datetime

NOW = to_datetime(0)


def agent(agent_id: str, parent_id: str | None) -> Agent:
    return Agent(
        id=agent_id,
        name="",
        url=None,
        parent_id=parent_id,
        capacity=1,
        has_token=False,
        protocol=AgentProtocol.AUTO,
        context=AgentContext.FRESH,
        policies={},
        native_scheduler=False,
        allowed_hosts=(),
        schedules=AgentSchedules.OWN,
        last_seen_at=None,
        card=None,
        card_at=None,
        card_error=None,
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


@pytest.mark.parametrize(
    ("parents", "shown"),
    [
        ({}, []),
        ({"a": None, "b": "a", "c": "b", "d": "a"}, ["a", "  b", "    c", "  d"]),
        ({"a": "gone", "b": "a"}, ["a", "  b"]),
        ({"a": "b", "b": "a", "c": None}, ["c", "a", "b"]),
    ],
    ids=["nobody", "a tree", "below somebody who is not there", "in a circle"],
)
def test_everybody_stands_somewhere(parents: dict[str, str | None], shown: list[str]) -> None:
    assert [name for name, _ in in_tree([agent(*each) for each in parents.items()])] == shown


def test_a_check_is_told_line_by_line() -> None:
    used = AgentInterface(url="https://a.example/", dialect="1.0", used=True, with_token=False, why_not=None)
    other = AgentInterface(
        url="https://b.example/", dialect="0.3", used=False, with_token=False, why_not="b is not yours"
    )
    found = AgentChecked(
        id="writer",
        reachable=True,
        card=AgentCard(name="Writer", version="2", protocol="1.0"),
        dialect="1.0",
        error=None,
        interfaces=(used, other),
        etag=None,
        checked_at=NOW,
    )
    assert list(check_lines(found)) == [
        ("id", "writer"),
        ("reachable", "yes"),
        ("card", "Writer 2, protocol 1.0"),
        ("dialect", "1.0"),
        ("interface", "https://a.example/ (1.0): used, without the token"),
        ("interface", "https://b.example/ (0.3): not used: b is not yours"),
    ]


def test_a_card_of_which_little_is_known_is_shown_by_its_name() -> None:
    assert ("card", "Writer") in list(agent_lines({"id": "w", "card": {"name": "Writer", "protocol": None}}))
