"""Where prompts go by a card, and in which dialect: the registration decides, then what was heard, then the card."""

from __future__ import annotations

import pytest

from horarium.core.document.assignee import AgentProtocol
from horarium.features.agents.teams import checked_interfaces, spoken_dialect
from horarium.launchers.a2a.card import Card, Interface
from horarium.launchers.a2a.dialect import Dialect
from horarium.launchers.launcher import AgentLine

HOME = "https://agents.example.com/writer"
OLD = Interface("https://elsewhere.example.com/", Dialect.V0_3)
NEW = Interface(f"{HOME}/rpc", Dialect.V1_0)


@pytest.mark.parametrize(
    ("url", "allowed", "used", "with_token", "why_not"),
    [
        (f"{HOME}/rpc", [], True, True, None),
        ("https://AGENTS.example.com:8443/", [], True, True, None),
        ("http://agents.example.com/", [], False, False, "registered with https"),
        ("https://elsewhere.example.com/", [], False, False, "elsewhere.example.com is neither"),
        ("https://elsewhere.example.com/", ["elsewhere.example.com"], True, False, None),
        ("https://agents.example.com.evil.example/", [], False, False, "neither"),
        ("https://[::1", [], False, False, "invalid"),
    ],
    ids=["its own", "another port", "in the clear", "elsewhere", "allowed", "looks alike", "broken"],
)
def test_an_address_of_a_card_is_used_or_it_is_said_why_not(
    url: str, allowed: list[str], used: bool, with_token: bool, why_not: str | None
) -> None:
    card = Card("Writer", None, "1.0", (Interface(url, Dialect.V1_0),))
    [found] = checked_interfaces(AgentLine("a", HOME, allowed_hosts=tuple(allowed)), card)
    assert (found.why_not is None, found.with_token) == (used, with_token)
    assert (why_not or "") in (found.why_not or "")


def test_an_address_that_the_token_may_not_see_says_so() -> None:
    card = Card("Writer", None, "1.0", (Interface("https://agents.example.com:8443/", Dialect.V1_0),))
    [found] = checked_interfaces(AgentLine("a", HOME, token_hosts=("agents.example.com",)), card)
    assert found.why_not == "the agent's token may not be sent to https://agents.example.com:8443"


@pytest.mark.parametrize(
    ("protocol", "last", "interfaces", "dialect"),
    [
        (AgentProtocol.V0_3, "1.0", [NEW], "0.3"),
        (AgentProtocol.AUTO, "0.3", [NEW], "0.3"),
        (AgentProtocol.AUTO, None, [OLD, NEW], "1.0"),
        (AgentProtocol.AUTO, None, [OLD], "0.3"),
        (AgentProtocol.AUTO, None, [], None),
        (AgentProtocol.AUTO, None, None, None),
    ],
    ids=["as registered", "as it answered", "where we may go", "as its card says", "an empty card", "no card"],
)
def test_the_dialect_is_that_of_whoever_is_surest(
    protocol: AgentProtocol, last: str | None, interfaces: list[Interface] | None, dialect: str | None
) -> None:
    card = None if interfaces is None else Card("Writer", None, None, tuple(interfaces))
    assert spoken_dialect(protocol, last, checked_interfaces(AgentLine("a", HOME), card), card) == dialect
