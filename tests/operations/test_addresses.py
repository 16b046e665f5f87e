"""Addresses that a write names: judged within a time limit, by the policy that launches obey."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from horarium.features.resources import MOST, Address, Named, NamedAddresses, judge
from horarium.launchers.ssrf import AddressGuard, AddressPolicy

_KNOWN = {"public.example": "93.184.216.34", "inside.example": "10.1.2.3"}


class Names:
    """A resolver that counts what it is asked; `slow.example` never gets an answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int, group: str) -> Sequence[str]:
        self.asked.append(host)
        if host == "slow.example":
            await asyncio.Event().wait()
        if host[0].isdigit():
            return [host]
        if host not in _KNOWN:
            raise OSError("Name or service not known")
        return [_KNOWN[host]]


def told(*urls: str, resolves: bool = True, names: Names | None = None) -> list[str]:
    named = [Named("schedule", "s", Address("action.url", url)) for url in urls]
    guard = AddressGuard(AddressPolicy(), names or Names())
    return [text for _, text in asyncio.run(judge(guard, "default", named, resolves=resolves, seconds=0.05))]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://public.example/x", None),
        ("https://inside.example/x", "action.url: inside.example is at 10.1.2.3, a private address"),
        ("http://192.168.0.9:8080/", "action.url: 192.168.0.9 is at 192.168.0.9, a private address"),
        ("http://127.0.0.1/", "action.url: 127.0.0.1 is at 127.0.0.1, a loopback address"),
        ("https://typo.exmaple/", "action.url: typo.exmaple cannot be resolved: Name or service not known"),
        ("https://slow.example/", "action.url: slow.example was not resolved within 0.05 s"),
        ("nonsense", None),
    ],
)
def test_an_address_that_cannot_be_called_is_named(url: str, said: str | None) -> None:
    found = told(url)
    assert (found == []) if said is None else found[0].startswith(said)


def test_without_names_only_numeric_addresses_are_judged_and_nothing_is_resolved() -> None:
    names = Names()
    [text] = told("https://inside.example/", "http://10.0.0.1/", resolves=False, names=names)
    assert "10.0.0.1" in text
    assert names.asked == ["10.0.0.1"]


def test_one_host_is_resolved_once_and_all_of_a_request_within_one_limit() -> None:
    names = Names()
    many = [f"https://inside.example/{n}" for n in range(50)] + [f"https://slow{n}.example/" for n in range(2 * MOST)]
    found = told("https://slow.example/", *many, names=names)
    assert names.asked.count("inside.example") == 1
    assert len(set(names.asked)) == MOST
    assert len([text for text in found if "inside.example" in text]) == 50


def test_the_agent_of_an_address_is_named_and_a_repeated_write_names_it_once() -> None:
    named = NamedAddresses()
    for _ in range(2):
        named.add("schedule", "s", [Address("assignee_id", "http://10.0.0.1/", "writer")])
    guard = AddressGuard(AddressPolicy(), Names())
    [(_, text)] = asyncio.run(judge(guard, "default", named.found, resolves=True))
    assert text.startswith("assignee_id: the URL of the agent 'writer': 10.0.0.1 is at")
