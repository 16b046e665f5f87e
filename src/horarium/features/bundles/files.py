"""Files of bundles: read from files and directories, and written from the answers of a server.

`document.py` defines the lists of a bundle. The `prompt_file` of agent schedules is read into `prompt`.

Paths are relative to the bundle and must be inside the given directory, or the directory of the bundle file: no
other file of the machine is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from horarium.core.document.assignee import ASSIGNMENT_FIELDS, TEAM_FIELDS
from horarium.core.document.places import NAMES
from horarium.features.agents.definition import FIELDS as AGENT_FIELDS
from horarium.features.bundles.document import EXHAUSTED, IDENTITIES, PAUSE_REASON, PAUSED_UNTIL, BundleKind
from horarium.features.bundles.organisation import CHILDREN, PROMPT_FILE, SCHEDULES
from horarium.platform.cli.streams import STDIN, read_object, refuse

MAX_BYTES = 1_000_000
_DEEPEST = 64


def with_prompts(agents: list[dict[str, Any]], file: str, root: str) -> list[dict[str, Any]]:
    """Return agents with their prompts; `root` is the given directory or file."""
    return [_agent(agent, _Folder(file, root), _DEEPEST) for agent in agents]


class _Folder:
    """The directory of a bundle file, and the directory that contains its prompts."""

    def __init__(self, file: str, root: str) -> None:
        self._file = file
        self._is_stdin = file == STDIN
        self._here = Path(file).parent
        self._border = Path(root) if Path(root).is_dir() else self._here

    def text(self, name: object) -> str:
        if self._is_stdin:
            refuse("--file: prompt_file is not supported in a bundle on stdin")
        if not isinstance(name, str) or not name:
            refuse(f"--file: prompt_file of {self._file!r} must be a file name")
        try:
            path, border = (self._here / name).resolve(), self._border.resolve()
            if Path(name).is_absolute() or not path.is_relative_to(border):
                refuse(
                    f"--file: prompt_file {name[:128]!r} of {self._file!r} is outside of the directory of the bundle"
                )
            if not path.is_file():
                refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is not a file")
            with path.open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
        except (OSError, ValueError, RuntimeError) as wrong:  # a NUL in the name; circular links
            refuse(f"--file: cannot read prompt_file {name[:128]!r} of {self._file!r}: {wrong}")
        if len(raw) > MAX_BYTES:
            refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is larger than {MAX_BYTES} bytes")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is not UTF-8")


def _agent(agent: dict[str, Any], folder: _Folder, depth: int) -> dict[str, Any]:
    """Return an agent with its prompts; the server reports values of a wrong type."""
    changed = dict(agent)
    if isinstance(agent.get(SCHEDULES), list):
        changed[SCHEDULES] = [_schedule(each, folder) for each in agent[SCHEDULES]]
    if isinstance(agent.get(CHILDREN), list) and depth:
        changed[CHILDREN] = [
            _agent(each, folder, depth - 1) if isinstance(each, dict) else each for each in agent[CHILDREN]
        ]
    return changed


def _schedule(schedule: Any, folder: _Folder) -> Any:
    """Return a schedule with its prompt; a prompt in the bundle takes precedence."""
    if not isinstance(schedule, dict) or schedule.get(PROMPT_FILE) is None:
        return schedule
    left = {name: value for name, value in schedule.items() if name != PROMPT_FILE}
    return left if schedule.get("prompt") else {**left, "prompt": folder.text(schedule[PROMPT_FILE])}


Document = dict[str, Any]

# Namespace, owner and user follow from the credential that applies the bundle; the source is then template.
_OMITTED = frozenset({"namespace", "owner", "user_id", "source"})
_CALENDAR_FIELDS = ("name", "kind", "timezone", "dates", "rule", "covers")
_EMPTY: tuple[Any, ...] = (None, "", [], {})

_LISTS = {kind.member: identity for kind, identity in IDENTITIES.items()}
_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
_MAX_FILES = 1_000


def read_bundle(places: list[str], name: str | None) -> Document:
    """Merge all files into one bundle with the name `name`, unless the files have one."""
    whole: Document = {member: [] for member in _LISTS}
    said: dict[str, str] = {} if name is None else {name: "--bundle"}
    known: dict[tuple[str, str], str] = {}
    for file, root in _files(places):
        document = read_object("--file", file)
        _check_fields(document, file)
        if document.get("bundle") is not None:
            said.setdefault(str(document["bundle"]), file)
        if len(said) > 1:
            (first, here), (second, there) = list(said.items())[:2]
            refuse(f"--file: conflicting bundle names: {first[:64]!r} ({here}) and {second[:64]!r} ({there})")
        for member, identity in _LISTS.items():
            rows = _rows(document, member, identity, file, known)
            whole[member] += with_prompts(rows, file, root) if member == BundleKind.AGENT.member else rows
    whole["bundle"] = next(iter(said), None)
    return {member: value for member, value in whole.items() if value not in _EMPTY}


def _files(places: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the files with their given path; directories are searched recursively, without hidden files."""
    count = 0
    for place in places:
        folder = Path(place)
        found = [place] if place == STDIN or not folder.is_dir() else _inside(folder)
        if not found:
            refuse(f"--file: {place!r} contains no file ending with {', '.join(sorted(_SUFFIXES))}")
        count += len(found)
        if count > _MAX_FILES:
            refuse(f"--file: more than {_MAX_FILES} files")
        yield from ((file, place) for file in found)


def _inside(folder: Path) -> list[str]:
    inside = (path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    return [str(path) for path in sorted(inside) if not any(part[0] == "." for part in path.relative_to(folder).parts)]


def _check_fields(document: Document, file: str) -> None:
    unknown = sorted(document.keys() - _LISTS.keys() - {"bundle"})
    if unknown:
        has = ", ".join(["bundle", *_LISTS])
        refuse(f"--file: {file!r} has the unknown field {unknown[0][:64]!r}; known fields: {has}")


def _rows(
    document: Document, member: str, identity: str, file: str, known: dict[tuple[str, str], str]
) -> list[Document]:
    rows = document.get(member) or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        refuse(f"--file: {member} of {file!r} must be an array of objects")
    for row in rows:
        name = row.get(identity)
        if isinstance(name, str) and known.setdefault((member, name), file) != file:
            refuse(f"--file: duplicate {identity} {name[:128]!r} in {known[member, name]!r} and {file!r}")
    return rows


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


def document_of_schedule(schedule: Mapping[str, Any]) -> Document:
    """Return the definition of a schedule with its initial state, from the answer of the server."""
    kept = {name: schedule[name] for name in NAMES if name in schedule and name not in _OMITTED}
    if isinstance(kept.get("action"), Mapping):
        kept["action"] = {name: value for name, value in kept["action"].items() if name != "task_queue"}
    if schedule.get("paused"):
        kept |= {"paused": True, **{name: schedule.get(name) for name in (PAUSE_REASON, PAUSED_UNTIL)}}
    if is_exhausted(schedule):
        kept[EXHAUSTED] = True
    return {name: value for name, value in kept.items() if value not in _EMPTY}


def is_exhausted(schedule: Mapping[str, Any]) -> bool:
    """Return whether a template was deleted because it reached max_runs; a bundle must not restart it."""
    deleted = schedule.get("status") == "deleted" and schedule.get("source") == "template"
    return deleted and schedule.get("max_runs") is not None and schedule.get("remaining_actions") == 0


def document_of_workflow(workflow: Mapping[str, Any]) -> Document:
    """Return the newest version of a workflow, without its number."""
    return {"workflow_id": workflow["workflow_id"], **_without_owner(workflow["document"])}


def _without_owner(document: Mapping[str, Any]) -> Document:
    return {name: value for name, value in document.items() if name not in _OMITTED}


def document_of_calendar(calendar: Mapping[str, Any]) -> Document:
    return _present_fields(calendar, _CALENDAR_FIELDS)


def document_of_agent(agent: Mapping[str, Any]) -> Document:
    """Return an agent without its token."""
    return _present_fields(agent, AGENT_FIELDS)


def document_of_team(team: Mapping[str, Any]) -> Document:
    return _present_fields(team, TEAM_FIELDS)


def document_of_assignment(assignment: Mapping[str, Any]) -> Document:
    return _present_fields(assignment, ASSIGNMENT_FIELDS)


def _present_fields(answer: Mapping[str, Any], fields: Sequence[str]) -> Document:
    return {name: answer[name] for name in fields if answer.get(name) not in _EMPTY}
