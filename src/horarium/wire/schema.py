"""The JSON Schema of everything that goes over the wire, by the names of its types.

Answers and small bodies say it themselves. A schedule is described by the table of its fields: as a body it is
that table, as an answer the table and what we compute beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from horarium.schedule.kinds import Kinds
from horarium.schedule.places import COMMON
from horarium.schedule.schema import schema_of
from horarium.wire.answer import ROWS, TYPES, Answer, UnreadableRow
from horarium.wire.bodies import Body
from horarium.wire.schedules import Schedule

DOCUMENT = "ScheduleDocument"
SHOWN_ACTION = "ShownAction"
_REFERENCE = "#/components/schemas/{name}"


def reference(name: str) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(name=name)}


def schemas(types: Iterable[type[Answer] | type[Body]], kinds: Kinds) -> dict[str, Any]:
    """By the name of the type, with all that they refer to, and the document of a schedule.

    `kinds` are those of actions that are installed.
    """
    _, found = msgspec.json.schema_components([Schedule, UnreadableRow, *types], ref_template=_REFERENCE)
    plain = {name: _plain(schema) for name, schema in found.items()}
    parts = _definition(kinds)
    plain[Schedule.__name__]["properties"] = _shown(parts[DOCUMENT], plain[Schedule.__name__])
    return plain | parts | {SHOWN_ACTION: _shown_action(parts["Action"])}


def _definition(kinds: Kinds) -> dict[str, Any]:
    """The document of a schedule, and each object in it under a name of its own."""
    document = _plain(schema_of(kinds))
    found: dict[str, Any] = {}
    for name, schema in document["properties"].items():
        if "properties" in schema:
            title = "".join(word.capitalize() for word in name.split("_"))
            found[title] = {"title": title, **schema}
            document["properties"][name] = reference(title)
    return {**found, DOCUMENT: {"title": DOCUMENT, **document}}


def _shown(document: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Combine properties; those of the answer win, unless they only say that a field is an object."""
    own = {name: each for name, each in answer["properties"].items() if each != {"type": "object"}}
    return {**document["properties"], "action": reference(SHOWN_ACTION), **own}


def _shown_action(action: dict[str, Any]) -> dict[str, Any]:
    """Schema of a stored action: its kind may be of a missing or newer package, so only common fields are certain."""
    fields = {
        name: each if name in COMMON else {"description": each["description"]}
        for name, each in action["properties"].items()
    }
    fields["kind"] = {name: each for name, each in fields["kind"].items() if name != "enum"}
    return {**action, "title": SHOWN_ACTION, "properties": fields, "additionalProperties": True}


def _plain(schema: Any) -> Any:
    """As generators of clients want it: an enumeration has a type, an array has items, a default is JSON."""
    if isinstance(schema, list | tuple):
        return [_plain(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {name: _plain(each) for name, each in schema.items()}
    if TYPES in plain:
        plain["type"] = plain.pop(TYPES)
    if plain.pop(ROWS, False):
        plain["items"] = {"anyOf": [plain["items"], reference(UnreadableRow.__name__)]}
    if "enum" in plain:
        plain.setdefault("type", "string")
    types = plain.get("type")
    if types == "array" or (isinstance(types, list) and "array" in types):
        plain.setdefault("items", {})
    return plain
