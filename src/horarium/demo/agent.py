"""A demo agent for A2A 0.3 or 1.0: `python -m horarium.demo.agent` prints its URL.

It works for a second and echoes the prompt. A prompt with `Ask first:` makes it ask the question that follows. A
repeated message returns the same task. It uses only the standard library, like an external agent.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

V1_0, V0_3 = "1.0", "0.3"
# The oldest tasks are dropped: a demo may run for weeks.
MOST_TASKS = 1_000
_ASKS = "Ask first:"
_CARD_PATH = "/.well-known/agent-card.json"
_METHODS: Final = {
    V1_0: {"SendMessage": "send", "GetTask": "get", "CancelTask": "cancel", "ListTasks": "list"},
    V0_3: {"message/send": "send", "tasks/get": "get", "tasks/cancel": "cancel"},
}
_MOST_BYTES = 1_048_576
_PATIENCE_SECONDS = 10
# The interval at which it checks whether to stop.
_LOOK_SECONDS = 0.2


class Failed(Exception):
    """A JSON-RPC error, with its code."""


@dataclass(slots=True)
class DemoTask:
    """A task: `said` has the received messages (ID, text), `since` the time of the last one."""

    task_id: str
    context_id: str
    said: list[tuple[str, str]]
    since: float
    canceled: bool = False

    def state(self, now: float, seconds: float) -> str:
        if self.canceled:
            return "canceled"
        if now - self.since < seconds:
            return "working"
        return "input-required" if self.question and len(self.said) == 1 else "completed"

    @property
    def question(self) -> str:
        return self.said[0][1].partition(_ASKS)[2].strip()

    @property
    def answer(self) -> str:
        told = f" ({self.said[-1][1].strip()})" if len(self.said) > 1 else ""
        return f"Done{told}: {self.said[0][1].partition(_ASKS)[0].strip()}"


class DemoAgent:
    def __init__(self, name: str, generation: str, seconds: float) -> None:
        self.name = name
        self.generation = generation
        self._seconds = seconds
        self._tasks: dict[str, DemoTask] = {}

    def card(self, url: str) -> dict[str, Any]:
        ours = {
            "name": self.name,
            "description": f"Echoes the prompt. A prompt with {_ASKS!r} makes it ask a question.",
            "version": "1",
            "capabilities": {"streaming": False, "pushNotifications": False},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "repeat", "name": "Echo", "description": "Echoes the prompt.", "tags": ["demo"]}],
        }
        if self.generation == V0_3:
            return {**ours, "url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        return {**ours, "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": V1_0}]}

    def answer(self, body: bytes, version: str | None, now: float) -> dict[str, Any]:
        """Answer a JSON-RPC request; `now` is a monotonic time. Errors are answers."""
        name = None
        try:
            try:
                asked = json.loads(body)
            except (ValueError, RecursionError):
                raise Failed(-32700, "Invalid JSON") from None
            name = asked.get("id") if isinstance(asked, dict) else None
            said: dict[str, Any] = {"result": self._result(asked, version, now)}
        except Failed as wrong:
            said = {"error": {"code": wrong.args[0], "message": wrong.args[1]}}
        return {"jsonrpc": "2.0", "id": name, **said}

    def _result(self, asked: Any, version: str | None, now: float) -> dict[str, Any]:
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            raise Failed(-32600, "Invalid request")
        method, params = _METHODS[self.generation].get(asked["method"]), asked.get("params")
        if method is None:
            raise Failed(-32601, "Method not found")
        if self.generation == V1_0 and version != V1_0:
            raise Failed(-32009, "A2A-Version must be 1.0")
        if not isinstance(params, dict):
            raise Failed(-32602, "params must be an object")
        if method == "list":
            context = _text(params, "contextId")
            found = [self._shown(task, now) for task in self._tasks.values() if task.context_id == context]
            return {"tasks": found, "totalSize": len(found), "pageSize": len(found), "nextPageToken": ""}
        if method == "send":
            sent = self._shown(self._send(params.get("message"), now), now)
            return {"task": sent} if self.generation == V1_0 else sent
        task = self._find(_text(params, "id"))
        if method == "cancel":
            if task.state(now, self._seconds) in ("completed", "canceled"):
                raise Failed(-32002, "Task cannot be cancelled")
            task.canceled = True
        return self._shown(task, now)

    def _send(self, message: Any, now: float) -> DemoTask:
        if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
            raise Failed(-32602, "message.parts must be a list")
        texts = [part.get("text") for part in message["parts"] if isinstance(part, dict)]
        said = _text(message, "messageId"), "\n".join(text for text in texts if isinstance(text, str))
        for known in self._tasks.values():
            if any(said[0] == name for name, _ in known.said):
                return known
        if message.get("taskId"):
            task = self._find(_text(message, "taskId"))
            if task.state(now, self._seconds) != "input-required":
                raise Failed(-32004, "Task does not await input")
            task.said.append(said)
            task.since = now
            return task
        context = _text(message, "contextId") if message.get("contextId") else f"context-{said[0]}"
        if len(self._tasks) >= MOST_TASKS:
            del self._tasks[next(iter(self._tasks))]
        return self._tasks.setdefault(f"task-{said[0]}", DemoTask(f"task-{said[0]}", context, [said], now))

    def _find(self, task_id: str) -> DemoTask:
        if task_id not in self._tasks:
            raise Failed(-32001, "Task not found")
        return self._tasks[task_id]

    def _shown(self, task: DemoTask, now: float) -> dict[str, Any]:
        state, old = task.state(now, self._seconds), self.generation == V0_3
        status: dict[str, Any] = {"state": state if old else f"TASK_STATE_{state.replace('-', '_').upper()}"}
        shown: dict[str, Any] = {"id": task.task_id, "contextId": task.context_id, "status": status}
        if state == "input-required":
            status["message"] = self._message(f"{task.task_id}-question", task.question, "agent")
        if state == "completed":
            shown["artifacts"] = [{"artifactId": "answer", "parts": [self._part(task.answer)]}]
        shown["history"] = [self._message(name, text, "user") for name, text in task.said]
        return {"kind": "task", **shown} if old else shown

    def _part(self, text: str) -> dict[str, str]:
        return {"kind": "text", "text": text} if self.generation == V0_3 else {"text": text}

    def _message(self, message_id: str, text: str, role: str) -> dict[str, Any]:
        plain = {"messageId": message_id, "parts": [self._part(text)]}
        if self.generation == V0_3:
            return {"kind": "message", "role": role, **plain}
        return {"role": f"ROLE_{role.upper()}", **plain}


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise Failed(-32602, f"{name} must be text")
    return value


# ── the server ───────────────────────────────────────────────────────────────────────────────────────


class AgentServer(ThreadingHTTPServer):
    """An HTTP server whose threads end with the process."""

    daemon_threads = True

    def __init__(self, agent: DemoAgent, port: int = 0) -> None:
        self.agent = agent
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def begin(self) -> None:
        threading.Thread(target=self.serve_forever, args=(_LOOK_SECONDS,), name=self.agent.name, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore closed connections."""


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_SECONDS

    def do_GET(self) -> None:
        body = json.dumps(self.server.agent.card(self.server.url)).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.path != _CARD_PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif self.headers.get("If-None-Match") == etag:
            self._send(HTTPStatus.NOT_MODIFIED, b"", etag)
        else:
            self._send(HTTPStatus.OK, body, etag)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True  # the unread body would be read as the next request
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE if length.isdecimal() else HTTPStatus.LENGTH_REQUIRED)
            return
        body = self.rfile.read(int(length))
        with self.server.lock:
            said = self.server.agent.answer(body, self.headers.get("A2A-Version"), time.monotonic())
        self._send(HTTPStatus.OK, json.dumps(said).encode())

    def _send(self, status: HTTPStatus, body: bytes, etag: str | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "ETag": etag, "Content-Length": str(len(body))}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m horarium.demo.agent", description="Run a demo agent.")
    parser.add_argument("--port", type=int, default=0, help="listen port (default 0 = any free port)")
    parser.add_argument("--protocol", choices=tuple(_METHODS), default=V1_0, help="A2A version (default 1.0)")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of a task in seconds (default 1)")
    chosen = parser.parse_args(words)
    with AgentServer(DemoAgent("Demo agent", chosen.protocol, chosen.seconds), chosen.port) as server:
        print(server.url, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
