"""How a change is applied to a definition that exists: merge-patch, parts replaced, or the whole.

All three work on canonical places, so a patch may use any spelling that a whole document may.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, assert_never

from horarium.schedule.aliases import SHIPPED_NAMES, Normalised, normalise
from horarium.schedule.envelope import is_envelope
from horarium.schedule.places import PARTS, PLACES
from horarium.schedule.problems import Given, Places, Problems
from horarium.schedule.secret import is_reference
from horarium.schedule.storable import check_storable

# A part that is replaced loses what the new one does not say. Jitter is no part of the spec that the
# Durable Workflow client replaces: it sends it beside, and means to keep it when it does not.
_REPLACED = {part: (f"{part}.",) for part in PARTS if part != "action"} | {
    "assignee": tuple(name.place for name in SHIPPED_NAMES.objects["assignee"].values())
}
_KEPT = frozenset({"spec.jitter_seconds"})
_CLEARED_BY_NULL = frozenset({"memo", "search_attributes"})


class Update(StrEnum):
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
    return _changed(Update.MERGE, base_document, patch)


def replace_parts(base_document: Mapping[str, object], patch: object) -> dict[str, object]:
    """The given parts in place of the old ones; `action` is merged key by key."""
    return _changed(Update.PARTS, base_document, patch)


def _changed(how: Update, base_document: Mapping[str, object], patch: object) -> dict[str, object]:
    problems = Problems()
    check_storable(patch, problems)
    problems.raise_any()
    base, given = normalise(base_document, problems), normalise(patch, problems)
    problems.raise_any()
    return nested(apply(how, base.places, given))


def apply(how: Update, base: Places, given: Normalised) -> dict[str, Given]:
    match how:
        case Update.MERGE:
            result = {place: old for place, old in base.items() if place not in given.nulls}
            for place, new in given.places.items():
                value = _merged(result[place].value if place in result else None, new.value)
                result[place] = Given(new.path, value, new.single)
            return result
        case Update.PARTS:
            dropped = tuple(prefix for part in given.objects for prefix in _REPLACED.get(part, ()))
            kept = {place: old for place, old in base.items() if place in _KEPT or not place.startswith(dropped)}
            for place in given.nulls & _CLEARED_BY_NULL:
                kept.pop(place, None)
            return kept | given.places
        case Update.WHOLE:
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
