"""An agent is asked what it is: what is found, shown and kept, whatever the agent does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from launchers.far_ends import HttpFarEnd, answer

from horarium.features.agents import teams
from horarium.launchers.a2a.card import MAX_CARD_BYTES, WELL_KNOWN
from horarium.testing import TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
def horarium(start: str, service_url: str) -> Iterator[TestService]:
    with service(at=start, database=service_url, settings={"allow_loopback_targets": True}) as running:
        yield running


@pytest.fixture
def far() -> Iterator[HttpFarEnd]:
    """A web server in a thread of its own: the service has its own loop."""
    loop, found = asyncio.new_event_loop(), HttpFarEnd()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(found.__aenter__(), loop).result(60)
    yield found
    asyncio.run_coroutine_threadsafe(found.__aexit__(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


def card(*urls: str, **members: Any) -> bytes:
    offered = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in urls]
    document = {"name": "Writer", "version": "2.1.0", "supportedInterfaces": offered, **members}
    return answer("200 OK", document, etag='"7"')


def check(http: httpx.Client, agent_id: str = "writer") -> dict[str, Any]:
    found = http.post(f"/api/agents/{agent_id}/check")
    assert found.status_code == 200, found.text
    body: dict[str, Any] = found.json()
    return body


def test_what_is_found_is_told_and_kept_until_the_agent_moves(http: httpx.Client, far: HttpFarEnd) -> None:
    here, elsewhere = far.url("/rpc"), "https://elsewhere.example.com/rpc"
    far.answers[WELL_KNOWN] = card(here, elsewhere)
    agent = {"url": far.url("/"), "token": "s3cret-t0ken"}
    http.put("/api/agents/writer", json=agent).raise_for_status()
    assert (http.get("/api/agents/writer").json()["card"], far.received) == (None, [])

    found = check(http)
    assert (found["reachable"], found["dialect"], found["error"], found["etag"]) == (True, "1.0", None, '"7"')
    assert found["card"] == {"name": "Writer", "version": "2.1.0", "protocol": "1.0"}
    told = [(each["url"], each["used"], each["with_token"]) for each in found["interfaces"]]
    assert told == [(here, True, True), (elsewhere, False, False)]
    assert "elsewhere.example.com" in found["interfaces"][1]["why_not"]
    assert all("authorization" not in each.headers for each in far.received)

    http.put("/api/agents/writer", json={**agent, "allowed_hosts": ["elsewhere.example.com"]}).raise_for_status()
    allowed = check(http)["interfaces"][1]
    assert (allowed["used"], allowed["with_token"], allowed["why_not"]) == (True, False, None)

    shown = http.get("/api/agents/writer").json()
    assert (shown["card"], shown["card_at"], shown["card_error"]) == (found["card"], found["checked_at"], None)
    assert http.get("/api/agents").json()["agents"][0]["card"] == found["card"]
    far.answers[WELL_KNOWN] = answer("500 Internal Server Error")
    assert check(http)["card"] is None
    kept = http.get("/api/agents/writer").json()
    assert (kept["card"], "HTTP 500" in kept["card_error"]) == (found["card"], True), "what was known is still known"
    http.put("/api/agents/writer", json={"url": far.url("/moved")}).raise_for_status()
    moved = http.get("/api/agents/writer").json()
    assert [moved[each] for each in ("card", "card_at", "card_error")] == [None] * 3


def test_an_agent_that_lies_is_an_answer_too(http: httpx.Client, far: HttpFarEnd) -> None:
    """One that points elsewhere is not followed, and of one that is endless no more is read than a card may have."""
    served = {
        "HTTP 404": answer("404 Not Found"),
        "not JSON": answer("200 OK", "<html>"),
        "no name": answer("200 OK", {"version": "1"}),
        "larger than": answer("200 OK", {"name": "x" * MAX_CARD_BYTES}),
        "HTTP 302": answer("302 Found", location="http://169.254.169.254/"),
    }
    http.put("/api/agents/writer", json={"url": far.url("")}).raise_for_status()
    for error, far.answers[WELL_KNOWN] in served.items():
        found = check(http)
        assert (found["reachable"], found["card"], found["interfaces"]) == (True, None, []), error
        assert error in found["error"]
        assert http.get("/api/agents/writer").json()["card_error"] == found["error"]


def test_an_agent_that_hangs_is_not_waited_for(
    http: httpx.Client, far: HttpFarEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teams, "CHECK_SECONDS", 0.2)
    far.routes[WELL_KNOWN] = far.routes["/slow"]
    http.put("/api/agents/writer", json={"url": far.url("")}).raise_for_status()
    found = check(http)
    assert (found["reachable"], found["card"], found["dialect"]) == (False, None, None)


def test_whom_nobody_can_ask(http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    http.put("/api/agents/writer", json={}).raise_for_status()
    nowhere = http.post("/api/agents/writer/check")
    assert (nowhere.status_code, list(nowhere.json()["errors"])) == (422, ["url"])
    assert http.post("/api/agents/nobody/check").status_code == 404
    http.put("/api/agents/writer", json={"url": "http://169.254.169.254/"}).raise_for_status()
    assert (check(http)["reachable"], "169.254.169.254" in check(http)["error"]) == (False, True)
    monkeypatch.setitem(horarium.resources.asking, "default", teams.MOST_AT_ONCE)
    assert http.post("/api/agents/writer/check").status_code == 409
