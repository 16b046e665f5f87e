"""What a step is given: the template of its node (`template.py`), filled in with what is known when it is born."""

from __future__ import annotations

from collections.abc import Mapping

from horarium.condition import MISSING, find, parse_pointer
from horarium.schedule.json_limits import Json
from horarium.schedule.template import DEFAULT, FROM, INPUTS, RESULTS, pointers_in
from horarium.schedule.workflow_parts import Node


class NothingFound(Exception):
    """A pointer that finds nothing, and has no default."""

    def __init__(self, pointer: str) -> None:
        super().__init__(f"input: {pointer!r} finds nothing, and has no default")


class Unusable(Exception):
    """What a step was to be given, and cannot."""


def results_read(node: Node) -> frozenset[str] | None:
    """The nodes whose results its template reads; None = those of all before it."""
    if not node.has_input:
        return None
    named: set[str] = set()
    for _, found in pointers_in(node.input):
        path = parse_pointer(found[FROM], FROM)
        if path in ((), (RESULTS,)):
            return None
        if path[0] == RESULTS:
            named.add(path[1])
    return frozenset(named)


def step_input(node: Node, context: Mapping[str, Json]) -> Json:
    """`context` holds `inputs`, `results` and `run`. Raises NothingFound."""
    if not node.has_input:
        return {INPUTS: context[INPUTS], RESULTS: context[RESULTS]}
    return _filled(node.input, context)


def _filled(value: Json, context: Mapping[str, Json]) -> Json:
    """As deep as the template, whose depth was bounded when it was put; what is found is not looked into."""
    if isinstance(value, Mapping):
        if FROM in value:
            return _found(value, context)
        return {key: _filled(item, context) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, context) for item in value]
    return value


def _found(reference: Mapping[str, Json], context: Mapping[str, Json]) -> Json:
    found = find(parse_pointer(reference[FROM], FROM), context)
    if found is not MISSING:
        return found
    if DEFAULT in reference:
        return reference[DEFAULT]
    raise NothingFound(reference[FROM])
