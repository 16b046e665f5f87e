"""Kinds of action, and the reader of their fields.

A launcher declares its kind (`launchers/launcher.py`). Reader, schema, planning and documentation ask the same
`Kinds`, so a package that brings a launcher brings all of them. A schedule belongs to the workspace of the agent
that its prompt goes to.

Each field has one check, which returns the value or a problem. Problems are collected under their paths, not raised. A
spec must compile as a whole and fire at least once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

from horarium.core.document import checks, definition
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.canonical import action_document
from horarium.core.document.checks import entry_key, without_prefix
from horarium.core.document.definition import (
    DEFAULT_CONNECTION,
    OTHER_TIMEOUT_SECONDS,
    PROMPT_TIMEOUT_SECONDS,
    Action,
    Definition,
    RunDefinition,
    SpecText,
)
from horarium.core.document.field import ANYTHING, Check, Field, FieldPart, guarded, guarded_spelling
from horarium.core.document.json_values import DocumentProblems, GivenValue, Places, is_storable, joined, same_json
from horarium.core.document.places import COMMON, DEFAULTS, PLACES, SHIPPED_NAMES, DocumentPlace, FieldNames
from horarium.core.policy.queue import PolicyError, shown, whole_number
from horarium.core.recurrence.parts import CronSchedule
from horarium.core.recurrence.spec import Part, Spec, refuse_if_never
from horarium.errors import InvalidDefinition, InvalidSpec, KindNotAvailable
from horarium.instant import Instant

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


T = TypeVar("T")

MAX_ENTRIES = 64
FAILED: Final = object()
"""Stands for a value that could not be read."""


class Reader:
    """`bad` are places that were given and could not be understood: they are not missing."""

    def __init__(self, places: Places, problems: DocumentProblems, bad: Collection[str] = ()) -> None:
        self.places = places
        self.problems = problems
        self.bad = set(bad)

    def given(self, place: str) -> bool:
        return place in self.places or place in self.bad

    def path(self, place: str) -> str:
        return self.places[place].path if place in self.places else place

    def blame(self, place: str, text: str, error: type[InvalidDefinition] = InvalidDefinition) -> None:
        self.bad.add(place)
        self.problems.add(self.path(place), text, error)

    def one(self, place: str, check: Callable[[str, object], T], default: T) -> T:
        given = self.places.get(place)
        if given is None:
            return default
        value: T = self._checked(place, given, place.rpartition(".")[2], check, default)
        return value

    def value(self, place: DocumentPlace, given: GivenValue, key: str | None) -> Any:
        """Read a value for a definition, or FAILED. With a key, which `H` hashes, compilable values are compiled."""
        field = place.field
        check = field.check
        if key is not None and (compiles := field.compiles) is not None:
            check = lambda name, value: compiles(name, value, key)  # noqa: E731 - a partial would put the key first
        if check is None:
            return given.value
        if field.array:
            return self._array(place, given, check)
        if field.entries:
            return self._entries(place, given, check)
        return self._checked(place.path, given, place.name, check, FAILED)

    def _checked(
        self, path: str, given: GivenValue, name: str, check: Callable[[str, object], Any], failed: Any
    ) -> Any:
        try:
            return check(name, given.value)
        except (PolicyError, InvalidSpec) as wrong:
            self.bad.add(path)
            self._add(given.path, name, wrong)
            return failed

    def _array(self, place: DocumentPlace, given: GivenValue, check: Callable[[str, object], T]) -> Any:
        most = place.field.schema["maxItems"]
        values = given.value
        if not isinstance(values, list | tuple) or len(values) > most:
            self.blame(place.path, f"must be an array of at most {most} entries")
            return FAILED
        read: list[T] = []
        for index, value in enumerate(values):
            try:
                read.append(check("", value))
            except (PolicyError, InvalidSpec) as wrong:
                self.bad.add(place.path)
                self._add(given.item(index), "", wrong)
                if self.problems.full:
                    break
        return tuple(dict.fromkeys(read)) if place.field.unique else tuple(read)

    def _entries(self, place: DocumentPlace, given: GivenValue, check: Callable[[str, object], T]) -> Any:
        if not isinstance(given.value, Mapping) or len(given.value) > MAX_ENTRIES:
            self.blame(place.path, f"must be an object of at most {MAX_ENTRIES} entries")
            return FAILED
        read: dict[str, T] = {}
        for key, value in given.value.items():
            try:
                read[entry_key("", key)] = check("", value)
            except PolicyError as wrong:
                self.problems.add(joined(given.path, key), wrong.text)
        return read

    def part(self, part: FieldPart, prefix: str, values: dict[str, Any]) -> Any:
        """Places that make one policy. A parser stops at its first refusal; it is asked again without that key."""
        blamed: set[str] = set()
        while True:
            try:
                return part.parse(values)
            except PolicyError as wrong:
                key, dot, rest = wrong.field.partition(".")
                if key not in blamed and prefix + key not in self.bad:
                    self.problems.add(self.path(prefix + key) + dot + rest, wrong.text)
                blamed.add(key)
                if values.pop(key, None) is None:
                    return FAILED

    def _add(self, path: str, field: str, wrong: PolicyError | InvalidSpec) -> None:
        if isinstance(wrong, InvalidSpec):
            self.problems.add(path, without_prefix(wrong, field))
        elif wrong.field == field:
            self.problems.add(path, wrong.text)
        else:
            inner = wrong.field.removeprefix(f"{field}.")
            self.problems.add(f"{path}.{inner}" if inner else path, wrong.text)


# ── Action ────────────────────────────────────────────────────────────────────────────────────────────


_ACTION_REQUIRED = "set workflow_type, workflow_id, prompt, url, task, callable or command"
_CHECKED = [PLACES[f"action.{name}"] for name in COMMON if name not in ("kind", "input")]


def read_action(reader: Reader, kinds: Kinds | None, stored: Action | None = None, *, inherits: bool = False) -> Action:
    """Where the kind is unknown the rest is read all the same: the reader keeps what is wrong.

    Without `kinds` the document is one that we wrote. Its kind may be that of a package which is gone by now: then
    what it holds is kept as it is, and the launch says that nobody can do it. `stored` is such an action of the
    schedule that the document changes: it may stay, and not be changed. `inherits`: what it does not say of its
    connection, something above it may. What a workflow's action says of it is for the steps.
    """
    places = reader.places
    values: dict[str, Any] = {}
    key = None if kinds is None else ""  # what somebody sends is bounded more strictly than what was kept
    for place in _CHECKED:
        given = places.get(place.path)
        if given is not None and (value := reader.value(place, given, key)) is not FAILED:
            values[place.attribute] = value
    name = places.get("action.kind")
    if kinds is None and name is not None and isinstance(name.value, str) and name.value not in SHIPPED:
        return _foreign(name.value, places, values)
    known = kinds or SHIPPED
    kind = _kind(reader, known, "" if stored is None else stored.kind)
    if kind is None:
        return Action("")
    if stored is not None and kind.name == stored.kind:
        if not same_json(action_document(_foreign(kind.name, places, values)), action_document(stored)):
            _refuse_kind(reader, known, kind.name, kind.name)
        return stored
    if "action.input" in places:
        values["input"] = reader.one("action.input", kind.check_input, None)
    # An action of a stored node may leave its queue to the workflow.
    if kinds is not None and kind.needs_queue and not reader.given("action.queue"):
        reader.blame("action.queue", "is required: the queue that workers claim from")
    lends = kind.name == WORKFLOW.name
    connections = known.connections if lends else kind.connections
    if connections is not None and ("connection" in values or not (inherits or lends)):
        _check_connection(reader, connections, values.get("connection"))
    return Action(kind.name, _target(reader, kind, known), **values)


def _check_connection(reader: Reader, known: Collection[str], name: str | None) -> None:
    if (name or DEFAULT_CONNECTION) not in known:
        reader.blame("action.connection", unknown_connection(known, name))


def unknown_connection(known: Collection[str], name: str | None) -> str:
    """Describe an unknown connection; one that is not for this namespace counts as unknown, with the same text."""
    named = "is required, because no default connection is configured" if name is None else f"{shown(name)} is unknown"
    return f"{named}; configured: {', '.join(sorted(known)) or 'none'}"


_NOTHING = GivenValue("", None)


def _foreign(kind: str, places: Mapping[str, GivenValue], values: dict[str, Any]) -> Action:
    own = {path.removeprefix("action."): given.value for path, given in places.items() if path.startswith("action.")}
    target = {name: value for name, value in own.items() if name not in COMMON}
    return Action(kind, target, places.get("action.input", _NOTHING).value, **values)


def _kind(reader: Reader, kinds: Kinds, gone: str) -> Kind | None:
    if reader.given("action.kind"):
        return _named_kind(reader, kinds, gone)
    present = [name for name in kinds.fields if reader.given(f"action.{name}")]
    if not present:
        reader.problems.add("action", f"is required: {_ACTION_REQUIRED}")
        return None
    kind = kinds.guessed(frozenset(present))
    if kind is None:
        paths = " and ".join(f"`{reader.path(f'action.{name}')}`" for name in present)
        reader.problems.add("action", f"{paths} belong to different kinds of action; use the fields of one kind")
    return kind


def _named_kind(reader: Reader, kinds: Kinds, gone: str) -> Kind | None:
    given = reader.places.get("action.kind")
    if given is None:  # it could not be read, and that was said
        return None
    wanted = given.value
    found = kinds.get(wanted) if isinstance(wanted, str) else None
    if found is None:
        _refuse_kind(reader, kinds, wanted, gone)
    return found


def _refuse_kind(reader: Reader, kinds: Kinds, wanted: object, gone: str) -> None:
    unknown = isinstance(wanted, str)
    text = f"must be one of {', '.join(kind for kind in kinds if kind != gone)}, not {shown(wanted)}"
    why = "; no installed launcher declares this kind" if unknown else ""
    reader.blame("action.kind", text + why, KindNotAvailable if unknown else InvalidDefinition)


def _target(reader: Reader, kind: Kind, kinds: Kinds) -> dict[str, Any]:
    """Every field that the kinds have is looked at, so that one of another kind is named."""
    target: dict[str, Any] = {}
    for name in kinds.fields:
        path = f"action.{name}"
        field = kind.fields.get(name)
        if field is None:
            if reader.given(path):
                owners = " or ".join(owner.name for owner in kinds.values() if name in owner.fields)
                reader.blame(path, f"belongs to an action of kind {owners}, not {kind.name}; null clears it")
        elif path in reader.places and field.check is not None:
            value = reader.one(path, field.check, None)
            if value is not None:
                target[name] = value
    if kind.required and not any(reader.given(f"action.{name}") for name in kind.required):
        asked = " or ".join(kind.required)
        reader.blame(f"action.{kind.required[0]}", f"is required: an action of kind {kind.name} needs {asked}")
    for name, default in kind.defaults.items():
        target.setdefault(name, default)
    for name in [name for name in target if kind.fields[name].same_as]:
        _join(reader, target, name, kind.fields[name].same_as)
    return target


def _join(reader: Reader, target: dict[str, Any], name: str, kept: str) -> None:
    """Another word for a field of the same action; `callable` tells us that there is no Celery."""
    value = target.pop(name)
    if not same_json(target.setdefault(kept, value), value):
        other = reader.path(f"action.{kept}")
        reader.blame(
            f"action.{name}", f"conflicts with `{other}`, another name of the same field; send only one of them"
        )


# ── Definition ────────────────────────────────────────────────────────────────────────────────────────


_ALL: Final = frozenset(each.name for each in fields(Definition))
# What a definition says; the rest is known of steps alone.
_RUN_FIELDS: Final = [name for name in RunDefinition._fields if name not in RunDefinition._field_defaults]
RUN_ATTRIBUTES: Final = frozenset(_RUN_FIELDS)
_RUN_DEFAULTS: Final = {name: DEFAULTS[name] for name in _RUN_FIELDS} | {"schedule_id": ""}


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
    parts: dict[str, tuple[FieldPart, str, dict[str, Any]]] = {}
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


# ── Spec ──────────────────────────────────────────────────────────────────────────────────────────────


_PARTS = ("spec.cron_expressions", "spec.intervals", "spec.at")


def check_spec(spec: SpecText, reader: Reader, *, key: str, after: Instant | None, may_be_over: bool = False) -> None:
    """Check the parts together; `after` None = a future is not required.

    `may_be_over`: past occurrences are enough. A spec with neither is an error.
    """
    if any(place.startswith("spec.") for place in reader.bad):
        return
    if not (spec.cron_expressions or spec.intervals or spec.at):
        reader.problems.add("spec", "give at least one cron expression, interval or one-off time")
        return
    try:
        compiled = spec.compile(key)
    except InvalidSpec as wrong:
        place = f"spec.{wrong.field}"
        path = reader.path(place) if place in reader.places else "spec"
        reader.problems.add(path, without_prefix(wrong, wrong.field or "spec"))
        return
    if after is not None and not (may_be_over and compiled.previous_before(after) is not None):
        _check_future(compiled, reader, after)


def spec_meaning(spec: Spec) -> tuple[object, ...]:
    """Equal for specs that act at the same moments, however they are spelled."""
    parts = frozenset(_part_meaning(part) for part in spec.parts)
    return parts, spec.zone.key, spec.start_at, spec.end_at, spec.jitter_ms


def _part_meaning(part: Part) -> object:
    if not isinstance(part, CronSchedule):
        return part
    cron = part.cron
    fields = (cron.second, cron.minute, cron.hour, cron.day_of_month, cron.month, cron.day_of_week)
    # A star matters besides the values that it covers: to clock changes, and to the rule of the two day fields.
    return (*((field.mask, field.rules, field.starred) for field in fields), part.dst_gap, part.dst_fold)


def _check_future(compiled: Spec, reader: Reader, after: Instant) -> None:
    try:
        refuse_if_never(compiled, after)
    except InvalidSpec as wrong:
        ended = compiled.end_at is not None and compiled.end_at <= after
        given = [place for place in _PARTS if place in reader.places]
        place = "spec.end_at" if ended else given[0] if len(given) == 1 else "spec"
        reader.problems.add(reader.path(place), without_prefix(wrong, "expression"))
