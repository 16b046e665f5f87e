"""SQL of run definitions: cached revisions, and texts that templates render to.

A revision never changes, so it is read once. The definition of a step is derived from that of its root and its node,
and policies that were settled at creation take precedence over those of the revision.

The texts of a template are rendered in the transaction that creates the run. A row of `run_definitions` holds them
under the id of the run, so every reader finds the same texts: the approval, the launch and its retries, and the API.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from horarium.core.document.document import run_part_of
from horarium.core.document.effective_policies import read_effective
from horarium.core.document.json_values import Json, damage_of
from horarium.core.document.rendering import RunFacts, ScheduleName, literals_of, render, rendered_action
from horarium.core.document.workflow_steps import (
    CompiledWorkflow,
    step_definition,
    with_changes,
    with_limits,
    with_policies,
)
from horarium.core.policy.limits import RunLimits
from horarium.core.recurrence.spec import Spec
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import Instant
from horarium.platform.database.statements import RowInsert, from_text, object_from_text, select_by_ids, to_text
from horarium.platform.database.tables import run_definitions
from horarium.platform.ids import id_text

D = TypeVar("D")

_MAX_REMEMBERED = 4_096
# Of texts: what is read of them takes several times as much, and one may be a megabyte.
_MAX_REMEMBERED_BYTES = 16 * 1_024 * 1_024
_AT_ONCE = 400
RevisionKey: TypeAlias = tuple[bytes, int]
_OWN = 0  # the number of the only revision that a run without a schedule has


class NamesRevision(Protocol):
    """A run with the columns that say what it is; one that is no step, and was born without policies, needs no more.

    A step has `namespace`, `root_run_id`, `of_workflow`, `of_version` and `node_id` too; what has policies of its own
    `effective`.
    """

    @property
    def run_id(self) -> bytes: ...
    @property
    def schedule_uid(self) -> bytes | None: ...
    @property
    def revision(self) -> int | None: ...


class _Derived(NamedTuple):
    """Key of a definition that is not determined by the revision alone."""

    revision: RevisionKey
    workflow: int
    node_id: str | None
    effective: str | None


class Definitions(Generic[D]):
    """The newest few thousand, whole or in part, as `read` makes them of a document.

    What a caller needs for longer than a moment it keeps itself. `caps` are limits that hold for every run.
    """

    def __init__(self, read: Callable[[object], D], caps: RunLimits | None = None) -> None:
        self._read = read
        self._caps = caps
        self._known: OrderedDict[RevisionKey, D | Exception] = OrderedDict()
        self._sizes: dict[RevisionKey, int] = {}
        self._bytes = 0
        self._derived: OrderedDict[_Derived, tuple[CompiledWorkflow | None, D | Exception]] = OrderedDict()
        self._lock = threading.Lock()

    def load(
        self, connection: Connection, runs: Iterable[NamesRevision], *, as_written: bool = False
    ) -> Mapping[bytes, D | Exception]:
        """By run; what cannot be read is the reason why. `as_written`: of runs whose texts are not rendered yet."""
        asked = list(runs)
        keys = {run.run_id: revision_key(run) for run in asked}
        found: dict[RevisionKey, D | Exception] = {}
        for key in set(keys.values()):
            if (known := self._known.get(key)) is not None:
                found[key] = known
        unknown = [key for key in set(keys.values()) if key not in found]
        for start in range(0, len(unknown), _AT_ONCE):
            texts = revisions(connection, unknown[start : start + _AT_ONCE])
            read = {key: self._parsed(text) for key, text in texts.items()}
            self._remember(read, {key: len(text) for key, text in texts.items()})
            found |= read
        gone = LookupError("the revision of this run does not exist any more")
        plain = {run_id: found.get(key, gone) for run_id, key in keys.items()}
        special = [run for run in asked if _workflow_of(run) is not None or getattr(run, "effective", None) is not None]
        whole = plain if not special else plain | self._derive(connection, special, plain)
        templates = [] if as_written else [run for run in asked if is_template(whole[run.run_id])]
        return whole if not templates else {**whole, **_rendered(connection, templates, whole)}

    def of(self, connection: Connection, run: NamesRevision) -> D | Exception:
        return self.load(connection, [run])[run.run_id]

    def _derive(
        self, connection: Connection, runs: Sequence[NamesRevision], plain: Mapping[bytes, D | Exception]
    ) -> dict[bytes, D | Exception]:
        workflows = {run.run_id: _workflow_of(run) for run in runs}
        named = {each for each in workflows.values() if each is not None}
        graphs = graph_rows.load(connection, named) if named else {}
        derived: dict[bytes, D | Exception] = {}
        for run in runs:
            workflow = workflows[run.run_id]
            graph = None if workflow is None else graphs[workflow]
            derived[run.run_id] = self._derive_one(run, plain[run.run_id], graph)
        return derived

    def _derive_one(
        self, run: NamesRevision, base: D | Exception, graph: CompiledWorkflow | Exception | None
    ) -> D | Exception:
        if isinstance(base, Exception):
            return base
        if isinstance(graph, Exception):
            return graph
        node_id, effective = getattr(run, "node_id", None), getattr(run, "effective", None)
        key = _Derived(revision_key(run), id(graph), node_id, effective)
        known = self._derived.get(key)
        if known is not None and known[0] is graph:
            return known[1]
        try:
            made = _derived(base, graph, node_id, effective)
            made = made if self._caps is None else with_limits(made, self._caps)
        except Exception as wrong:  # one corrupt row is one run's trouble
            return wrong
        with self._lock:
            # With the graph itself: as long as it is kept no other can have its address.
            self._derived[key] = graph, made
            if len(self._derived) > _MAX_REMEMBERED:
                self._derived.popitem(last=False)
        return made

    def _remember(self, read: Mapping[RevisionKey, D | Exception], sizes: Mapping[RevisionKey, int]) -> None:
        """Threads share this: what one forgets meanwhile another has in hand."""
        with self._lock:
            for key, definition in read.items():
                self._known[key] = definition
                self._bytes += sizes[key] - self._sizes.get(key, 0)
                self._sizes[key] = sizes[key]
            while len(self._known) > _MAX_REMEMBERED or self._bytes > _MAX_REMEMBERED_BYTES:
                key, _ = self._known.popitem(last=False)
                self._bytes -= self._sizes.pop(key)

    def _parsed(self, document: str) -> D | Exception:
        try:
            read = self._read(from_text(document))
            return read if self._caps is None else with_limits(read, self._caps)
        except Exception as wrong:  # one corrupt document is one run's trouble
            return wrong


def revision_key(run: NamesRevision) -> RevisionKey:
    """A run that no schedule asked for has its definition under its own id, and a step under that of its root."""
    if run.schedule_uid is None or run.revision is None:
        return getattr(run, "root_run_id", None) or run.run_id, _OWN
    return run.schedule_uid, run.revision


def _workflow_of(run: NamesRevision) -> WorkflowVersion | None:
    """The workflow of which a step is a node."""
    workflow_id, version = getattr(run, "of_workflow", None), getattr(run, "of_version", None)
    if workflow_id is None or version is None:
        return None
    return WorkflowVersion(getattr(run, "namespace"), workflow_id, version)  # noqa: B009 - every step has one


def _derived(base: D, graph: CompiledWorkflow | None, node_id: str | None, effective: str | None) -> D:
    policies = None if effective is None else read_effective(effective)
    if graph is not None and node_id is not None:
        return step_definition(base, graph.workflow, graph.node(node_id), policies)
    return base if policies is None else with_policies(base, policies)


_OF_SCHEDULES = (
    "WITH wanted (uid, number) AS ({wanted}) SELECT schedule_uid, revision, document FROM wanted "
    "JOIN schedule_revisions ON schedule_uid = uid AND revision = number"
)
_POSTGRES = _OF_SCHEDULES.format(wanted="SELECT * FROM unnest(%s::bytea[], %s::int4[])")
OWN_TEXTS = "SELECT run_id, document FROM run_definitions WHERE run_id"


def revisions(connection: Connection, keys: Sequence[RevisionKey]) -> dict[RevisionKey, str]:
    """By plain statements: a claim asks this, and to build so many conditions took longer than the answer."""
    scheduled = [key for key in keys if key[1] != _OWN]
    own = [run_id for run_id, number in keys if number == _OWN]
    found = {(uid, number): text for uid, number, text in _of_schedules(connection, scheduled)} if scheduled else {}
    if own:
        found |= {(run_id, _OWN): text for run_id, text in select_by_ids(connection, OWN_TEXTS, own)}
    return found


def _of_schedules(connection: Connection, keys: Sequence[RevisionKey]) -> Iterable[Sequence[Any]]:
    if connection.dialect.name == "postgresql":
        return connection.exec_driver_sql(_POSTGRES, ([uid for uid, _ in keys], [number for _, number in keys]))
    return connection.exec_driver_sql(_sqlite(len(keys)), tuple(part for key in keys for part in key))


@lru_cache(maxsize=_AT_ONCE)
def _sqlite(count: int) -> str:
    return _OF_SCHEDULES.format(wanted=f"VALUES {', '.join(['(?, ?)'] * count)}")


# ── templates ────────────────────────────────────────────────────────────────────────────────────────


def is_template(definition: Any) -> bool:
    return getattr(getattr(definition, "action", None), "template", False)


def _rendered(
    connection: Connection, runs: Sequence[NamesRevision], definitions: Mapping[bytes, Any]
) -> dict[bytes, Any]:
    """The definitions with the texts that were rendered for each run when it was created."""
    rows = select_by_ids(connection, OWN_TEXTS, [run.run_id for run in runs])
    kept: dict[bytes, str] = {row[0]: row[1] for row in rows}
    found: dict[bytes, Any] = {}
    for run in runs:
        text = kept.get(run.run_id)
        try:
            if text is None:
                raise LookupError("the rendered texts of this run do not exist any more")
            found[run.run_id] = _with_texts(definitions[run.run_id], from_text(text))
        except Exception as wrong:  # one corrupt row is one run's trouble
            found[run.run_id] = wrong
    return found


def _with_texts(definition: Any, texts: Mapping[str, Any]) -> Any:
    changes: dict[str, Any] = {"action": rendered_action(definition.action, texts)}
    if "input" in texts:
        changes["inputs_rotation"] = ()
    return with_changes(definition, changes)


def insert_own(connection: Connection, run_id: bytes, document: str) -> None:
    connection.execute(run_definitions.insert().values(run_id=run_id, document=document))


_INSERT = RowInsert(run_definitions, ("run_id", "document"))
_GIVEN = "given"
# Each may have a megabyte.
_TEXTS_AT_ONCE: Final = 20


class Created(NamedTuple):
    """A run of a schedule that was just created, with what its texts depend on."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes
    revision: int
    spec: Spec
    nominal: Instant
    due: Instant
    rotation_index: int


def save_texts(
    connection: Connection, created: Sequence[Created], *, now: Instant, origin: str, given: Json = None
) -> Counter[str]:
    """Return the bytes that were written by namespace. `given` are the inputs that a caller gave.

    Raises TemplateError where they do not fit the template.
    """
    sizes: Counter[str] = Counter()
    by_revision: dict[RevisionKey, list[Created]] = defaultdict(list)
    for run in created:
        by_revision[run.schedule_uid, run.revision].append(run)
    more = {} if given is None else {_GIVEN: given}
    keys = list(by_revision)
    for start in range(0, len(keys), _TEXTS_AT_ONCE):
        rows = []
        for key, text in revisions(connection, keys[start : start + _TEXTS_AT_ONCE]).items():
            document = from_text(text)
            definition, name = run_part_of(document), str(document.get("name", ""))
            literals = literals_of(definition.action)
            for run in by_revision[key]:
                facts = RunFacts(
                    run.namespace,
                    origin,
                    run.nominal,
                    run.due,
                    run.spec,
                    ScheduleName(definition.schedule_id, name),
                    id_text(run.run_id),
                    now,
                )
                rendered = render(definition, facts, index=run.rotation_index, given=given, literals=literals)
                rows.append((run.run_id, to_text({**rendered.document(), **more})))
                sizes[run.namespace] += len(rows[-1][1])
        _INSERT.run(connection, rows)
    return sizes


def save_step_texts(
    connection: Connection, texts: Mapping[bytes, Mapping[str, Json]], definitions: Mapping[bytes, object]
) -> None:
    """The texts of steps by run; `definitions` say which of them are templates."""
    rows = [
        (run_id, to_text({"texts": dict(some), "input": None}))
        for run_id, some in texts.items()
        if is_template(definitions[run_id])
    ]
    _INSERT.run(connection, rows)


def template_inputs(connection: Connection, run_id: bytes) -> Json:
    """The inputs that a caller gave to the template of a run; None = none. Raises ValueError where no one can tell."""
    found = select_by_ids(connection, OWN_TEXTS, [run_id])
    if not found:
        raise ValueError("the rendered texts of this run do not exist any more")
    kept = object_from_text(found[0][1])
    if (why := damage_of(kept)) is not None:
        raise ValueError(f"the rendered texts of this run cannot be read: {why}")
    return kept.get(_GIVEN)


def with_template_inputs(connection: Connection, run_ids: Collection[bytes]) -> set[bytes]:
    """The runs among these whose templates were given inputs by a caller, or may have been: their row is damaged."""
    kept = {run_id: object_from_text(text) for run_id, text in select_by_ids(connection, OWN_TEXTS, list(run_ids))}
    return {run_id for run_id, document in kept.items() if _GIVEN in document or damage_of(document) is not None}
