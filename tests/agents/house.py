"""A whole service that lives by itself, on the real clock, and what a caller does with it over HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from horarium.core.document.states import FINAL
from horarium.platform.ids import id_text, new_id
from horarium.platform.settings import Settings
from horarium.serve.data_dir import seed_admin_token
from horarium.serve.process import Door, listen, url_of
from horarium.serve.service import Service, open_service

T = TypeVar("T")

TOKEN = "hor_agents"
PATIENCE = 60
_LOOK_SECONDS = 0.1
_FINAL = {state.value for state in FINAL}
# Somebody who asks for nothing else gets no question before the work: those of the agents are what matters here.
_UNASKED = {"requires_approval": False}


def until(look: Callable[[], T | None], what: object = "") -> T:
    """What `look` finds, as soon as it finds something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(_LOOK_SECONDS)
    raise AssertionError(f"never happened: {what or look}")


def name(prefix: str) -> str:
    """One that no other test uses."""
    return f"{prefix}-{id_text(new_id()).lower()}"


@dataclass(frozen=True)
class House:
    url: str
    http: httpx.Client

    def agent(self, url: str, **fields: Any) -> str:
        """The id of a new agent at this address, with room enough unless told otherwise."""
        agent_id = name("agent")
        self.ask("PUT", f"/api/agents/{agent_id}", {"url": url, "capacity": 50, **fields})
        return agent_id

    def schedule(self, agent_id: str, prompt: str, **fields: Any) -> str:
        schedule_id = name("prompt")
        action = {"kind": "prompt", "prompt": prompt, **fields.pop("action", {})}
        document = {
            "schedule_id": schedule_id,
            "cron_expressions": ["0 0 1 1 *"],
            "action": action,
            "assignee_type": "agent",
            "assignee_id": agent_id,
            "approval_policy": _UNASKED,
            "overlap_policy": "allow_all",
            **fields,
        }
        self.ask("POST", "/api/schedules", document)
        return schedule_id

    def trigger(self, schedule_id: str) -> str:
        run_id: str = self.ask("POST", f"/api/schedules/{schedule_id}/trigger", {})["run_id"]
        return run_id

    def prompt(self, agent_id: str, prompt: str, **fields: Any) -> str:
        """The id of a run that says this to the agent, once."""
        return self.trigger(self.schedule(agent_id, prompt, **fields))

    def run(self, run_id: str) -> dict[str, Any]:
        return self.ask("GET", f"/api/runs/{run_id}")

    def until(self, run_id: str, *states: str) -> dict[str, Any]:
        """The run, once it is in one of the states; one that ended in another says what it ended with."""

        def look() -> dict[str, Any] | None:
            run = self.run(run_id)
            assert run["state"] in states or run["state"] not in _FINAL, run
            return run if run["state"] in states else None

        return until(look, f"{run_id} {states}")

    def ended(self, run_id: str) -> dict[str, Any]:
        return self.until(run_id, *_FINAL)

    def events(self, run_id: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.ask("GET", f"/api/runs/{run_id}/events")["events"]
        return events

    def question(self, run_id: str) -> dict[str, Any]:
        """The open approval of a run whose agent has asked."""
        approval_id = self.until(run_id, "awaiting_approval")["approval"]["approval_id"]
        return self.ask("GET", f"/api/approvals/{approval_id}")

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        found: dict[str, Any] = answer.json()
        return found


@contextmanager
def asking(url: str, token: str = TOKEN) -> Iterator[House]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE) as http:
        yield House(url, http)


@contextmanager
def living(folder: Path, database: str, **knobs: Any) -> Iterator[House]:
    """In this process, with its engine at work, until the block is left."""
    with living_at(listen("127.0.0.1", 0), folder, database, **knobs) as house:
        yield house


@contextmanager
def living_at(listening: socket.socket, folder: Path, database: str, **knobs: Any) -> Iterator[House]:
    """The same under an address of the caller's; it is closed when the block is left."""
    usual = {"token": TOKEN, "log_level": "error", "allow_loopback_targets": True, "shutdown_seconds": 0}
    usual |= {"data_dir": folder, "database": database, "public_url": url_of(listening)}
    try:
        with open_service(Settings(**{**usual, **knobs}), durable=False) as service:
            seed_admin_token(service.settings, service.database, service.clock)
            with _at_work(service, Door(service, listening)), asking(url_of(listening)) as house:
                yield house
    finally:
        listening.close()


@contextmanager
def _at_work(service: Service, door: Door) -> Iterator[None]:
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def work() -> None:
        await asyncio.gather(service.engine.run(stop), door.run(stop))

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),), daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(door.ready.wait(), loop).result(PATIENCE)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        loop.close()
