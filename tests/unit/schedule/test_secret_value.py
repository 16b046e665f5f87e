"""What a secret may be, and where it may go."""

from __future__ import annotations

import pytest

from horarium.core.document.definition import pin_of
from horarium.core.document.secret_values import (
    MAX_HOSTS,
    MAX_VALUE_BYTES,
    checked_hosts,
    checked_value,
    host_names,
    may_go_to,
    not_allowed,
)
from horarium.core.policy.queue import PolicyError
from horarium.launchers.requests import destination_of


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
        (None, "must be a string"),
        (7, "must be a string"),
        (b"bytes", "must be a string"),
        ("", "is empty"),
        ("a" * (MAX_VALUE_BYTES + 1), "is longer than"),
        ("é" * (MAX_VALUE_BYTES // 2 + 1), "is longer than"),
        ("half \ud800", "an unpaired surrogate"),
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
        (["https://A.example:443", "https://a.example"], ("a.example",)),
        (["HTTP://a.example.", "http://a.example:80"], ("http://a.example:80",)),
        (["https://a.example:8443", "http://[2001:DB8::1]:81"], ("https://a.example:8443", "http://[2001:db8::1]:81")),
        (["https://[::1]"], ("::1",)),
    ],
    ids=["not-said", "any", "case-and-dot", "once", "addresses", "short-names", "https", "http", "ports", "ipv6"],
)
def test_hosts_are_kept_as_they_are_compared(given: object, kept: tuple[str, ...] | None) -> None:
    assert checked_hosts(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        [], "a.example", [""], [None], ["https://a.example/"], ["a.example:443"], ["a.example/x"], ["*.example"],
        ["ftp://a.example"], ["http://u@a.example"], ["http://a.example:0"], ["http://a.example:65536"],
        ["http://a.example:"], ["http://"], ["http://a.example?x"], ["http://a.example#x"], ["http://::1"],
        ["http://a.example\\@b.example"], ["http://a.example\n"], ["http://b\u00fccher.example"], ["http://*"],
        ["*", "a.example"], "*",
        ["a..b"], ["user@a.example"], ["-a.example"], ["bücher.example"], ["x" * 254], ["a" * 64 + ".example"],
        ["a.example"] * (MAX_HOSTS + 1), {"a.example": True},
    ],
)  # fmt: skip
def test_what_is_no_host_name_is_refused(given: object) -> None:
    with pytest.raises(PolicyError, match=r"^hosts"):
        checked_hosts(given)


def test_a_host_with_a_port_and_no_scheme_is_told_what_to_write() -> None:
    with pytest.raises(PolicyError, match=r"write https://a\.example:8443 or http://a\.example:8443"):
        checked_hosts(["a.example:8443"])


def test_the_hosts_of_a_card_are_names_and_no_pins() -> None:
    assert host_names("allowed_hosts", ["A.example."]) == ("a.example",)
    with pytest.raises(PolicyError, match="allowed_hosts"):
        host_names("allowed_hosts", ["https://a.example"])


@pytest.mark.parametrize(
    ("hosts", "url", "may"),
    [
        (None, "http://anywhere.example/", True),
        (["a.example"], "https://a.example/x", True),
        (["a.example"], "HTTPS://A.EXAMPLE.:443/x", True),
        (["a.example"], "http://a.example/", False),
        (["a.example"], "http://a.example:443/", False),
        (["a.example"], "https://a.example:8443/", False),
        (["a.example"], "https://b.a.example/", False),
        (["a.example"], "https://a.example.evil.example/", False),
        (["a.example"], "", False),
        (["http://a.example:80"], "http://a.example/", True),
        (["http://a.example"], "https://a.example/", False),
        (["https://a.example:8443"], "https://a.example:8443/", True),
        (["https://a.example:8443"], "https://a.example/", False),
        (["2001:db8::1"], "https://[2001:db8:0:0::1]/", True),
        (["2001:db8::1"], "http://[2001:db8::1]/", False),
        (["http://[::1]:9000"], "http://[0:0:0:0:0:0:0:1]:9000/", True),
        (["10.0.0.1"], "https://10.0.0.2/", False),
        (["xn--bcher-kva.example"], "https://b\u00fccher.example/", True),
    ],
)
def test_a_secret_goes_only_where_scheme_host_and_port_are_those_of_a_pin(
    hosts: list[str] | None, url: str, may: bool
) -> None:
    assert may_go_to(checked_hosts(hosts), pin_of(url)) is may
    assert may_go_to(checked_hosts(hosts), destination_of(url)) is may  # as it will be dialled


def test_a_refusal_names_the_missing_pin() -> None:
    text = not_allowed("erp", ("a.example",), "http://a.example:80")
    assert text == (
        "the secret 'erp' may be sent to a.example only, not to http://a.example:80; "
        "set the secret again with http://a.example:80 in its hosts"
    )
    assert "this target has no host" in not_allowed("erp", ("a.example",), "")


@pytest.mark.parametrize(
    ("url", "destination"),
    [
        ("HTTPS://ERP.Example.com.:443/x", "erp.example.com"),
        ("https://erp\u3002example\u3002com/", "erp.example.com"),
        ("https://stra\xdfe.de/", "xn--strae-oqa.de"),
        ("https://xn--strae-oqa.de:8443/", "https://xn--strae-oqa.de:8443"),
        ("https://M\xdcNCHEN.de/", "xn--mnchen-3ya.de"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]:80"),
        ("https://\ufb00.example.com/", ""),
        ("https://user@erp.example.com/", ""),
        ("https://erp.example.com@evil.com/", ""),
        ("https://evil.com\\@erp.example.com/", ""),
        ("https://erp.example.com\t/", ""),
        ("https://erp.example.com:99999/", ""),
    ],
)
def test_a_generated_pin_names_the_host_that_is_dialled(url: str, destination: str) -> None:
    assert pin_of(url) == destination_of(url) == destination
