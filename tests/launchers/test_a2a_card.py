"""Agent cards: what is read from one, and which addresses may be used for what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from horarium.launchers.a2a.card import Card, CardError, Endpoint, Interface, card_urls, endpoints, read_card, summary
from horarium.launchers.a2a.dialect import Dialect
from horarium.launchers.launcher import AgentLine

OLD, NEW = Dialect.V0_3, Dialect.V1_0
HERE = "https://agent.test/rpc"


def offer(url: str, version: str | None = "1.0", binding: str = "JSONRPC") -> dict[str, Any]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"name": "a"}, Card("a", None, None)),
        (
            {"name": "a", "version": "2", "supportedInterfaces": [offer(HERE)], "capabilities": {}},
            Card("a", "2", "1.0", (Interface(HERE, NEW),)),
        ),
        (
            {"name": "a", "url": HERE, "protocolVersion": "0.3.0", "capabilities": {"pushNotifications": True}},
            Card("a", None, "0.3.0", (Interface(HERE, OLD),), push=True),
        ),
        ({"name": "a", "url": HERE}, Card("a", None, None, (Interface(HERE, OLD),))),
        (
            {"name": "a", "supportedInterfaces": [offer(HERE, "0.3"), offer(HERE, "1.0.3")], "url": HERE},
            Card("a", None, "0.3", (Interface(HERE, NEW), Interface(HERE, OLD))),
        ),
        (
            {
                "name": "a",
                "url": "https://agent.test/grpc",
                "preferredTransport": "GRPC",
                "protocolVersion": "0.3.0",
                "additionalInterfaces": [
                    {"url": HERE, "transport": "jsonrpc"},
                    {"url": HERE, "transport": "HTTP+JSON"},
                ],
            },
            Card("a", None, "0.3.0", (Interface(HERE, OLD),)),
        ),
        (
            {"name": "a", "supportedInterfaces": [offer(HERE, "2.0"), offer(HERE, binding="GRPC"), offer(HERE, None)]},
            Card("a", None, "2.0", (Interface(HERE, NEW),)),
        ),
        ({"name": "a", "supportedInterfaces": [offer("x" * 3_000), {"url": 7}]}, Card("a", None, None)),
        ({"name": "n" * 900, "capabilities": {"pushNotifications": "yes"}}, Card("n" * 199 + "…", None, None)),
    ],
)
def test_a_card_of_either_generation_is_read(document: Any, expected: Card) -> None:
    assert read_card(document) == expected


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "card",
        {},
        {"name": ""},
        {"name": 7},
        {"name": "a", "version": 1.0},
        {"name": "a", "protocolVersion": {}},
        {"name": "a", "supportedInterfaces": {}},
        {"name": "a", "supportedInterfaces": ["https://agent.test"]},
        {"name": "a", "additionalInterfaces": [7]},
        {"name": "a", "capabilities": ["pushNotifications"]},
    ],
)
def test_what_is_no_card_is_refused(document: Any) -> None:
    with pytest.raises(CardError):
        read_card(document)


def test_a_card_of_very_many_interfaces_is_cut() -> None:
    offers = [offer(f"https://agent.test/{number}") for number in range(1_000)]
    assert len(read_card({"name": "a", "supportedInterfaces": offers}).interfaces) == 32


def card(*interfaces: Interface) -> Card:
    return Card("a", None, None, interfaces)


def at(url: str, dialect: Dialect | None = None, *, token: bool = True) -> Endpoint:
    return Endpoint(url, dialect, token)


ELSEWHERE = "https://other.test/rpc"


@pytest.mark.parametrize(
    ("offered", "allowed", "expected"),
    [
        (None, (), (at(HERE),)),
        (card(), (), (at(HERE),)),
        (card(Interface(HERE, NEW)), (), (at(HERE, NEW),)),
        (card(Interface(HERE, NEW), Interface(HERE, OLD)), (), (at(HERE, NEW),)),
        (card(Interface(HERE, OLD)), (), (at(HERE, OLD),)),
        (
            card(Interface("https://agent.test/v1", NEW), Interface("https://AGENT.test.:8443/old", OLD)),
            (),
            (at("https://agent.test/v1", NEW), at("https://AGENT.test.:8443/old", OLD), at(HERE, NEW)),
        ),
        # Elsewhere: not used, and never with the token; what it says of the protocol holds for the registered one.
        (card(Interface(ELSEWHERE, OLD)), (), (at(HERE, OLD),)),
        (card(Interface(ELSEWHERE, NEW)), ("Other.test",), (at(ELSEWHERE, NEW, token=False), at(HERE, NEW))),
        (card(Interface(ELSEWHERE, NEW)), ("other.test:443",), (at(ELSEWHERE, NEW, token=False), at(HERE, NEW))),
        (card(Interface(ELSEWHERE, NEW)), ("other.test:80", "test"), (at(HERE, NEW),)),
        (card(Interface("https://sub.agent.test/", NEW)), ("agent.test",), (at(HERE, NEW),)),
        # Without encryption: not used.
        (card(Interface("http://agent.test/", NEW)), (), (at(HERE, NEW),)),
        (card(Interface("http://agent.test/", NEW)), ("agent.test",), (at(HERE, NEW),)),
        (card(Interface("http://other.test:443/", NEW)), ("other.test",), (at(HERE, NEW),)),
        # Addresses that two readers could take for two hosts, or that nothing is sent to.
        (card(Interface("https://agent.test@other.test/", NEW)), (), (at(HERE, NEW),)),
        (card(Interface("https://other.test\\@agent.test/", NEW)), (), (at(HERE, NEW),)),
        (card(Interface("https://agent.test:99999/", NEW)), (), (at(HERE, NEW),)),
        (card(Interface("file://agent.test/etc/passwd", NEW)), (), (at(HERE, NEW),)),
        (card(Interface("/rpc", NEW)), (), (at(HERE, NEW),)),
    ],
)
def test_the_card_proposes_and_the_registered_address_decides(
    offered: Card | None, allowed: tuple[str, ...], expected: tuple[Endpoint, ...]
) -> None:
    assert endpoints(AgentLine("a", HERE, allowed_hosts=allowed), offered) == expected


def test_the_token_goes_only_to_the_place_that_its_pins_name() -> None:
    """Another port of the same host is another place, which is called without the token or not at all."""
    port = "https://agent.test:8443/v1"
    offered = card(Interface("https://AGENT.test./v1", NEW), Interface(port, NEW), Interface("http://agent.test/", NEW))
    pinned = AgentLine("a", HERE, token="t", token_hosts=("agent.test",))
    assert endpoints(pinned, offered) == (at("https://AGENT.test./v1", NEW), at(HERE, NEW))
    listed = replace(pinned, allowed_hosts=("agent.test",))
    assert at(port, NEW, token=False) in endpoints(listed, offered)
    both = replace(pinned, token_hosts=("agent.test", "https://agent.test:8443"))
    assert at(port, NEW) in endpoints(both, offered)


@pytest.mark.parametrize(
    ("pins", "used"),
    [
        ((), True),
        ((("other.test", "agent.test"),), True),
        ((("agent.test",),), False),
        ((("other.test", "agent.test"), ("agent.test",)), False),
        ((("http://other.test:80", "agent.test"),), False),
    ],
    ids=["no pinned secret", "both places", "the agent's own", "one of two", "another scheme"],
)
def test_a_prompt_goes_nowhere_that_one_of_its_secrets_may_not_go(
    pins: tuple[tuple[str, ...], ...], used: bool
) -> None:
    line = AgentLine("a", HERE, allowed_hosts=("other.test",), input_hosts=pins)
    found = endpoints(line, card(Interface(ELSEWHERE, NEW)))
    assert (at(ELSEWHERE, NEW, token=False) in found) is used
    assert found[-1] == at(HERE, NEW)


def test_the_generation_that_is_wanted_comes_first() -> None:
    both = card(Interface("https://agent.test/v1", NEW), Interface("https://agent.test/old", OLD))
    assert [each.dialect for each in endpoints(AgentLine("a", HERE), both, prefer=OLD)] == [OLD, NEW, OLD]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://agent.test", ["agent.test/.well-known/agent-card.json", "agent.test/.well-known/agent.json"]),
        ("https://agent.test/?x=1", ["agent.test/.well-known/agent-card.json", "agent.test/.well-known/agent.json"]),
        (
            "https://agent.test:8443/a/rpc/",
            [
                "agent.test:8443/a/rpc/.well-known/agent-card.json",
                "agent.test:8443/.well-known/agent-card.json",
                "agent.test:8443/a/rpc/.well-known/agent.json",
                "agent.test:8443/.well-known/agent.json",
            ],
        ),
    ],
)
def test_the_card_is_looked_for_where_it_may_be(url: str, expected: list[str]) -> None:
    assert list(card_urls(url)) == [f"https://{each}" for each in expected]


@pytest.mark.parametrize(
    ("document", "kept"),
    [
        ({"name": "Writer", "skills": ["x" * 1_000]}, {"name": "Writer", "version": None, "protocol": None}),
        ({"name": ""}, None),
        (None, None),
    ],
    ids=["its name", "no card", "nothing"],
)
def test_little_of_a_card_is_kept(document: object, kept: object) -> None:
    assert summary(document) == kept
