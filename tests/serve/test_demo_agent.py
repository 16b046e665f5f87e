"""The small agents of the demonstration, as they answer over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any, TypeAlias

import httpx
import pytest

from horarium.demo.agent import V0_3, V1_0, Agent, AgentServer

SEND = {V1_0: "SendMessage", V0_3: "message/send"}
GET = {V1_0: "GetTask", V0_3: "tasks/get"}
CANCEL = {V1_0: "CancelTask", V0_3: "tasks/cancel"}
Ask: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture(params=[V1_0, V0_3], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[AgentServer]:
    with AgentServer(Agent("Ours", request.param, seconds=0)) as opened:
        opened.begin()
        yield opened
        opened.shutdown()


@pytest.fixture
def ask(server: AgentServer) -> Iterator[Ask]:
    with httpx.Client(base_url=server.url, headers={"A2A-Version": server.agent.generation}) as http:

        def call(method: str, params: Any) -> dict[str, Any]:
            body = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
            answered = http.post("/", json=body)
            assert answered.status_code == 200
            document: dict[str, Any] = answered.json()
            assert document.pop("jsonrpc") == "2.0"
            assert document.pop("id") == "r1"
            return document

        yield call


def message(text: str, name: str = "m1", **more: str) -> dict[str, Any]:
    return {"message": {"messageId": name, "contextId": "c1", "parts": [{"text": text}], **more}}


def test_its_card_names_its_generation_and_is_not_sent_twice(server: AgentServer) -> None:
    with httpx.Client(base_url=server.url) as http:
        first = http.get("/.well-known/agent-card.json")
        again = http.get("/.well-known/agent-card.json", headers={"If-None-Match": first.headers["ETag"]})
        assert http.get("/elsewhere").status_code == 404
    card = first.json()
    if server.agent.generation == V1_0:
        assert card["supportedInterfaces"] == [
            {"url": server.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ]
    else:
        assert (card["url"], card["protocolVersion"]) == (server.url, "0.3.0")
    assert (again.status_code, again.content) == (304, b"")


def test_it_answers_in_the_words_of_its_generation(server: AgentServer, ask: Ask) -> None:
    generation = server.agent.generation
    sent = ask(SEND[generation], message("Sweep.", "sweep"))["result"]
    task = sent["task"] if generation == V1_0 else sent
    assert ask(GET[generation], {"id": task["id"]})["result"] == task
    if generation == V1_0:
        assert (task["status"]["state"], task["artifacts"][0]["parts"]) == (
            "TASK_STATE_COMPLETED",
            [{"text": "Done: Sweep."}],
        )
        assert task in ask("ListTasks", {"contextId": "c1"})["result"]["tasks"]
    else:
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "Done: Sweep."}]
    assert [said["messageId"] for said in task["history"]] == ["sweep"]


def test_its_question_is_in_its_status(server: AgentServer, ask: Ask) -> None:
    generation = server.agent.generation
    sent = ask(SEND[generation], message("Order. Ask first: which?", "order"))["result"]
    task = sent["task"] if generation == V1_0 else sent
    assert task["status"]["message"]["parts"][0]["text"] == "which?"
    assert task["status"]["state"] in ("input-required", "TASK_STATE_INPUT_REQUIRED")
    ask(SEND[generation], message("this", "answer", taskId=task["id"]))
    answered = ask(GET[generation], {"id": task["id"]})["result"]
    assert answered["artifacts"][0]["parts"][0]["text"] == "Done (this): Order."


def test_what_it_cannot_do_is_an_error_with_its_code(server: AgentServer, ask: Ask) -> None:
    generation = server.agent.generation
    other = V0_3 if generation == V1_0 else V1_0
    ask(SEND[generation], message("a"))
    cases: list[tuple[str, Any, int]] = [
        (SEND[other], message("a"), -32601),
        (SEND[generation], [], -32602),
        (SEND[generation], {"message": {"parts": []}}, -32602),
        (GET[generation], {"id": "gone"}, -32001),
        (CANCEL[generation], {"id": "task-m1"}, -32002),
        (SEND[generation], message("b", "m2", taskId="task-m1"), -32004),
    ]
    for method, params, code in cases:
        assert ask(method, params)["error"]["code"] == code, method
    with httpx.Client(base_url=server.url) as http:
        assert http.post("/", content=b"{").json()["error"]["code"] == -32700
        assert http.post("/", content=b"[]").json()["error"]["code"] == -32600
        assert http.post("/", content=b"[" * 100_000).json()["error"]["code"] == -32700
        asked = {"jsonrpc": "2.0", "id": 1, "method": SEND[generation], "params": message("a")}
        plain = http.post("/", content=json.dumps(asked)).json()
        assert plain.get("error", {}).get("code") == (-32009 if generation == V1_0 else None)


@pytest.mark.parametrize(("length", "status"), [("99999999", 413), ("-1", 411), (None, 411)])
def test_it_reads_no_body_without_a_bound(server: AgentServer, length: str | None, status: int) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port)
    connection.putrequest("POST", "/")
    if length is not None:
        connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()
