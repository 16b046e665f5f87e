"""SQL of stored workflows: each version is a row that never changes, and the newest is `latest`.

A digest covers a workflow or a node, with the sub-workflows that it leads to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.checks import SECRET_KEY
from horarium.core.document.effective_policies import read_effective
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.stored_workflow import MAX_DEPTH, MAX_REACHABLE, StoredUses, WorkflowUse
from horarium.features.workflows.graph_rows import newest_versions
from horarium.instant import Instant
from horarium.platform.database.run_states import OPEN_ROOT
from horarium.platform.database.statements import TypedRows, from_text, object_from_text, rows_with, to_text
from horarium.platform.database.tables import runs, schedule_revisions, schedules, secrets, workflows


@dataclass(frozen=True, slots=True)
class WorkflowSummaryRow:
    """One version, without its document. `nodes` is how many there are; None = it was written before they were counted.

    `bundle` is the one that brought it, `created_by` who put this version.
    """

    namespace: str
    workflow_id: str
    version: int
    owner: str | None
    created_at: Instant
    bundle: str | None
    created_by: str | None
    name: str | None
    nodes: int | None
    uses: tuple[WorkflowUse, ...]


@dataclass(frozen=True, slots=True)
class WorkflowRow(WorkflowSummaryRow):
    document: dict[str, Any]


def _uses(text: str | None) -> tuple[WorkflowUse, ...]:
    return tuple(WorkflowUse(name, version) for name, version in from_text(text) or ())


_SUMMARIES = TypedRows(WorkflowSummaryRow, workflows, key="workflow_id", uses=_uses)
_ROWS = TypedRows(WorkflowRow, workflows, key="workflow_id", uses=_uses, document=object_from_text)
_newer = workflows.alias("newer")
_IS_NEWEST = ~sa.exists().where(
    _newer.c.namespace == workflows.c.namespace,
    _newer.c.workflow_id == workflows.c.workflow_id,
    _newer.c.version > workflows.c.version,
)


def insert(connection: Connection, row: WorkflowRow) -> None:
    """Raises Conflict(`workflows_pkey`) if there is such a version."""
    connection.execute(
        sa.insert(workflows).values(
            namespace=row.namespace,
            workflow_id=row.workflow_id,
            version=row.version,
            document=to_text(row.document),
            owner=row.owner,
            created_at=row.created_at,
            bundle=row.bundle,
            created_by=row.created_by,
            name=row.name,
            nodes=row.nodes,
            uses=to_text([[use.name, use.version] for use in row.uses]) if row.uses else None,
        )
    )


def find(connection: Connection, namespace: str, workflow_id: str, version: int | None = None) -> WorkflowRow | None:
    """That version, or the newest."""
    wanted = _ROWS.select.where(*_named(namespace, workflow_id))
    if version is not None:
        wanted = wanted.where(workflows.c.version == version)
    return _ROWS.one(connection, wanted.order_by(workflows.c.version.desc()).limit(1))


def find_many(connection: Connection, namespace: str, ids: Collection[str]) -> dict[str, WorkflowRow]:
    """The newest version of those that are stored, by id."""
    columns = (workflows.c.namespace, workflows.c.workflow_id)
    wanted = rows_with(connection, _ROWS.select.where(_IS_NEWEST), columns, {(namespace, each) for each in ids})
    return {row.workflow_id: row for row in map(_ROWS.read, wanted)}


def uses_of(connection: Connection, namespace: str, wanted: Iterable[WorkflowUse]) -> dict[WorkflowUse, StoredUses]:
    """Find the stored versions of used workflows, with their own uses."""
    asked = set(wanted)
    newest = newest_versions(connection, {(namespace, use.name) for use in asked if use.version is None})
    exact = {use: use.version or newest.get((namespace, use.name), 0) for use in asked}
    columns = (workflows.c.namespace, workflows.c.workflow_id, workflows.c.version)
    statement = sa.select(workflows.c.workflow_id, workflows.c.version, workflows.c.uses)
    keys = {(namespace, use.name, version) for use, version in exact.items() if version}
    found = {(name, version): _uses(uses) for name, version, uses in rows_with(connection, statement, columns, keys)}
    there = {use: (use.name, version) for use, version in exact.items() if (use.name, version) in found}
    return {use: StoredUses(key[1], found[key]) for use, key in there.items()}


def list_page(
    connection: Connection,
    namespace: str,
    *,
    owner: str | None = None,
    bundle: str | None = None,
    text: str | None = None,
    after_id: str | None = None,
    limit: int,
) -> tuple[list[WorkflowSummaryRow], bool]:
    """The newest versions by id; and whether there are more. `text` is part of the id or name."""
    wanted = [workflows.c.namespace == namespace, _IS_NEWEST]
    if owner is not None:
        wanted.append(workflows.c.owner == owner)
    if bundle is not None:
        wanted.append(workflows.c.bundle == bundle)
    if text is not None:
        wanted.append(
            sa.or_(
                workflows.c.workflow_id.icontains(text, autoescape=True),
                workflows.c.name.icontains(text, autoescape=True),
            )
        )
    if after_id is not None:
        wanted.append(workflows.c.workflow_id > after_id)
    statement = _SUMMARIES.select.where(*wanted).order_by(workflows.c.workflow_id).limit(limit + 1)
    found = _SUMMARIES.all_listed(connection, statement)
    return found[:limit], len(found) > limit


def versions_page(
    connection: Connection, namespace: str, workflow_id: str, *, before: int | None = None, limit: int
) -> tuple[list[WorkflowSummaryRow], bool]:
    """The newest first; and whether there are more."""
    statement = _SUMMARIES.select.where(*_named(namespace, workflow_id)).order_by(workflows.c.version.desc())
    if before is not None:
        statement = statement.where(workflows.c.version < before)
    found = _SUMMARIES.all_listed(connection, statement.limit(limit + 1))
    return found[:limit], len(found) > limit


def set_bundle(connection: Connection, namespace: str, workflow_id: str, bundle: str | None) -> None:
    """Assign all versions of a workflow to a bundle: ownership does not depend on the version."""
    connection.execute(sa.update(workflows).where(*_named(namespace, workflow_id)).values(bundle=bundle))


def ids_of_bundle(connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
    own = (workflows.c.namespace == namespace, workflows.c.bundle == bundle, _IS_NEWEST)
    statement = sa.select(workflows.c.workflow_id).where(*own).order_by(workflows.c.workflow_id).limit(most)
    return list(connection.execute(statement).scalars())


def namespaces_of_bundle(connection: Connection, bundle: str) -> list[str]:
    return sorted(
        connection.execute(sa.select(workflows.c.namespace).where(workflows.c.bundle == bundle).distinct()).scalars()
    )


def delete(connection: Connection, namespace: str, workflow_id: str, *, secret_prefix: str) -> None:
    """All versions, and the generated secrets that held their credentials."""
    connection.execute(sa.delete(workflows).where(*_named(namespace, workflow_id)))
    theirs = secrets.c.name.startswith(secret_prefix, autoescape=True)
    connection.execute(sa.delete(secrets).where(secrets.c.namespace == namespace, secrets.c.generated, theirs))


# ── who needs one ────────────────────────────────────────────────────────────────────────────────────


def schedules_with_workflow(
    connection: Connection, namespace: str, workflow_id: str, *, but_of: str, most: int
) -> list[str]:
    """Live schedules that name it, by id; those of the bundle `but_of` do not count."""
    newest = sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    )
    # A worker's type may have the same name. Documents are kept as `to_text` spells them, the kind first.
    spelled = f'"action":{{"kind":{to_text(WORKFLOW.name)}'
    statement = (
        sa.select(schedules.c.schedule_id)
        .join_from(schedules, schedule_revisions, newest)
        .where(
            schedules.c.namespace == namespace,
            schedules.c.workflow == workflow_id,
            schedules.c.deleted_at.is_(None),
            sa.or_(schedules.c.bundle.is_(None), schedules.c.bundle != but_of),
            schedule_revisions.c.document.contains(spelled, autoescape=True),
        )
        .order_by(schedules.c.schedule_id)
        .limit(most)
    )
    return list(connection.execute(statement).scalars())


def open_runs_with_workflow(connection: Connection, namespace: str, workflow_id: str, *, most: int) -> int:
    """Roots that have not ended and are of it, of any version, or have come or will come to it; at most `most`."""
    which = (runs.c.workflow, runs.c.workflow_version, runs.c.effective)
    # As text, so that both databases see that the index of open runs is the one to use.
    wanted = (runs.c.namespace == namespace, sa.text(OPEN_ROOT), runs.c.workflow_version.is_not(None))
    alike = sa.select(*which, sa.func.count()).where(*wanted).group_by(*which)
    found, known = 0, dict[WorkflowUse, tuple[WorkflowUse, ...]]()
    for name, version, effective, count in connection.execute(alike).all():
        if _comes_to(connection, namespace, workflow_id, WorkflowUse(name, version), _settled(effective), known):
            found += count
    return min(found, most)


def _settled(effective: str | None) -> Mapping[str, int]:
    try:
        return {} if effective is None else read_effective(effective).versions
    except Exception:  # a damaged row is its own run's trouble, and keeps nobody from deleting something else
        return {}


def _comes_to(
    connection: Connection,
    namespace: str,
    workflow_id: str,
    root: WorkflowUse,
    settled: Mapping[str, int],
    known: dict[WorkflowUse, tuple[WorkflowUse, ...]],
) -> bool:
    """Level by level; `settled` are versions that were the latest when the run was born, `known` what was read before.

    A newer version of a workflow in between may have dropped it: the run keeps the one that it was born with.
    """
    level, seen = {root}, set[WorkflowUse]()
    while level and all(use.name != workflow_id for use in level):
        unread = level - known.keys()
        stored = uses_of(connection, namespace, unread) if unread else {}
        known |= {use: stored[use].uses if use in stored else () for use in unread}
        seen |= level
        below = {use for above in level for use in known[above]}
        level = {WorkflowUse(use.name, use.version or settled.get(use.name)) for use in below} - seen
    return bool(level)


def workflows_with_workflow(connection: Connection, namespace: str, workflow_id: str, *, most: int) -> list[str]:
    """Others whose newest version names it, by id."""
    others = (workflows.c.namespace == namespace, workflows.c.workflow_id != workflow_id, _IS_NEWEST)
    statement = sa.select(workflows.c.workflow_id).where(*others, _may_use(workflow_id))
    return list(connection.execute(statement.order_by(workflows.c.workflow_id).limit(most)).scalars())


def workflows_with_secret(connection: Connection, namespace: str, name: str, *, most: int) -> list[str]:
    """Those whose newest version names the secret, by id."""
    # Documents are kept as `to_text` spells them, and quotes inside of a text have a backslash: this is a reference.
    reference = f"{to_text(SECRET_KEY)}:{to_text(name)}"
    mine = (workflows.c.namespace == namespace, _IS_NEWEST)
    statement = sa.select(workflows.c.workflow_id).where(
        *mine, workflows.c.document.contains(reference, autoescape=True)
    )
    return list(connection.execute(statement.order_by(workflows.c.workflow_id).limit(most)).scalars())


def _may_use(workflow_id: str) -> sa.ColumnElement[bool]:
    """Names are texts of JSON, and ids hold nothing that JSON would spell otherwise."""
    return workflows.c.uses.contains(f"[{to_text(workflow_id)},", autoescape=True)


def _named(namespace: str, workflow_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return workflows.c.namespace == namespace, workflows.c.workflow_id == workflow_id


WHOLE: Final = ""
"""In place of the id of a node: the whole workflow."""
_CHARS: Final = 32
"""128 bits: an author who may choose both documents finds no two with one digest."""


class NodeDigest(NamedTuple):
    own: str
    gates: frozenset[str]
    uses: tuple[WorkflowUse, ...]


class Edition(NamedTuple):
    """One stored version; `nodes` has an entry for `WHOLE`."""

    uses: tuple[WorkflowUse, ...]
    nodes: Mapping[str, NodeDigest]


class WorkflowDigests:
    """Reads each version of the workflows of a namespace once. `versions` are those that stand for the newest."""

    def __init__(self, connection: Connection, namespace: str, versions: Mapping[str, int] | None = None) -> None:
        self._connection = connection
        self._namespace = namespace
        self._versions = versions or {}
        self._found: dict[WorkflowUse, Edition | None] = {}
        self._below: dict[WorkflowUse, str] = {}

    def find(self, use: WorkflowUse) -> Edition | None:
        use = WorkflowUse(use.name, use.version or self._versions.get(use.name))
        if use not in self._found:
            row = find(self._connection, self._namespace, *use)
            self._found[use] = None if row is None else _edition(row.uses, row.document)
        return self._found[use]

    def tree(self, root: WorkflowUse) -> dict[str, Edition]:
        """The workflow and those that it leads to, by name; of several versions of one the first that is met."""
        found: dict[str, Edition] = {}
        level = [root]
        while level and len(found) < MAX_REACHABLE:
            use = level.pop()
            edition = None if use.name in found else self.find(use)
            if edition is not None:
                found[use.name] = edition
                level += edition.uses
        return found

    def of(self, edition: Edition) -> dict[str, str]:
        """The digests of its nodes and of the whole. An edit of a sub-workflow changes those of its users."""
        return {name: self._with_uses(node, 0) for name, node in edition.nodes.items()}

    def _with_uses(self, node: NodeDigest, depth: int) -> str:
        if not node.uses or depth > MAX_DEPTH:
            return node.own
        return _digest([node.own, *(self._of_use(use, depth + 1) for use in node.uses)])

    def _of_use(self, use: WorkflowUse, depth: int) -> str:
        """One that is not stored has the digest of its name: it is a task's, until it is stored."""
        if use not in self._below:
            edition = self.find(use)
            self._below[use] = use.name if edition is None else self._with_uses(edition.nodes[WHOLE], depth)
        return self._below[use]


def _edition(uses: Sequence[WorkflowUse], document: Mapping[str, Any]) -> Edition:
    written = [node for node in document.get("nodes", ()) if isinstance(node, Mapping)]
    nodes = {str(node.get("id")): _node(node, uses) for node in written}
    return Edition(tuple(uses), {**nodes, WHOLE: NodeDigest(_digest(document), frozenset(), tuple(uses))})


def _node(node: Mapping[str, Any], uses: Sequence[WorkflowUse]) -> NodeDigest:
    action = node.get("action")
    named = [each for each in action.values() if isinstance(each, str)] if isinstance(action, Mapping) else []
    gates = frozenset(each for each in node.get("gates", ()) if isinstance(each, str))
    return NodeDigest(_digest(node), gates, tuple(use for use in uses if use.name in named))


def _digest(value: object) -> str:
    return sha256(to_text(value).encode()).hexdigest()[:_CHARS]
