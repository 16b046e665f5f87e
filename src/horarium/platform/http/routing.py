"""Declaration of routes, and idempotency keys of their requests.

One decorator declares who may call a route, its parameters, its response and examples. The OpenAPI document, the
reference page and the tests read it from `OPERATIONS`. A write with an idempotency key happens once. Warnings about
addresses are added to the response.
"""

from __future__ import annotations

import hmac
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from hashlib import sha256
from http import HTTPStatus
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request
from msgspec.structs import fields
from starlette.responses import Response

from horarium.features.resources import Named, NamedAddresses, Resources, judge
from horarium.features.schedules.drafts import LARGE_BYTES, check_stored
from horarium.features.schedules.triggers import check_key
from horarium.platform.bodies import Body
from horarium.platform.caller import Caller
from horarium.platform.database import Connection, idempotency
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.idempotency import Remembered
from horarium.platform.database.statements import to_text
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.errors import ApprovalRequired, IdempotencyKeyReused, RequestInProgress
from horarium.platform.http.audited import Audited, audited_by_rule
from horarium.platform.http.audited import audited as leaving_entry
from horarium.platform.http.limits import in_turn
from horarium.platform.http.responses import Reply
from horarium.platform.telemetry.telemetry import Deferred
from horarium.platform.wire import Answer, Permission

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Unique key of the write. A repeated request with the same key returns the first answer "
        "and changes nothing.",
    ),
]
KeyedEndpoint = Callable[..., Reply]

_STORED_HEADERS = ("etag",)
REPLAYED = "Idempotency-Replayed"
COMPACT = "Idempotency-Compact"
"""The SHA-256 of the first response, where the repetition leaves out lists of it."""
MOST_STORED_BYTES = 16_384
_PURPOSE = b"idempotency:"


@dataclass(frozen=True, slots=True)
class _RequestKey:
    """`of` tells two requests apart that have the same key; so do the others, which older keys have made.

    A request that `deletes` makes room: its response is stored also where the quota of bytes is used up.
    """

    key: str
    of: str
    others: tuple[str, ...] = ()
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class Transaction:
    """Transaction of a request with a key.

    `planned`: it computes for long, so the endpoint runs before the write transaction begins. `in_parts`: the
    endpoint makes many transactions, which would be too long as one; only its answer is stored with the key.
    """

    planned: bool = False
    planned_if_large: bool = False
    in_parts: bool = False

    def is_planned(self, size: int) -> bool:
        """`size` is that of the request."""
        return self.planned or (self.planned_if_large and size > LARGE_BYTES)


def idempotent(endpoint: KeyedEndpoint, marks: Mapping[str, Any], how: Transaction) -> KeyedEndpoint:
    """Wrap an endpoint that takes `resources` and `caller` and works through them alone.

    A stored answer says so by its `marks`.
    """
    signature = inspect.signature(endpoint, eval_str=True)
    wants_key = "idempotency_key" in signature.parameters

    @wraps(endpoint)
    def keyed(
        *, request: Request, resources: Resources, caller: Caller, idempotency_key: str | None = None, **given: Any
    ) -> Reply:
        if wants_key:
            given["idempotency_key"] = idempotency_key
        if idempotency_key is None:
            return endpoint(resources=resources, caller=caller, **given)
        check_key(idempotency_key)
        text = _meaning(request, given)
        mark, *others = (_fingerprint(key, text) for key in resources.tokens.keys)
        asked = _RequestKey(
            f"{caller.principal or ''}\n{idempotency_key}", mark, tuple(others), request.method == "DELETE"
        )

        def act(inside: Resources) -> Reply:
            return endpoint(resources=inside, caller=caller, **given)

        if how.in_parts:
            return _answer_in_parts(resources, caller, asked, act, marks)
        write = resources.database.write_planned if how.is_planned(len(text)) else resources.database.write
        return _answer_once(resources, caller, asked, act, marks, write)

    keyed.__signature__ = _with_key(signature)  # type: ignore[attr-defined]  # what FastAPI reads
    return keyed


def _with_key(signature: inspect.Signature) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [each.replace(kind=kind) for each in signature.parameters.values() if each.name != "idempotency_key"]
    added = [
        inspect.Parameter("request", kind, annotation=Request),
        inspect.Parameter("idempotency_key", kind, annotation=IdempotencyKey, default=None),
    ]
    return signature.replace(parameters=[*own, *added])


def _answer_once(
    resources: Resources,
    caller: Caller,
    asked: _RequestKey,
    act: Callable[[Resources], Reply],
    marks: Mapping[str, Any],
    write: Callable[[Callable[[Connection], Reply | ApprovalRequired]], Reply | ApprovalRequired],
) -> Reply:
    telemetry = Deferred(resources.telemetry)

    def work(connection: Connection) -> Reply | ApprovalRequired:
        telemetry.forget()
        if not idempotency.claim(connection, caller.namespace, asked.key):
            raise RequestInProgress("A request with this idempotency key is in progress. Retry later.")
        earlier = idempotency.recall(connection, caller.namespace, asked.key)
        if earlier is not None:
            return _again(earlier, asked, marks)
        joined = JoinedTransaction(resources.database, connection)
        try:
            answer = act(replace(resources, database=joined, telemetry=telemetry))
        except ApprovalRequired as refused:
            return refused  # what it has written must be committed: a key would hide the attempt
        _remember(resources, connection, caller, asked, answer)
        return answer

    try:
        answer = write(work)
    except UniqueConflict as taken:
        if taken.constraint != "idempotency_pkey":
            raise
        raise RequestInProgress(
            "A request with this idempotency key has just completed. Retry to get its answer."
        ) from None
    if isinstance(answer, ApprovalRequired):
        raise answer
    telemetry.tell()
    return answer


def _answer_in_parts(
    resources: Resources,
    caller: Caller,
    asked: _RequestKey,
    act: Callable[[Resources], Reply],
    marks: Mapping[str, Any],
) -> Reply:
    """Store the answer after the request. One that ended in the middle is done again, and finds less to do."""
    earlier = resources.database.read(lambda connection: idempotency.recall(connection, caller.namespace, asked.key))
    if earlier is not None:
        return _again(earlier, asked, marks)
    answer = act(resources)
    with suppress(UniqueConflict):  # the same request was answered at this moment
        resources.database.write(lambda connection: _remember(resources, connection, caller, asked, answer))
    return answer


def _remember(resources: Resources, connection: Connection, caller: Caller, asked: _RequestKey, answer: Reply) -> None:
    """Raise QuotaExceeded where the answer does not fit."""
    kept, now = _stored_response(answer), resources.clock.now()
    if not asked.deletes:
        check_stored(resources, connection, caller.namespace, len(asked.key) + len(to_text(kept)), now)
    idempotency.remember(
        connection, caller.namespace, asked.key, request_hash=asked.of, status=answer.status_code, answer=kept, now=now
    )


def _again(earlier: Remembered, asked: _RequestKey, marks: Mapping[str, Any]) -> Reply:
    if earlier.request_hash not in (asked.of, *asked.others):
        raise IdempotencyKeyReused("This Idempotency-Key was used for a different request. Use a new key.")
    kept = earlier.answer
    body = {**kept["body"], **marks} if marks else kept["body"]
    compact = {COMPACT: kept["sha256"]} if "sha256" in kept else {}
    return Reply(body, earlier.status, headers={**kept["headers"], REPLAYED: "true", **compact})


def _stored_response(answer: Reply) -> dict[str, Any]:
    """Store a large response without its lists, the longest first, and with the hash of the whole."""
    headers = {name: answer.headers[name] for name in _STORED_HEADERS if name in answer.headers}
    whole = bytes(answer.body)
    body = json.loads(whole)
    if len(whole) <= MOST_STORED_BYTES or not isinstance(body, dict):
        return {"body": body, "headers": headers}
    left = len(whole)
    sizes = {name: len(to_text(value)) for name, value in body.items() if isinstance(value, list)}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if left > MOST_STORED_BYTES:
            body[name], left = [], left - sizes[name]
    return {"body": body, "headers": headers, "sha256": sha256(whole).hexdigest()}


def _meaning(request: Request, given: Mapping[str, Any]) -> str:
    """Write what the request means: blanks and the order of its fields play no part."""
    asked = {name: value for name, value in given.items() if name != "idempotency_key"}
    return json.dumps([request.method, request.url.path, asked], sort_keys=True)


def _fingerprint(key: bytes, text: str) -> str:
    """Hash with a key, since a request may hold a secret: a plain hash lets whoever has the database try short ones."""
    return hmac.new(key, _PURPOSE + text.encode("ascii"), sha256).hexdigest()


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


JSON: Final = "application/json"


class Open(Enum):
    """Asks nothing: probes and descriptions, which tell nothing about anybody."""

    TO_ALL = "open to all"


OPEN = Open.TO_ALL
LOOK, READ, WRITE, OPERATE = Permission.LOOK, Permission.READ, Permission.WRITE, Permission.OPERATE
SCHEDULE, RUN = Permission.SCHEDULE, Permission.RUN
WORK, ADMINISTER = Permission.WORK, Permission.ADMINISTER


class ScheduleDocument:
    """Stands for the body that is a schedule, or a part of one: its fields are a table of their own."""


BodyKind = type[Body] | type[ScheduleDocument]
Endpoint = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Example:
    """Example of a request and its answer; a test sends the one and compares the shape of the other."""

    answer: object
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. `statuses` are those with which the answer may come; `answer` None = it is no JSON object of ours."""

    method: str
    path: str
    name: str
    tag: str
    needs: Permission | Open
    summary: str
    example: Example
    answer: type[Answer] | None
    many: bool
    body: BodyKind | None
    statuses: tuple[int, ...]
    media_type: str
    repeatable: bool
    audited: Audited


_declared: dict[tuple[str, str], Operation] = {}
OPERATIONS: Mapping[tuple[str, str], Operation] = MappingProxyType(_declared)
"""By method and path, as the OpenAPI document spells it."""


class Routes:
    """The routes of one module. The name of an operation is that of its function, unless it is given."""

    def __init__(self, prefix: str = "", *, tag: str) -> None:
        self.router = APIRouter(prefix=prefix, tags=[tag])
        self._prefix = prefix
        self._tag = tag

    def __call__(
        self,
        method: str,
        path: str,
        *,
        needs: Permission | Open,
        summary: str,
        example: object,
        answer: type[Answer] | None = None,
        many: bool = False,
        body: BodyKind | None = None,
        sends: Mapping[str, Any] | None = None,
        status: int = 200,
        also: tuple[int, ...] = (),
        media_type: str = JSON,
        repeatable: bool = True,
        marks: Mapping[str, Any] | None = None,
        planned: bool = False,
        in_parts: bool = False,
        audited: Audited | None = None,
        warns: bool = False,
        name: str | None = None,
    ) -> Callable[[Endpoint], Endpoint]:
        """`sends` is the example of a body. `many`: the answer is a list of such answers.

        A write that is `repeatable` happens once for each Idempotency-Key; the answer to a repetition has `marks`.
        `planned`: it may compute for long, and with a key it is planned before the writer is taken. So is a large
        definition. `in_parts`: it makes many transactions, and a key does not make one of them.
        `audited` None = by the rule for what admins do. `warns`: the addresses that the write names are judged.
        """

        def declare(endpoint: Endpoint) -> Endpoint:
            described = _as_described(self._prefix + path)
            operation = Operation(
                method=method,
                path=described,
                name=name or endpoint.__name__,
                tag=self._tag,
                needs=needs,
                summary=summary,
                example=Example(example, sends),
                answer=answer,
                many=many,
                body=body,
                statuses=(status, *also),
                media_type=media_type,
                repeatable=repeatable and method != "GET",
                audited=audited_by_rule(method, described, needs) if audited is None else audited,
            )
            if _declared.setdefault((method, operation.path), operation) is not operation:
                raise ValueError(f"{method} {operation.path} is declared twice")
            called = _wrapped(endpoint, operation, Transaction(planned=planned, in_parts=in_parts), marks or {})
            if not iscoroutinefunction(called):
                called = in_turn(called)
            if warns:
                called = warning_of_addresses(called)
            self.router.add_api_route(
                path,
                called,
                methods=[method],
                status_code=status,
                summary=summary,
                operation_id=operation.name,
                response_class=Response,
                response_model=None,
                response_description=HTTPStatus(status).phrase,
            )
            return endpoint

        return declare


def _wrapped(endpoint: Endpoint, operation: Operation, how: Transaction, marks: Mapping[str, Any]) -> Endpoint:
    """A repetition is answered before anything is told of it."""
    if operation.audited is not Audited.NEVER:
        endpoint = leaving_entry(endpoint, operation.name, operation.audited)
    if not operation.repeatable:
        return endpoint
    defines = operation.needs in (Permission.WRITE, Permission.SCHEDULE)
    return idempotent(endpoint, marks, replace(how, planned_if_large=defines))


def permission_for(method: str, path: str) -> Permission | Open:
    """`path` as the route spells it; a route that nobody declared lets nobody in."""
    try:
        return OPERATIONS[method, path].needs
    except KeyError:
        raise LookupError(f"{method} {path} was not declared") from None


def body_names_namespace(method: str, path: str) -> bool:
    """Tell whether the body of a route may name the namespace of the request."""
    body = OPERATIONS[method, path].body
    if body is None or issubclass(body, ScheduleDocument):
        return body is not None
    return any(each.name == "namespace" and not each.required for each in fields(body))


def _as_described(path: str) -> str:
    """`{name:path}` is `{name}` in the OpenAPI document."""
    return path.replace(":path}", "}")
