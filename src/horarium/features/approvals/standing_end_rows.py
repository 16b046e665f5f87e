"""The state of what standing approvals depend on: tokens of their grantors, schedules, and nodes of workflows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.effective_policies import read_effective
from horarium.core.document.json_values import known
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.stored_workflow import WorkflowUse
from horarium.core.policy.votes import Circumstances, GrantTerms, StandingEnd, end_of_grant
from horarium.features.runs.work_rows import RunWork
from horarium.features.workflows.rows import WHOLE, Edition, WorkflowDigests
from horarium.instant import Instant
from horarium.platform.database.statements import from_text, rows_with, to_text
from horarium.platform.database.tables import schedule_revisions, schedules, tokens


class Row(Protocol):
    """The columns of a standing approval that its end depends on."""

    @property
    def standing_id(self) -> bytes: ...
    @property
    def namespace(self) -> str: ...
    @property
    def schedule_uid(self) -> bytes | None: ...
    @property
    def workflow_id(self) -> str | None: ...
    @property
    def revision(self) -> int | None: ...
    @property
    def gates(self) -> tuple[str, ...]: ...
    @property
    def until(self) -> Instant | None: ...
    @property
    def max_uses(self) -> int | None: ...
    @property
    def uses(self) -> int: ...
    @property
    def made_by(self) -> str: ...
    @property
    def made_role(self) -> str: ...
    @property
    def created_at(self) -> Instant: ...
    @property
    def made_token(self) -> bytes | None: ...
    @property
    def bound_to(self) -> str | None: ...
    @property
    def ended_reason(self) -> str | None: ...


# ── what one is bound to ─────────────────────────────────────────────────────────────────────────────


class Binding(NamedTuple):
    """The digests of the nodes of each workflow, and the nodes that had one of the gates, when it was created."""

    digests: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    gated: frozenset[tuple[str, str]] = frozenset()


def bound_to(connection: Connection, namespace: str, root: WorkflowUse | None, gates: Collection[str]) -> str:
    """Return what a standing approval for these gates is bound to, as its column keeps it."""
    read = WorkflowDigests(connection, namespace)
    tree = {} if root is None else read.tree(root)
    digests = {name: read.of(edition) for name, edition in tree.items()}
    return to_text({"digests": digests, "gated": sorted(_gated(tree, gates))})


class Unchanged:
    """Compares the workflow version of a run with what a standing approval was given for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read: dict[tuple[str, str, int, str | None], dict[str, str] | None] = {}

    def since(self, row: Row, run: RunWork) -> bool:
        """A step is compared by its node, any other run by its whole workflow."""
        workflow, version, node = run.of_workflow, run.of_version, run.node_id or WHOLE
        if workflow is None or version is None:
            workflow, version, node = run.workflow, run.workflow_version, WHOLE
        if workflow is None or version is None:
            return True
        seen = self._digests(run, workflow, version)
        if seen is None:
            return False
        agreed = _bound(row).digests.get(workflow, {}).get(node)
        return agreed is not None and agreed == seen.get(node)

    def _digests(self, run: RunWork, workflow: str, version: int) -> dict[str, str] | None:
        """With the versions of sub-workflows that the run was given when it was created."""
        key = (run.namespace, workflow, version, run.effective)
        if key not in self._read:
            versions = {} if run.effective is None else read_effective(run.effective).versions
            read = WorkflowDigests(self._connection, run.namespace, versions)
            found = read.find(WorkflowUse(workflow, version))
            self._read[key] = None if found is None else read.of(found)
        return self._read[key]


def _gated(tree: Mapping[str, Edition], gates: Collection[str]) -> set[tuple[str, str]]:
    """The nodes that have one of the gates."""
    return {
        (name, node)
        for name, edition in tree.items()
        for node, digest in edition.nodes.items()
        if not digest.gates.isdisjoint(gates)
    }


def _bound(row: Row) -> Binding:
    found = {} if row.bound_to is None else from_text(row.bound_to)
    return Binding(found.get("digests", {}), frozenset((name, node) for name, node in found.get("gated", ())))


# ── whether it has ended ─────────────────────────────────────────────────────────────────────────────


def ends_of(connection: Connection, rows: Sequence[Row], now: Instant) -> dict[bytes, StandingEnd | None]:
    """Return the reason for which each has ended; None = it is active."""
    credentials, there = _credentials(connection, rows, now), _schedules(connection, rows)
    by_namespace: dict[str, WorkflowDigests] = {}
    ends: dict[bytes, StandingEnd | None] = {}
    for row in rows:
        if row.ended_reason in set(StandingEnd):
            ends[row.standing_id] = StandingEnd(row.ended_reason)
            continue
        live, role_kept = credentials[row.standing_id]
        revision = there.get(row.schedule_uid or b"")
        read = by_namespace.setdefault(row.namespace, WorkflowDigests(connection, row.namespace))
        workflow_there, nodes_kept = _workflow_unchanged(connection, row, read)
        seen = Circumstances(
            credential_live=live,
            role_kept=role_kept,
            schedule_there=row.schedule_uid is None or revision is not None,
            revision_kept=bool(row.gates) or row.revision is None or revision == row.revision,
            workflow_there=workflow_there,
            gated_nodes_kept=nodes_kept,
        )
        ends[row.standing_id] = end_of_grant(GrantTerms(row.created_at, row.until, row.max_uses, row.uses), seen, now)
    return ends


def _credentials(connection: Connection, rows: Sequence[Row], now: Instant) -> dict[bytes, tuple[bool, bool]]:
    """By standing approval: whether its token is live, and whether that has the role that it was created with.

    An empty token stands for another credential, which has an end of its own.
    """
    columns = (tokens.c.token_id, tokens.c.role, tokens.c.revoked_at, tokens.c.expires_at)
    recorded = sorted({row.made_token for row in rows if row.made_token})
    found = connection.execute(sa.select(*columns).where(tokens.c.token_id.in_(recorded))).all() if recorded else []
    roles = {
        token.token_id: token.role
        for token in found
        if token.revoked_at is None and (token.expires_at is None or now < token.expires_at)
    }
    known_by: dict[bytes, tuple[bool, bool]] = {}
    for row in rows:
        live = row.made_token == b"" or row.made_token in roles
        known_by[row.standing_id] = (live, not live or roles.get(row.made_token or b"", row.made_role) == row.made_role)
    return known_by


def _schedules(connection: Connection, rows: Sequence[Row]) -> dict[bytes, int]:
    """The revisions of those that are there."""
    uids = {(row.schedule_uid,) for row in rows if row.schedule_uid is not None}
    statement = sa.select(schedules.c.schedule_uid, schedules.c.revision).where(schedules.c.deleted_at.is_(None))
    return dict(map(tuple, rows_with(connection, statement, (schedules.c.schedule_uid,), uids)))


def _workflow_unchanged(connection: Connection, row: Row, read: WorkflowDigests) -> tuple[bool, bool]:
    """Return whether its workflows exist, and whether each gated node is unchanged since the approval was given.

    A node counts that has one of its gates now, or had one then. Where none does, the approval is about the whole
    run, and the whole workflow counts.
    """
    root = _root(connection, row)
    if root is None:
        return True, True
    agreed, tree = _bound(row), read.tree(root)
    named = {root.name, *(use.name for edition in tree.values() for use in edition.uses)}
    if any(name not in tree and (name in agreed.digests or name == row.workflow_id) for name in named):
        return False, False
    digests = {name: read.of(edition) for name, edition in tree.items()}
    gated = agreed.gated | _gated(tree, known(row.gates))
    whole = {(root.name, WHOLE)} if root.name in tree else set()
    return True, all(
        agreed.digests.get(name, {}).get(node) == digests.get(name, {}).get(node) for name, node in gated or whole
    )


def _root(connection: Connection, row: Row) -> WorkflowUse | None:
    """The workflow that it is about; that of a schedule is the one that the newest revision starts."""
    if row.schedule_uid is None:
        return None if row.workflow_id is None else WorkflowUse(row.workflow_id, None)
    newest = sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    )
    statement = (
        sa.select(schedules.c.workflow, schedule_revisions.c.document)
        .join_from(schedules, schedule_revisions, newest)
        .where(schedules.c.schedule_uid == row.schedule_uid)
    )
    found = connection.execute(statement).one_or_none()
    document: Any = None
    with suppress(ValueError):  # a row that is damaged names no workflow
        document = None if found is None else from_text(found.document)
    action = document.get("action") if isinstance(document, Mapping) else None
    if found is None or found.workflow is None or not isinstance(action, Mapping):
        return None
    version = action.get("version")
    is_stored = action.get("kind", WORKFLOW.name) == WORKFLOW.name
    return WorkflowUse(found.workflow, version if isinstance(version, int) else None) if is_stored else None
