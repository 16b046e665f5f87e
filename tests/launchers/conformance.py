"""What every launcher is held to: one case per launcher, and the checks of the contract in `test_conformance.py`.

A new launcher adds one case here; a test fails while it has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from launchers.agents import Agent
from launchers.brokers import MEMORY
from launchers.far_ends import COMMANDS, FOR_EVER, FixedClock, HttpFarEnd, request_for, tasks

from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.launchers.a2a.dialect import Dialect
from horarium.launchers.a2a.launcher import A2ALauncher
from horarium.launchers.celery.launcher import Broker, CeleryLauncher
from horarium.launchers.command import CommandLauncher
from horarium.launchers.http import HttpLauncher
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.pull import PullLauncher
from horarium.launchers.python import PythonLauncher
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.ssrf import AddressGuard, AddressPolicy

Target = Mapping[str, Any]


@dataclass(frozen=True)
class Far:
    """A launcher with its far end up, and the targets there. None = the launcher has no such thing."""

    launcher: Launcher
    echo: Target
    slow: Target | None
    big: Target | None
    bad: tuple[Target, ...]
    given: Mapping[str, Any] = field(default_factory=dict)
    """What else a request to it needs."""

    def request(self, kind: str, target: Target, **changes: Any) -> LaunchRequest:
        return request_for(kind, target, **{**self.given, **changes})


@dataclass(frozen=True)
class Case:
    launcher: type[Launcher]
    kind: str
    up: Callable[[], AbstractAsyncContextManager[Far]]
    fields: tuple[str, ...]
    """The fields of an action that the launcher reads, for hostile values."""
    herd: int = 50
    read: Callable[[Any], Any] = lambda result: result
    """What the far end gives back, where it stands inside what it says."""


@asynccontextmanager
async def _http() -> AsyncIterator[Far]:
    async with HttpFarEnd() as far:
        launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
        yield Far(
            launcher,
            echo={"url": far.url("/echo")},
            slow={"url": far.url("/slow")},
            big={"url": far.url("/endless")},
            bad=(
                {"url": "http://127.0.0.1:1/"},
                {"url": "http://no-such-host.invalid/"},
                {"url": "ftp://127.0.0.1/"},
                {"url": far.url("/hang-up")},
                {"url": far.url("/half")},
                {"url": far.url("/nowhere")},
                {"url": "http://[::1"},
                {"url": "http://169.254.169.254/latest/meta-data/"},
            ),
        )
        await launcher.close()


def _python(prefix: str, suffix: str, slow: str) -> Callable[[], AbstractAsyncContextManager[Far]]:
    @asynccontextmanager
    async def up() -> AsyncIterator[Far]:
        launcher = PythonLauncher(tasks(), FixedClock(), concurrency=50, processes=2)
        yield Far(
            launcher,
            echo={"callable": f"{prefix}echo{suffix}"},
            slow={"callable": slow},
            big={"callable": f"{prefix}big{suffix}"},
            bad=({"callable": "no.such.task"}, {"callable": f"{prefix}who"}, {}),
        )
        await launcher.close()

    return up


@asynccontextmanager
async def _command() -> AsyncIterator[Far]:
    yield Far(
        CommandLauncher(COMMANDS, FixedClock(), terminate_grace_seconds=0.5),
        echo={"command": "echo"},
        slow={"command": "deaf"},
        big={"command": "big"},
        bad=({"command": "missing"}, {"command": "rm -rf /"}, {}),
    )


@asynccontextmanager
async def _pull() -> AsyncIterator[Far]:
    yield Far(PullLauncher(FixedClock()), echo={"workflow_type": "report"}, slow=None, big=None, bad=())


@asynccontextmanager
async def _recording() -> AsyncIterator[Far]:
    async def play(request: LaunchRequest) -> Outcome:
        if request.action.target.get("slow"):
            await asyncio.sleep(2 * FOR_EVER)
        return Finished({"inputs": request.inputs})

    yield Far(RecordingLauncher(FixedClock(), otherwise=play), echo={}, slow={"slow": True}, big=None, bad=())


def _a2a(dialect: Dialect) -> Callable[[], AbstractAsyncContextManager[Far]]:
    @asynccontextmanager
    async def up() -> AsyncIterator[Far]:
        async with Agent(speaks=(dialect,)) as agent:
            launcher = A2ALauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
            bad = ("failed no disk", "rejected", "-32603", "-32602", "http 500", "http 302", "garbage", "big", " ")
            yield Far(
                launcher,
                echo={"prompt": "echo"},
                slow={"prompt": "slow"},
                big=None,
                bad=(*({"prompt": each} for each in bad), {}),
                given={"agent": agent.line()},
            )
            await launcher.close()

    return up


@asynccontextmanager
async def _celery() -> AsyncIterator[Far]:
    launcher = CeleryLauncher({"default": Broker(MEMORY)}, FixedClock())
    yield Far(launcher, echo={"task": "report"}, slow=None, big=None, bad=({}, {"task": " "}, {"task": None}))
    await launcher.close()


def _said(result: Any) -> Any:
    return orjson.loads(result["text"])


CASES: dict[str, Case] = {
    "http": Case(HttpLauncher, "http", _http, ("url", "method", "headers", "secret")),
    "python-async": Case(PythonLauncher, "python", _python("", "_async", "sleep_async"), ("callable", "task")),
    "python-thread": Case(PythonLauncher, "python", _python("", "", "sleep_listening"), ("callable", "task")),
    "python-deaf-thread": Case(PythonLauncher, "python", _python("", "", "sleep_deaf"), ("callable",), 2),
    "python-process": Case(PythonLauncher, "python", _python("cpu_", "", "cpu_sleep_long"), ("callable",), 4),
    "command": Case(CommandLauncher, "command", _command, ("command",)),
    "pull": Case(PullLauncher, "pull", _pull, ("workflow_type",)),
    "celery": Case(CeleryLauncher, "celery", _celery, ("task", "args", "kwargs")),
    "a2a": Case(A2ALauncher, "prompt", _a2a(Dialect.V1_0), ("prompt",), read=_said),
    "a2a-0.3": Case(A2ALauncher, "prompt", _a2a(Dialect.V0_3), ("prompt",), read=_said),
    "recording": Case(RecordingLauncher, "http", _recording, ("url",)),
}
