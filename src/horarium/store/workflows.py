"""The workflows that are stored: versions that never change, each a row; the newest is what `latest` means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.effective import read_effective
from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.secret import KEY
from horarium.schedule.sub_workflows import Stored, Use
from horarium.store.database.found import rows_with
from horarium.store.database.json_text import from_text, object_from_text, to_text
from horarium.store.database.typed_rows import TypedRows
from horarium.store.runs.states import OPEN_ROOT
from horarium.store.tables import runs, schedule_revisions, schedules, secrets, workflows
from horarium.store.workflow_graphs import newest_versions


@dataclass(frozen=True, slots=True)
class WorkflowSummary:
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
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class WorkflowRow(WorkflowSummary):
    document: dict[str, Any]


def _uses(text: str | None) -> tuple[Use, ...]:
    return tuple(Use(name, version) for name, version in from_text(text) or ())


_SUMMARIES = TypedRows(WorkflowSummary, workflows, key="workflow_id", uses=_uses)
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


def uses_of(connection: Connection, namespace: str, wanted: Iterable[Use]) -> dict[Use, Stored]:
    """Find the stored versions of used workflows, with their own uses."""
    asked = set(wanted)
    newest = newest_versions(connection, {(namespace, use.name) for use in asked if use.version is None})
    exact = {use: use.version or newest.get((namespace, use.name), 0) for use in asked}
    columns = (workflows.c.namespace, workflows.c.workflow_id, workflows.c.version)
    statement = sa.select(workflows.c.workflow_id, workflows.c.version, workflows.c.uses)
    keys = {(namespace, use.name, version) for use, version in exact.items() if version}
    found = {(name, version): _uses(uses) for name, version, uses in rows_with(connection, statement, columns, keys)}
    there = {use: (use.name, version) for use, version in exact.items() if (use.name, version) in found}
    return {use: Stored(key[1], found[key]) for use, key in there.items()}


def list_page(
    connection: Connection,
    namespace: str,
    *,
    owner: str | None = None,
    bundle: str | None = None,
    text: str | None = None,
    after_id: str | None = None,
    limit: int,
) -> tuple[list[WorkflowSummary], bool]:
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
) -> tuple[list[WorkflowSummary], bool]:
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
    found, known = 0, dict[Use, tuple[Use, ...]]()
    for name, version, effective, count in connection.execute(alike).all():
        if _comes_to(connection, namespace, workflow_id, Use(name, version), _settled(effective), known):
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
    root: Use,
    settled: Mapping[str, int],
    known: dict[Use, tuple[Use, ...]],
) -> bool:
    """Level by level; `settled` are versions that were the latest when the run was born, `known` what was read before.

    A newer version of a workflow in between may have dropped it: the run keeps the one that it was born with.
    """
    level, seen = {root}, set[Use]()
    while level and all(use.name != workflow_id for use in level):
        unread = level - known.keys()
        stored = uses_of(connection, namespace, unread) if unread else {}
        known |= {use: stored[use].uses if use in stored else () for use in unread}
        seen |= level
        below = {use for above in level for use in known[above]}
        level = {Use(use.name, use.version or settled.get(use.name)) for use in below} - seen
    return bool(level)


def workflows_with_workflow(connection: Connection, namespace: str, workflow_id: str, *, most: int) -> list[str]:
    """Others whose newest version names it, by id."""
    others = (workflows.c.namespace == namespace, workflows.c.workflow_id != workflow_id, _IS_NEWEST)
    statement = sa.select(workflows.c.workflow_id).where(*others, _may_use(workflow_id))
    return list(connection.execute(statement.order_by(workflows.c.workflow_id).limit(most)).scalars())


def workflows_with_secret(connection: Connection, namespace: str, name: str, *, most: int) -> list[str]:
    """Those whose newest version names the secret, by id."""
    # Documents are kept as `to_text` spells them, and quotes inside of a text have a backslash: this is a reference.
    reference = f"{to_text(KEY)}:{to_text(name)}"
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
