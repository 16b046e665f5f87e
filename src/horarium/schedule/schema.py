"""What a document may say, as JSON Schema: read off the table of fields and the kinds of action that there are."""

from __future__ import annotations

from typing import Any

from horarium.schedule.kinds import SHIPPED, Kinds
from horarium.schedule.places import PLACES


def schema_of(kinds: Kinds = SHIPPED) -> dict[str, Any]:
    """Schema of the nested form. Other names are accepted too, so it does not reject unknown ones."""
    properties: dict[str, Any] = {}
    for place in PLACES.values():
        home = properties
        if place.owner:
            home = properties.setdefault(place.owner, {"type": "object", "properties": {}})["properties"]
        home[place.name] = place.schema()
    action = properties["action"]["properties"]
    action["kind"]["enum"] = list(kinds)
    for name, field in kinds.fields.items():
        action.setdefault(name, {**field.schema, "description": field.says})
    return {"type": "object", "properties": properties}
