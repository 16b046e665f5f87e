"""The state of what standing approvals depend on: tokens of their grantors, schedules, and nodes of workflows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.policy.standing_end import Circumstances, StandingEnd, Terms, end_of
from horarium.schedule.damage import known
from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.sub_workflows import Use
from horarium.store import workflows
from horarium.store.database.found import rows_with
from horarium.store.database.json_text import from_text, to_text
from horarium.store.migrate import DEFAULT_NAMESPACE
from horarium.store.runs.work import Work
from horarium.store.tables import schedule_revisions, schedules, tokens
from horarium.store.workflows import WorkflowRow

_MOST_WORKFLOWS: Final = 200
"""Followed from one standing approval; a node beyond them is covered by none."""


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


def bound_to(connection: Connection, namespace: str, root: Use | None) -> dict[str, dict[str, str]]:
    """Return the digests of a workflow, of those inside it, and of their nodes, as they are now.

    The empty name of a node stands for the whole workflow.
    """
    found: dict[str, dict[str, str]] = {}
    level = [] if root is None else [root]
    while level and len(found) < _MOST_WORKFLOWS:
        use = level.pop()
        row = None if use.name in found else workflows.find(connection, namespace, use.name, use.version)
        if row is not None:
            found[use.name] = _digests(row.document)
            level += row.uses
    return found


class Unchanged:
    """Compares the workflow version of a run with what a standing approval was given for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read: dict[tuple[str, str, int], tuple[Instant, dict[str, str]] | None] = {}

    def since(self, row: Row, run: Work) -> bool:
        """A step is compared by its node, any other run by its whole workflow."""
        workflow, version, node = run.of_workflow, run.of_version, run.node_id or ""
        if workflow is None or version is None:
            workflow, version, node = run.workflow, run.workflow_version, ""
        if workflow is None or version is None:
            return True
        key = (run.namespace, workflow, version)
        if key not in self._read:
            found = workflows.find(self._connection, *key)
            self._read[key] = None if found is None else (found.created_at, _digests(found.document))
        seen = self._read[key]
        if seen is None:
            return False
        if row.bound_to is None:  # not recorded when it was created: no later version is covered
            return seen[0] <= row.created_at
        agreed = _bound(row).get(workflow, {}).get(node)
        return agreed is not None and agreed == seen[1].get(node)


def _digests(document: Mapping[str, Any]) -> dict[str, str]:
    nodes = {str(node.get("id")): _digest(node) for node in document.get("nodes", ()) if isinstance(node, Mapping)}
    return {**nodes, "": _digest(document)}


def _digest(value: object) -> str:
    return sha256(to_text(value).encode()).hexdigest()[:16]


def _bound(row: Row) -> dict[str, dict[str, str]]:
    return {} if row.bound_to is None else from_text(row.bound_to) or {}


# ── whether it has ended ─────────────────────────────────────────────────────────────────────────────


def ends_of(connection: Connection, rows: Sequence[Row], now: Instant) -> dict[bytes, StandingEnd | None]:
    """Return the reason for which each has ended; None = it is active."""
    credentials, there = _credentials(connection, rows, now), _schedules(connection, rows)
    ends: dict[bytes, StandingEnd | None] = {}
    for row in rows:
        if row.ended_reason in set(StandingEnd):
            ends[row.standing_id] = StandingEnd(row.ended_reason)
            continue
        live, role_kept = credentials[row.standing_id]
        revision = there.get(row.schedule_uid or b"")
        workflow_there, nodes_kept = _workflow_kept(connection, row)
        seen = Circumstances(
            credential_live=live,
            role_kept=role_kept,
            schedule_there=row.schedule_uid is None or revision is not None,
            revision_kept=bool(row.gates) or row.revision is None or revision == row.revision,
            workflow_there=workflow_there,
            gated_nodes_kept=nodes_kept,
        )
        ends[row.standing_id] = end_of(Terms(row.created_at, row.until, row.max_uses, row.uses), seen, now)
    return ends


def _credentials(connection: Connection, rows: Sequence[Row], now: Instant) -> dict[bytes, tuple[bool, bool]]:
    """By standing approval: whether its token is live, and whether that has the role that it was created with.

    Where the token was not recorded, the tokens of the grantor count: one that is live and has the role is enough.
    """
    recorded = sorted({row.made_token for row in rows if row.made_token})
    bearers = sorted({row.made_by for row in rows if row.made_token is None})
    bearer = sa.func.coalesce(tokens.c.subject, tokens.c.name)
    columns = (tokens.c.token_id, tokens.c.namespace, bearer.label("bearer"), tokens.c.role, tokens.c.revoked_at,
               tokens.c.expires_at)  # fmt: skip
    wanted = sa.select(*columns).where(sa.or_(tokens.c.token_id.in_(recorded), bearer.in_(bearers)))
    found = connection.execute(wanted).all() if recorded or bearers else []

    def is_live(token: Any) -> bool:
        return token.revoked_at is None and (token.expires_at is None or now < token.expires_at)

    known_by: dict[bytes, tuple[bool, bool]] = {}
    for row in rows:
        if row.made_token:
            mine = [token for token in found if token.token_id == row.made_token]
            live = [token for token in mine if is_live(token)]
            known_by[row.standing_id] = (bool(live), not live or live[0].role == row.made_role)
            continue
        homes = (row.namespace, DEFAULT_NAMESPACE)
        mine = [token for token in found if token.bearer == row.made_by and token.namespace in homes]
        live = [token for token in mine if is_live(token)]
        if row.made_token is not None or not mine:  # another credential, which says itself when it ends
            known_by[row.standing_id] = (True, True)
        else:
            known_by[row.standing_id] = (bool(live), not live or any(each.role == row.made_role for each in live))
    return known_by


def _schedules(connection: Connection, rows: Sequence[Row]) -> dict[bytes, int]:
    """The revisions of those that are there."""
    uids = {(row.schedule_uid,) for row in rows if row.schedule_uid is not None}
    statement = sa.select(schedules.c.schedule_uid, schedules.c.revision).where(schedules.c.deleted_at.is_(None))
    return dict(map(tuple, rows_with(connection, statement, (schedules.c.schedule_uid,), uids)))


def _workflow_kept(connection: Connection, row: Row) -> tuple[bool, bool]:
    """Return whether its workflows exist, and whether each gated node is unchanged since the approval was given.

    Where no node has one of its gates, the approval is about the whole run, and the whole workflow counts.
    """
    root = _root(connection, row)
    if root is None:
        return True, True
    agreed, gates = _bound(row), set(known(row.gates))
    stored: dict[str, WorkflowRow] = {}
    level = [root]
    while level and len(stored) < _MOST_WORKFLOWS:
        use = level.pop()
        found = stored.get(use.name) or workflows.find(connection, row.namespace, use.name, use.version)
        if found is None and (use.name in agreed or use.name == row.workflow_id):
            return False, False
        if found is not None and use.name not in stored:
            stored[use.name] = found
            level += found.uses
    if row.bound_to is None:  # not recorded when it was created: no later version is covered
        return True, all(each.created_at <= row.created_at for each in stored.values())
    digests = {name: _digests(each.document) for name, each in stored.items()}
    gated = [(name, node) for name, each in stored.items() for node in _gated(each.document, gates)]
    whole = [(root.name, "")] if root.name in stored else []
    return True, all(agreed.get(name, {}).get(node) == digests[name].get(node) for name, node in gated or whole)


def _gated(document: Mapping[str, Any], gates: Collection[str]) -> list[str]:
    """The ids of the nodes that have one of the gates."""
    nodes = [node for node in document.get("nodes", ()) if isinstance(node, Mapping)]
    return [str(node.get("id")) for node in nodes if not set(gates).isdisjoint(node.get("gates", ()))]


def _root(connection: Connection, row: Row) -> Use | None:
    """The workflow that it is about; that of a schedule is the one that the newest revision starts."""
    if row.schedule_uid is None:
        return None if row.workflow_id is None else Use(row.workflow_id, None)
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
    return Use(found.workflow, version if isinstance(version, int) else None) if is_stored else None
