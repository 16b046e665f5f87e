"""The input of a step: the template of its node (`template.py`), filled in when the step is created.

Where its action is marked as a template, its texts are rendered in the same pass (`text_template.py`), so that neither
looks into what the other has inserted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from horarium.condition import MISSING, find, parse_pointer
from horarium.schedule.definition import Action
from horarium.schedule.envelope import is_envelope
from horarium.schedule.json_limits import Json
from horarium.schedule.rendering import RunContext, RunFacts, texts_in
from horarium.schedule.template import DEFAULT, FROM, INPUTS, RESULTS, node_templates, pointers_in
from horarium.schedule.text_template import Rendering, expressions_of
from horarium.schedule.workflow_parts import Node


class NothingFound(Exception):
    """A pointer that matches no value and has no default."""

    def __init__(self, pointer: str) -> None:
        super().__init__(f"input: {pointer!r} matches no value and has no default")


class Unusable(Exception):
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
