"""What happens to every request: it gets an id, its body a limit, and whatever goes wrong an answer.

Plain ASGI: the two classes of Starlette that would do this hold each answer in memory.
"""

from __future__ import annotations

import asyncio
import re

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from horarium.api import commits
from horarium.api.base_path import based, inner_path
from horarium.api.error_member import with_error
from horarium.api.heads import too_much
from horarium.api.problems import problem
from horarium.api.request_bodies import BodiesFull, BodyBudget, BodyTooLarge, RequestBody
from horarium.api.routing import OPEN, OPERATIONS
from horarium.api.security_headers import uncached, with_security
from horarium.api.shortages import Shortages
from horarium.api.ui_files import PROGRAM
from horarium.ids import id_text, new_id

CONTROL_PLANE_VERSION = "2"
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class RequestMiddleware:
    """Around everything else."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        body_limit: int,
        budget: BodyBudget,
        shortages: Shortages,
        log: FilteringBoundLogger,
        base_path: str = "",
    ) -> None:
        self._app = app
        self._base = base_path
        self._limit = body_limit
        self._budget = budget
        self._shortages = shortages
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = based(scope, self._base)
        path = inner_path(scope)
        headers = dict(scope["headers"])
        request_id = _request_id(headers.get(b"x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        length = _declared_length(headers.get(b"content-length"))
        body = RequestBody(receive, self._budget, most=self._limit, length=length)
        scope["state"]["body"] = body
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [
                    *uncached(with_security(message["headers"])),
                    (b"x-request-id", request_id.encode()),
                    (b"x-durable-workflow-control-plane-version", CONTROL_PLANE_VERSION.encode()),
                ]
                # Whoever named no namespace learns which one the token speaks for.
                if (namespace := scope["state"].get("namespace")) is not None:
                    message["headers"].append((b"x-namespace", namespace.encode()))
            if scope["method"] == "HEAD" and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            if (beyond := too_much(scope)) is not None:
                closing = {"Connection": "close"} if beyond.status == 400 else None  # where it ends is not known
                await with_error(path, problem(*beyond, headers=closing))(scope, receive, answer)
                return
            if length is not None and length > self._limit:
                raise BodyTooLarge(self._limit, known=True)
            await self._app(_as_get(scope), body.receive, answer)
        except (BodyTooLarge, BodiesFull) as wrong:
            if not started:
                await with_error(path, _refused_body(wrong))(scope, receive, answer)
        except asyncio.CancelledError:
            if started or not scope["app"].state.draining.is_set():
                raise
            await with_error(path, _cut_short(scope, request_id))(scope, receive, answer)
        except ClientDisconnect:
            pass  # whoever asked has left: nobody is there to be told, and nothing of ours is broken
        except Exception as error:
            # Whatever it is, it is our defect: told to our log with all it knows, to the caller with an id to ask for.
            lacking = self._shortages.note(error)
            if lacking is None:
                self._log.error("request_failed", path=path, request_id=request_id, exc_info=error)
            if not started:
                await with_error(path, _excuse(scope, request_id, lacking))(scope, receive, answer)
        finally:
            body.release()


def _refused_body(error: BodyTooLarge | BodiesFull) -> Response:
    match error:
        case BodyTooLarge():
            return problem(413, "payload_too_large", str(error))
        case BodiesFull():
            return problem(503, "too_many_bodies", str(error), headers={"Retry-After": "1"})


def _declared_length(header: bytes | None) -> int | None:
    return int(header[:20]) if header is not None and header.isdigit() else None


def _as_get(scope: Scope) -> Scope:
    """HEAD is answered as GET is, without the body (RFC 9110, section 9.3.2): what is open to all, and short."""
    if scope["method"] != "HEAD":
        return scope
    path = inner_path(scope)
    operation = OPERATIONS.get(("GET", path))
    is_open = path.startswith(PROGRAM) or (operation is not None and operation.needs is OPEN)
    return {**scope, "method": "GET"} if is_open else scope


def _excuse(scope: Scope, request_id: str, lacking: str | None) -> Response:
    if commits.has_committed(scope["state"]):
        return problem(409, commits.REASON, commits.sentence(request_id))
    if lacking is not None:
        return problem(503, "resources_exhausted", lacking, headers={"Retry-After": "1"})
    return problem(500, "internal_error", f"Unexpected error. Request ID: {request_id}.")


def _cut_short(scope: Scope, request_id: str) -> Response:
    if commits.has_committed(scope["state"]):
        return problem(409, commits.REASON, commits.sentence(request_id))
    said = "This process is shutting down. Retry the request with another process."
    return problem(503, "stopping", said, headers={"Retry-After": "1", "Connection": "close"})


def _request_id(given: bytes | None) -> str:
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return id_text(new_id())
