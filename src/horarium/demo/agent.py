"""A small agent to try prompts with, of either generation of A2A: `python -m horarium.demo.agent` prints its address.

It is written as somebody else's agent would be: JSON-RPC on loopback, with nothing but the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from horarium.demo.conversation import ASKS, Conversation, NoSuchTask, Said, State, Task, TaskOver

V1_0, V0_3 = "1.0", "0.3"
GENERATIONS: Final = (V1_0, V0_3)
_CARD_PATH = "/.well-known/agent-card.json"
_METHODS: Final = {
    V1_0: {"SendMessage": "send", "GetTask": "get", "CancelTask": "cancel", "ListTasks": "list"},
    V0_3: {"message/send": "send", "tasks/get": "get", "tasks/cancel": "cancel"},
}
_MOST_BYTES = 1_048_576
_PATIENCE_SECONDS = 10
# So late it sees that it should stop.
_LOOK_SECONDS = 0.2


class Failed(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


# ── the protocol ─────────────────────────────────────────────────────────────────────────────────────


class Agent:
    def __init__(self, name: str, generation: str, seconds: float) -> None:
        self.name = name
        self.generation = generation
        self._tasks = Conversation(seconds)
        self._lock = threading.Lock()

    def card(self, url: str) -> dict[str, Any]:
        ours = {
            "name": self.name,
            "description": f"Says what it was told. A prompt with the words {ASKS!r} makes it ask.",
            "version": "1",
            "capabilities": {"streaming": False, "pushNotifications": False},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "repeat", "name": "Repeat", "description": "Says it again.", "tags": ["demo"]}],
        }
        if self.generation == V0_3:
            return {**ours, "url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        return {**ours, "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": V1_0}]}

    def answer(self, body: bytes, version: str | None) -> dict[str, Any]:
        """Errors are answers, too: HTTP 200 with an error inside."""
        request: Any = None
        try:
            try:
                request = json.loads(body)
            except (ValueError, RecursionError):
                raise Failed(-32700, "not JSON") from None
            said: dict[str, Any] = {"result": self._result(request, version)}
        except Failed as wrong:
            said = {"error": {"code": wrong.code, "message": str(wrong)}}
        return {"jsonrpc": "2.0", "id": request.get("id") if isinstance(request, dict) else None, **said}

    def _result(self, request: Any, version: str | None) -> dict[str, Any]:
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            raise Failed(-32600, "not a request")
        method = _METHODS[self.generation].get(request["method"])
        params = request.get("params")
        if method is None:
            raise Failed(-32601, "no such method")
        if self.generation == V1_0 and version != V1_0:
            raise Failed(-32009, "A2A-Version must be 1.0")
        if not isinstance(params, dict):
            raise Failed(-32602, "params must be an object")
        with self._lock:
            return self._called(method, params, time.monotonic())

    def _called(self, method: str, params: Mapping[str, Any], now: float) -> dict[str, Any]:
        try:
            match method:
                case "send":
                    task = self._shown(self._tasks.send(_said(params), now), now)
                    return {"task": task} if self.generation == V1_0 else task
                case "list":
                    found = [self._shown(task, now) for task in self._tasks.of(_text(params, "contextId"))]
                    return {"tasks": found, "totalSize": len(found), "pageSize": len(found), "nextPageToken": ""}
                case "cancel":
                    return self._shown(self._tasks.cancel(_text(params, "id"), now), now)
                case _:
                    return self._shown(self._tasks.get(_text(params, "id")), now)
        except NoSuchTask:
            raise Failed(-32001, "task not found") from None
        except TaskOver:
            raise Failed(-32002 if method == "cancel" else -32004, "the task takes nothing any more") from None

    def _shown(self, task: Task, now: float) -> dict[str, Any]:
        state = task.state(now, self._tasks.seconds)
        status: dict[str, Any] = {"state": self._spelled(state)}
        shown: dict[str, Any] = {"id": task.task_id, "contextId": task.context_id, "status": status}
        if self.generation == V0_3:
            shown["kind"] = "task"
        if state is State.INPUT_REQUIRED:
            status["message"] = self._message(f"{task.task_id}-question", task.question, "agent")
        if state is State.COMPLETED:
            shown["artifacts"] = [{"artifactId": "answer", "name": "answer", "parts": [self._part(task.answer)]}]
        shown["history"] = [self._message(said.message_id, said.text, "user") for said in task.said]
        return shown

    def _spelled(self, state: State) -> str:
        return state.value if self.generation == V0_3 else f"TASK_STATE_{state.value.replace('-', '_').upper()}"

    def _part(self, text: str) -> dict[str, str]:
        return {"kind": "text", "text": text} if self.generation == V0_3 else {"text": text}

    def _message(self, message_id: str, text: str, role: str) -> dict[str, Any]:
        plain = {"messageId": message_id, "parts": [self._part(text)]}
        if self.generation == V0_3:
            return {"kind": "message", "role": role, **plain}
        return {"role": f"ROLE_{role.upper()}", **plain}


def _said(params: Mapping[str, Any]) -> Said:
    message = params.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(parts, list):
        raise Failed(-32602, "message.parts must be a list")
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    context, task = (value if isinstance(value := message.get(name), str) else None for name in ("contextId", "taskId"))
    return Said(_text(message, "messageId"), "\n".join(texts), context or None, task or None)


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise Failed(-32602, f"{name} must be text")
    return value


# ── the server ───────────────────────────────────────────────────────────────────────────────────────


class AgentServer(ThreadingHTTPServer):
    """Its threads end with the process, so nothing is left of it whatever ends that."""

    daemon_threads = True

    def __init__(self, agent: Agent, port: int = 0) -> None:
        self.agent = agent
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def begin(self) -> None:
        threading.Thread(
            target=self.serve_forever, args=(_LOOK_SECONDS,), name=f"agent {self.agent.name}", daemon=True
        ).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_SECONDS

    def do_GET(self) -> None:
        if self.path != _CARD_PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = json.dumps(self.server.agent.card(self.server.url)).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.headers.get("If-None-Match") == etag:
            self._send(HTTPStatus.NOT_MODIFIED, b"", etag)
        else:
            self._send(HTTPStatus.OK, body, etag)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True  # what it sends is not read, and would be taken for the next request
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE if length.isdecimal() else HTTPStatus.LENGTH_REQUIRED)
            return
        said = self.server.agent.answer(self.rfile.read(int(length)), self.headers.get("A2A-Version"))
        self._send(HTTPStatus.OK, json.dumps(said).encode())

    def _send(self, status: HTTPStatus, body: bytes, etag: str | None = None) -> None:
        self.send_response(status)
        if etag is not None:
            self.send_header("ETag", etag)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The log is the service's."""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m horarium.demo.agent", description="A small agent to try prompts with."
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes one that is free")
    parser.add_argument("--protocol", choices=GENERATIONS, default=V1_0)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long it works on a prompt")
    parser.add_argument("--name", default="Demo agent")
    chosen = parser.parse_args(words)
    with AgentServer(Agent(chosen.name, chosen.protocol, chosen.seconds), chosen.port) as server:
        print(server.url, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
