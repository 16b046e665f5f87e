"""A far end that speaks A2A, in either dialect or both: what it does stands in the first word of the prompt.

| word                        | it                                                                            |
|-----------------------------|-------------------------------------------------------------------------------|
| `echo`                      | answers with a message: the data that it was sent, as `{"inputs": …}`         |
| `task`                      | works for two polls, then completes                                           |
| `slow`                      | works until it is stopped                                                     |
| `input`, `auth`             | asks, and completes with the answer                                           |
| `again`                     | asks, and asks again when it is answered                                      |
| `late`                      | begins a task, and says so when `waits` is set                                |
| `hang`                      | begins a task and never answers                                               |
| `lose`                      | begins a task and hangs up; the second time it answers                        |
| a state, such as `rejected` | answers with a task in that state, and the rest of the prompt                 |
| a number                    | fails with that JSON-RPC code                                                 |
| `http`                      | answers with the status that follows                                          |
| `big`, `garbage`            | answers with three megabytes, or with what is no JSON                         |
| any other                   | answers with a task that has completed                                        |
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import orjson
from launchers.far_ends import FOR_EVER, HttpFarEnd, Received, answer

from horarium.launchers.a2a.dialect import FINAL, Dialect, TaskState
from horarium.launchers.launcher import AgentLine, CardSeen

_METHODS = {
    "SendMessage": (Dialect.V1_0, "send"),
    "GetTask": (Dialect.V1_0, "get"),
    "CancelTask": (Dialect.V1_0, "cancel"),
    "ListTasks": (Dialect.V1_0, "list"),
    "message/send": (Dialect.V0_3, "send"),
    "tasks/get": (Dialect.V0_3, "get"),
    "tasks/cancel": (Dialect.V0_3, "cancel"),
}
CARD = "/.well-known/agent-card.json"


class RpcError(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


@dataclass
class Task:
    name: str
    context: str
    state: TaskState
    text: str
    messages: list[dict[str, Any]]
    polls: int = 0


@dataclass
class Agent:
    """`calls` are the methods that it was asked, `sent` the messages that it took, `stopped` the tasks it was told to
    stop. `away`: so many of the next calls are not answered. `hushed`: it gives no hints, whatever its card says.
    `careless`: it lists all its tasks, whichever were asked for."""

    speaks: tuple[Dialect, ...] = (Dialect.V1_0,)
    calls: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    tasks: dict[str, Task] = field(default_factory=dict)
    heads: list[dict[str, str]] = field(default_factory=list)
    wishes: list[dict[str, Any]] = field(default_factory=list)
    away: int = 0
    hushed: bool = False
    careless: bool = False
    called: asyncio.Event = field(default_factory=asyncio.Event)
    waits: asyncio.Event = field(default_factory=asyncio.Event)
    _far: HttpFarEnd = field(default_factory=HttpFarEnd)

    async def __aenter__(self) -> Agent:
        self._far.routes = {"/": self._serve}
        await self._far.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._far.__aexit__()

    @property
    def url(self) -> str:
        return self._far.url("/")

    def line(self, **changes: Any) -> AgentLine:
        return AgentLine(**{"agent_id": "writer", "url": self.url, **changes})

    def shows(self, url: str, *, push: bool = False) -> None:
        """A card that points there. `push`: it says that it can send hints."""
        interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        can = {"pushNotifications": push}
        card = {"name": "Writer", "supportedInterfaces": [interface], "capabilities": can}
        self._far.answers[CARD] = answer("200 OK", card)

    def hides(self) -> None:
        """Its card never comes."""

        async def silent(_received: Received, _writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(2 * FOR_EVER)

        self._far.routes[CARD] = silent

    async def until(self, method: str) -> None:
        """Somebody has called it."""
        async with asyncio.timeout(FOR_EVER):
            while method not in self.calls:
                self.called.clear()
                await self.called.wait()

    async def _serve(self, received: Received, writer: asyncio.StreamWriter) -> bytes | None:
        body = received.event
        self.heads.append(received.headers)
        dialect, verb = _METHODS[body["method"]]
        self.calls.append(verb)
        self.called.set()
        if self.away > 0:
            self.away -= 1
            writer.close()
            return None
        try:
            if dialect not in self.speaks:
                raise RpcError(-32601)
            if dialect is Dialect.V1_0 and received.headers.get("a2a-version") != "1.0":
                raise RpcError(-32009)
            result = await self._do(verb, dialect, body["params"], writer)
        except RpcError as wrong:
            error = {"code": wrong.code, "message": f"it says {received.headers.get('authorization')}"}
            return answer("200 OK", {"jsonrpc": "2.0", "id": body["id"], "error": error})
        if isinstance(result, bytes) or result is None:
            return result
        return answer("200 OK", {"jsonrpc": "2.0", "id": body["id"], "result": result})

    async def _do(self, verb: str, dialect: Dialect, params: dict[str, Any], writer: asyncio.StreamWriter) -> Any:
        if verb == "send":
            self.wishes.append(params["configuration"])
            if self.hushed and "taskPushNotificationConfig" in params["configuration"]:
                raise RpcError(-32003)
            return await self._send(dialect, params["message"], writer)
        if verb == "list":
            found = self.tasks.values()
            tasks = [each for each in found if self.careless or each.context == params["contextId"]]
            return {"tasks": [_written(dialect, each) for each in tasks], "totalSize": len(tasks)}
        task = self.tasks.get(params["id"])
        if task is None:
            raise RpcError(-32001)
        if verb == "cancel":
            self.stopped.append(task.name)
            if task.state in FINAL:
                raise RpcError(-32002)
            task.state = TaskState.CANCELED
        elif task.state is TaskState.WORKING:
            task.polls += 1
            if task.text.startswith("task") and task.polls >= 2:
                task.state = TaskState.COMPLETED
        return _written(dialect, task)

    async def _send(self, dialect: Dialect, message: dict[str, Any], writer: asyncio.StreamWriter) -> Any:
        self.sent.append(message)
        text = next(part["text"] for part in message["parts"] if "text" in part)
        if "taskId" in message:
            return _wrapped(dialect, self._answered(message, text))
        word, _, rest = text.partition(" ")
        if word.lstrip("-").isdigit():
            raise RpcError(int(word))
        if word in ("http", "garbage", "big"):
            return _raw(word, rest)
        if word == "echo":
            return _echoed(dialect, message)
        state = {"input": "input-required", "auth": "auth-required", "again": "input-required"}.get(word, word)
        usual = TaskState.WORKING if word in ("task", "slow", "late", "hang", "lose") else TaskState.COMPLETED
        known = TaskState(state) if state in [each.value for each in TaskState] else usual
        name = f"task-{len(self.tasks) + 1}"
        kept = rest if state == known.value else text
        task = self.tasks[name] = Task(name, message["contextId"], known, kept, [message])
        if word == "late":
            await self.waits.wait()
        if word == "hang":
            await asyncio.sleep(2 * FOR_EVER)
        if word == "lose" and len(self.tasks) == 1:
            task.text = "task"
            writer.close()
            return None
        return _wrapped(dialect, task)

    def _answered(self, message: dict[str, Any], text: str) -> Task:
        task = self.tasks.get(message["taskId"])
        if task is None:
            raise RpcError(-32001)
        if task.context != message["contextId"]:
            raise RpcError(-32602)
        if task.state in FINAL:
            raise RpcError(-32004)
        again = task.messages[0]["parts"][0]["text"].startswith("again") and len(task.messages) == 1
        task.messages.append(message)
        task.state = TaskState.INPUT_REQUIRED if again else TaskState.COMPLETED
        task.text = "and which street?" if again else f"heard: {text}"
        return task


def _raw(word: str, rest: str) -> bytes:
    if word == "big":
        return answer("200 OK", b"x" * 3_000_000)
    if word == "garbage":
        return answer("200 OK", "<html>")
    return answer(f"{rest} Said", "no", **({"retry_after": "7"} if rest in ("429", "503") else {}))


def _echoed(dialect: Dialect, message: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = next((part for part in message["parts"] if "data" in part), {"data": None})
    value = data["data"]["value"] if data.get("metadata") else data["data"]
    text = orjson.dumps({"inputs": value}).decode()
    if dialect is Dialect.V0_3:
        return {"kind": "message", "messageId": "r", "role": "agent", "parts": [{"kind": "text", "text": text}]}
    return {"message": {"messageId": "r", "role": "ROLE_AGENT", "contextId": "c", "parts": [{"text": text}]}}


def _wrapped(dialect: Dialect, task: Task) -> dict[str, Any]:
    written = _written(dialect, task)
    return {"task": written} if dialect is Dialect.V1_0 else written


def _written(dialect: Dialect, task: Task) -> dict[str, Any]:
    old = dialect is Dialect.V0_3
    state = task.state.value if old else f"TASK_STATE_{task.state.value.replace('-', '_').upper()}"
    said = {"messageId": "s", "role": "agent" if old else "ROLE_AGENT", "parts": [{"text": task.text}]}
    return {
        "id": task.name,
        "contextId": task.context,
        "status": {"state": state, "message": said},
        "history": task.messages,
        **({"kind": "task"} if old else {}),
    }


@dataclass
class KeptHolder:
    """What a launch tells while it lasts. `stops`: somebody wants the run stopped."""

    stops: bool = False
    references: list[str] = field(default_factory=list)
    cards: list[CardSeen] = field(default_factory=list)

    async def taken(self, reference: str) -> None:
        self.references.append(reference)

    async def seen(self, card: CardSeen) -> None:
        self.cards.append(card)

    def stop_wanted(self) -> bool:
        return self.stops
