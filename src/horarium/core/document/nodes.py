"""Nodes of a workflow: their actions, the templates of their inputs, and the input that a step gets.

The action of a node is read as that of a schedule. In a template `{"$from": "/results/fetch/rows"}` stands for a
value that is known later. A pointer leads into `inputs` (what the workflow was given), `results` (the results of the
nodes before it, by their ids) or `run` (which run it is). `default` beside it is used where the pointer finds
nothing.

The template is filled in when the step is created. Where the action is marked as a template, its texts are rendered
in the same pass (`text_template.py`), so that neither looks into what the other has inserted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from horarium.condition import MISSING, find, parse_pointer
from horarium.core.document.canonical import action_document
from horarium.core.document.checks import SECRET_KINDS, check_places, check_value
from horarium.core.document.definition import Action
from horarium.core.document.document import run_part_of
from horarium.core.document.json_values import DocumentProblems, GivenValue, Json, decode_input, is_envelope, joined
from horarium.core.document.places import normalise
from horarium.core.document.reader import Kinds, Reader, read_action
from horarium.core.document.rendering import RunContext, RunFacts, templates_of, texts_in
from horarium.core.document.text_template import (
    MAX_EXPRESSIONS,
    NODE_NAMES,
    TOO_MANY,
    Expression,
    Rendering,
    TemplateError,
    check_names,
    expressions_of,
    templates_in,
)
from horarium.core.document.workflow_parts import Node, components
from horarium.core.policy.queue import PolicyError, shown
from horarium.errors import ConditionError

# ── Templates ─────────────────────────────────────────────────────────────────────────────────────────


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


def check_templates(nodes: Mapping[int, Node], edges: Sequence[tuple[str, str]], problems: DocumentProblems) -> None:
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


def _check_expressions(place: str, node: Node, known: set[str], before: _Before, problems: DocumentProblems) -> None:
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


# ── Actions ───────────────────────────────────────────────────────────────────────────────────────────


_INPUT = "action.input"


class ActionReader:
    """`queue` and `connection` are those that the workflow names for nodes that name none."""

    def __init__(
        self, kinds: Kinds, problems: DocumentProblems, queue: str | None = None, connection: str | None = None
    ) -> None:
        self._kinds, self._problems = kinds, problems
        self._lent = {"queue": queue, "connection": connection}

    def read(self, path: str, value: object, node: Node) -> Node:
        """The node with its action in the canonical form. What the action calls its input is the node's."""
        problems = DocumentProblems()
        given = normalise({"action": value}, problems, self._kinds.names)
        own = given.places.pop(_INPUT, None)
        if own is not None and node.has_input:
            problems.add(own.path, "conflicts with the `input` of the node; send only one of them")
        lent = {
            f"action.{name}": GivenValue(f"action.{name}", value)
            for name, value in self._lent.items()
            if value is not None and f"action.{name}" not in given.places
        }
        action = read_action(Reader({**lent, **given.places}, problems, given.bad), self._kinds, inherits=True)
        check_places(given.places, action.kind, problems)
        if own is not None and not node.has_input:
            node = replace(node, input=own.value, has_input=True)
        self._tell(problems, path)
        if node.has_input:
            self._check_input(path, action, node.input, own)
        queue = None if "action.queue" in lent else action.queue
        connection = None if "action.connection" in lent else action.connection
        return replace(node, action=action_document(replace(action, queue=queue, connection=connection)))

    def _check_input(self, path: str, action: Action, value: Json, own: GivenValue | None) -> None:
        """Check an input; one that is filled in when the step is created can only be checked then."""
        where = f"{path}.input" if own is None else f"{path}.{own.path}"
        check_value(value, where, self._problems, allowed=action.kind in SECRET_KINDS)
        kind = self._kinds.get(action.kind)
        if kind is None or has_pointers(value):
            return
        try:
            kind.check_input("", value)
            decode_input(value)
        except PolicyError as wrong:
            self._problems.add(f"{where}.{wrong.field}" if wrong.field else where, wrong.text)

    def _tell(self, problems: DocumentProblems, path: str) -> None:
        for place, said in problems.found.items():
            for each in said:
                self._problems.add(f"{path}.{place}", each)


def action_of(node: Node) -> Action:
    """The action of a node of a workflow that is stored. Raises InvalidDefinition for a row that somebody damaged."""
    return run_part_of({"action": node.action}).action


# ── Inputs ────────────────────────────────────────────────────────────────────────────────────────────


class NothingFound(Exception):
    """A pointer that matches no value and has no default."""

    def __init__(self, pointer: str) -> None:
        super().__init__(f"input: {pointer!r} matches no value and has no default")


class UnusableInput(Exception):
    """An input that a step cannot be given."""


def results_read(node: Node) -> frozenset[str] | None:
    """The nodes whose results its template reads; None = those of all before it."""
    if not node.has_input:
        return None
    named: set[str] = set()
    for _, text in node_templates(node):
        for expression in expressions_of(text):
            if expression.name == RESULTS:
                if len(expression.path) == 1:
                    return None
                named.add(expression.path[1])
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


class StepTexts(NamedTuple):
    """The input of a step whose action is a template, and its rendered prompt and arguments."""

    given: Json
    texts: Mapping[str, Json]


def render_step(node: Node, action: Action, context: Mapping[str, Json], facts: RunFacts) -> StepTexts:
    """As `step_input`, and the texts. Raises NothingFound and TemplateError."""
    rendering = _StepRendering(context, facts)
    is_rendered = node.has_input and not is_envelope(node.input)
    given = rendering.json(node.input, "input") if is_rendered else step_input(node, context)
    return StepTexts(given, texts_in(action, rendering))


class _StepRendering(Rendering):
    def __init__(self, context: Mapping[str, Json], facts: RunFacts) -> None:
        super().__init__(RunContext(facts, context[INPUTS], context[RESULTS]))
        self._known = context

    def reference(self, value: Mapping[str, Json]) -> Json:
        return _found(value, self._known) if FROM in value else value


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
