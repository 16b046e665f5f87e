"""Reads places into a definition: one check for each field, every problem kept under its path."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any, Final

from horarium.schedule.definition import Action, Definition, RunDefinition, SpecText
from horarium.schedule.field import Part
from horarium.schedule.kinds import Kinds
from horarium.schedule.places import DEFAULTS, PLACES
from horarium.schedule.read_action import read_action
from horarium.schedule.reading import FAILED, Reader

_ALL: Final = frozenset(each.name for each in fields(Definition))
# What a definition says; the rest is known of steps alone.
_SAID: Final = [name for name in RunDefinition._fields if name not in RunDefinition._field_defaults]
RUN_ATTRIBUTES: Final = frozenset(_SAID)
_RUN_DEFAULTS: Final = {name: DEFAULTS[name] for name in _SAID} | {"schedule_id": ""}


def read_definition(reader: Reader, kinds: Kinds | None = None, stored: Action | None = None) -> Definition:
    """Good only if the reader has no problem. Without `kinds` we wrote the document, and nothing is compiled.

    `stored` is the action that it changes, where nobody here declares its kind.
    """
    given = reader.places.get("schedule_id")
    key = None
    if kinds is not None:
        key = given.value if given is not None and isinstance(given.value, str) and given.value else "?"
    values = _values(reader, _ALL, key)
    if not reader.given("schedule_id"):
        reader.blame("schedule_id", "is required")
    values.setdefault("schedule_id", "")
    values.setdefault("spec", SpecText())
    return Definition(action=read_action(reader, kinds, stored), **values)


def read_run_definition(reader: Reader) -> RunDefinition:
    """Read from a stored document what its runs need: the rest is skipped, since a batch reads thousands."""
    values = _values(reader, RUN_ATTRIBUTES, None)
    return RunDefinition(**{**_RUN_DEFAULTS, **values, "action": read_action(reader, None)})


def _values(reader: Reader, wanted: Collection[str], key: str | None) -> dict[str, Any]:
    """The attributes of a definition that were said, but for the action. What nobody said keeps its default."""
    values: dict[str, Any] = {}
    parts: dict[str, tuple[Part, str, dict[str, Any]]] = {}
    for path, given in reader.places.items():
        place = PLACES.get(path)
        if place is None or place.owner == "action":
            continue
        part = place.part
        attribute = place.attribute if part is None else part.attribute
        if attribute not in wanted:
            continue
        checked = part is None or part.by_field
        value = reader.value(place, given, key) if checked else given.value
        if value is FAILED:
            continue
        if part is None:
            values[attribute] = value
        elif attribute in parts:
            parts[attribute][2][place.name] = value
        else:
            parts[attribute] = part, f"{place.owner}." if place.owner else "", {place.name: value}
    for attribute, (part, prefix, given_values) in parts.items():
        value = reader.part(part, prefix, given_values)
        if value is not FAILED:
            values[attribute] = value
    return values
