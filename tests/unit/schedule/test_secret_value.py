"""What a secret may be, and where it may go."""

from __future__ import annotations

import pytest

from horarium.policy.names import PolicyError
from horarium.schedule.secret_value import MAX_HOSTS, MAX_VALUE_BYTES, checked_hosts, checked_value, may_go_to


@pytest.mark.parametrize(
    "value",
    ["x", " ", "line\nline", "ключ", "a" * MAX_VALUE_BYTES, "é" * (MAX_VALUE_BYTES // 2)],
    ids=["short", "blank", "lines", "unicode", "longest", "longest-in-bytes"],
)
def test_a_text_of_bounded_size_may_be_secret(value: str) -> None:
    assert checked_value(value) == value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "must be a text"),
        (7, "must be a text"),
        (b"bytes", "must be a text"),
        ("", "is empty"),
        ("a" * (MAX_VALUE_BYTES + 1), "is longer than"),
        ("é" * (MAX_VALUE_BYTES // 2 + 1), "is longer than"),
        ("half \ud800", "half a surrogate pair"),
        ("nul \x00", "U+0000"),
    ],
    ids=["null", "number", "bytes", "empty", "long", "long-in-bytes", "surrogate", "nul"],
)
def test_a_problem_names_the_field_and_never_the_value(value: object, problem: str) -> None:
    with pytest.raises(PolicyError) as wrong:
        checked_value(value)
    assert wrong.value.field == "value"
    assert problem in wrong.value.text
    assert not isinstance(value, str) or len(value) < 2 or value not in wrong.value.text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        (["*"], None),
        (["API.example.com."], ("api.example.com",)),
        (["a.example", "A.example"], ("a.example",)),
        (["10.0.0.1", "[2001:DB8:0::1]"], ("10.0.0.1", "2001:db8::1")),
        (["localhost", "x_y.internal"], ("localhost", "x_y.internal")),
    ],
    ids=["not-said", "any", "case-and-dot", "once", "addresses", "short-names"],
)
def test_hosts_are_kept_as_they_are_compared(given: object, kept: tuple[str, ...] | None) -> None:
    assert checked_hosts(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        [], "a.example", [""], [None], ["https://a.example"], ["a.example:443"], ["a.example/x"], ["*.example"],
        ["*", "a.example"], "*",
        ["a..b"], ["user@a.example"], ["-a.example"], ["bücher.example"], ["x" * 254], ["a" * 64 + ".example"],
        ["a.example"] * (MAX_HOSTS + 1), {"a.example": True},
    ],
)  # fmt: skip
def test_what_is_no_host_name_is_refused(given: object) -> None:
    with pytest.raises(PolicyError, match=r"^hosts"):
        checked_hosts(given)


@pytest.mark.parametrize(
    ("hosts", "host", "may"),
    [
        (None, "anywhere.example", True),
        (("a.example",), "a.example", True),
        (("a.example",), "A.EXAMPLE.", True),
        (("a.example",), "b.a.example", False),
        (("a.example",), "a.example.evil.example", False),
        (("a.example",), "", False),
        (("2001:db8::1",), "[2001:db8:0:0::1]", True),
        (("10.0.0.1",), "10.0.0.2", False),
    ],
)
def test_a_secret_goes_to_its_hosts_only(hosts: tuple[str, ...] | None, host: str, may: bool) -> None:
    assert may_go_to(hosts, host) is may
