"""Reads the *what* of a document: which kind of action it is, and whether its fields make one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from horarium.errors import InvalidDefinition, KindNotAvailable
from horarium.policy.names import shown
from horarium.schedule.canonical import action_document
from horarium.schedule.definition import Action
from horarium.schedule.kinds import SHIPPED, WORKFLOW, Kind, Kinds
from horarium.schedule.places import COMMON, PLACES
from horarium.schedule.problems import Given
from horarium.schedule.reading import FAILED, Reader
from horarium.schedule.storable import same_json
from horarium.schedule.target import DEFAULT_CONNECTION

_ASKED = "set workflow_type, workflow_id, prompt, url, task, callable or command"
_CHECKED = [PLACES[f"action.{name}"] for name in COMMON if name not in ("kind", "input")]


def read_action(reader: Reader, kinds: Kinds | None, stored: Action | None = None, *, inherits: bool = False) -> Action:
    """Where the kind is unknown the rest is read all the same: the reader keeps what is wrong.

    Without `kinds` the document is one that we wrote. Its kind may be that of a package which is gone by now: then
    what it holds is kept as it is, and the launch says that nobody can do it. `stored` is such an action of the
    schedule that the document changes: it may stay, and not be changed. `inherits`: what it does not say of its
    connection, something above it may. What a workflow's action says of it is for the steps.
    """
    places = reader.places
    values: dict[str, Any] = {}
    key = None if kinds is None else ""  # what somebody sends is bounded more strictly than what was kept
    for place in _CHECKED:
        given = places.get(place.path)
        if given is not None and (value := reader.value(place, given, key)) is not FAILED:
            values[place.attribute] = value
    name = places.get("action.kind")
    if kinds is None and name is not None and isinstance(name.value, str) and name.value not in SHIPPED:
        return _foreign(name.value, places, values)
    known = kinds or SHIPPED
    kind = _kind(reader, known, "" if stored is None else stored.kind)
    if kind is None:
        return Action("")
    if stored is not None and kind.name == stored.kind:
        if not same_json(action_document(_foreign(kind.name, places, values)), action_document(stored)):
            _refuse_kind(reader, known, kind.name, kind.name)
        return stored
    if "action.input" in places:
        values["input"] = reader.one("action.input", kind.check_input, None)
    # An action of a stored node may leave its queue to the workflow.
    if kinds is not None and kind.needs_queue and not reader.given("action.queue"):
        reader.blame("action.queue", "is required: the queue that workers claim from")
    lends = kind.name == WORKFLOW.name
    connections = known.connections if lends else kind.connections
    if connections is not None and ("connection" in values or not (inherits or lends)):
        _check_connection(reader, connections, values.get("connection"))
    return Action(kind.name, _target(reader, kind, known), **values)


def _check_connection(reader: Reader, known: Collection[str], name: str | None) -> None:
    if (name or DEFAULT_CONNECTION) not in known:
        reader.blame("action.connection", unknown_connection(known, name))


def unknown_connection(known: Collection[str], name: str | None) -> str:
    """Describe an unknown connection; one that is not for this namespace counts as unknown, with the same text."""
    named = "is required, because no default connection is configured" if name is None else f"{shown(name)} is unknown"
    return f"{named}; configured: {', '.join(sorted(known)) or 'none'}"


_NOTHING = Given("", None)


def _foreign(kind: str, places: Mapping[str, Given], values: dict[str, Any]) -> Action:
    own = {path.removeprefix("action."): given.value for path, given in places.items() if path.startswith("action.")}
    target = {name: value for name, value in own.items() if name not in COMMON}
    return Action(kind, target, places.get("action.input", _NOTHING).value, **values)


def _kind(reader: Reader, kinds: Kinds, gone: str) -> Kind | None:
    if reader.given("action.kind"):
        return _named(reader, kinds, gone)
    present = [name for name in kinds.fields if reader.given(f"action.{name}")]
    if not present:
        reader.problems.add("action", f"is required: {_ASKED}")
        return None
    kind = kinds.guessed(frozenset(present))
    if kind is None:
        paths = " and ".join(f"`{reader.path(f'action.{name}')}`" for name in present)
        reader.problems.add("action", f"{paths} belong to different kinds of action; use the fields of one kind")
    return kind


def _named(reader: Reader, kinds: Kinds, gone: str) -> Kind | None:
    given = reader.places.get("action.kind")
    if given is None:  # it could not be read, and that was said
        return None
    wanted = given.value
    found = kinds.get(wanted) if isinstance(wanted, str) else None
    if found is None:
        _refuse_kind(reader, kinds, wanted, gone)
    return found


def _refuse_kind(reader: Reader, kinds: Kinds, wanted: object, gone: str) -> None:
    unknown = isinstance(wanted, str)
    text = f"must be one of {', '.join(kind for kind in kinds if kind != gone)}, not {shown(wanted)}"
    why = "; no installed launcher declares this kind" if unknown else ""
    reader.blame("action.kind", text + why, KindNotAvailable if unknown else InvalidDefinition)


def _target(reader: Reader, kind: Kind, kinds: Kinds) -> dict[str, Any]:
    """Every field that the kinds have is looked at, so that one of another kind is named."""
    target: dict[str, Any] = {}
    for name in kinds.fields:
        path = f"action.{name}"
        field = kind.fields.get(name)
        if field is None:
            if reader.given(path):
                owners = " or ".join(owner.name for owner in kinds.values() if name in owner.fields)
                reader.blame(path, f"belongs to an action of kind {owners}, not {kind.name}; null clears it")
        elif path in reader.places and field.check is not None:
            value = reader.one(path, field.check, None)
            if value is not None:
                target[name] = value
    if kind.required and not any(reader.given(f"action.{name}") for name in kind.required):
        asked = " or ".join(kind.required)
        reader.blame(f"action.{kind.required[0]}", f"is required: an action of kind {kind.name} needs {asked}")
    for name, default in kind.defaults.items():
        target.setdefault(name, default)
    for name in [name for name in target if kind.fields[name].same_as]:
        _join(reader, target, name, kind.fields[name].same_as)
    return target


def _join(reader: Reader, target: dict[str, Any], name: str, kept: str) -> None:
    """Another word for a field of the same action; `callable` tells us that there is no Celery."""
    value = target.pop(name)
    if not same_json(target.setdefault(kept, value), value):
        other = reader.path(f"action.{kept}")
        reader.blame(
            f"action.{name}", f"conflicts with `{other}`, another name of the same field; send only one of them"
        )
