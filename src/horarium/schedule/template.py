"""What a node is given: a template in which `{"$from": "/results/fetch/rows"}` stands for a value that is known later.

A pointer leads into `inputs` (what the workflow was given), `results` (what the nodes before it answered, by their
ids) or `run` (which run it is). `default` beside it is what is taken where the pointer finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from horarium.condition import parse_pointer
from horarium.errors import ConditionError
from horarium.policy.names import shown
from horarium.schedule.envelope import is_envelope
from horarium.schedule.graph import components
from horarium.schedule.json_limits import Json
from horarium.schedule.problems import Problems, joined
from horarium.schedule.rendering import templates_of
from horarium.schedule.text_template import (
    MAX_EXPRESSIONS,
    NODE_NAMES,
    TOO_MANY,
    Expression,
    TemplateError,
    check_names,
    expressions_of,
    templates_in,
)
from horarium.schedule.workflow_parts import Node

FROM: Final = "$from"
DEFAULT: Final = "default"
INPUTS, RESULTS, RUN = "inputs", "results", "run"
RUN_MEMBERS: Final = ("run_id", "schedule_id", "nominal", "due", "attempt", "workflow_id", "version")


def pointers_in(value: Json, path: str = "") -> Iterator[tuple[str, Mapping[str, Json]]]:
    """The objects that stand for a value, with their paths; how deep a template may be was checked before."""
    if isinstance(value, Mapping):
        if FROM in value:
            yield path, value
            return
        for key, item in value.items():
            if isinstance(item, Mapping | list | tuple):
                yield from pointers_in(item, joined(path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, Mapping | list | tuple):
                yield from pointers_in(item, f"{path}.{index}" if path else str(index))


def has_pointers(value: Json) -> bool:
    return next(pointers_in(value), None) is not None


def check_templates(nodes: Mapping[int, Node], edges: Sequence[tuple[str, str]], problems: Problems) -> None:
    """Every pointer of every node leads to something that can be there: a result that is known by then.

    So does every expression of a node whose action is a template. `nodes` by their places in the document.
    """
    written = [(index, node) for index, node in nodes.items() if node.has_input and has_pointers(node.input)]
    rendered = [(index, node) for index, node in nodes.items() if node.action.get("template") is True]
    if not written and not rendered:
        return
    known = {node.id for node in nodes.values()}
    before = _Before([node.id for node in nodes.values()], edges)
    for index, node in written:
        for path, found in pointers_in(node.input, f"nodes.{index}.input"):
            wrong = _wrong_form(found) or _wrong_place(found[FROM], node.id, known, before)
            if wrong is not None:
                problems.add(path, wrong)
            if problems.full:
                return
    for index, node in rendered:
        _check_expressions(f"nodes.{index}", node, known, before, problems)
        if problems.full:
            return


def node_templates(node: Node) -> Iterator[tuple[str, str]]:
    """The texts with expressions of a node whose action is a template, with their paths in the node."""
    if node.action.get("template") is True:
        yield from templates_of(node.action)
        if not is_envelope(node.input):
            yield from templates_in(node.input, "input")


def _check_expressions(place: str, node: Node, known: set[str], before: _Before, problems: Problems) -> None:
    number = 0
    for path, text in node_templates(node):
        try:
            expressions = expressions_of(text)
        except TemplateError as unreadable:
            problems.add(f"{place}.{path}", unreadable.text)
            continue
        number += len(expressions)
        for expression in expressions:
            if (why := _wrong_expression(expression, node.id, known, before)) is not None:
                problems.add(f"{place}.{path}", why)
        if problems.full:
            return
    if number > MAX_EXPRESSIONS:
        problems.add(f"{place}.action.template", TOO_MANY)


def _wrong_expression(expression: Expression, node_id: str, known: set[str], before: _Before) -> str | None:
    try:
        check_names(expression, NODE_NAMES)
    except TemplateError as unknown:
        return unknown.text
    if expression.name != RESULTS or len(expression.path) == 1:
        return None
    why = _wrong_result(expression.path[1], node_id, known, before)
    return None if why is None else expression.wrong(why).text


def _wrong_form(found: Mapping[str, Json]) -> str | None:
    others = [key for key in found if key not in (FROM, DEFAULT)]
    if others:
        return f"unknown key {shown(others[0])}; allowed are {FROM} and `{DEFAULT}`"
    if not isinstance(found[FROM], str):
        return f"{FROM} must be a JSON pointer such as /{INPUTS}/day, not {shown(found[FROM])}"
    return None


def _wrong_place(pointer: str, node_id: str, known: set[str], before: _Before) -> str | None:
    try:
        steps = parse_pointer(pointer, f"the pointer {shown(pointer)}")
    except ConditionError as wrong:
        return wrong.message
    if not steps or steps[0] not in (INPUTS, RESULTS, RUN):
        return f"the pointer {shown(pointer)} must begin with /{INPUTS}, /{RESULTS} or /{RUN}"
    if len(steps) == 1:
        return None
    if steps[0] == RUN and steps[1] not in RUN_MEMBERS:
        return f"the pointer {shown(pointer)} does not exist; /{RUN} has {', '.join(RUN_MEMBERS)}"
    why = _wrong_result(steps[1], node_id, known, before) if steps[0] == RESULTS else None
    return None if why is None else f"the pointer {shown(pointer)} {why}"


def _wrong_result(name: str, node_id: str, known: set[str], before: _Before) -> str | None:
    if name not in known:
        return f"references {shown(name)}, which is not a node"
    if not before.comes(name, node_id):
        return f"references {shown(name)}, which does not run before {shown(node_id)}"
    return None


class _Before:
    """The ancestors of each node; those on a cycle are ancestors of each other.

    As bits of whole numbers: a thousand sets of a thousand are many.
    """

    def __init__(self, names: Sequence[str], edges: Sequence[tuple[str, str]]) -> None:
        self._bit = {name: 1 << place for place, name in enumerate(names)}
        self._above: dict[str, int] = dict.fromkeys(names, 0)
        into: dict[str, list[str]] = {name: [] for name in names}
        for source, target in edges:
            into[target].append(source)
        for members in components(names, edges):
            above = 0
            for source in (source for name in members for source in into[name]):
                above |= self._above[source] | self._bit[source]
            if len(members) > 1:
                above |= sum(self._bit[name] for name in members)
            self._above.update(dict.fromkeys(members, above))

    def comes(self, node: str, before: str) -> bool:
        return bool(self._above[before] & self._bit[node])
