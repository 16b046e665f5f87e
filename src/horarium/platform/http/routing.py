"""How a route is declared: one decorator says who may call it, what it takes, what it answers, and how that looks.

Everything else that speaks of routes - the door, the OpenAPI document, the reference page, the tests - reads it
off `OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, Final

from fastapi import APIRouter
from msgspec.structs import fields
from starlette.responses import Response

from horarium.platform.bodies import Body
from horarium.platform.http.audited import Audited, audited_by_rule
from horarium.platform.http.audited import audited as leaving_entry
from horarium.platform.http.idempotency import Transaction, idempotent, warning_of_addresses
from horarium.platform.http.turns import in_turn
from horarium.platform.wire import Answer, Permission

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
