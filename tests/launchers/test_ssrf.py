"""The guard judges addresses, whatever name or spelling leads to them, and the judged address is the one dialled."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

import pytest
from launchers.far_ends import FixedClock, HttpFarEnd, answer, request_for

from horarium.core.lifecycle.outcome import Finished, Outcome, Refused
from horarium.launchers.http import HttpLauncher
from horarium.launchers.ssrf import (
    AddressForbidden,
    AddressGuard,
    AddressPolicy,
    Permitted,
    Range,
    Resolver,
    Unresolved,
    Verdict,
    range_of,
)


def answering(*addresses: str) -> Resolver:
    async def resolver(_host: str, _port: int, _group: str) -> Sequence[str]:
        return addresses

    return resolver


def judge(guard: AddressGuard, host: str = "hooks.example") -> Verdict:
    return asyncio.run(guard.judge(host, 443))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", Range.PUBLIC),
        ("2606:4700::1111", Range.PUBLIC),
        ("127.0.0.1", Range.LOOPBACK),
        ("127.255.255.254", Range.LOOPBACK),
        ("::1", Range.LOOPBACK),
        ("10.0.0.1", Range.PRIVATE),
        ("172.31.255.255", Range.PRIVATE),
        ("172.32.0.1", Range.PUBLIC),
        ("192.168.1.1", Range.PRIVATE),
        ("100.64.0.1", Range.PRIVATE),
        ("fd12::1", Range.PRIVATE),
        ("169.254.169.254", Range.LINK_LOCAL),
        ("fe80::1", Range.LINK_LOCAL),
        ("fe80::1%eth0", Range.LINK_LOCAL),
        ("fd00:ec2::254", Range.METADATA),
        ("fd00:ec2::23", Range.METADATA),
        ("fd20:ce::254", Range.METADATA),
        ("fd00:c1::a9fe:a9fe", Range.METADATA),
        ("fd00:42::42", Range.METADATA),
        ("fd00:a9fe:a9fe::1", Range.METADATA),
        ("fd00:100::100:200", Range.METADATA),
        ("fd20:ce::254%eth0", Range.METADATA),
        ("::ffff:100.100.100.200", Range.METADATA),
        ("fd20:ce::255", Range.PRIVATE),
        ("100.100.100.200", Range.METADATA),
        ("168.63.129.16", Range.METADATA),
        ("192.0.0.192", Range.METADATA),
        ("0.0.0.0", Range.SPECIAL),
        ("0.1.2.3", Range.SPECIAL),
        ("192.0.0.9", Range.SPECIAL),
        ("192.0.2.1", Range.SPECIAL),
        ("198.18.0.1", Range.SPECIAL),
        ("224.0.0.1", Range.SPECIAL),
        ("255.255.255.255", Range.SPECIAL),
        ("::", Range.SPECIAL),
        ("::127.0.0.1", Range.SPECIAL),
        ("ff02::1", Range.SPECIAL),
        ("fec0::1", Range.SPECIAL),
        ("2001::1", Range.SPECIAL),
        ("2001:db8::1", Range.SPECIAL),
        ("2002:7f00:1::", Range.SPECIAL),
        ("64:ff9b:1::1", Range.SPECIAL),
        ("64:ff9b:1::7f00:1", Range.SPECIAL),
        ("::ffff:0:127.0.0.1", Range.SPECIAL),
        ("2002:a9fe:a9fe::1", Range.SPECIAL),
        ("::ffff:127.0.0.1", Range.LOOPBACK),
        ("::ffff:169.254.169.254", Range.LINK_LOCAL),
        ("::ffff:8.8.8.8", Range.PUBLIC),
        ("64:ff9b::a9fe:a9fe", Range.LINK_LOCAL),
        ("64:ff9b::808:808", Range.PUBLIC),
    ],
)
def test_an_address_belongs_to_a_range(address: str, expected: Range) -> None:
    assert range_of(ipaddress.ip_address(address)) is expected


def test_every_range_is_closed_by_default_but_the_public_one() -> None:
    examples = {
        Range.PUBLIC: "8.8.8.8",
        Range.LOOPBACK: "::1",
        Range.PRIVATE: "10.1.1.1",
        Range.LINK_LOCAL: "169.254.169.254",
        Range.METADATA: "fd00:ec2::254",
        Range.SPECIAL: "0.0.0.0",
    }
    assert set(examples) == set(Range)
    verdicts = {name: judge(AddressGuard(resolver=answering(address))) for name, address in examples.items()}
    assert [name for name, verdict in verdicts.items() if isinstance(verdict, Permitted)] == [Range.PUBLIC]


@pytest.mark.parametrize(
    ("policy", "address", "permitted"),
    [
        (AddressPolicy(allow_loopback=True), "127.0.0.1", True),
        (AddressPolicy(allow_loopback=True), "10.0.0.1", False),
        (AddressPolicy(allow_private=True), "10.0.0.1", True),
        (AddressPolicy(allow_private=True), "127.0.0.1", False),
        (AddressPolicy(allow_private=True), "169.254.169.254", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "fd00:ec2::254", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "fd20:ce::254", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "fd00:c1::a9fe:a9fe", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "100.100.100.200", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "64:ff9b:1::7f00:1", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "::127.0.0.1", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "2002:7f00:1::", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "::", False),
        (AddressPolicy(allow_private=True, allow_loopback=True), "0.0.0.0", False),
        (AddressPolicy(allowed=(ipaddress.ip_network("10.1.0.0/16"),)), "10.1.2.3", True),
        (AddressPolicy(allowed=(ipaddress.ip_network("10.1.0.0/16"),)), "10.2.2.3", False),
        (AddressPolicy(allowed=(ipaddress.ip_network("169.254.169.254/32"),)), "::ffff:169.254.169.254", True),
    ],
)
def test_the_operator_opens_what_is_named(policy: AddressPolicy, address: str, permitted: bool) -> None:
    assert isinstance(judge(AddressGuard(policy, answering(address))), Permitted) is permitted


def test_one_forbidden_address_among_good_ones_is_enough() -> None:
    verdict = judge(AddressGuard(resolver=answering("8.8.8.8", "10.0.0.1")))
    assert isinstance(verdict, AddressForbidden)
    assert "10.0.0.1, a private address" in verdict.error


def test_the_order_of_the_resolver_is_kept_and_repeats_are_dropped() -> None:
    assert judge(AddressGuard(resolver=answering("8.8.4.4", "8.8.8.8", "8.8.4.4"))) == Permitted(("8.8.4.4", "8.8.8.8"))


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "localhost", "127.0.0.1"])
def test_every_spelling_of_loopback_is_seen_through(host: str) -> None:
    assert isinstance(judge(AddressGuard(), host), AddressForbidden)


@pytest.mark.parametrize(
    ("resolver", "host", "expected"),
    [
        (answering(), "a.example", Unresolved),
        (answering("no address"), "a.example", AddressForbidden),
        (answering("8.8.8.8"), "", AddressForbidden),
        (answering("8.8.8.8"), "a" * 254, AddressForbidden),
    ],
    ids=["nothing", "nonsense", "empty", "long"],
)
def test_odd_names_and_answers(resolver: Resolver, host: str, expected: type) -> None:
    assert isinstance(judge(AddressGuard(resolver=resolver), host), expected)


def test_a_failing_resolver_is_no_refusal() -> None:
    async def fails(_host: str, _port: int, _group: str) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    assert isinstance(judge(AddressGuard(resolver=fails)), Unresolved)


def _launch(resolver: Resolver, policy: AddressPolicy) -> tuple[Outcome, int]:
    async def run() -> tuple[Outcome, int]:
        async with HttpFarEnd({"/": answer("200 OK")}) as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(policy, resolver))
            outcome = await launcher.launch(request_for("http", {"url": far.url("/", "rebind.example")}))
            await launcher.close()
            return outcome, len(far.received)

    return asyncio.run(run())


def test_the_name_is_looked_up_once_and_the_checked_address_is_dialled() -> None:
    asked: list[str] = []

    async def rebinding(host: str, _port: int, _group: str) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    assert _launch(rebinding, AddressPolicy(allow_loopback=True)) == (Finished(None), 1)
    assert asked == ["rebind.example"]


def test_a_forbidden_target_is_never_dialled() -> None:
    outcome, received = _launch(answering("127.0.0.1"), AddressPolicy())
    assert isinstance(outcome, Refused)
    assert "loopback" in outcome.error
    assert received == 0


def test_the_next_address_is_tried_when_the_first_does_not_answer() -> None:
    assert _launch(answering("127.0.0.2", "127.0.0.1"), AddressPolicy(allow_loopback=True)) == (Finished(None), 1)
