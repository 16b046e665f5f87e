"""Whose page made a browser ask, by what it says; the order of the headers is that of the Fetch Metadata draft."""

from __future__ import annotations

import pytest

from horarium.platform.http.browser_sessions import RequestSource, is_foreign, is_our_page, origin_of

OWN = "https://horarium.example"
EVIL = "https://evil.example"


@pytest.mark.parametrize(
    ("method", "site", "origin", "source", "counts"),
    [
        pytest.param("GET", "same-origin", None, None, True, id="our page looks"),
        pytest.param("GET", "none", None, None, True, id="a typed address"),
        pytest.param("GET", None, None, None, True, id="a browser that says nothing, over plain HTTP"),
        pytest.param("GET", "cross-site", None, None, False, id="a link or an image of another site"),
        pytest.param("GET", "same-site", None, "ui", False, id="another port of this host"),
        pytest.param("GET", None, EVIL, None, False, id="a script of another site, over plain HTTP"),
        pytest.param("GET", None, OWN, None, True, id="a script of ours, over plain HTTP"),
        pytest.param("GET", "anything else", None, "ui", False, id="a word that nobody knows yet"),
        pytest.param("HEAD", "same-origin", None, None, True, id="HEAD is as GET"),
        pytest.param("POST", "same-origin", OWN, "ui", True, id="our page writes"),
        pytest.param("POST", "same-origin", "http://behind:8765", "ui", True, id="a proxy has changed the host"),
        pytest.param("POST", None, OWN, "ui", True, id="our page writes over plain HTTP"),
        pytest.param("POST", "same-origin", OWN, None, False, id="a form in a page of ours"),
        pytest.param("POST", "same-origin", OWN, "cli", False, id="another program"),
        pytest.param("POST", "none", None, "ui", False, id="nobody writes by a typed address"),
        pytest.param("POST", None, None, "ui", False, id="a write that does not say where it is from"),
        pytest.param("POST", "cross-site", EVIL, "ui", False, id="another site writes"),
        pytest.param("POST", "same-site", "https://other.example", "ui", False, id="a neighbour writes"),
        pytest.param("POST", None, EVIL, "ui", False, id="another site writes over plain HTTP"),
        pytest.param("POST", None, "null", "ui", False, id="a sandboxed frame"),
        pytest.param("POST", None, "http://horarium.example", "ui", False, id="the same host without TLS"),
        pytest.param("POST", None, f"{OWN}:8443", "ui", False, id="the same host on another port"),
        pytest.param("DELETE", "same-origin", OWN, "ui", True, id="our page deletes"),
        pytest.param("DELETE", "cross-site", OWN, "ui", False, id="what the browser says of the site counts"),
    ],
)
def test_a_cookie_counts_for_our_own_pages_alone(
    method: str, site: str | None, origin: str | None, source: str | None, counts: bool
) -> None:
    assert is_our_page(RequestSource(method, site, origin, source, {OWN})) is counts


@pytest.mark.parametrize(
    ("site", "origin", "foreign"),
    [
        pytest.param(None, None, False, id="a program"),
        pytest.param("same-origin", OWN, False, id="our page"),
        pytest.param("none", None, False, id="a typed address"),
        pytest.param("cross-site", EVIL, True, id="another site"),
        pytest.param("same-site", None, True, id="a neighbour"),
        pytest.param(None, EVIL, True, id="another site over plain HTTP"),
        pytest.param(None, "null", True, id="a sandboxed frame"),
    ],
)
def test_what_a_certificate_is_not_good_for(site: str | None, origin: str | None, foreign: bool) -> None:
    assert is_foreign(RequestSource("POST", site, origin, None, {OWN})) is foreign


@pytest.mark.parametrize(
    ("scheme", "host", "origin"),
    [
        ("https", "Horarium.Example", "https://horarium.example"),
        ("https", "horarium.example:443", "https://horarium.example"),
        ("http", "horarium.example:443", "http://horarium.example:443"),
        ("http", "127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("http", "[::1]:80", "http://[::1]"),
        ("https", "", "https://"),
    ],
)
def test_an_origin_is_spelled_as_browsers_do(scheme: str, host: str, origin: str) -> None:
    assert origin_of(scheme, host) == origin
