"""What the commands about agents, teams and assignments share: a document of file and flags, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli.definition import put
from horarium.cli.present import cell, printable, show_document
from horarium.cli.reading import read_object, refuse
from horarium.cli.remote import Remote
from horarium.cli.render import Format, talk

if TYPE_CHECKING:
    from horarium.wire.answer import Answer

File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", show_default=False, help="The document, JSON or YAML; - is stdin."),
]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", show_default=False, help="Only if nobody has changed it since."),
]


def document_of(key: str, name: str, file: str | None, said: Mapping[str, Any]) -> dict[str, Any]:
    """What the file says, with what the flags say in its place; `said` is by path, None = not said."""
    document = {} if file is None else read_object("--file", file)
    about = document.pop(key, document.pop("id", None))
    if about not in (None, name):
        refuse(f"the file is about {str(about)[:128]!r}, not {name!r}")
    for place, value in said.items():
        if value not in (None, []):
            put(document, place, value)
    return document


def show_written(remote: Remote, name: str, done: Answer) -> None:
    if remote.output is Format.TABLE:
        version = done.raw.get("version")
        about = "" if version is None else f"; version {version}"
        typer.echo(printable(f"{name}: {done.raw.get('outcome') or 'kept'}{about}"))
    else:
        show_document(done.raw, remote.output, [])


def show_deleted(remote: Remote, what: str, done: Answer) -> None:
    if remote.output is Format.TABLE:
        talk(printable(f"{what} is deleted"))
    else:
        show_document(done.raw, remote.output, [])


def described(raw: Mapping[str, Any], first: str) -> Iterator[tuple[str, str]]:
    """Line by line what a document says; `first` is its id."""
    yield first.replace("_", " "), cell(raw.get(first))
    for name, value in raw.items():
        if name == first or value is None or value in ({}, []):
            continue
        if isinstance(value, Mapping) and name == "policies":
            for part, policy in value.items():
                yield part.replace("_", " "), cell(policy)
        else:
            yield name.replace("_", " "), cell(value)
