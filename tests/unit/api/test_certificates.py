"""The names in a client certificate, and whom the operator knows by them."""

from __future__ import annotations

from typing import Any

import pytest
from world import FakeClock

from horarium.errors import InvalidDefinition
from horarium.instant import SECOND
from horarium.platform.errors import Unauthorized
from horarium.platform.http.connections import Certificate, Holders, certificate_of, read_certificate
from horarium.platform.settings import Settings
from horarium.platform.wire import Role

NOW = 1_772_323_200
CI = {"principal": "ci", "role": "operator", "namespace": "tenant"}
ROOT = {"principal": "root", "role": "admin", "namespace": "default"}


def peer(*others: tuple[str, str], common: str | None = "CI Runner") -> dict[str, Any]:
    subject = () if common is None else ((("organizationName", "Example"),), (("commonName", common),))
    return {"subject": subject, "subjectAltName": others, "notAfter": "Mar  1 00:01:00 2026 GMT"}


@pytest.mark.parametrize(
    ("said", "names"),
    [
        pytest.param(peer(("DNS", "CI.Example.org")), ("ci.example.org",), id="a host, in capitals"),
        pytest.param(peer(("URI", "spiffe://x/Ci")), ("spiffe://x/Ci",), id="a URI"),
        pytest.param(peer(("email", "Ci@example.org")), ("Ci@example.org",), id="mail"),
        pytest.param(peer(("DNS", "a"), ("URI", "b:c"), ("email", "d@e")), ("a", "b:c", "d@e"), id="several"),
        pytest.param(peer(), ("ci runner",), id="only a common name"),
        pytest.param(peer(("IP Address", "10.0.0.1")), (), id="an address, and a common name that does not count"),
        pytest.param(peer(("DNS", "root@example.org")), (), id="a host that passes for mail"),
        pytest.param(peer(("DNS", "spiffe://x/root")), (), id="a host that passes for a URI"),
        pytest.param(peer(("email", "spiffe://x@y")), (), id="mail that passes for a URI"),
        pytest.param(peer(common="spiffe://x/root"), (), id="a common name that passes for a URI"),
        pytest.param(peer(("DNS", "root\0.example.org")), (), id="a NUL"),
        pytest.param(peer(common="root\n"), (), id="a line end"),
        pytest.param(peer(common="x" * 256), (), id="too long"),
        pytest.param(peer(common=None), (), id="no name"),
        pytest.param(peer(*[("DNS", "x")] * 1_000), ("x",) * 20, id="a thousand names"),
    ],
)
def test_the_names_of_a_certificate(said: dict[str, Any], names: tuple[str, ...]) -> None:
    assert read_certificate(said) == Certificate(names, NOW + 60)


def holders(**known: Any) -> Holders:
    return Holders(Settings(tls_principals=known), FakeClock(NOW * SECOND))


def test_the_first_name_that_is_known_counts() -> None:
    known = Holders(Settings(tls_principals={"CI.example.org": CI, "root": ROOT}), FakeClock(NOW * SECOND))
    assert known.identify(Certificate(("unknown", "ci.example.org", "root"), NOW + 1)) == (
        "ci",
        Role.OPERATOR,
        "tenant",
    )


@pytest.mark.parametrize(
    ("names", "expires_at"),
    [((), NOW + 1), (("stranger",), NOW + 1), (("roo",), NOW + 1), (("root",), NOW)],
    ids=["no name", "a stranger", "nearly", "expired since it connected"],
)
def test_whoever_is_not_known_is_nobody(names: tuple[str, ...], expires_at: int) -> None:
    with pytest.raises(Unauthorized):
        holders(root=ROOT).identify(Certificate(names, expires_at))


@pytest.mark.parametrize("changes", [{"role": "emperor"}, {"principal": "a\nb"}], ids=["role", "principal"])
def test_a_holder_that_cannot_be_is_told_at_the_start(changes: dict[str, str]) -> None:
    with pytest.raises(InvalidDefinition, match="tls_principals"):
        holders(root={**ROOT, **changes})


@pytest.mark.parametrize("scope", [{}, {"state": {}}, {"state": None}], ids=str)
def test_most_requests_come_without(scope: dict[str, Any]) -> None:
    assert certificate_of(scope) is None
