"""`horarium ui`: the address that signs a browser in, opened or printed."""

from __future__ import annotations

import json
import webbrowser
from urllib.parse import urlsplit

import httpx
import pytest
from api.worlds import OUR_PAGE
from cli.served import Server

from horarium.cli.context import address_of


def test_the_default_browser_is_opened_and_is_signed_in(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_in_browser(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_in_browser)
    answer = server.ask("ui")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    [address] = opened
    assert address.startswith(f"{server.url}/ui/#token=hsc_")
    token = urlsplit(address).fragment.removeprefix("token=")
    signed_in = httpx.post(f"{server.url}/api/session", json={"token": token}, headers=OUR_PAGE)
    assert (signed_in.status_code, signed_in.json()["role"]) == (200, "admin")
    assert server.told("ui", "--print").startswith(f"{server.url}/ui/#token=hsc_")
    assert json.loads(server.told("ui", "-o", "json"))["url"].startswith(f"{server.url}/ui/")
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    none = server.ask("ui")
    assert (none.code, "--print" in none.err) == (1, True)
    assert server.ask("ui", "--token", "hor_wrong").code == 4


@pytest.mark.parametrize(
    ("server", "code", "address"),
    [
        ("http://127.0.0.1:8765", "hsc_x", "http://127.0.0.1:8765/ui/#token=hsc_x"),
        ("https://example.org/horarium/", "hsc_x", "https://example.org/horarium/ui/#token=hsc_x"),
        ("https://example.org", None, "https://example.org/ui/"),
    ],
)
def test_the_address_is_below_that_of_the_server(server: str, code: str | None, address: str) -> None:
    assert address_of(server, code) == address
