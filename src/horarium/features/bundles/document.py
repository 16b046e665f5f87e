"""Documents of bundles: schedules and what they need under one name, and what a bundle may do to existing things.

{"bundle": "billing", "calendars": [{"name": …, "dates": […]}], "agents": [{"id": …}], "teams": [{"team_id": …}],
 "workflows": [{"workflow_id": …, "nodes": […]}], "assignments": [{"assignment_id": …}],
 "schedules": [{"schedule_id": …, "spec": …}]}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from horarium.core.document.document import named_in
from horarium.core.document.holidays import is_rule_name
from horarium.core.document.json_values import same_json
from horarium.core.document.stored_workflow import TEMPLATES
from horarium.core.policy.queue import MAX_ID, PolicyError, canonical_json, checked_id, shown
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.bundles.organisation import Flat, flattened
from horarium.features.bundles.values import BundleKind as BundleKind  # who reads bundles names their kinds too
from horarium.instant import Instant, from_rfc3339

Document = Mapping[str, Any]

MAX_DOCUMENTS = 2_000
"""Documents of all kinds and triggers of workflows in one request: one transaction writes them all, and on SQLite
every other write waits for it.
"""
MAX_DIFFERENCES = 50
_MAX_SHOWN = 500
_MAX_PROBLEMS = 20
# What a schedule of a bundle may say of its state, beside `paused`: it counts when the schedule is made, never later.
PAUSE_REASON, PAUSED_UNTIL, EXHAUSTED = "pause_reason", "paused_until", "exhausted"
_STATE = frozenset({PAUSE_REASON, PAUSED_UNTIL, EXHAUSTED})


@dataclass(frozen=True, slots=True)
class InitialState:
    """Initial state of a schedule from a bundle, in addition to its document."""

    pause_reason: str | None = None
    paused_until: Instant | None = None
    exhausted: bool = False


IDENTITIES: Final[Mapping[BundleKind, str]] = MappingProxyType(
    {
        BundleKind.CALENDAR: "name",
        BundleKind.AGENT: "id",
        BundleKind.TEAM: "team_id",
        BundleKind.WORKFLOW: "workflow_id",
        BundleKind.ASSIGNMENT: "assignment_id",
        BundleKind.SCHEDULE: "schedule_id",
    }
)
"""The field by which documents of a kind are known in a bundle."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The documents of each kind by their names, in the order in which they were given."""

    name: str | None
    documents: Mapping[BundleKind, Mapping[str, Document]]
    places: Mapping[tuple[BundleKind, str], str] = field(default_factory=dict)
    """The paths of agents and of their schedules in the request, for error messages."""

    def is_seeded(self, schedule_id: str) -> bool:
        """Tell whether the schedule is declared with its agent."""
        return (BundleKind.SCHEDULE, schedule_id) in self.places

    def of(self, kind: BundleKind) -> Mapping[str, Document]:
        return self.documents.get(kind, {})


def read_bundle(name: str | None, members: Mapping[str, object], *, prune: bool = False) -> Bundle:
    """Raises InvalidDefinition with all that is wrong with the bundle itself; its documents are read elsewhere.

    `members` are its lists by their names; one that is not there is empty.
    """
    problems: dict[str, list[str]] = {}
    if name is not None:
        try:
            checked_id("bundle", name)
        except PolicyError as wrong:
            problems["bundle"] = [wrong.text]
    elif prune:
        problems["bundle"] = ["prune needs a bundle name, because a bundle without a name owns nothing"]
    given = {kind: _rows(kind, members.get(kind.member, ()), problems) for kind in BundleKind}
    org = flattened([row for _, row in given[BundleKind.AGENT]], problems)
    given[BundleKind.AGENT] = org.agents
    given[BundleKind.SCHEDULE] += org.schedules
    documents = {kind: _named(kind, rows, problems) for kind, rows in given.items()}
    total = sum(map(len, documents.values())) + sum(map(_triggers, documents[BundleKind.WORKFLOW].values()))
    if total > MAX_DOCUMENTS:
        kinds = "documents and workflow triggers"
        problems.setdefault("bundle", []).append(
            f"has {total} {kinds}; at most {MAX_DOCUMENTS} are allowed per request"
        )
    if problems:
        raise InvalidDefinition(problems)
    return Bundle(name, documents, dict(_places(org)))


def _triggers(workflow: Document) -> int:
    """Count the triggers of a document that may not be a workflow."""
    triggers = workflow.get("triggers")
    return len(triggers) if isinstance(triggers, list | tuple) else 0


def _rows(kind: BundleKind, rows: object, problems: dict[str, list[str]]) -> list[tuple[str, object]]:
    """Each with its place."""
    if isinstance(rows, list | tuple):
        return [(f"{kind.member}.{index}", row) for index, row in enumerate(rows)]
    problems[kind.member] = [f"must be an array of objects, not {shown(rows)}"]
    return []


def _places(org: Flat) -> Iterator[tuple[tuple[BundleKind, str], str]]:
    for kind, rows in ((BundleKind.AGENT, org.agents), (BundleKind.SCHEDULE, org.schedules)):
        for place, row in rows:
            if isinstance(row, Mapping):
                yield (kind, str(row.get(IDENTITIES[kind]))), place


def _named(kind: BundleKind, rows: Sequence[tuple[str, object]], problems: dict[str, list[str]]) -> dict[str, Document]:
    found: dict[str, Document] = {}
    if len(rows) > MAX_DOCUMENTS:
        problems[kind.member] = [f"has {len(rows)} documents; at most {MAX_DOCUMENTS} are allowed per request"]
        return found
    told = 0
    for place, row in rows:
        wrong = _put(found, row, kind)
        if wrong is not None and told < _MAX_PROBLEMS:
            problems[place] = [wrong]
            told += 1
    return found


def _put(found: dict[str, Document], row: object, kind: BundleKind) -> str | None:
    """Add a row and return what is wrong with it, if anything."""
    if not isinstance(row, Mapping):
        return f"must be an object, not {shown(row)}"
    identity = IDENTITIES[kind]
    name = row.get(identity)
    if name is None and kind is BundleKind.SCHEDULE:
        name = named_in(row)
    if not isinstance(name, str) or not name:
        return f"needs {'an' if identity[0] in 'ai' else 'a'} {identity}"
    if not _is_name(name, may_be_rule=kind is BundleKind.CALENDAR):
        return f"the {identity} {shown(name)} is not a valid ID"
    if name in found:
        return f"the {identity} {name[:128]!r} appears twice"
    found[name] = row
    return None


def _is_name(name: str, *, may_be_rule: bool) -> bool:
    """A calendar may be a rule, such as `holidays:US@America/New_York`, which has more letters than an id."""
    if may_be_rule and is_rule_name(name):
        return len(name) <= MAX_ID and name.isascii() and name.isprintable()
    try:
        checked_id("name", name)
    except PolicyError:
        return False
    return True


def in_order(names: Collection[str], named_by: Callable[[str], Iterable[str]]) -> list[str]:
    """So that whatever one names comes before it; where they name each other in a circle, some come too early.

    Else they stay in their order. Without recursion: a chain may be as long as a bundle.
    """
    done: dict[str, None] = {}
    begun: set[str] = set()
    for first in names:
        open_ones = [first]
        while open_ones:
            name = open_ones[-1]
            if name not in begun:
                begun.add(name)
                before = [each for each in named_by(name) if each in names and each not in begun]
                open_ones += reversed(before)
                continue
            open_ones.pop()
            done.setdefault(name)
    return list(done)


def initial_state(document: Document) -> tuple[InitialState, dict[str, Any]]:
    """With the document that is left. Raises InvalidDefinition."""
    left = {key: value for key, value in document.items() if key not in _STATE}
    reason, exhausted = document.get(PAUSE_REASON), document.get(EXHAUSTED) or False
    problems: dict[str, list[str]] = {}
    if reason is not None and not (isinstance(reason, str) and len(reason) <= 1_000 and "\x00" not in reason):
        problems[PAUSE_REASON] = ["must be a string of at most 1000 characters"]
    until: Instant | None = None
    if (told := document.get(PAUSED_UNTIL)) is not None:
        try:
            until = from_rfc3339(told if isinstance(told, str) else "", field=PAUSED_UNTIL)
        except InvalidSpec:
            problems[PAUSED_UNTIL] = [f"must be a time such as 2026-03-08T07:00:00Z, not {shown(told)}"]
    if not isinstance(exhausted, bool):
        problems[EXHAUSTED] = ["must be true or false"]
    elif exhausted and document.get("max_runs") is None:
        problems[EXHAUSTED] = ["requires max_runs"]
    if problems:
        raise InvalidDefinition(problems)
    return InitialState(reason, until, exhausted), left


# ── whose it is ──────────────────────────────────────────────────────────────────────────────────────


class BundleAccess(StrEnum):
    """Right of a bundle to change something that exists."""

    OURS = "ours"
    TAKEN = "taken"  # it was another's, or nobody's, and is ours from now on
    KEPT = "kept"  # somebody made it by hand
    REFUSED = "refused"  # it belongs to another bundle


def bundle_access(owner: str | None, bundle: str | None, *, by_hand: bool, adopt: bool) -> BundleAccess:
    """`owner` is the bundle that brought it. What came with a bundle without a name is anybody's to take.

    The schedule of a workflow's trigger follows its workflow: whoever took it would have it put back, or in the way.
    """
    if owner == bundle and not by_hand:
        return BundleAccess.OURS
    if adopt and not (owner or "").startswith(TEMPLATES):
        return BundleAccess.TAKEN
    if owner is not None:
        return BundleAccess.REFUSED
    return BundleAccess.KEPT if by_hand else BundleAccess.TAKEN


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DocumentDifference:
    """`path` is dotted (`spec.timezone`); None = it is not there. Long values are cut and shown as text."""

    path: str
    old: Any
    new: Any


def differences(old: Document, new: Document) -> tuple[DocumentDifference, ...]:
    """Field by field, inside objects as well; lists are compared as a whole. The last of too many is `…`."""
    found: list[DocumentDifference] = []
    for each in _differences(old, new, "", 0):
        if len(found) == MAX_DIFFERENCES:
            return (*found, DocumentDifference("…", None, None))
        found.append(each)
    return tuple(found)


# An object inside an object inside a part, such as a value of `memo`, is one value.
_DEEPEST = 2


def _differences(old: Document, new: Document, inside: str, depth: int) -> Iterator[DocumentDifference]:
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if same_json(before, after):
            continue
        path = f"{inside}.{key[:128]}" if inside else key[:128]
        if depth < _DEEPEST and isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _differences(before, after, path, depth + 1)
        else:
            yield DocumentDifference(path, _short(before), _short(after))


def _short(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else canonical_json(value)
    return value if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
