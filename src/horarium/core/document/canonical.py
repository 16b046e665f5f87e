"""Canonical documents of definitions, and changes to them.

A canonical document has native names, a fixed order, and nothing that is a default. Merge-patch, replacement of
parts and replacement of the whole all work on canonical places, so a patch may use any spelling that a whole
document may.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, assert_never

from horarium.core.document.checks import is_reference
from horarium.core.document.definition import Action, Definition, SpecText
from horarium.core.document.json_values import DocumentProblems, GivenValue, Places, check_storable, is_envelope
from horarium.core.document.places import (
    DEFAULTS,
    NAMES,
    PARTS,
    PLACES,
    SHIPPED_NAMES,
    DocumentPlace,
    Normalised,
    normalise,
)

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


def _policy_document(places: tuple[DocumentPlace, ...], policy: object) -> dict[str, object]:
    """Every field that is set: some defaults depend on their neighbours, so a policy is written in full."""
    document: dict[str, object] = {}
    for place in places:
        value = getattr(policy, place.attribute)
        written = None if value is None or value == place.field.null else place.written(value)
        if written is not None or (value is not None and value == place.field.null):
            document[place.name] = written
    return document


def _write(document: dict[str, Any], place: DocumentPlace, holder: object) -> None:
    value = getattr(holder, place.attribute, None)
    if value is not None and (place.field.always or value != place.default):
        document[place.name] = place.written(value)


# ── Changes ───────────────────────────────────────────────────────────────────────────────────────────


# A part that is replaced loses what the new one does not say. Jitter is no part of the spec that the
# Durable Workflow client replaces: it sends it beside, and means to keep it when it does not.
_REPLACED = {part: (f"{part}.",) for part in PARTS if part != "action"} | {
    "assignee": tuple(name.place for name in SHIPPED_NAMES.objects["assignee"].values())
}
_PRESERVED = frozenset({"spec.jitter_seconds"})
_CLEARED_BY_NULL = frozenset({"memo", "search_attributes"})


class UpdateMode(StrEnum):
    """Meaning of a document for an existing schedule.

    merge   RFC 7396: objects are merged, null clears
    parts   a part that is given replaces the old one, the action is merged key by key, null changes nothing
    whole   the document replaces everything
    """

    MERGE = "merge"
    PARTS = "parts"
    WHOLE = "whole"


def merge_patch(base_document: Mapping[str, object], patch: object) -> dict[str, object]:
    """RFC 7396 on canonical documents; raises InvalidDefinition for fields that nobody knows."""
    return _changed(UpdateMode.MERGE, base_document, patch)


def replace_parts(base_document: Mapping[str, object], patch: object) -> dict[str, object]:
    """The given parts in place of the old ones; `action` is merged key by key."""
    return _changed(UpdateMode.PARTS, base_document, patch)


def _changed(how: UpdateMode, base_document: Mapping[str, object], patch: object) -> dict[str, object]:
    problems = DocumentProblems()
    check_storable(patch, problems)
    problems.raise_any()
    base, given = normalise(base_document, problems), normalise(patch, problems)
    problems.raise_any()
    return nested(apply_update(how, base.places, given))


def apply_update(how: UpdateMode, base: Places, given: Normalised) -> dict[str, GivenValue]:
    match how:
        case UpdateMode.MERGE:
            result = {place: old for place, old in base.items() if place not in given.nulls}
            for place, new in given.places.items():
                value = _merged(result[place].value if place in result else None, new.value)
                result[place] = GivenValue(new.path, value, new.single)
            return result
        case UpdateMode.PARTS:
            dropped = tuple(prefix for part in given.objects for prefix in _REPLACED.get(part, ()))
            kept = {place: old for place, old in base.items() if place in _PRESERVED or not place.startswith(dropped)}
            for place in given.nulls & _CLEARED_BY_NULL:
                kept.pop(place, None)
            return kept | given.places
        case UpdateMode.WHOLE:
            return dict(given.places)
        case _:
            assert_never(how)


def _merged(old: object, new: object) -> object:
    """Encoded input is one value, though it is spelled as an object: half an envelope is nothing. So is a reference."""
    if not isinstance(new, Mapping) or _is_one(new):
        return new
    kept: dict[str, Any] = dict(old) if isinstance(old, Mapping) and not _is_one(old) else {}
    for key, value in new.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = _merged(kept.get(key), value)
    return kept


def _is_one(value: Mapping[str, object]) -> bool:
    return is_envelope(value) or is_reference(value)


def nested(places: Places) -> dict[str, object]:
    """The document that the places spell; the first dot of a place opens an object."""
    document: dict[str, Any] = {}
    for place, given in places.items():
        part, _, key = place.partition(".")
        if key:
            known = PLACES.get(place)
            is_null = known is not None and known.field.null is not None and given.value == known.field.null
            document.setdefault(part, {})[key] = None if is_null else given.value
        else:
            document[part] = given.value
    return document
