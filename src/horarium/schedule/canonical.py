"""Writes a definition as its one canonical document: native names, a fixed order, nothing that a default says."""

from __future__ import annotations

from typing import Any, Final

from horarium.schedule.definition import Action, Definition, SpecText
from horarium.schedule.places import DEFAULTS, NAMES, PARTS, PLACES, Place

_INSIDE: Final = {part: tuple(place for place in PLACES.values() if place.owner == part) for part in PARTS}
_ACTION: Final = tuple(place for place in _INSIDE["action"] if place.name != "kind" and hasattr(Action(""), place.name))


def to_document(definition: Definition) -> dict[str, object]:
    """Only what differs from a default, and always these six: the two names, spec, action, overlap and catch-up."""
    document: dict[str, object] = {}
    for name in NAMES:
        part = PARTS.get(name)
        if part is None:
            place = PLACES[name]
            holder = definition if place.part is None else getattr(definition, place.part.attribute)
            _write(document, place, holder)
        elif name == "action":
            document[name] = action_document(definition.action)
        elif name == "spec":
            document[name] = spec_document(definition.spec)
        else:
            policy = getattr(definition, part.attribute)
            if policy != DEFAULTS[part.attribute]:
                document[name] = _policy_document(_INSIDE[name], policy)
    return document


def spec_document(spec: SpecText) -> dict[str, object]:
    document: dict[str, object] = {}
    for place in _INSIDE["spec"]:
        _write(document, place, spec)
    return document


def action_document(action: Action) -> dict[str, object]:
    document: dict[str, object] = {"kind": action.kind, **action.target}
    for place in _ACTION:
        _write(document, place, action)
    return document


def policy_document(name: str, policy: object) -> dict[str, object]:
    """Document of a policy outside of a schedule; `name` is that of the schedule's own."""
    return _policy_document(_INSIDE[name], policy)


def _policy_document(places: tuple[Place, ...], policy: object) -> dict[str, object]:
    """Every field that is set: some defaults depend on their neighbours, so a policy is written in full."""
    document: dict[str, object] = {}
    for place in places:
        value = getattr(policy, place.attribute)
        written = None if value is None or value == place.field.null else place.written(value)
        if written is not None or (value is not None and value == place.field.null):
            document[place.name] = written
    return document


def _write(document: dict[str, Any], place: Place, holder: object) -> None:
    value = getattr(holder, place.attribute, None)
    if value is not None and (place.field.always or value != place.default):
        document[place.name] = place.written(value)
