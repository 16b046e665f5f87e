"""Attributes by which schedules are found: labels, search attributes and single fields."""

from __future__ import annotations

from hashlib import sha256

from horarium.schedule.definition import Definition
from horarium.store.schedules.write import Attribute


def attributes_of(definition: Definition) -> frozenset[Attribute]:
    labels = {Attribute("label", name, value) for name, value in definition.labels.items()}
    found = {each for name, value in definition.search_attributes.items() for each in _facet(name, value)}
    written = {"TaskQueue": definition.action.queue, "Note": definition.note}
    fields = {field_attribute(name, value) for name, value in written.items() if value}
    return frozenset(labels | found | fields)


def note_attribute(note: str | None) -> Attribute | None:
    return field_attribute("Note", note) if note else None


def field_attribute(name: str, value: str) -> Attribute:
    """A field that has no column of its own; hashed, since a note may be longer than what an index takes."""
    return Attribute("field", name, sha256(value.encode()).hexdigest())


def _facet(name: str, value: object) -> list[Attribute]:
    """A list is found by each of its members; what is no plain value cannot be searched for."""
    values = value if isinstance(value, list) else [value]
    return [
        Attribute("search_attribute", name, searchable(each)) for each in values if not isinstance(each, dict | list)
    ]


def searchable(value: object) -> str:
    """Write a value as filters do: `true`, `42`, `text`; 42.0 is the same number as 42."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "null" if value is None else str(value)
