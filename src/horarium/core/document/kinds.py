"""Kinds of action: what each declares, the shipped ones, those of other packages, and the JSON Schema of a document.

A launcher declares its kind (`launchers/launcher.py`). Reader, schema, planning and documentation ask the same
`Kinds`, so a package that brings a launcher brings all of them. A schedule belongs to the workspace of the agent
that its prompt goes to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

from horarium.core.document import checks, definition
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import OTHER_TIMEOUT_SECONDS, PROMPT_TIMEOUT_SECONDS, Action
from horarium.core.document.field import ANYTHING, Check, Field, guarded, guarded_spelling
from horarium.core.document.json_values import is_storable
from horarium.core.document.places import COMMON, PLACES, SHIPPED_NAMES, FieldNames
from horarium.core.policy.names import whole_number

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)

TargetName: TypeAlias = Callable[[Action, Assignee | None], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """Fields of an action of this kind in addition to those of all kinds, and their consequences."""

    name: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    """One of these must be given."""
    target: TargetName = definition.bare_target
    timeout_seconds: int = OTHER_TIMEOUT_SECONDS
    """How long a run may take where the action does not say it; there is always an end, so nothing blocks for ever."""
    check_input: Check = checks.any_input
    needs_queue: bool = False
    names: str = ""
    """The field that names something which a process must know, such as a task."""
    connections: frozenset[str] | None = None
    """The names that its actions may give as their connection; None = any."""
    defaults: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        for name, each in self.fields.items():
            if not is_storable({name: [each.says, {**each.schema}]}):
                raise ValueError(f"the field {name!r} of the kind {self.name!r} must have a description that is JSON")
        known = {name: each.schema["default"] for name, each in self.fields.items() if "default" in each.schema}
        object.__setattr__(self, "defaults", known)
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"the kind {self.name!r} must be 1 to 64 of a-z 0-9 _ and begin with a letter")
        whole_number("timeout_seconds", self.timeout_seconds, least=1)
        named = (*self.required, self.names, *(each.same_as for each in self.fields.values()))
        unknown = [name for name in named if name and name not in self.fields]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a field of the kind {self.name!r}")


class Kinds(Mapping[str, Kind]):
    """By name, in the order in which a kind is guessed: the first that has all the fields given."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        taken = COMMON | (SHIPPED_NAMES.objects["action"].keys() - _SHIPPED_FIELDS)
        for kind in self._kinds.values():
            for name in kind.fields.keys() & taken:
                raise ValueError(f"the kind {kind.name!r} cannot have a field {name!r}; every action has this field")

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def extended(self, others: Iterable[Kind]) -> Kinds:
        """With the kinds of other packages; none of ours is replaced."""
        more = [_guarded(kind) for kind in others if kind.name not in self._kinds]
        return Kinds([*self._kinds.values(), *more]) if more else self

    @property
    def connections(self) -> frozenset[str] | None:
        """The names that the action of a workflow may give: of all kinds that its steps may be of; None = any."""
        told = [kind.connections for kind in self.values() if kind.connections is not None]
        return frozenset().union(*told) if told else None

    def narrowed(self, hidden: Collection[str], connections: Mapping[str, frozenset[str]]) -> Kinds:
        """Without some, and with the connections that there are for some others."""
        if not hidden and not connections:
            return self
        left = (kind for kind in self._kinds.values() if kind.name not in hidden)
        return Kinds(
            replace(kind, connections=connections[kind.name]) if kind.name in connections else kind for kind in left
        )

    def with_stored(self, action: Action, name: str = "", seconds: int = OTHER_TIMEOUT_SECONDS) -> Kinds:
        """And the kind of an action that is stored, though nobody here declares it: only its names are known.

        `name` is that of its target, `seconds` how long it may take.
        """
        if action.kind in self._kinds:
            return self
        try:
            fields = {each: Field("", ANYTHING) for each in action.target}
            return self.extended([Kind(action.kind, fields, (), lambda *_: name, seconds)])
        except ValueError:  # a row that somebody damaged: no kind could be so
            return self

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """All that a target may have, for all kinds together."""
        found: dict[str, Field] = {}
        for kind in self._kinds.values():
            for name, known in kind.fields.items():
                found.setdefault(name, known)
        return found

    @cached_property
    def names(self) -> FieldNames:
        """Names of fields in a document."""
        more = {name: known for name, known in self.fields.items() if name not in _SHIPPED_FIELDS}
        return SHIPPED_NAMES.with_action_fields(more) if more else SHIPPED_NAMES

    def guessed(self, given: frozenset[str]) -> Kind | None:
        return next((kind for kind in self._kinds.values() if given <= kind.fields.keys()), None)

    def target_of(self, action: Action, assignee: Assignee | None = None) -> str:
        """One whose name cannot be had shares the room of its kind."""
        kind = self._kinds.get(action.kind)
        try:
            name: object = "" if kind is None else kind.target(action, assignee)
        except Exception:  # code of another package
            name = ""
        return definition.target_text(action.kind, name if isinstance(name, str) and is_storable(name) else "")

    def timeout_of(self, action: Action) -> int:
        """Seconds."""
        kind = self._kinds.get(action.kind)
        return action.timeout or (OTHER_TIMEOUT_SECONDS if kind is None else kind.timeout_seconds)


def _guarded(kind: Kind) -> Kind:
    """Guard a kind from another package, whose code may do anything; here it can only reject a field."""
    fields = {
        name: replace(each, check=guarded(kind.name, each.check), spelled=guarded_spelling(kind.name, each.spelled))
        for name, each in kind.fields.items()
    }
    return replace(kind, fields=fields, check_input=guarded(kind.name, kind.check_input))


def _own(*names: str) -> dict[str, Field]:
    return {name: PLACES[f"action.{name}"].field for name in names}


_SHIPPED_FIELDS: Final = frozenset(place.name for place in PLACES.values() if place.owner == "action") - COMMON

WORKFLOW = Kind(
    "workflow",
    _own("workflow_type", "workflow_id", "workflow_class", "version"),
    ("workflow_type", "workflow_id", "workflow_class"),
    definition.workflow_target,
)
PROMPT = Kind("prompt", _own("prompt"), ("prompt",), definition.assignee_target, PROMPT_TIMEOUT_SECONDS)
HTTP = Kind("http", _own("url", "method", "headers", "secret"), ("url",), definition.origin_target)
CELERY = Kind("celery", _own("task", "args", "kwargs"), ("task",), definition.connection_and_queue, names="task")
PYTHON = Kind("python", _own("task", "callable"), ("task", "callable"), names="task")
COMMAND = Kind("command", _own("command"), ("command",), check_input=checks.command_input, names="command")
PULL = Kind("pull", _own("workflow_type"), ("workflow_type",), definition.queue_target, needs_queue=True)

PULLED: Final = frozenset({WORKFLOW.name, PULL.name})
"""Kinds whose queued runs are on a queue of this service: no target has them before a worker claims them."""

SHIPPED: Final = Kinds([WORKFLOW, PROMPT, HTTP, CELERY, PYTHON, COMMAND, PULL])
"""Always known, whether or not this process has a launcher for them."""


# ── Schema ────────────────────────────────────────────────────────────────────────────────────────────


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
    for name, each in kinds.fields.items():
        action.setdefault(name, {**each.schema, "description": each.says})
    return {"type": "object", "properties": properties}


# ── Workspaces ────────────────────────────────────────────────────────────────────────────────────────


def workspace_of(document: Mapping[str, Any]) -> str | None:
    """Workspace of a canonical document; None unless its action is a prompt for an agent."""
    action = document.get("action")
    if not isinstance(action, Mapping) or action.get("kind") != PROMPT.name:
        return None
    agent = document.get("assignee_id") if document.get("assignee_type") == AssigneeType.AGENT.value else None
    return agent if isinstance(agent, str) else None
