"""What counts as one client, how often it may fail, and how many streams may be open."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from horarium.features.history.streams import Streams
from horarium.platform.http.connections import FailedLogins, LoginsFailed, TooManyStreams, network_of
from horarium.testing import FakeClock


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_machine_is_one_client_whichever_of_its_addresses_it_takes(address: str, network: str) -> None:
    assert network_of(address) == network


def failed(logins: FailedLogins, address: str) -> bool:
    try:
        logins.count(address)
    except LoginsFailed:
        return False
    return True


def test_an_address_may_fail_so_often_a_minute_and_others_are_not_its_business() -> None:
    clock = FakeClock()
    logins = FailedLogins(clock, per_minute=3)
    assert [failed(logins, f"2001:db8::{n}") for n in range(1, 6)] == [True, True, True, False, False]
    assert failed(logins, "2001:db8:0:1::1")
    clock.advance(10)  # half of what one more takes
    assert not failed(logins, "2001:db8::7")
    clock.advance(10)
    assert [failed(logins, "2001:db8::7") for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("opened", "wanted", "fits"),
    [
        pytest.param([("t", "a")], ("t", "a"), True, id="room for another"),
        pytest.param([("t", "a"), ("t", "a")], ("t", "a"), False, id="the token has all it may have"),
        pytest.param([("t", "a"), ("t", "a")], ("u", "a"), True, id="another token of the namespace"),
        pytest.param([("t", "a"), ("u", "a"), ("v", "a")], ("w", "a"), False, id="the namespace has its half"),
        pytest.param([("t", "a"), ("u", "a"), ("v", "a")], ("x", "b"), True, id="another namespace has the other"),
        pytest.param([(n, n[0]) for n in ("a1", "a2", "b1", "b2", "c1", "c2")], ("d", "d"), False, id="all are open"),
    ],
)
def test_how_many_streams_may_be_open(opened: list[tuple[str, str]], wanted: tuple[str, str], fits: bool) -> None:
    streams = Streams(of_token=2, most=6)
    with ExitStack() as stack:
        for token, namespace in opened:
            stack.enter_context(streams.opened(token, namespace))
        if fits:
            stack.enter_context(streams.opened(*wanted))
        else:
            with pytest.raises(TooManyStreams):
                stack.enter_context(streams.opened(*wanted))
    with streams.opened(*wanted):  # what was closed is free again
        pass
