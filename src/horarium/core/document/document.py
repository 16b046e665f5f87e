"""Documents of schedules: read into a definition, whatever vocabulary they were written in.

    check_storable   is it JSON that can be stored?
    normalise        every accepted spelling → one canonical place that remembers its path
    apply            for an update: the places of the base, changed
    read_definition  places → frozen values; every problem is collected
    check_spec       does the whole spec compile, and does it ever fire?
    check_places     does it name secrets only where they may stand? Plain credentials become such names

`to_document` is the way back: reading what it wrote gives an equal definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from horarium.condition import compile_condition
from horarium.core.document.canonical import UpdateMode, apply_update, merge_patch, nested, replace_parts, to_document
from horarium.core.document.checks import MAX_JITTER_SECONDS, any_input, check_places, of_schedule
from horarium.core.document.checks import move_credentials as credentials_moved
from horarium.core.document.condition_context import never_there
from horarium.core.document.definition import Definition, RunDefinition, SpecText
from horarium.core.document.field import plain, seconds
from horarium.core.document.json_values import DocumentProblems, GivenValue, Places, check_storable, joined, same_json
from horarium.core.document.places import NAMES, PARTS, PLACES, normalise
from horarium.core.document.reader import (
    SHIPPED,
    Kinds,
    Reader,
    check_spec,
    read_definition,
    read_run_definition,
    spec_meaning,
)
from horarium.core.document.rendering import check_template, template_warnings
from horarium.core.policy.approval import NO_SKIPPING, FailureMode, Skipping, skipping_in
from horarium.core.policy.queue import (
    DEFAULT_CATCHUP,
    DEFAULT_OVERLAP,
    Catchup,
    CatchupPolicy,
    Overlap,
    OverlapPolicy,
    flag,
    shown,
    whole_number,
)
from horarium.errors import InvalidSpec
from horarium.instant import Instant

__all__ = [
    "Defaults",
    "ParsedDefinition",
    "UpdateMode",
    "changed_fields",
    "from_canonical",
    "merge_patch",
    "named_in",
    "parse_definition",
    "replace_parts",
    "spec_equal",
    "spec_in",
    "to_document",
]


_OVERLAP, _CATCHUP = Overlap(), Catchup()


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for fields that a document lacks; an operator may choose them, see the settings `DEFAULT_*`.

    `chosen` are the policies that the operator chose. A document with a `queue_policy`, or with a `p_…` name, has
    other defaults for the two policies that the object represents, unless they were chosen.
    """

    overlap_policy: OverlapPolicy = _OVERLAP.policy
    catchup_policy: CatchupPolicy = _CATCHUP.policy
    jitter_ms: int = 0
    max_catchup: int = _CATCHUP.max_catchup
    catchup_spread_seconds: int = _CATCHUP.catchup_spread_seconds
    misfire_grace_seconds: int = _CATCHUP.misfire_grace_seconds
    cancel_grace_seconds: int = _OVERLAP.cancel_grace_seconds
    chosen: frozenset[str] = frozenset()

    def of_queue_policy(self) -> Defaults:
        usual: dict[str, Any] = {"overlap_policy": DEFAULT_OVERLAP, "catchup_policy": DEFAULT_CATCHUP}
        return replace(self, **{name: value for name, value in usual.items() if name not in self.chosen})

    def __post_init__(self) -> None:
        whole_number("jitter_ms", self.jitter_ms, most=MAX_JITTER_SECONDS * 1_000)
        for name in ("max_catchup", "catchup_spread_seconds", "misfire_grace_seconds", "cancel_grace_seconds"):
            whole_number(name, getattr(self, name))


@lru_cache(maxsize=8)
def _default_places(defaults: Defaults) -> Mapping[str, GivenValue]:
    """As if somebody had written them."""
    said = (each.name for each in fields(defaults) if each.name not in ("jitter_ms", "chosen"))
    values = {name: plain(getattr(defaults, name)) for name in said}
    values["spec.jitter_seconds"] = seconds(defaults.jitter_ms)
    return {place: GivenValue(place, value) for place, value in values.items()}


@dataclass(frozen=True, slots=True)
class ParsedDefinition:
    """`paused` None = the document does not say; `warnings` are for the author, nothing is refused for them.

    `tells_note`: the document says something about the note, be it that there is none. `credentials` are the plain
    ones that it held, by the names of the secrets that the definition names in their place: whoever keeps the
    definition keeps them. `skipping`: it asks to get round an approval.
    """

    definition: Definition
    paused: bool | None
    warnings: tuple[str, ...] = ()
    tells_note: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    skipping: Skipping = NO_SKIPPING


def parse_definition(
    document: object,
    *,
    now: Instant,
    generated_id: str | None = None,
    namespace: str = "default",
    defaults: Defaults | None = None,
    base: Definition | None = None,
    update: UpdateMode = UpdateMode.MERGE,
    kinds: Kinds = SHIPPED,
    may_be_over: bool = False,
    secrets_of: str | None = None,
) -> ParsedDefinition:
    """Raises InvalidDefinition with all problems.

    `generated_id` and `namespace` stand in for names that the document does not give. With a `base` the
    document changes that definition, as `update` says; neither of its names can change. `kinds` are the kinds of
    action that may be asked for. `may_be_over`: a spec that has only past occurrences will do. `secrets_of`: whose
    the secrets are that plain credentials are moved to, if not the schedule's.
    """
    problems = DocumentProblems()
    check_storable(document, problems)
    problems.raise_any()
    before = {} if base is None else _places_of(base)
    known = kinds if base is None else kinds.with_stored(base.action)
    stored = None if base is None or known is kinds else base.action
    given = normalise(document, problems, known.names, before=before)
    names = {"schedule_id": generated_id, "namespace": namespace}
    places: Mapping[str, GivenValue] = given.places
    if base is not None:
        names = {"schedule_id": base.schedule_id, "namespace": base.namespace}
        _check_same_names(names, given.places, problems)
        places = apply_update(update, before, given)
        check_storable(nested(places), problems)  # many small patches must not grow what one may not bring
    standing_in = {name: GivenValue(name, value) for name, value in names.items() if value is not None}
    usual = defaults or Defaults()
    usual = usual.of_queue_policy() if given.prefixed or "queue_policy" in given.objects else usual
    reader = Reader({**_default_places(usual), **standing_in, **places}, problems, given.bad)
    definition, paused = read_definition(reader, known, stored), reader.one("paused", flag, None)
    unchanged = base is not None and spec_equal(base, definition)
    after = None if unchanged else now
    check_spec(definition.spec, reader, key=definition.schedule_id or "?", after=after, may_be_over=may_be_over)
    check_places(places, definition.action.kind, problems)
    _check_template(definition, known, reader)
    problems.raise_any()
    tells_note = "note" in given.places or "note" in given.nulls
    warnings = _warnings(definition, given.places, given.ignored)
    action, credentials = credentials_moved(definition.action, secrets_of or of_schedule(definition.schedule_id))
    skipping = skipping_in(document)
    return ParsedDefinition(replace(definition, action=action), paused, warnings, tells_note, credentials, skipping)


def _check_template(definition: Definition, kinds: Kinds, reader: Reader) -> None:
    """Only where the rest is sound, and under the paths that the author wrote."""
    if not definition.action.template or reader.problems.any:
        return
    found = DocumentProblems()
    kind = kinds.get(definition.action.kind)
    check_template(definition, any_input if kind is None else kind.check_input, found)
    for path, said in found.found.items():
        place = next((each for each in reader.places if path == each or path.startswith(f"{each}.")), "")
        for text in said:
            reader.problems.add(reader.path(place) + path.removeprefix(place) if place else path, text)


def named_in(document: object) -> str | None:
    """The id that a document gives, however it spells it, and whatever else is wrong with it."""
    problems = DocumentProblems()
    check_storable(document, problems)
    given = None if problems.any else normalise(document, DocumentProblems()).places.get("schedule_id")
    return given.value if given is not None and isinstance(given.value, str) else None


def spec_in(
    document: object,
    *,
    now: Instant,
    key: str,
    defaults: Defaults | None = None,
    kinds: Kinds = SHIPPED,
    base: Definition | None = None,
    update: UpdateMode = UpdateMode.MERGE,
) -> SpecText | None:
    """The *when* of a document, whatever else is wrong with it; None = that is wrong, too, or never comes."""
    problems = DocumentProblems()
    check_storable(document, problems)
    if problems.any:
        return None
    before = {} if base is None else _places_of(base)
    given = normalise(document, problems, kinds.names, before=before)
    places = given.places if base is None else apply_update(update, before, given)
    named = {place: value for place, value in places.items() if place.startswith("spec.")}
    reader = Reader({**_default_places(defaults or Defaults()), "schedule_id": GivenValue("", key), **named}, problems)
    spec = read_definition(reader, kinds).spec
    if any(place.startswith("spec.") for place in {*reader.bad, *given.bad}):
        return None
    try:
        return spec if spec.compile(key).next_after(now) is not None else None
    except InvalidSpec:
        return None


def from_canonical(document: object) -> Definition:
    """For documents that `to_document` wrote: nothing is compiled and no other spelling is known.

    A row that somebody damaged raises InvalidDefinition, and nothing else.
    """
    problems = DocumentProblems()
    definition = read_definition(Reader(_canonical_places(document, problems), problems))
    problems.raise_any()
    return definition


def run_part_of(document: object) -> RunDefinition:
    """As `from_canonical`, but only what a run needs, at a fraction of the price."""
    problems = DocumentProblems()
    if isinstance(document, Mapping):
        document = {name: document[name] for name in _RUN_PART if name in document}
    definition = read_run_definition(Reader(_canonical_places(document, problems), problems))
    problems.raise_any()
    return definition


_RUN_PART = tuple(name for name in NAMES if (PARTS[name].attribute if name in PARTS else name) in RunDefinition._fields)


def changed_fields(old: Definition, new: Definition) -> tuple[str, ...]:
    """The top-level names of the canonical document whose values differ, in its order."""
    before, after = to_document(old), to_document(new)
    return tuple(name for name in NAMES if not same_json(before.get(name), after.get(name)))


def spec_equal(old: Definition, new: Definition) -> bool:
    """Tell whether both mean the same times: then an edit leaves the next due time alone.

    Order, blanks and spelling (`MON`, `1`) do not matter; the zone does, because calendars follow it.
    """
    if old.spec == new.spec and old.schedule_id == new.schedule_id:
        return True
    try:
        return spec_meaning(old.spec.compile(old.schedule_id)) == spec_meaning(new.spec.compile(new.schedule_id))
    except InvalidSpec:  # written under another tzdata; what cannot be compared has changed
        return False


def _places_of(base: Definition) -> dict[str, GivenValue]:
    """With the built-in defaults spelled out: an operator's new default must not change an old schedule."""
    problems = DocumentProblems()
    places = {**_default_places(Defaults()), **_canonical_places(to_document(base), problems)}
    problems.raise_any()
    return places


def _canonical_places(document: object, problems: DocumentProblems) -> dict[str, GivenValue]:
    places: dict[str, GivenValue] = {}
    if not isinstance(document, Mapping):
        problems.add("document", f"must be an object, not {shown(document)}")
        return places
    for key, value in document.items():
        if key not in _NAMES:
            problems.add(joined("", key), "unknown field")
        elif value is None:
            pass
        elif key not in PARTS:
            places[key] = GivenValue(key, value)
        elif not isinstance(value, Mapping):
            problems.add(key, f"must be an object, not {shown(value)}")
        else:
            _object_places(key, value, places, problems)
    return places


def _object_places(
    key: str, value: Mapping[object, object], places: dict[str, GivenValue], problems: DocumentProblems
) -> None:
    """An action may be of a kind that is not ours, with fields that we do not know."""
    inside = _INSIDE[key]
    foreign = key == "action" and isinstance(kind := value.get("kind"), str) and kind not in SHIPPED
    for inner, item in value.items():
        place = inside.get(inner) or (f"{key}.{inner}" if foreign and isinstance(inner, str) else None)
        if place is None:
            problems.add(joined(key, inner), "unknown field")
        elif item is not None:
            places[place] = GivenValue(place, item)
        elif (known := PLACES.get(place)) is not None and known.field.null is not None:
            places[place] = GivenValue(place, known.field.null)


_CONDITION = "pre_dispatch_condition"
_NAMES = frozenset(NAMES)
_INSIDE: Mapping[str, Mapping[object, str]] = {
    part: {place.name: path for path, place in PLACES.items() if place.owner == part} for part in PARTS
}


def _check_same_names(names: Mapping[str, str | None], given: Places, problems: DocumentProblems) -> None:
    for place, value in names.items():
        if place in given and given[place].value != value:
            problems.add(given[place].path, f"cannot be changed; the current value is {value}")


def _warnings(definition: Definition, given: Places, ignored: list[str]) -> tuple[str, ...]:
    """Warnings about fields without an effect, or with an unexpected one."""
    overlap, catchup = definition.overlap.policy, definition.catchup.policy
    capped = catchup in (CatchupPolicy.FIRE_ALL, CatchupPolicy.SPREAD)
    idle = {
        "max_buffered": (overlap is OverlapPolicy.BUFFER_ALL, "overlap_policy buffer_all"),
        "cancel_grace_seconds": (overlap is OverlapPolicy.CANCEL_OTHER, "overlap_policy cancel_other"),
        "max_catchup": (capped, "catchup_policy fire_all or spread"),
        "catchup_spread_seconds": (catchup is CatchupPolicy.SPREAD, "catchup_policy spread"),
        "concurrency_limit": (definition.concurrency_key is not None, "a concurrency_key"),
        "failure_policy.fallback_assignee_id": (definition.failure.mode is FailureMode.FALLBACK, "mode fallback"),
    }
    unused = [
        f"{given[place].path}: has no effect without {needed}"
        for place, (used, needed) in idle.items()
        if place in given and not used
    ]
    unrendered = [f"{given[place].path}: {said}" for place, said in template_warnings(definition) if place in given]
    computed = [f"{path}: read-only field, ignored" for path in ignored]
    return (*computed, *unused, *_condition_warnings(definition, given), *unrendered)


def _condition_warnings(definition: Definition, given: Places) -> list[str]:
    """Only where the document speaks of the condition: whoever edits a note has heard it before."""
    if _CONDITION not in given:
        return []
    condition = compile_condition(definition.pre_dispatch_condition)
    return [f"{given[_CONDITION].path}: {said}" for said in never_there(condition)]
