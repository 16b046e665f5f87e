"""From which address a request comes, at the door: a header that anybody can write is believed of our proxies only."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from world import serving

from horarium.platform.http.connections import UNKNOWN, client_address
from horarium.testing import service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

CLAIM = {"X-Forwarded-For": "198.51.100.1"}


def _address_seen(request: Request) -> str:
    return client_address(request.scope)


@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        ({}, "127.0.0.1"),
        ({"behind_proxy": True}, "198.51.100.1"),
        ({"behind_proxy": True, "trusted_proxies": ["10.0.0.0/8"]}, "127.0.0.1"),
        ({"trusted_proxies": ["127.0.0.0/8"]}, "127.0.0.1"),
    ],
    ids=["plain", "proxy on this machine", "another is the proxy", "not behind a proxy"],
)
def test_who_connects_cannot_choose_an_address(database_url: str, knobs: dict[str, Any], expected: str) -> None:
    """The server by itself would believe whoever connects from this machine."""
    with service(database=database_url, settings=knobs) as running:
        api: FastAPI = running.parts.api
        api.add_api_route("/address", _address_seen, methods=["GET"])
        with serving(running.parts) as url:
            assert httpx.get(f"{url}/address", headers=CLAIM).json() == expected


@pytest.mark.parametrize("scope", [{}, {"client": None}, {"client": ("", 0)}], ids=["none", "null", "empty"])
def test_a_request_without_a_peer_has_an_address_too(dialect: str, scope: dict[str, Any]) -> None:
    assert client_address({"type": "http", "headers": [], **scope}) == UNKNOWN
