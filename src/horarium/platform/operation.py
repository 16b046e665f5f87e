"""One declaration of an operation: the server, both clients and the command line derive their parts from it.

    operation = Operations("/api/secrets", tag="secrets")

    class SecretOperations:
        @operation("DELETE", "/{secret_name}", needs=WRITE, summary="Delete a secret", answer=SecretDeleted)
        @staticmethod
        def delete_secret(secret_name: str, *, force: bool | None = None) -> Call[SecretDeleted]:
            \"\"\"Delete a secret.\"\"\"

The signature and the documentation are those of the client methods; the function has no body, because the request
follows from the declaration. A parameter stands in the path if the path names it, in the body if the body type has such
a field, and otherwise in the query. `idempotency_key` and `if_version` are headers. A positional-only parameter and
`**fields` are members of the body. A route implements the operation with `@routes.implements(...)`
(`platform/http/routing.py`), and `platform/cli/default_commands.py` makes a command of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, wraps
from inspect import Parameter
from types import MappingProxyType
from typing import Annotated, Any, Final, ParamSpec, TypeVar, get_args, get_origin

from msgspec.structs import fields

from horarium.platform.bodies import Body
from horarium.platform.client.call import Call, Method, if_match, many, one, rfc3339
from horarium.platform.wire import Answer, Permission

P = ParamSpec("P")
T = TypeVar("T")

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

KEY, VERSION, CURSOR = "idempotency_key", "if_version", "next_page_token"
_PLACE = re.compile(r"{(\w+)}")
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation. `answer` None = it is no JSON object of ours; `many`: the answer is a list of such answers.

    `pattern` is the path as the router takes it. `statuses` are those with which the answer may come. A write that is
    `repeatable` happens once for each idempotency key; `retried`: clients repeat it. `renamed` maps parameters to their
    names in the request. `has_command`: it gets a default command, unless a hand-written one has its name.
    """

    method: str
    path: str
    pattern: str
    name: str
    tag: str
    needs: Permission | Open
    summary: str
    answer: type[Answer] | None
    many: bool
    body: BodyKind | None
    statuses: tuple[int, ...]
    media_type: str
    repeatable: bool
    retried: bool = True
    renamed: Mapping[str, str] = field(default_factory=dict)
    has_command: bool = True


class Operations:
    """A decorator that declares the operations whose paths begin with `prefix`."""

    def __init__(self, prefix: str, *, tag: str) -> None:
        self._prefix = prefix
        self._tag = tag

    def __call__(
        self,
        method: str,
        path: str,
        *,
        needs: Permission | Open,
        summary: str,
        answer: type[Answer] | None = None,
        many: bool = False,
        body: BodyKind | None = None,
        status: int = 200,
        also: tuple[int, ...] = (),
        repeatable: bool = True,
        retried: bool = True,
        renamed: Mapping[str, str] = _NO_NAMES,
        has_command: bool = True,
        by_hand: bool = False,
    ) -> Callable[[Callable[P, Call[T]]], Method[P, T]]:
        """`Operation` describes the parameters. The name of an operation is that of its function.

        `by_hand`: the function has a body, which returns the call.
        """

        def declare(function: Callable[P, Call[T]]) -> Method[P, T]:
            plain: Callable[P, Call[T]] = getattr(function, "__func__", function)
            pattern = self._prefix + path
            operation = Operation(
                method=method,
                path=as_described(pattern),
                pattern=pattern,
                name=plain.__name__,
                tag=self._tag,
                needs=needs,
                summary=summary,
                answer=answer,
                many=many,
                body=body,
                statuses=(status, *also),
                media_type=JSON,
                repeatable=repeatable and method != "GET",
                retried=retried,
                renamed=renamed,
                has_command=has_command,
            )
            request = Request(plain, operation)
            made = plain if by_hand else _sending(plain, request)
            vars(made).update(operation=operation, request=request)
            return Method(made)

        return declare


def operation_of(call: Callable[..., Call[Any]]) -> Operation:
    """Return the operation that was declared with this function."""
    found: Operation = vars(call)["operation"]
    return found


def as_described(path: str) -> str:
    """`{name:path}` is `{name}` in the OpenAPI document."""
    return path.replace(":path}", "}")


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────


class Place(Enum):
    """The part of a request in which a parameter stands."""

    PATH = "path"
    QUERY = "query"
    BODY = "body"
    MEMBERS = "members of the body"
    KEY = "idempotency key"
    VERSION = "expected version"


def _sending(function: Callable[P, Call[T]], request: Request) -> Callable[P, Call[T]]:
    @wraps(function)
    def make(*args: P.args, **named: P.kwargs) -> Call[T]:
        return request.call(args, named)

    return make


def request_of(call: Callable[..., Call[Any]]) -> Request:
    """Return where the parameters of an operation stand in its request."""
    found: Request = vars(call)["request"]
    return found


@dataclass(frozen=True, slots=True)
class _Step:
    """A parameter and its place. `optional`: None is left out; other defaults are `always` sent."""

    name: str
    place: Place
    sent: str
    always: Any
    optional: bool
    is_list: bool


class Request:
    """The places of the parameters of an operation, and the reader of its answer; found out on first use."""

    def __init__(self, function: Callable[..., Call[Any]], operation: Operation) -> None:
        self._function = function
        self._operation = operation

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @cached_property
    def places(self) -> Mapping[str, tuple[Place, str]]:
        """The place and the name in the request, by parameter."""
        return {step.name: (step.place, step.sent) for step in self._steps}

    def _place(self, parameter: Parameter) -> tuple[Place, str]:
        operation, name = self._operation, parameter.name
        sent = operation.renamed.get(name, name)
        if name == KEY:
            return Place.KEY, sent
        if name == VERSION:
            return Place.VERSION, sent
        if sent in _PLACE.findall(operation.path):
            return Place.PATH, sent
        if operation.body is None:
            return Place.QUERY, sent
        if parameter.kind in (Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY):
            return Place.MEMBERS, sent
        if issubclass(operation.body, Body):
            sent = operation.body.OTHER_NAMES.get(sent, sent)
            if sent in operation.body.__struct_fields__:
                return Place.BODY, sent
        return Place.QUERY, sent

    @cached_property
    def _positional(self) -> tuple[str, ...]:
        kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(name for name, each in self.signature.parameters.items() if each.kind in kinds)

    @cached_property
    def _known(self) -> tuple[frozenset[str], frozenset[str]]:
        """The parameters that can be named, and those that must be given."""
        parameters = self.signature.parameters.values()
        named = (
            each.name for each in parameters if each.kind not in (Parameter.POSITIONAL_ONLY, Parameter.VAR_KEYWORD)
        )
        needed = (
            each.name for each in parameters if each.default is Parameter.empty and each.kind != Parameter.VAR_KEYWORD
        )
        return frozenset(named), frozenset(needed)

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        return tuple(
            _Step(
                name,
                *self._place(each),
                always=each.default if each.default is not Parameter.empty else None,
                optional=each.default is None,
                # Any sequence is taken, and JSON knows only lists.
                is_list=str(each.annotation).startswith("Sequence["),
            )
            for name, each in self.signature.parameters.items()
        )

    def _bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments by parameter. The module `inspect` is exact, and slow: it gets the unusual cases."""
        known, needed = self._known
        values = dict(zip(self._positional, args, strict=False))
        if len(args) <= len(self._positional) and known.issuperset(named) and values.keys().isdisjoint(named):
            values.update(named)
            if values.keys() >= needed:
                return values
        try:
            return self.signature.bind(*args, **named).arguments
        except TypeError as wrong:
            raise TypeError(f"{self._operation.name}(): {wrong}") from None

    def call(self, args: Sequence[Any], named: Mapping[str, Any]) -> Call[Any]:
        """Return the request with these arguments. None is left out where it is the default."""
        operation, values = self._operation, self._bound(args, named)
        names: dict[str, str] = {}
        query: dict[str, Any] = {}
        body: dict[str, Any] = {}
        key, version = None, None
        for step in self._steps:
            value: Any = values.get(step.name, step.always)
            if value is None and step.optional:
                continue
            match step.place:
                case Place.PATH:
                    names[step.sent] = value
                case Place.QUERY:
                    query[step.sent] = value
                case Place.BODY:
                    body[step.sent] = list(value) if step.is_list else rfc3339(value)
                case Place.MEMBERS:
                    body.update(value or {})
                case Place.KEY:
                    key = value
                case Place.VERSION:
                    version = value
        return Call(
            operation.method,
            operation.path,
            self._parse,
            names,
            query=query,
            body=None if operation.body is None else body,
            headers=if_match(version),
            idempotent=operation.retried,
            key=key,
            cursor=self._cursor,
            also=self._also,
        )

    @cached_property
    def _cursor(self) -> str | None:
        return CURSOR if CURSOR in self.signature.parameters else None

    @cached_property
    def _also(self) -> tuple[int, ...]:
        return tuple(status for status in self._operation.statuses if status >= 300)

    @cached_property
    def rows(self) -> tuple[str, type[Answer]] | None:
        """The member of the answer that is a list, and the type of its rows; None where the answer is one object."""
        answer = self._operation.answer
        if answer is None or not str(self.signature.return_annotation).startswith("Call[Page["):
            return None
        return next((each.name, row) for each in fields(answer) if (row := _row_of(each.type)) is not None)

    @cached_property
    def _parse(self) -> Callable[[Any], Any]:
        answer = self._operation.answer
        if answer is None:
            raise TypeError(f"{self._operation.name}: clients read only answers with a type")
        if self._operation.many:
            return many(answer)
        return one(answer) if self.rows is None else many(self.rows[1], self.rows[0])


def _row_of(kind: Any) -> type[Answer] | None:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    row = get_args(kind)[0] if get_origin(kind) is tuple else None
    return row if isinstance(row, type) and issubclass(row, Answer) else None
