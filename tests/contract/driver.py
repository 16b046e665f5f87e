"""Calls the published Durable Workflow client on behalf of the tests; run by the Python of its own environment.

One JSON object a line comes in:

    {"client": {"base_url": …, "token": …}, "sync": false, "handle": null, "call": "describe_schedule", "args": {…}}

and one goes out: `{"value": …, "seconds": …}` or `{"error": {"type": …, "text": …, …}}`. A client is made anew for
`"fresh": true`; else the one with the same options is used again, as a program would.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, is_dataclass
from typing import Any

from durable_workflow import _avro, client, sync

_MODELS = {"spec": client.ScheduleSpec, "action": client.ScheduleAction}
# What the exceptions of the client tell beyond their text.
_TOLD = ("status", "field", "errors", "last_safe_cursor", "schedule_id", "namespace")

# Each test has a client of its own, and each client would read all trusted certificates for its plain HTTP.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]


class Driver:
    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            value = await self._call(asked)
        except Exception as error:
            return {"error": told(error)}
        return {"value": value}

    async def _call(self, asked: dict[str, Any]) -> Any:
        args = {name: _model(name, value) for name, value in asked["args"].items()}
        if asked["call"] == "encode":
            return _avro.encode(args["value"])
        target = self._client(asked)
        if asked.get("handle") is not None:
            target = target.get_schedule_handle(asked["handle"])
        method = getattr(target, asked["call"])
        if asked["sync"]:
            return plain(await asyncio.to_thread(method, **args))
        result = method(**args)
        if inspect.isawaitable(result):
            return plain(await result)
        if isinstance(result, AsyncIterator):
            return [plain(each) async for each in result]
        return plain(result)

    def _client(self, asked: dict[str, Any]) -> Any:
        key = json.dumps([asked["client"], asked["sync"]], sort_keys=True)
        if asked["fresh"] or key not in self._clients:
            made = (sync if asked["sync"] else client).Client(**asked["client"])
            self._clients[key] = made
        return self._clients[key]


def _model(name: str, value: Any) -> Any:
    return _MODELS[name](**value) if name in _MODELS and value is not None else value


def plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, client.ScheduleHandle | sync.SyncScheduleHandle):
        return {"handle": value.schedule_id}
    return value


def told(error: Exception) -> dict[str, Any]:
    reason = getattr(error, "reason", None)
    return {
        "type": type(error).__name__,
        "text": str(error),
        "reason": reason() if callable(reason) else reason,
        **{name: getattr(error, name) for name in _TOLD if hasattr(error, name)},
    }


async def main() -> None:
    driver = Driver()
    while line := await asyncio.to_thread(sys.stdin.readline):
        answer = await driver.answer(json.loads(line))
        sys.stdout.write(json.dumps(answer, default=str) + "\n")
        sys.stdout.flush()


asyncio.run(main())
