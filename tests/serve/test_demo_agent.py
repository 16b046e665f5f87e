"""The small agents of the demonstration, as they answer over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection

import httpx
import pytest

from horarium.demo.agent import V1_0, AgentServer, DemoAgent


@pytest.fixture(scope="module")
def server() -> Iterator[AgentServer]:
    with AgentServer(DemoAgent("Ours", V1_0, seconds=0)) as opened:
        opened.begin()
        yield opened
        opened.shutdown()


def test_it_answers_and_its_card_is_not_sent_twice(server: AgentServer) -> None:
    with httpx.Client(base_url=server.url) as http:
        first = http.get("/.well-known/agent-card.json")
        again = http.get("/.well-known/agent-card.json", headers={"If-None-Match": first.headers["ETag"]})
        assert http.get("/elsewhere").status_code == 404
        said = http.post(
            "/", json={"id": 1, "method": "GetTask", "params": {"id": "a"}}, headers={"A2A-Version": "1.0"}
        )
    assert first.json()["supportedInterfaces"][0]["url"] == server.url
    assert (again.status_code, again.content) == (304, b"")
    assert said.json() == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}}


@pytest.mark.parametrize(("length", "status"), [("99999999", 413), ("-1", 411), (None, 411)])
def test_it_reads_no_body_without_a_bound(server: AgentServer, length: str | None, status: int) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port)
    connection.putrequest("POST", "/")
    if length is not None:
        connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()
