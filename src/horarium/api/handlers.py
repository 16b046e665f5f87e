"""How a handler is run: in a thread, when it is its caller's turn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from horarium.api.address import client_address
from horarium.api.auth import credential_of
from horarium.api.authorization import authorization_of
from horarium.api.limits import network_of
from horarium.api.turns import Turns, Who
from horarium.operations.caller import Caller


def in_turn(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Around an endpoint that is no coroutine; FastAPI would run it in whichever thread is free."""
    signature = inspect.signature(endpoint, eval_str=True)
    wants_request = "request" in signature.parameters

    @wraps(endpoint)
    async def turned(request: Request, **given: Any) -> Any:
        turns: Turns = request.app.state.turns
        if wants_request:
            given["request"] = request
        async with turns.turn(who_asks(request, given.get("caller"))):
            return await run_in_threadpool(partial(endpoint, **given))

    turned.__signature__ = signature if wants_request else _with_request(signature)  # type: ignore[attr-defined]  # what FastAPI reads
    return turned


def _with_request(signature: inspect.Signature) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [each.replace(kind=kind) for each in signature.parameters.values()]
    return signature.replace(parameters=[*own, inspect.Parameter("request", kind, annotation=Request)])


def who_asks(request: Request, caller: Caller | None) -> Who:
    """A token that nobody has looked at is worth no more than the address that shows it."""
    if caller is None:
        network = network_of(client_address(request.scope))
        return Who(f"address {network}", f"address {network}")
    return Who(credential_of(authorization_of(request), caller.principal), caller.namespace)
