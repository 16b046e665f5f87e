"""Warnings about addresses in the answer to a write: judged when the write is done and its thread is free again.

So a slow name server delays an answer by a second at most, and neither the write nor any other request.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from horarium.api.answers import Reply
from horarium.operations.addresses import Named, NamedAddresses, judge
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources

# What a bundle changes; every other answer is about one object.
_CHANGES = "changes"


def warning_of_addresses(endpoint: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """Wrap an endpoint that takes `resources` and `caller`. A replayed answer is left as it was stored."""

    @wraps(endpoint)
    async def warning(request: Request, resources: Resources, caller: Caller, **given: Any) -> Response:
        named = NamedAddresses()
        answer = await endpoint(request=request, resources=replace(resources, named=named), caller=caller, **given)
        if resources.guard is None or not named.found or not isinstance(answer, Reply):
            return answer
        resolves = resources.settings.check_addresses
        told = await judge(resources.guard, caller.namespace, named.found, resolves=resolves)
        return with_warnings(answer, told) if told else answer

    warning.__signature__ = inspect.signature(endpoint)  # type: ignore[attr-defined]  # what FastAPI reads
    return warning


def with_warnings(answer: Reply, told: Sequence[tuple[Named, str]]) -> Reply:
    body = json.loads(bytes(answer.body))
    for named, text in told:
        for part in _parts(body, named):
            part["warnings"] = [*part.get("warnings", ()), text]
    kept = {name: value for name, value in answer.headers.items() if name not in ("content-length", "content-type")}
    return Reply(body, answer.status_code, headers=kept)


def _parts(body: dict[str, Any], named: Named) -> list[dict[str, Any]]:
    if _CHANGES not in body:
        return [body]
    return [each for each in body[_CHANGES] if (each["kind"], each["name"]) == (named.kind, named.name)]
