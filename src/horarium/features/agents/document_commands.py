"""The commands put and update of agents, teams and assignments, and their text output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.features.schedules.definition_flags import put
from horarium.platform.cli.remote import Remote, by_flags
from horarium.platform.cli.streams import Format, cell, printable, read_object, refuse, show_document, talk, warn

if TYPE_CHECKING:
    from horarium.features.agents.model import Agent, AgentChecked
    from horarium.platform.wire import Answer


File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", show_default=False, help="Definition as JSON or YAML; - reads stdin."),
]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", show_default=False, help="Write only if the object has this version."),
]


Replace = Annotated[bool, typer.Option("--replace", help="Confirm that fields that are not given are reset.")]
Clear = Annotated[
    list[str] | None,
    typer.Option("--clear", metavar="FIELD", show_default=False, help="Reset a field to its default; repeatable."),
]


@dataclass(frozen=True, slots=True)
class Writing:
    """The fields given to a command by their path, None = not given; `flags` are the options of these paths."""

    noun: str
    flags: Mapping[str, str]
    said: Mapping[str, Any]

    def put(self, remote: Remote, name: str, file: str | None, if_version: int | None, replace: bool) -> None:
        """Create or replace. Refuse where fields of what exists would be reset, unless that is confirmed."""
        document = document_of(f"{self.noun}_id", name, file, self.said)
        if not replace:
            if_version = self._seen(remote, name, document, if_version)
        self._write(remote, f"put_{self.noun}", name, document, if_version)

    def update(
        self, remote: Remote, name: str, file: str | None, if_version: int | None, clear: Sequence[str] | None
    ) -> None:
        """Change the given fields and leave the others."""
        document = document_of(f"{self.noun}_id", name, file, self.said)
        known = sorted({path for path in self.flags if not path.startswith("assignee_")})
        for path in clear or ():
            if path not in known:
                refuse(f"--clear: {path[:60]!r} is not one of {', '.join(known)}")
            put(document, path, None)
        if not document:
            refuse("no changes given; use an option, --clear or --file")
        self._write(remote, f"patch_{self.noun}", name, document, if_version)

    def _seen(self, remote: Remote, name: str, document: Mapping[str, Any], if_version: int | None) -> int | None:
        """Return the version that was compared, so that nothing is reset that was written meanwhile."""
        from horarium.features.agents.definition import SHAPES
        from horarium.platform.client.errors import NotFound

        try:
            found = getattr(remote.client, f"get_{self.noun}")(name).raw
        except NotFound:
            return if_version
        resets = SHAPES[self.noun].resets(found, document)
        for path, before, after in resets:
            talk(printable(f"{path}: {cell(before)} → {'default' if after is None else cell(after)}"))
        if resets:
            refuse(
                f"{self.noun} {name} exists, and this would reset the fields above. Change single fields with "
                f"`horarium {self.noun} update`, or confirm with --replace"
            )
        return found["version"] if if_version is None else if_version

    def _write(
        self, remote: Remote, method: str, name: str, document: Mapping[str, Any], if_version: int | None
    ) -> None:
        with by_flags(self.flags):
            done = getattr(remote.client, method)(name, document, if_version=if_version)
        show_saved(remote, name, done)


def document_of(key: str, name: str, file: str | None, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of the file with the given fields set; `said` is by path, None = not given."""
    document = {} if file is None else read_object("--file", file)
    about = document.pop(key, document.pop("id", None))
    if about not in (None, name):
        refuse(f"the file has the {key} {str(about)[:128]!r}, not {name!r}")
    for place, value in said.items():
        if value not in (None, []):
            put(document, place, value)
    return document


def show_saved(remote: Remote, name: str, done: Answer) -> None:
    if remote.output is Format.TABLE:
        version = done.raw.get("version")
        about = "" if version is None else f"; version {version}"
        typer.echo(printable(f"{name}: {done.raw.get('outcome') or 'saved'}{about}"))
    else:
        show_document(done.raw, remote.output, [])
    warn(done.raw.get("warnings", ()))


def show_deleted(remote: Remote, what: str, done: Answer) -> None:
    if remote.output is Format.TABLE:
        talk(printable(f"{what} deleted"))
    else:
        show_document(done.raw, remote.output, [])


def described(raw: Mapping[str, Any], first: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a document; `first` is the one with its ID."""
    yield first.replace("_", " "), cell(raw.get(first))
    for name, value in raw.items():
        if name == first or value is None or value in ({}, []):
            continue
        if isinstance(value, Mapping) and name == "policies":
            for part, policy in value.items():
                yield part.replace("_", " "), cell(policy)
        else:
            yield name.replace("_", " "), cell(value)


_INDENT = "  "


def in_tree(agents: Sequence[Agent]) -> list[tuple[str, Agent]]:
    """Return agents below their parents, with indented IDs; those without a listed parent are not indented."""
    known = {each.id for each in agents}
    below: dict[str | None, list[Agent]] = {}
    for each in agents:
        below.setdefault(each.parent_id if each.parent_id in known else None, []).append(each)
    found: list[tuple[str, Agent]] = []
    waiting = [(0, each) for each in reversed(below.pop(None, []))]
    while waiting:
        depth, agent = waiting.pop()
        found.append((f"{_INDENT * depth}{agent.id}", agent))
        waiting += [(depth + 1, each) for each in reversed(below.pop(agent.id, []))]
    # Agents may move between two pages; all are listed.
    return found + [(each.id, each) for rest in below.values() for each in rest]


def agent_lines(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    card = raw.get("card")
    names = ("name", "version", "protocol")
    yield from described({**raw, "card": None if card is None else _card(*map(card.get, names))}, "id")


def check_lines(found: AgentChecked) -> Iterator[tuple[str, str]]:
    yield "id", found.id
    yield "reachable", cell(found.reachable)
    if found.card is not None:
        yield "card", _card(found.card.name, found.card.version, found.card.protocol)
    if found.dialect is not None:
        yield "dialect", found.dialect
    if found.error is not None:
        yield "error", found.error
    for each in found.interfaces:
        token = "" if each.with_token else ", without the token"
        yield (
            "interface",
            f"{each.url} ({each.dialect}): " + (f"used{token}" if each.used else f"not used: {each.why_not}"),
        )


def _card(name: object, version: object, protocol: object) -> str:
    """Return such as `Writer 2.1.0, protocol 1.0`."""
    named = " ".join(str(each) for each in (name, version) if each is not None)
    return named if protocol is None else f"{named}, protocol {protocol}"
