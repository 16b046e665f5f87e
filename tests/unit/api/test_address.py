"""Whose address a request has: what callers write into headers counts for nothing, what our proxy writes does."""

from __future__ import annotations

import ipaddress

import pytest

from horarium.platform.http.connections import nearest_client

PROXIES = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "fd00::/8", "192.0.2.1")))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        pytest.param("203.0.113.9", "", "203.0.113.9", id="nobody between"),
        pytest.param("203.0.113.9", "198.51.100.1", "203.0.113.9", id="a stranger who claims to be a proxy"),
        pytest.param("10.0.0.1", "198.51.100.1", "198.51.100.1", id="one proxy"),
        pytest.param("10.0.0.1", "127.0.0.1, 198.51.100.1", "198.51.100.1", id="a client who claims to be another"),
        pytest.param("10.0.0.1", "198.51.100.1, 10.0.0.2,fd00::2", "198.51.100.1", id="a chain of proxies"),
        pytest.param("10.0.0.1", "10.0.0.2, 192.0.2.1", "10.0.0.2", id="a request of a proxy itself"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="a proxy that says nothing"),
        pytest.param("10.0.0.1", "198.51.100.1, unknown", "10.0.0.1", id="a proxy that does not know"),
        pytest.param("10.0.0.1", "198.51.100.1,", "10.0.0.1", id="an empty entry"),
        pytest.param("10.0.0.1", "198.51.100.1:4711", "198.51.100.1", id="with a port"),
        pytest.param("10.0.0.1", "[2001:DB8:0::1]:4711", "2001:db8::1", id="IPv6 with a port"),
        pytest.param("10.0.0.1", "2001:db8::1", "2001:db8::1", id="IPv6"),
        pytest.param("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1", id="IPv4 over an IPv6 socket"),
        pytest.param("fe80::1%eth0", "", "fe80::1", id="a link-local peer"),
        pytest.param("10.0.0.1", "x" * 100_000, "10.0.0.1", id="one long entry"),
        pytest.param("10.0.0.1", "198.51.100.1," + "10.0.0.2," * 100_000 + "10.0.0.3", "10.0.0.2", id="many entries"),
        pytest.param("testclient", "198.51.100.1", "testclient", id="no network between"),
        pytest.param("x" * 500, "", "x" * 64, id="a long name"),
    ],
)
def test_the_nearest_that_is_no_proxy_of_ours(peer: str, forwarded: str, expected: str) -> None:
    assert nearest_client(peer, forwarded.encode(), PROXIES) == expected


def test_without_proxies_of_ours_nobody_is_believed() -> None:
    assert nearest_client("127.0.0.1", b"198.51.100.1", ()) == "127.0.0.1"
