"""Far ends for the launchers: a scripted HTTP server on loopback, tasks, commands, and requests to send to them."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from horarium.core.decision.run_policies import Terms
from horarium.core.document.definition import Action
from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.core.policy.approval import ApprovalMode
from horarium.instant import SECOND, from_rfc3339
from horarium.launchers.command import CommandSpec
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.python import PythonLauncher
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.job import Job

NOW = from_rfc3339("2026-03-08T07:00:00Z")
FOR_EVER = 30.0
"""Seconds that only something unbounded takes: what is slow on purpose sleeps for twice as long."""
KEY = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@dataclass
class FixedClock:
    instant: int = NOW

    def now(self) -> int:
        return self.instant

    def monotonic(self) -> float:
        return time.monotonic()


def request_for(
    kind: str, target: Mapping[str, Any] | None = None, *, seconds: float = 20.0, **changes: Any
) -> LaunchRequest:
    given: dict[str, Any] = {
        "run_id": "run-1",
        "schedule_id": "nightly",
        "namespace": "default",
        "key": KEY,
        "nominal": NOW,
        "due": NOW + 2 * SECOND,
        "origin": "scheduled",
        "action": Action(kind, dict(target or {}), queue=changes.pop("queue", None)),
        "deadline": NOW + int(seconds * SECOND),
        "instance_id": f"schedule:nightly:{NOW // SECOND}",
    }
    return LaunchRequest(**{**given, **changes})


STEP: Mapping[str, Any] = {
    "workflow": {"workflow_id": "brief", "version": 2},
    "node_id": "send",
    "parent_run_id": "p",
    "root_run_id": "r",
    "assignee": {"type": "team", "id": "desk", "member": "ann"},
    "search_attributes": {"tenant": 42},
    "terms": Terms(ApprovalMode.ON_BLOCK, ("publish", "spend"), ("spend",), {"cost": 0.5}, ("search",), "m"),
}
"""What there is to tell about a step of a workflow."""


# HTTP


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return orjson.loads(self.body)


Route = Callable[[Received, asyncio.StreamWriter], Awaitable[bytes | None]]


def answer(status: str, body: bytes | str | dict[str, Any] = b"", **headers: str) -> bytes:
    raw = orjson.dumps(body) if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
    named = {
        "content-type": "application/json" if isinstance(body, dict) else "text/plain",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(raw)}"]
    lines += [f"{name}: {value}" for name, value in named.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


async def _echo(received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return answer("200 OK", {"inputs": received.event["data"]["inputs"]})


async def _slow(_received: Received, _writer: asyncio.StreamWriter) -> bytes:
    await asyncio.sleep(2 * FOR_EVER)
    return answer("200 OK")


async def _hang_up(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _half(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.close()


async def _endless(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


@dataclass
class HttpFarEnd:
    """Answers by path from `answers`; a few paths misbehave on purpose."""

    answers: dict[str, bytes] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    port: int = 0
    routes: dict[str, Route] = field(
        default_factory=lambda: {
            "/echo": _echo,
            "/slow": _slow,
            "/hang-up": _hang_up,
            "/half": _half,
            "/endless": _endless,
        }
    )
    _busy: set[asyncio.Task[Any]] = field(default_factory=set)

    async def __aenter__(self) -> HttpFarEnd:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls, backlog=200)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            received = await _read(reader)
            self.received.append(received)
            route = self.routes.get(received.path)
            raw = await route(received, writer) if route else self.answers.get(received.path, answer("404 Not Found"))
            if raw is not None:
                writer.write(raw)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._busy.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)


# Python


async def echo_async(value: Any) -> Any:
    await asyncio.sleep(0)
    return {"inputs": value}


def echo(value: Any) -> Any:
    return {"inputs": value}


async def sleep_async() -> None:
    await asyncio.sleep(2 * FOR_EVER)


def sleep_listening(context: Job) -> str:
    while not context.cancelled():
        time.sleep(0.01)
    return "stopped when asked"


def sleep_deaf() -> None:
    time.sleep(2 * FOR_EVER)


def sleep_long() -> None:
    time.sleep(2 * FOR_EVER)


def big() -> str:
    return "x" * 3_000_000


async def big_async() -> str:
    return big()


def die() -> None:
    import os

    os._exit(7)


def who(context: Job) -> dict[str, Any]:
    return {"run_id": context.run_id, "key": context.key, "cancelled": context.cancelled()}


def reports(context: Job) -> list[Any]:
    return [context.attempt, context.report_url, context.report_token]


def knows(context: Job) -> list[Any]:
    times = [each.isoformat() for each in (context.nominal, context.due, context.deadline)]
    return [*times, context.input, context.inputs, context.schedule_id, context.namespace, context.attempt]


def spends(fails: bool, context: Job) -> str:
    context.cost, context.tokens, context.tool_calls = 0.5, 7, 2
    if fails:
        raise RuntimeError("all is spent")
    return "done"


def talks(context: Job) -> str:
    print("to", "whom")
    print("oh", file=sys.stderr)
    logging.getLogger("shop").warning("%d left", 3)
    context.log("said aloud")
    sys.stdout.write("no end")
    return "done"


async def talks_async(context: Job) -> str:
    return talks(context)


def talks_and_hangs() -> None:
    print("still here")
    time.sleep(60)


def costly() -> Finished:
    return Finished("done", cost=1.5, tokens=42)


def tasks() -> TaskRegistry:
    registry = TaskRegistry()
    for function in (echo_async, echo, sleep_async, sleep_listening, sleep_deaf, big, big_async, who, costly):
        registry.add(function, name=function.__name__)
    for function in (echo, sleep_long, big, die, who, costly):
        registry.add(function, name=f"cpu_{function.__name__}", cpu=True)
    return registry


def run_task(function: Callable[..., Any], inputs: Any = None, *, cpu: bool = False, **changes: Any) -> Outcome:
    tasks = TaskRegistry()
    tasks.add(function, name="it", cpu=cpu)

    async def run() -> Outcome:
        launcher = PythonLauncher(tasks, FixedClock(), grace_seconds=0.2)
        return await launcher.launch(request_for("python", {"callable": "it"}, inputs=inputs, **changes))

    return asyncio.run(run())


# Commands


def python_command(code: str, **settings: Any) -> CommandSpec:
    return CommandSpec((sys.executable, "-I", "-S", "-c", code), **settings)


COMMANDS: dict[str, CommandSpec] = {
    "echo": CommandSpec(("/bin/sh", "-c", 'printf "{\\"inputs\\": "; cat; printf "}"')),
    "slow": CommandSpec(("/bin/sh", "-c", "sleep 60")),
    "deaf": CommandSpec(("/bin/sh", "-c", 'trap "" TERM; while :; do sleep 0.1; done')),
    "big": CommandSpec(("/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")),
    "missing": CommandSpec(("/nonexistent/program",)),
}
