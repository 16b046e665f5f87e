"""Agents: what their document may say, and that it says the same when it is read again."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.secret_values import MAX_HOSTS
from horarium.core.policy.queue import PolicyError
from horarium.features.agents.definition import agent_document, parse_agent


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], None),
        (["b.example.com", "a.example.com"], ["b.example.com", "a.example.com"]),
        (["A.Example.com.", "a.example.com", "[2001:DB8::1]"], ["a.example.com", "2001:db8::1"]),
    ],
    ids=["none", "in their order", "as they are compared"],
)
def test_hosts_of_a_card_are_kept_as_they_are_compared(given: list[str], kept: list[str] | None) -> None:
    document = agent_document(parse_agent({"id": "writer", "allowed_hosts": given}))
    assert document == {"id": "writer"} | ({} if kept is None else {"allowed_hosts": kept})
    assert agent_document(parse_agent(document)) == document


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("a.example.com", "allowed_hosts"),
        ([f"h{n}.example.com" for n in range(MAX_HOSTS + 1)], "allowed_hosts"),
        (["a.example.com", "*"], "allowed_hosts.1"),
        (["https://a.example.com"], "allowed_hosts.0"),
        (["a.example.com:8080"], "allowed_hosts.0"),
        ([7], "allowed_hosts.0"),
        (["ex\u00e4mple.com"], "allowed_hosts.0"),
    ],
    ids=["a text", "too many", "any", "an address", "a port", "a number", "not ASCII"],
)
def test_what_is_no_host_is_refused_by_its_place(given: Any, field: str) -> None:
    with pytest.raises(PolicyError) as wrong:
        parse_agent({"id": "writer", "allowed_hosts": given})
    assert wrong.value.field == field
