"""Places of a schedule's document, and every name that is read as one of them.

A document may be nested (`{"spec": {…}, "action": {…}}`), flat (`{"cron_expr": …, "prompt": …}`) or
both; keys may be snake_case or camelCase. Whatever the spelling, each value ends at one place of the
canonical document and keeps the path it came from. The same thing given twice must be the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, get_args

from horarium.core.document.definition import Action, Definition, SpecText
from horarium.core.document.field import Field, FieldPart, FieldSpelling, plain
from horarium.core.document.fields import DocumentFields
from horarium.core.document.json_values import DocumentProblems, GivenValue, joined, same_json
from horarium.core.policy.queue import PolicyError, shown


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """`owner` is the object of the document it stands in, `part` what it makes together with its neighbours."""

    path: str
    name: str
    owner: str
    field: Field
    part: FieldPart | None
    attribute: str
    default: object

    def written(self, value: Any) -> object:
        """The value as the canonical document has it."""
        return plain(value) if self.field.written is None else self.field.written(value)

    def schema(self) -> dict[str, Any]:
        """JSON Schema; its `default` is what a field that is left out means."""
        says_nothing = self.field.from_request or self.default is None or self.default in ((), {}, frozenset())
        default = {} if says_nothing else {"default": self.written(self.default)}
        return {**default, **self.field.schema, "description": self.field.says}


def _attributes() -> dict[str, Any]:
    """Attributes of an empty definition."""
    found = {}
    for each in fields(Definition):
        found[each.name] = each.default if each.default is not MISSING else None
        if each.default_factory is not MISSING:
            found[each.name] = each.default_factory()
    return found | {"spec": SpecText(), "action": Action(None)}  # type: ignore[arg-type]  # no kind is the usual one


DEFAULTS: Final = _attributes()


def _place(owner: str, name: str, field: Field, part: FieldPart | None) -> DocumentPlace:
    attribute = field.attribute or name
    holder = DEFAULTS if part is None else DEFAULTS[part.attribute]
    default = holder.get(attribute) if isinstance(holder, dict) else getattr(holder, attribute, None)
    return DocumentPlace(f"{owner}.{name}" if owner else name, name, owner, field, part, attribute, default)


def _places() -> Iterator[DocumentPlace]:
    for name, hint in DocumentFields.__annotations__.items():
        declared = hint.__metadata__[0]
        if isinstance(declared, Field):
            yield _place("", name, declared, declared.part)
        else:
            for inner, inner_hint in get_args(hint.__origin__)[0].__annotations__.items():
                if hasattr(inner_hint, "__metadata__"):
                    yield _place(name, inner, inner_hint.__metadata__[0], declared)


PLACES: Final[Mapping[str, DocumentPlace]] = MappingProxyType({place.path: place for place in _places()})
PARTS: Final[Mapping[str, FieldPart]] = MappingProxyType(
    {
        name: hint.__metadata__[0]
        for name, hint in DocumentFields.__annotations__.items()
        if isinstance(hint.__metadata__[0], FieldPart)
    }
)
"""The objects of the canonical document."""
PAUSED: Final = "paused"
NAMES: Final = tuple(name for name in DocumentFields.__annotations__ if name != PAUSED)
"""The top-level names of the canonical document, in the order in which they are written."""
COMMON: Final = frozenset(each.name for each in fields(Action)) - {"target"}
"""The fields that an action of any kind may have."""


# ── Other names ───────────────────────────────────────────────────────────────────────────────────────


_MAX_NAME = 64
_MAX_HINTS = 10
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# What our answers carry beside the definition: a document that was read, edited and sent back has them. The words by
# which somebody asks to get round an approval are among them: whoever writes for one that needs it is refused later.
_COMPUTED = """
    active_runs approval_status broken bundle changed_fields consecutive_empty_runs consecutive_failures created_at
    deleted_at effective_overlap_policy effective_retries error failures_count fires_count generation held_runs
    info last_completed_at
    last_completed_run_id last_dispatch_status last_error last_error_at last_error_message last_fire last_fired_at
    last_result last_rotation_index last_run_at last_run_id last_skip_reason last_skipped_at last_status
    latest_instance_id latest_workflow_instance_id next_due next_fire next_fire_at next_fire_times next_fires
    next_run_at next_run_reason outcome pause_reason paused_at paused_by paused_until recent remaining_actions
    revision rotation_index run_count schedule_uid schedule_ulid skip_approval skipped_trigger_count state status uid
    updated_at warnings words
"""
COMPUTED: Final = frozenset(_COMPUTED.split())
# A document with one of these is an answer of ours that came back.
_READ_BACK: Final = frozenset({"uid", "fires_count"})
# The names of its work that an action may have; an answer repeats the first of them at its top as `workflow_type`.
_WORK: Final = ("workflow_id", "workflow_type", "workflow_class")
_WORK_PLACES: Final = tuple(f"action.{name}" for name in _WORK)
NOTHING_BEFORE: Final[Mapping[str, GivenValue]] = {}


# ── the tables ────────────────────────────────────────────────────────────────────────────────────


class NameUse(NamedTuple):
    """`read` turns what is given under this name into what the place holds; None = it is that already.

    `null` is what null stands for; None = it takes away what was said before.
    """

    place: str
    read: Callable[[object], object] | None = None
    single: bool = False
    null: object = None


Table: TypeAlias = Mapping[str, NameUse]


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Names at the top of a document and in each of its objects."""

    top: Table
    objects: Mapping[str, Table]

    def inside(self, name: str) -> str | None:
        """Return the place of a field that is known in an object only, where that is one place."""
        places = {table[name].place for table in self.objects.values() if name in table}
        return places.pop() if len(places) == 1 else None

    def with_action_fields(self, fields: Mapping[str, Field]) -> FieldNames:
        """And the fields of more kinds of action; one whose name the top has taken is read in `action` only."""
        action, top = dict(self.objects["action"]), dict(self.top)
        for name, known in fields.items():
            action[name] = NameUse(f"action.{name}", known.spelled)
            if name not in self.objects and name not in COMPUTED:
                top.setdefault(name, action[name])
        return FieldNames(top, {**self.objects, "action": action})


def _names() -> FieldNames:
    tables: dict[str, dict[str, NameUse]] = {home: {} for home in ("", *PARTS)}
    for path, place in PLACES.items():
        homes = (place.owner, *(PARTS[place.owner].homes if place.owner else ()))
        for home, other in _spellings(place.field, place.name, homes):
            tables.setdefault(home, {})[other.name] = NameUse(path, other.read, other.single, place.field.null)
    return FieldNames(tables.pop(""), tables)


def _spellings(known: Field, own: str, homes: tuple[str, ...]) -> Iterator[tuple[str, FieldSpelling]]:
    for each in (FieldSpelling(own, known.spelled), *known.also):
        other = each if isinstance(each, FieldSpelling) else FieldSpelling(each, known.spelled)
        home, dot, name = other.name.rpartition(".")
        for place in (home,) if dot else homes:
            yield place, other._replace(name=name)


SHIPPED_NAMES: Final = _names()


def other_names(place: str, names: FieldNames = SHIPPED_NAMES) -> tuple[str, ...]:
    """Names that are read as this one, as they stand in a document, beside its own in the flat form."""
    top = [name for name, target in names.top.items() if target.place == place]
    inner = [
        f"{owner}.{name}"
        for owner, table in names.objects.items()
        for name, target in table.items()
        if target.place == place
    ]
    return tuple(name for name in dict.fromkeys([*top, *inner]) if name not in (place, place.rpartition(".")[2]))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Normalised:
    """`nulls` are the places that were given as null, `objects` the parts that were given as an object.

    `prefixed`: some name of the document has the prefix `p_`, as the parameters of a database function have.
    """

    places: dict[str, GivenValue] = field(default_factory=dict)
    nulls: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)
    prefixed: bool = False


def normalise(
    document: object,
    problems: DocumentProblems,
    names: FieldNames = SHIPPED_NAMES,
    computed: Collection[str] = COMPUTED,
    before: Mapping[str, GivenValue] = NOTHING_BEFORE,
) -> Normalised:
    """The document must have passed `check_storable`. What we compute is ignored, and named in `ignored`.

    An answer of ours that comes back is full of such names: of them nobody is told. It says some things twice, and
    somebody may have edited one of the two: of those, what stands at the place `before` gives way.
    """
    if isinstance(document, list) and not document:
        document = {}
    if not isinstance(document, Mapping):
        problems.add("document", f"must be an object, not {shown(document)}")
        return Normalised()
    return _Walk(document, problems, names, computed, before).found


class _Walk:
    """One pass over a document, the top first."""

    def __init__(
        self,
        document: Mapping[str, object],
        problems: DocumentProblems,
        names: FieldNames,
        computed: Collection[str],
        before: Mapping[str, GivenValue],
    ) -> None:
        self.found = Normalised()
        self._before = before
        self._problems = problems
        self._names = names
        self._hints_left = _MAX_HINTS
        snake = {key: _snake(key) for key in document}
        self._read_back = read_back = not _READ_BACK.isdisjoint(snake.values())
        for key, name in snake.items():
            if problems.full:
                break
            value = document[key]
            if not (read_back and _is_echo(name, value, document, before)):
                self._top(key, name, value, computed)
        if read_back:
            self.found.ignored.clear()
        self.found.nulls -= self.found.places.keys()

    def _top(self, key: str, name: str, value: object, computed: Collection[str]) -> None:
        top, objects = self._names.top, self._names.objects
        bare = name.removeprefix("p_")
        self.found.prefixed |= bare != name and (bare in objects or bare in top)
        if name in objects:
            self._object(name, key, value)
        elif (known := top.get(name) or top.get(bare)) is not None:
            self._put(known, joined("", key), value)
        elif bare in objects:
            self._object(bare, key, value)
        elif name in computed:
            self.found.ignored.append(joined("", key))
        else:
            self._problems.add(joined("", key), self._unknown(name, top.keys() | objects.keys(), inside=""))

    def _object(self, part: str, key: str, value: object) -> None:
        table, found, problems = self._names.objects[part], self.found, self._problems
        if isinstance(value, list) and not value:
            value = {}
        if value is None:
            found.nulls.update(name.place for name in table.values())
            return
        if not isinstance(value, Mapping):
            problems.add(joined("", key), f"must be an object, not {shown(value)}")
            found.bad.update(name.place for name in table.values())
            return
        found.objects.add(part)
        outer = joined("", key)
        for inner, item in value.items():
            if problems.full:
                break
            path = f"{outer}.{joined('', inner)}"
            name = table.get(inner) or table.get(_snake(inner))
            if name is None:
                problems.add(path, self._unknown(_snake(inner), table.keys(), inside=part))
            else:
                self._put(name, path, item)

    def _put(self, name: NameUse, path: str, value: object) -> None:
        found = self.found
        value = name.null if value is None else value
        if value is None:
            found.nulls.add(name.place)
            return
        try:
            given = GivenValue(path, value if name.read is None else name.read(value), name.single)
        except PolicyError as wrong:
            self._problems.add(path, wrong.text)
            found.bad.add(name.place)
            return
        other = found.places.setdefault(name.place, given)
        if other is given or same_json(other.value, given.value):
            return
        before = self._before.get(name.place) if self._read_back else None
        if before is not None and same_json(before.value, other.value):
            found.places[name.place] = given
        elif before is None or not same_json(before.value, given.value):
            self._problems.add(
                path, f"conflicts with `{other.path}`, another name of the same field; send only one of them"
            )

    def _unknown(self, name: str, known: Collection[str], *, inside: str) -> str:
        """Comparing spellings is slow, so only the first unknown fields get a guess."""
        if inside and name in self._names.top:
            return f"unknown field of `{inside}`; it belongs to `{self._names.top[name].place}`"
        if not inside and (place := self._names.inside(name)) is not None:
            return f"unknown field; it belongs to `{place}`"
        self._hints_left -= 1
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6) if name and self._hints_left >= 0 else []
        return f"unknown field; did you mean `{close[0]}`?" if close else "unknown field"


def _is_echo(name: str, value: object, document: Mapping[str, object], before: Mapping[str, GivenValue]) -> bool:
    """Tell whether a name that is also a field only repeats, in a response, what it has elsewhere."""
    if name == "version":  # of the row, not of the workflow
        return True
    action = document.get("action")
    if name != "workflow_type" or not isinstance(action, Mapping):
        return False
    known = next((before[place].value for place in _WORK_PLACES if place in before), None)
    return value in (None, known) or value == next((action[each] for each in _WORK if action.get(each)), None)


def _snake(key: str) -> str:
    if key.islower():
        return key if len(key) <= _MAX_NAME else ""
    return _HUMP.sub("_", key).lower() if len(key) <= _MAX_NAME else ""
