"""Refusals are counted in bounded room, whoever asks and however often."""

from __future__ import annotations

import pytest

from horarium.core.audit_entries import Act
from horarium.instant import MINUTE
from horarium.platform.caller import Caller
from horarium.platform.http.audited import MOST_ALIKE, RefusalKey, Tally, refusal_of
from horarium.platform.wire import Role

FAILED, REFUSED = Act.LOGIN_FAILED, Act.PERMISSION_REFUSED


def tally_of(*refusals: RefusalKey, at: int = 0) -> Tally:
    tally = Tally()
    for number, refusal in enumerate(refusals):
        tally.add(refusal, at, f"r{number}", "api")
    return tally


def test_a_flood_from_one_address_is_one_entry_a_minute() -> None:
    tally = tally_of(*[RefusalKey("default", FAILED, "192.0.2.1")] * 1_000)
    tally.add(RefusalKey("default", FAILED, "192.0.2.1"), MINUTE, "later", "api")
    (deed,) = tally.take(MINUTE)[0, "default"]
    assert (deed.act, deed.address, deed.request_id, deed.detail) == (FAILED, "192.0.2.1", "r0", {"count": 1_000})
    assert [each.detail["count"] for each in tally.take(2 * MINUTE)[1, "default"]] == [1]
    assert tally.take(None) == {}


def test_a_flood_from_everywhere_leaves_few_entries_and_all_are_counted() -> None:
    tally = tally_of(*(RefusalKey("default", FAILED, f"2001:db8::{number:x}") for number in range(10_000)))
    assert len(tally.found) <= MOST_ALIKE + 1
    deeds = tally.take(None)[0, "default"]
    assert sum(int(deed.detail["count"] or 0) for deed in deeds) == 10_000
    assert len([deed for deed in deeds if deed.address is None]) == 1


def test_one_tenant_s_flood_hides_nobody_else_s() -> None:
    loud = [RefusalKey("loud", REFUSED, "192.0.2.1", f"p{number}", "x", "forbidden") for number in range(500)]
    deeds = tally_of(*loud, RefusalKey("quiet", REFUSED, "192.0.2.2", "q", "x", "forbidden")).take(None)
    assert [(deed.principal, deed.detail["count"]) for deed in deeds[0, "quiet"]] == [("q", 1)]
    assert len(deeds[0, "loud"]) <= MOST_ALIKE + 2


def test_all_namespaces_together_are_bounded_too() -> None:
    tally = Tally(most=10)
    for number in range(1_000):
        tally.add(RefusalKey(f"n{number % 4}", REFUSED, str(number)), 0, None, None)
    assert len(tally.found) <= 10 + 4


@pytest.mark.parametrize(
    ("act", "caller", "expected"),
    [
        pytest.param(FAILED, None, RefusalKey("default", FAILED, "192.0.2.1"), id="a stranger"),
        pytest.param(REFUSED, None, RefusalKey("default", REFUSED, "192.0.2.1"), id="nobody known"),
        pytest.param(
            REFUSED,
            Caller("ann", Role.VIEWER, "tenant"),
            RefusalKey("tenant", REFUSED, "192.0.2.1", "ann", "issue_token", "forbidden"),
            id="a caller",
        ),
    ],
)
def test_a_refusal_stands_where_it_belongs(act: Act, caller: Caller | None, expected: RefusalKey) -> None:
    assert refusal_of(act, caller, "192.0.2.1", "issue_token", "forbidden") == expected
