"""Middleware of all requests: request ID, limits of head and body, errors, and shortages of resources."""

from __future__ import annotations

import asyncio
import errno
import re
import threading
from collections.abc import Iterable
from typing import Final, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from horarium.platform.clock import Clock
from horarium.platform.http import responses
from horarium.platform.http.connections import based, inner_path
from horarium.platform.http.interface import PROGRAM, uncached, with_security
from horarium.platform.http.limits import BodiesFull, BodyBudget, BodyTooLarge, RequestBody
from horarium.platform.http.responses import problem, with_error
from horarium.platform.http.routing import OPEN, OPERATIONS
from horarium.platform.ids import id_text, new_id

MAX_TARGET_BYTES = 8_192
MAX_HEADERS = 100
MAX_HEADER_BYTES = 32_768


class TooMuch(NamedTuple):
    status: int
    reason: str
    message: str


def too_much(scope: Scope) -> TooMuch | None:
    """None = it is little enough."""
    target = len(scope.get("raw_path") or scope["path"].encode()) + len(scope.get("query_string", b""))
    if target > MAX_TARGET_BYTES:
        return TooMuch(414, "uri_too_long", f"Path and query have more than {MAX_TARGET_BYTES} bytes.")
    headers = scope["headers"]
    if (ambiguous := ambiguous_length(headers, scope.get("http_version", "1.1"))) is not None:
        return TooMuch(400, "malformed_request", ambiguous)
    if len(headers) > MAX_HEADERS:
        return TooMuch(431, "headers_too_large", f"The request has more than {MAX_HEADERS} headers.")
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        return TooMuch(431, "headers_too_large", f"The headers have more than {MAX_HEADER_BYTES} bytes in total.")
    return None


def ambiguous_length(headers: Iterable[tuple[bytes, bytes]], version: str) -> str | None:
    """Return why two servers may disagree about where the body ends (RFC 9112, section 6.3), or None.

    A proxy that reads one header and a server that reads the other split one message into two: request smuggling.
    """
    found: dict[bytes, set[bytes]] = {b"content-length": set(), b"transfer-encoding": set()}
    for name, value in headers:
        if name in found:
            found[name].update(each.strip() for each in value.split(b","))
    lengths, codings = found[b"content-length"], found[b"transfer-encoding"]
    if lengths and codings:
        return "The request has both Content-Length and Transfer-Encoding. Send only one of them."
    if len(lengths) > 1:
        return "The request has two values of Content-Length. Send only one."
    if codings and version == "1.0":
        return "HTTP/1.0 does not support Transfer-Encoding. Send Content-Length, or use HTTP/1.1."
    return None


FILES: Final = (
    "The process has no file descriptors left. Raise its limit (ulimit -n, LimitNOFILE= of systemd), or "
    "lower max_connections or pool_size."
)
THREADS: Final = (
    "The process cannot start more threads. Raise its limit (ulimit -u, TasksMax= of systemd, or the pids "
    "limit of the container)."
)
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_NO_THREAD: Final = "can't start new thread"
_SHOWN_SECONDS: Final = 30.0
_LOG_SECONDS: Final = 60.0
_MOST_CAUSES: Final = 10


def shortage_of(error: BaseException | None) -> str | None:
    """Return what the system lacks, as one sentence and a remedy, or None for any other error."""
    for _ in range(_MOST_CAUSES):
        match error:
            case None:
                return None
            case OSError(errno=number) if number in _NO_FILES:
                return FILES
            case RuntimeError() if _NO_THREAD in str(error):
                return THREADS
        error = error.__cause__ or error.__context__
    return None


class Shortages:
    """The last shortage of this process. The log gets one line a minute, however often it is hit."""

    def __init__(self, clock: Clock, log: FilteringBoundLogger) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._last: tuple[float, str] | None = None
        self._logged_at: float | None = None

    def note(self, error: BaseException | None) -> str | None:
        """Remember the shortage that an error tells of, and return it."""
        found = shortage_of(error)
        if found is None:
            return None
        with self._lock:
            now = self._clock.monotonic()
            self._last = (now, found)
            is_due = self._logged_at is None or now - self._logged_at >= _LOG_SECONDS
            self._logged_at = now if is_due else self._logged_at
        if is_due:
            self._log.error("resources_exhausted", problem=found)
        return found

    def current(self) -> str | None:
        """Return the shortage of the last 30 seconds."""
        with self._lock:
            if self._last is None or self._clock.monotonic() - self._last[0] >= _SHOWN_SECONDS:
                return None
            return self._last[1]


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
    if responses.has_committed(scope["state"]):
        return problem(409, responses.REASON, responses.sentence(request_id))
    if lacking is not None:
        return problem(503, "resources_exhausted", lacking, headers={"Retry-After": "1"})
    return problem(500, "internal_error", f"Unexpected error. Request ID: {request_id}.")


def _cut_short(scope: Scope, request_id: str) -> Response:
    if responses.has_committed(scope["state"]):
        return problem(409, responses.REASON, responses.sentence(request_id))
    said = "This process is shutting down. Retry the request with another process."
    return problem(503, "stopping", said, headers={"Retry-After": "1", "Connection": "close"})


def _request_id(given: bytes | None) -> str:
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return id_text(new_id())
