"""What a step is given: its node's template, filled in from the inputs, the results before it and the run itself.

Anywhere in a template an object `{"$from": pointer}` stands for the value at that JSON pointer; with a `default`
beside it for that, where the pointer finds nothing. All else stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from horarium.condition import MISSING, find, read_pointer
from horarium.schedule.json_limits import Json
from horarium.schedule.workflow_parts import Node

FROM: Final = "$from"
DEFAULT: Final = "default"
RESULTS: Final = "results"
_REFERENCE = (frozenset({FROM}), frozenset({FROM, DEFAULT}))


class NothingFound(Exception):
    """A pointer that finds nothing, and has no default."""

    def __init__(self, pointer: str) -> None:
        super().__init__(f"input: {pointer!r} finds nothing, and has no default")


def is_reference(value: object) -> bool:
    return isinstance(value, Mapping) and value.keys() in _REFERENCE and isinstance(value[FROM], str)


def pointers(template: Json) -> Iterator[str]:
    """All that a template names, in no order that matters."""
    waiting = [template]
    while waiting:
        value = waiting.pop()
        if is_reference(value):
            yield value[FROM]
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


def results_read(node: Node) -> frozenset[str] | None:
    """The nodes whose results its template reads; None = those of all ancestors."""
    if not node.has_input:
        return None
    named: set[str] = set()
    for pointer in pointers(node.input):
        path = read_pointer(pointer)
        if path in ((), (RESULTS,)):
            return None
        if path[0] == RESULTS:
            named.add(path[1])
    return frozenset(named)


def step_input(node: Node, context: Mapping[str, Json]) -> Json:
    """`context` holds `inputs`, `results` and `run`. Raises NothingFound, or ConditionError for what is no pointer."""
    if not node.has_input:
        return {"inputs": context["inputs"], RESULTS: context[RESULTS]}
    return _filled(node.input, context)


def _filled(value: Json, context: Mapping[str, Json]) -> Json:
    """As deep as the template, whose depth was bounded when it was put; what is found is not looked into."""
    if is_reference(value):
        found = find(read_pointer(value[FROM]), context)
        if found is not MISSING:
            return found
        if DEFAULT in value:
            return value[DEFAULT]
        raise NothingFound(value[FROM])
    if isinstance(value, Mapping):
        return {key: _filled(item, context) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, context) for item in value]
    return value
