"""How a definition names a secret: `{"$secret": "name"}` in the places that may hold one, its value put in at launch.

A reference is an object whose only key is `$secret`. It may be the value of a header, and stand anywhere in the
inputs of the kinds of action in `KINDS`, and in the arguments of a Celery task. Everywhere else it is refused: it would
be shown, logged or handed to code that does not expect it. What an encoded input holds is data, and never a reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from horarium.policy.names import PolicyError, shown
from horarium.schedule.definition import Action
from horarium.schedule.json_limits import Json
from horarium.schedule.naming import MAX_ID, checked_id
from horarium.schedule.problems import Places, Problems, joined

KEY: Final = "$secret"
KINDS: Final = frozenset({"http", "prompt", "celery"})
"""The kinds of action whose inputs may name secrets."""
WITH_HEADERS: Final = "http"
"""The kind whose headers may."""
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {KEY: {"type": "string", "minLength": 1, "maxLength": MAX_ID}},
    "required": [KEY],
    "additionalProperties": False,
}
MAX_REFERENCES: Final = 100
"""In one input."""
MAX_NAMES: Final = 20
"""Of different secrets in one input; each is opened at every launch."""

_NOT_HERE = "references a secret; secrets work only in header values and in the input of {kinds} actions"
_INPUTS = ("action.input", "action.args", "action.kwargs", "inputs_rotation")
# The fields of an action, by its kind, that may name secrets beside its input.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {WITH_HEADERS: ("headers",), "celery": ("args", "kwargs")}


class Reference(NamedTuple):
    path: str
    name: str


class HasAction(Protocol):
    """A definition, whole or as far as a run needs it."""

    @property
    def action(self) -> Action: ...
    @property
    def inputs_rotation(self) -> tuple[Json, ...]: ...


def is_reference(value: object) -> bool:
    """Tell whether it looks like a reference; `checked_name` tells whether it is valid."""
    return isinstance(value, Mapping) and KEY in value


def checked_name(field: str, value: Mapping[str, object]) -> str:
    """The name in a reference; raises PolicyError."""
    if len(value) > 1:
        others = ", ".join(shown(key) for key in list(value)[:3] if key != KEY)
        raise PolicyError(field, f"contains {others} in addition to {KEY}; a secret reference has only the key {KEY}")
    try:
        return checked_id(KEY, value[KEY])
    except PolicyError as wrong:
        raise PolicyError(field, f"is not a valid secret reference: {wrong.text}") from None


# ── where they stand ─────────────────────────────────────────────────────────────────────────────────


def found_in(value: Json, path: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Find values that look like references, with their paths; the depth of a value was checked before."""
    if isinstance(value, Mapping):
        if KEY in value:
            yield path, value
            return
        for key, item in value.items():
            if isinstance(item, Mapping | list | tuple):
                yield from found_in(item, joined(path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, Mapping | list | tuple):
                yield from found_in(item, f"{path}.{index}" if path else str(index))


def check_places(places: Places, kind: str, problems: Problems) -> None:
    """Every reference in a document, where it may stand and where it may not."""
    for place, given in places.items():
        if place != "action.headers" and isinstance(given.value, Mapping | list | tuple):  # the field's own check knows
            check_value(given.value, given.path, problems, allowed=kind in KINDS and place in _INPUTS)


def check_value(value: Json, path: str, problems: Problems, *, allowed: bool) -> None:
    names: set[str] = set()
    for number, (where, found) in enumerate(found_in(value, path), start=1):
        if not allowed:
            problems.add(where, _NOT_HERE.format(kinds=", ".join(sorted(KINDS))))
        else:
            try:
                names.add(checked_name("", found))
            except PolicyError as wrong:
                problems.add(where, wrong.text)
        if number > MAX_REFERENCES or len(names) > MAX_NAMES:
            problems.add(
                where, f"an input references at most {MAX_NAMES} secrets and has at most {MAX_REFERENCES} references"
            )
            return
        if problems.full:
            return


def references(definition: HasAction) -> list[Reference]:
    """All of a definition, under the paths of its canonical document."""
    action = definition.action
    found = [each for name in _fields(action) for each in _of(action.target[name], f"action.{name}")]
    if action.kind in KINDS:
        found += _of(action.input, "action.input")
        found += _of(definition.inputs_rotation, "inputs_rotation")
    return found


def secret_names(definition: HasAction) -> frozenset[str]:
    return frozenset(each.name for each in references(definition))


def names_in(action: Action, inputs: Json) -> frozenset[str]:
    """Names in one launch: those in the action, and those in its inputs."""
    names = {each.name for name in _fields(action) for each in _of(action.target[name], "")}
    return frozenset(names | {each.name for each in _of(inputs, "")} if action.kind in KINDS else names)


def _fields(action: Action) -> tuple[str, ...]:
    return tuple(name for name in _FIELDS.get(action.kind, ()) if name in action.target)


def _of(value: Json, path: str) -> Iterator[Reference]:
    """Find valid references; one that was damaged since it was checked is skipped."""
    for where, found in found_in(value, path):
        name = found[KEY]
        if len(found) == 1 and isinstance(name, str):
            yield Reference(where, name)


# ── what they stand for ──────────────────────────────────────────────────────────────────────────────


def opened(action: Action, values: Mapping[str, str]) -> Action:
    """The action with the values of the secrets that its own fields name."""
    own = {name: resolved(action.target[name], values) for name in _fields(action)}
    return replace(action, target={**action.target, **own}) if own else action


def resolved(value: Json, values: Mapping[str, str]) -> Json:
    """The same with each reference replaced by its value; one that is not in `values` stays."""
    if isinstance(value, Mapping):
        if KEY in value:
            name = value[KEY]
            return values.get(name, value) if isinstance(name, str) and len(value) == 1 else value
        return {key: resolved(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolved(item, values) for item in value]
    return value
