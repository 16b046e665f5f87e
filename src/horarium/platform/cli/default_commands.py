"""The command that an operation without a hand-written one gets, derived from its declaration.

Parameters that must be given are arguments, others are options. Values that are no text, number, flag or list of texts
are JSON, or a file as `@file`. A list has the options of all lists, and a table of the plain members of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from msgspec.structs import fields

from horarium.platform.cli.lists import (
    All,
    AllNamespaces,
    Limit,
    Listing,
    PageToken,
    Paging,
    scope_of,
    show_list,
    show_listing,
)
from horarium.platform.cli.remote import Remote, by_flags, with_remote
from horarium.platform.cli.streams import cell, json_value, show_document
from horarium.platform.client.call import Call
from horarium.platform.operation import CURSOR, KEY, Place, operation_of, request_of
from horarium.platform.wire import Answer

_SIZE, _EVERYTHING, _NAMESPACE = "page_size", "everything", "namespace"
_MOST_COLUMNS = 7
_PLAIN = (str, int, float)


@dataclass(frozen=True, slots=True)
class _Input:
    """A parameter of the call on the command line. `read` turns what was typed into its value."""

    name: str
    flag: str
    parameter: Parameter
    read: Callable[[Any], Any]
    first: bool = False

    @property
    def typed(self) -> str:
        """The name of the parameter of the command; those of the connection options must stay free."""
        return self.parameter.name


def default_command(call: Callable[..., Call[Any]], noun: str) -> Callable[..., None]:
    """Return the command of an operation, without its verb."""
    operation = operation_of(call)
    inputs = list(_inputs(call))
    paged = CURSOR in request_of(call).signature.parameters

    def command(remote: Remote, **typed: Any) -> None:
        values = [(each, each.read(typed[each.typed])) for each in inputs if typed[each.typed] not in (None, [])]
        made = call(
            *(value for each, value in values if each.first),
            **{each.name: value for each, value in values if not each.first and value is not None},
        )
        with by_flags({each.name: each.flag for each in inputs}):
            _show(remote, call, made, noun, None if typed.get(_EVERYTHING) else typed.get("limit"))

    shared = [("limit", Limit, 50), (_EVERYTHING, All, False)] if paged else []
    own = [Parameter("remote", Parameter.KEYWORD_ONLY, annotation=Remote), *(each.parameter for each in inputs)]
    own += [Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=kind) for name, kind, value in shared]
    command.__signature__ = Signature(own)  # type: ignore[attr-defined]  # what Typer reads
    command.__name__, command.__doc__ = operation.name, call.__doc__ or f"{operation.summary}."
    return with_remote(command)


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────


def _inputs(call: Callable[..., Call[Any]]) -> Iterator[_Input]:
    request, hints = request_of(call), get_type_hints(call)
    members = [name for name, (place, _) in request.places.items() if place is Place.MEMBERS]
    for name, parameter in request.signature.parameters.items():
        place, _ = request.places[name]
        if name in (KEY, _SIZE) or name in members[1:]:
            continue
        if name == CURSOR:
            yield _Input(name, "--page-token", _option("page_token", PageToken, None), _same)
        elif name == _NAMESPACE and place is Place.QUERY:
            yield _Input(name, "--all-namespaces", _option("all_namespaces", AllNamespaces, False), scope_of)
        elif place is Place.MEMBERS:
            yield from _document(name, parameter)
        else:
            yield _plain(parameter, hints[name])


def _document(name: str, parameter: Parameter) -> Iterator[_Input]:
    kind = typer.Option("--set", metavar="JSON", show_default=False, help="JSON object, or @file.")
    typed = _option(f"own_{name}", Annotated[str, kind], Parameter.empty)
    first = parameter.kind is Parameter.POSITIONAL_ONLY
    yield _Input(name, "--set", typed, lambda text: json_value("--set", text), first)


def _plain(parameter: Parameter, hint: Any) -> _Input:
    name, first = parameter.name, parameter.kind is Parameter.POSITIONAL_ONLY
    flag, metavar = f"--{name.replace('_', '-')}", name.upper()
    kind, read = _kind(hint, flag)
    many, needed = get_origin(kind) is list, parameter.default is Parameter.empty
    if needed and not many:
        argument = typer.Argument(metavar=metavar, show_default=False)
        return _Input(name, metavar, _option(f"own_{name}", Annotated[kind, argument], Parameter.empty), read, first)
    if kind is bool:
        return _Input(
            name, flag, _option(f"own_{name}", Annotated[bool, typer.Option(flag)], False), lambda on: on or None
        )
    option = typer.Option(flag, metavar=metavar, show_default=False, help="Repeatable." if many else None)
    default = Parameter.empty if needed else None
    return _Input(name, flag, _option(f"own_{name}", Annotated[kind if needed else kind | None, option], default), read)


def _option(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _kind(hint: Any, flag: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type that Typer reads, and what makes the value of it."""
    parts = [each for each in get_args(hint) if each is not type(None)] if _is_union(hint) else [hint]
    if len(parts) > 1 and str in parts:  # a time, or a version with a name
        return str, _same
    if len(parts) == 1 and parts[0] in (*_PLAIN, bool):
        return parts[0], _same
    if len(parts) == 1 and get_origin(parts[0]) is Sequence and get_args(parts[0]) == (str,):
        return list[str], _same
    return str, lambda text: json_value(flag, text)


def _same(typed: Any) -> Any:
    return typed


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


# ── output ───────────────────────────────────────────────────────────────────────────────────────────


def _show(remote: Remote, call: Callable[..., Call[Any]], made: Call[Any], noun: str, limit: int | None) -> None:
    rows = request_of(call).rows
    if rows is None:
        answer = remote.send(made)
        document = answer.raw if isinstance(answer, Answer) else {"answer": answer}
        show_document(document, remote.output, ((name, cell(value)) for name, value in document.items()))
        return
    member, kind = rows
    names = _columns(kind)
    columns = [name.replace("_", " ").title().replace(" Id", " ID") for name in names]

    def row(item: Answer) -> Sequence[Any]:
        return [getattr(item, name) for name in names]

    if made.cursor is None:
        show_list(remote, member, remote.send(made), columns, row)
        return
    listing: Listing[Any] = Listing(remote, made, Paging(member), limit)
    empty, hint = f"no {noun}s in namespace {{namespace}}", f"more {noun}s: --all, or --page-token {{cursor}}"
    show_listing(listing, columns, row, empty=empty, hint=hint)


def _columns(kind: type[Answer]) -> list[str]:
    plain = [each.name for each in fields(kind) if each.required and _is_plain(each.type)]
    return plain[:_MOST_COLUMNS]


def _is_plain(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _is_plain(get_args(hint)[0])
    if _is_union(hint):
        return all(_is_plain(part) for part in get_args(hint) if part is not type(None))
    return isinstance(hint, type) and get_origin(hint) is None and not issubclass(hint, Answer)
