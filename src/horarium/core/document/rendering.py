"""Templates of actions: the checks when one is written, and the texts that a run gets.

Three places may hold expressions: `prompt`, `input`, and the arguments of a Celery task. The name `inputs` means the
values of the run: those of a trigger, else its entry of `inputs_rotation`, else the rendered `input`. Where `input` or
the arguments read `inputs`, they are filled in with these values. Otherwise the values replace `input`, as without a
template, and only the prompt reads them.

A run is rendered once, when it is created, and keeps the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from horarium.core.document import checks
from horarium.core.document.checks import HasAction
from horarium.core.document.definition import Action, Definition
from horarium.core.document.field import Check
from horarium.core.document.json_values import DocumentProblems, Json, is_envelope
from horarium.core.document.text_template import (
    INPUTS,
    MAX_EXPRESSIONS,
    RESULTS,
    TOO_MANY,
    Literals,
    NotKnownYet,
    Rendering,
    TemplateError,
    check_names,
    expressions_of,
    literals_in,
    templates_in,
)
from horarium.core.policy.queue import PolicyError, inputs_for
from horarium.core.recurrence.spec import Spec
from horarium.core.recurrence.zone import Zone
from horarium.instant import SECOND, Instant

D = TypeVar("D")

_PROMPT: Final = "prompt"
_ARGUMENTS: Final[Mapping[str, type | tuple[type, ...]]] = {"args": (list, tuple), "kwargs": Mapping}
"""The arguments of a Celery task, with the kind of input that stands in their place."""
NO_LITERALS: Final[Literals] = MappingProxyType({})
_LONGEST_ID: Final = "0" * 36
# Noon of a Wednesday in September, on the clock of the schedule: it has the longest names.
_LONGEST_TIME: Final[Instant] = 1_790_769_600 * SECOND + 123_456
_MAX_CHECKED: Final = 200_000
"""The values of an action times the entries of its rotation, all of which are rendered when it is written."""


class TemplateUse(StrEnum):
    """The meaning of inputs that are given to a run for its template."""

    REPLACES = "replaces"
    FILLS_IN = "fills_in"


@dataclass(frozen=True, slots=True)
class RenderedAction(Action):
    """The action of one run, whose template was rendered. `texts` are the rendered fields beside the input."""

    texts: Mapping[str, Json] = field(default_factory=dict)


def texts_of(action: Action) -> Mapping[str, Json] | None:
    """Return the texts that are approved together with the inputs; None where no template was rendered."""
    return action.texts or None if isinstance(action, RenderedAction) else None


# ── what expressions name ─────────────────────────────────────────────────────────────────────────


class ScheduleName(NamedTuple):
    schedule_id: str
    name: str


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts of one run. `schedule` is None for a run without a schedule; a forecast has no id and no creation."""

    namespace: str
    origin: str
    nominal: Instant
    due: Instant
    spec: Spec
    schedule: ScheduleName | None = None
    run_id: str | None = None
    created_at: Instant | None = None

    def value(self, name: str) -> Json:
        match name:
            case "schedule_id" | "schedule_name" | "previous_nominal" if self.schedule is None:
                raise LookupError(f"{name} is available only in runs of a schedule")
            case "schedule_id":
                return self.schedule.schedule_id if self.schedule else None
            case "schedule_name":
                return self.schedule.name if self.schedule else None
            case "previous_nominal":
                return self.spec.previous_before(self.nominal)
            case "timezone":
                return self.spec.zone.key
            case "namespace" | "origin" | "nominal" | "due" | "run_id" | "created_at":
                found = getattr(self, name)
                if found is None:
                    raise NotKnownYet(name)
                return found
            case _:
                raise LookupError(f"unknown name {name}")


class _Longest(RunFacts):
    """Facts whose texts are as long as they can be."""

    def value(self, name: str) -> Json:
        return self.nominal if name == "previous_nominal" else RunFacts.value(self, name)


class _First(RunFacts):
    """Facts of the first occurrence, which has none before it."""

    def value(self, name: str) -> Json:
        return None if name == "previous_nominal" else RunFacts.value(self, name)


class _NoValues:
    """There are no inputs to read."""


@dataclass(slots=True)
class RunContext:
    """The values that expressions of one run name; `results` are those of the nodes before a step."""

    facts: RunFacts
    inputs: Any = _NoValues
    results: Json = None

    @property
    def zone(self) -> Zone:
        return self.facts.spec.zone

    def value(self, name: str) -> Json:
        if name == RESULTS:
            return self.results
        if name != INPUTS:
            return self.facts.value(name)
        if self.inputs is _NoValues:
            raise LookupError("this run has no inputs: the schedule has no inputs_rotation and the trigger sent none")
        if is_envelope(self.inputs):
            raise LookupError("a template cannot read encoded inputs")
        return self.inputs


# ── rendering ─────────────────────────────────────────────────────────────────────────────────────


class RenderedTexts(NamedTuple):
    """`texts` by field. `input` is None where the run's inputs are given: by a trigger or a rotation."""

    texts: Mapping[str, Json]
    input: tuple[Json] | None

    def document(self) -> dict[str, Json]:
        return {"texts": dict(self.texts)} | ({} if self.input is None else {"input": self.input[0]})


def literals_of(action: Action) -> Literals:
    """The parts of an action that no rendering looks into: found once for many runs."""
    return literals_in(action.input, *(action.target.get(name) for name in _ARGUMENTS))


def render(
    definition: HasAction, facts: RunFacts, *, index: int = 0, given: Json = None, literals: Literals = NO_LITERALS
) -> RenderedTexts:
    """Render the texts of one run. `given` are the inputs of a trigger. Raises TemplateError under a path."""
    action, rotation = definition.action, definition.inputs_rotation
    values = given if given is not None else inputs_for(None, rotation, index)
    context = RunContext(facts, _NoValues if values is None else values)
    rendering = Rendering(context, literals)
    own: tuple[Json] | None = None
    if values is None or use_of(action) is TemplateUse.FILLS_IN:
        own = (action.input if is_envelope(action.input) else rendering.json(action.input, "action.input"),)
    if values is None:
        context.inputs = _NoValues if own is None or own[0] is None else own[0]
    return RenderedTexts(texts_in(action, rendering), own)


def texts_in(action: Action, rendering: Rendering) -> dict[str, Json]:
    """The rendered prompt and arguments of an action."""
    known = [name for name in _ARGUMENTS if name in action.target]
    texts = {name: rendering.json(action.target[name], f"action.{name}") for name in known}
    if _PROMPT in action.target:
        try:
            texts[_PROMPT] = checks.prompt("", rendering.text(action.target[_PROMPT]))
        except PolicyError as wrong:
            raise TemplateError(f"action.{_PROMPT}", wrong.text) from None
    return texts


def rendered_action(action: Action, rendered: Mapping[str, Any]) -> Action:
    """`rendered` is what a run has kept. Without an `input` the inputs of the run are given, and stand elsewhere."""
    texts = rendered["texts"]
    if not texts.keys() <= _rendered_names(action.target):
        raise ValueError("the rendered texts of this run do not match its action")
    values = {each.name: getattr(action, each.name) for each in fields(Action)}
    own = {"template": False, "target": {**action.target, **texts}, "input": rendered.get("input")}
    return RenderedAction(**(values | own), texts=texts)


def _rendered_names(target: Mapping[str, Json]) -> set[str]:
    return {_PROMPT, *_ARGUMENTS} & target.keys()


def use_of(action: Action) -> TemplateUse | None:
    """None for an action without a template. Raises TemplateError for one that cannot be parsed."""
    if not action.template:
        return None
    texts = (text for path, text in _templates(action) if path != f"action.{_PROMPT}")
    reads = any(each.name == INPUTS for text in texts for each in expressions_of(text))
    return TemplateUse.FILLS_IN if reads else TemplateUse.REPLACES


def templates_of(target: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """The texts with expressions among the fields of a target, with their paths."""
    for name in (*_ARGUMENTS, _PROMPT):
        if name in target:
            yield from templates_in(target[name], f"action.{name}")


def _templates(action: Action) -> Iterator[tuple[str, str]]:
    yield from templates_of(action.target)
    if not is_envelope(action.input):
        yield from templates_in(action.input, "action.input")


# ── checking ──────────────────────────────────────────────────────────────────────────────────────


def check_template(definition: Definition, check_input: Check, problems: DocumentProblems) -> None:
    """Compile the template, and render it with each set of values that a run of the schedule may have.

    The facts are the longest that there can be: what fits now fits at every occurrence.
    """
    action, rotation = definition.action, definition.inputs_rotation
    if not _check_expressions(action, problems):
        return
    _check_sizes(action, len(rotation), problems)
    if problems.any:
        return
    facts = _imagined(definition)
    literals = literals_of(action)
    for index in range(max(1, len(rotation))):
        try:
            for each in facts:
                rendered = render(definition, each, index=index, literals=literals)
                if rendered.input is not None and rendered.input[0] is not None:
                    check_input("action.input", rendered.input[0])
        except PolicyError as wrong:
            path = f"inputs_rotation.{index}" if rotation else wrong.field
            problems.add(path, f"{wrong.field}: {wrong.text}" if rotation else wrong.text)
        if problems.full:
            return


def _imagined(definition: Definition) -> list[RunFacts]:
    """The longest facts; and those of the first occurrence where the template reads the one before."""
    spec = definition.spec.compile(definition.schedule_id)
    longest = _LONGEST_TIME - spec.zone.offset_at(_LONGEST_TIME // SECOND) * SECOND
    named = ScheduleName(definition.schedule_id, definition.name)
    read = (each.name for _, text in _templates(definition.action) for each in expressions_of(text))
    kinds = (_Longest, _First) if "previous_nominal" in read else (_Longest,)
    values = definition.namespace, "scheduled", longest, longest, spec, named, _LONGEST_ID, longest
    return [kind(*values) for kind in kinds]


def _check_expressions(action: Action, problems: DocumentProblems) -> bool:
    number = 0
    for path, text in _templates(action):
        try:
            for expression in expressions_of(text):
                check_names(expression)
                number += 1
        except TemplateError as wrong:
            problems.add(path, wrong.text)
        if number > MAX_EXPRESSIONS:
            problems.add("action.template", TOO_MANY)
            break
    return not problems.any


def _check_sizes(action: Action, entries: int, problems: DocumentProblems) -> None:
    """An input beside arguments of its kind would not be sent, so nobody would see what was rendered."""
    for name, kind in _ARGUMENTS.items():
        if name in action.target and isinstance(action.input, kind):
            problems.add("action.input", f"conflicts with `{name}`; set only one of them")
    values = _count([action.input, *(action.target.get(name) for name in _ARGUMENTS)])
    if entries and values * entries > _MAX_CHECKED:
        text = f"{values} values × {entries} entries of inputs_rotation"
        problems.add("action.template", f"is too large: {text}; at most {_MAX_CHECKED} are allowed")


def _count(value: Json) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(_count(item) for item in value.values())
    return 1 + sum(_count(item) for item in value) if isinstance(value, list | tuple) else 1


def template_warnings(definition: Definition) -> Iterator[tuple[str, str]]:
    """Texts that look like expressions and are not rendered, under their places."""
    action = definition.action
    rendered = _rendered_names(action.target)
    names = action.target.keys() - rendered if action.template else rendered
    sent = {name: action.target[name] for name in sorted(names)}
    if action.template:
        why = "templates work only in the prompt, the input and arguments"
        if (found := _first(definition.inputs_rotation)) is not None:
            yield "inputs_rotation", f"{found} is not rendered, because entries are values, not templates"
    else:
        why = "set `template: true` to render it"
        sent |= {} if is_envelope(action.input) else {"input": action.input}
    for name, value in sent.items():
        if (found := _first(value)) is not None:
            yield f"action.{name}", f"{found} is sent without rendering; {why}"


def _first(value: Json) -> str | None:
    try:
        for _, text in templates_in(value):
            for expression in expressions_of(text):
                check_names(expression)
                return expression.source
    except TemplateError:  # something else than a template of ours
        pass
    return None
