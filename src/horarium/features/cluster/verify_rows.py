"""SQL of a check of the whole ledger: histories with the specs in force, and runs in the order of their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.definition import Definition
from horarium.core.document.document import from_canonical
from horarium.core.document.rendering import texts_of
from horarium.core.document.states import RunState
from horarium.core.lifecycle.live_run import RecordedApproval, StoredRunFacts
from horarium.core.policy.approval import ApprovalDecision, agreed_hash, proposed_reply
from horarium.features.approvals.request_rows import current_inputs
from horarium.features.history import rows as streams
from horarium.features.history.rows import HistoryRow
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.retention_rows import LIFECYCLE
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.run_states import FINAL_NAMES
from horarium.platform.database.statements import TypedRows, from_text
from horarium.platform.database.tables import (
    approvals,
    checkpoints,
    history,
    positions,
    schedule_revisions,
    schedules,
    step_changes,
)

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """History before `sequence` is gone, and was complete up to `decided_until`."""

    sequence: int
    decided_until: Instant
    made_at: Instant


_CHECKPOINTS = TypedRows(Checkpoint, checkpoints)


def schedule_uids(connection: Connection, namespace: str | None, after: bytes, limit: int) -> list[bytes]:
    """Deleted ones too, in the order of their ids; None = of all namespaces."""
    statement = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid > after)
    if namespace is not None:
        statement = statement.where(positions.c.namespace == namespace)
    return list(connection.execute(statement.order_by(positions.c.schedule_uid).limit(limit)).scalars())


def name_of(connection: Connection, uid: bytes) -> tuple[str, str]:
    """Return the namespace and the id of a schedule."""
    asked = sa.select(positions.c.namespace, positions.c.schedule_id).where(positions.c.schedule_uid == uid)
    namespace, schedule_id = connection.execute(asked).one()
    return namespace, schedule_id


def checkpoint(connection: Connection, uid: bytes) -> Checkpoint | None:
    return _CHECKPOINTS.one(connection, _CHECKPOINTS.select.where(checkpoints.c.schedule_uid == uid))


def life_before(connection: Connection, uid: bytes, sequence: int) -> list[HistoryRow]:
    """Lifecycle events of the schedule before an event, oldest first: retention does not delete them."""
    found: list[HistoryRow] = []
    after = 0
    while page := streams.read(connection, uid, after_sequence=after, limit=_PAGE):
        found += [event for event in page if event.sequence < sequence and event.event_type in LIFECYCLE]
        after = page[-1].sequence
        if after >= sequence:
            break
    return found


def plannings_by_revision(connection: Connection, uid: bytes) -> dict[int, bytes]:
    """The hash of the planning text of each revision."""
    rows = connection.execute(
        sa.select(schedule_revisions.c.revision, schedule_revisions.c.planning).where(
            schedule_revisions.c.schedule_uid == uid
        )
    )
    return {row.revision: row.planning for row in rows}


def runs_without_event(connection: Connection, uid: bytes, since: Instant, limit: int) -> list[tuple[bytes, Instant]]:
    """Root runs born at `since` or later that history does not know: their ids and nominal times."""
    # As a list and not row by row: SQLite then builds an index of it once.
    told = sa.select(history.c.run_id).where(
        history.c.schedule_uid == uid, history.c.sequence.is_not(None), history.c.run_id.is_not(None)
    )
    rows = run_archive.rows_everywhere(
        connection,
        lambda runs: (
            sa.select(runs.c.run_id, runs.c.nominal)
            .where(
                runs.c.schedule_uid == uid,
                runs.c.parent_run_id.is_(None),
                runs.c.created_at >= since,
                runs.c.run_id.not_in(told),
            )
            .order_by(runs.c.run_id)
            .limit(limit)
        ),
    )
    return sorted((row.run_id, row.nominal) for row in rows)[:limit]


_YES = (ApprovalDecision.APPROVED.value, ApprovalDecision.MODIFIED.value)


@dataclass(frozen=True, slots=True)
class Scope:
    """Filter of the runs to check; None = all. A schedule id means every schedule that has had it."""

    namespace: str | None = None
    schedule_id: str | None = None

    def holds(self, runs: RunsTable) -> sa.ColumnElement[bool]:
        mine = [] if self.namespace is None else [runs.c.namespace == self.namespace]
        if self.schedule_id is not None:
            uids = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == self.schedule_id)
            mine.append(runs.c.schedule_uid.in_(uids))
        return sa.and_(sa.true(), *mine)


@dataclass(frozen=True, slots=True)
class CheckedRun:
    run_id: bytes
    schedule_id: str | None
    facts: StoredRunFacts | None
    """None = the row cannot be read."""


def last_of_page(connection: Connection, scope: Scope, after: bytes, size: int) -> bytes | None:
    """The id with which the next `size` runs end; None = there are none."""

    def page(runs: RunsTable) -> sa.Select[Any]:
        mine = (scope.holds(runs), runs.c.run_id > after)
        return sa.select(runs.c.run_id).where(*mine).order_by(runs.c.run_id).limit(size)

    found = sorted({row.run_id for row in run_archive.rows_everywhere(connection, page)})[:size]
    return found[-1] if found else None


def run_facts(connection: Connection, scope: Scope, after: bytes, last: bytes) -> list[CheckedRun]:
    """The runs of a page that can have faults: open ones, and those that needed approval."""

    def page(runs: RunsTable) -> sa.Select[Any]:
        asked = sa.or_(runs.c.state.not_in(FINAL_NAMES), runs.c.needs_approval)
        return _checked(runs).where(scope.holds(runs), runs.c.run_id > after, runs.c.run_id <= last, asked)

    rows = sorted(run_archive.rows_everywhere(connection, page), key=lambda row: row.run_id)
    answered = [row for row in rows if row.answered is not None]
    definitions = Definitions(from_canonical).load(connection, answered)
    return [CheckedRun(row.run_id, row.schedule_id, _facts(row, definitions)) for row in rows]


def doubles(connection: Connection, scope: Scope, after: bytes, last: bytes) -> Sequence[tuple[bytes, str]]:
    """Nodes of the workflow runs of a page that have more than one run.

    A fallback exists in addition to the step that it replaces.
    """

    def found(runs: RunsTable) -> sa.Select[Any]:
        one = (runs.c.parent_run_id, runs.c.node_id, runs.c.fallback)
        inside = (runs.c.parent_run_id > after, runs.c.parent_run_id <= last)
        return sa.select(*one[:2]).where(scope.holds(runs), *inside).group_by(*one).having(sa.func.count() > 1)

    return sorted((row.parent_run_id, row.node_id) for row in run_archive.rows_everywhere(connection, found))


_COLUMNS = (
    "run_id", "namespace", "schedule_uid", "revision", "state", "rotation_index", "stop_requested_at", "needs_approval",
    "parent_run_id", "root_run_id", "node_id", "workflow_version", "of_workflow", "of_version", "fallback", "effective",
)  # fmt: skip


@cache
def _checked(runs: RunsTable) -> sa.Select[Any]:
    parents, steps, questions = runs.alias("parents"), runs.alias("steps"), approvals.alias("questions")
    return (
        sa.select(
            *(runs.c[name] for name in _COLUMNS),
            # Of many runs with inputs of a megabyte each, only those that are held against an answer.
            sa.case((runs.c.approval_id.is_not(None), runs.c.inputs)).label("inputs"),
            schedules.c.schedule_id,
            parents.c.state.label("parent_state"),
            sa.exists()
            .where(steps.c.parent_run_id == runs.c.run_id, steps.c.state.not_in(FINAL_NAMES))
            .label("has_open_steps"),
            sa.exists().where(step_changes.c.run_id == runs.c.run_id).label("has_changes"),
            sa.exists()
            .where(questions.c.run_id == runs.c.run_id, questions.c.decision == ApprovalDecision.PENDING.value)
            .label("is_asked_about"),
            approvals.c.decision.label("answered"),
            approvals.c.run_id.label("answered_about"),
            approvals.c.input_hash.label("answered_hash"),
            approvals.c.question,
            approvals.c.modifications,
        )
        .outerjoin_from(runs, schedules, schedules.c.schedule_uid == runs.c.schedule_uid)
        .outerjoin(parents, parents.c.run_id == runs.c.parent_run_id)
        .outerjoin(approvals, approvals.c.approval_id == runs.c.approval_id)
    )


def _facts(row: Any, definitions: Mapping[bytes, Definition | Exception]) -> StoredRunFacts | None:
    try:
        return _read_facts(row, definitions)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _read_facts(row: Any, definitions: Mapping[bytes, Definition | Exception]) -> StoredRunFacts:
    return StoredRunFacts(
        RunState(row.state),
        is_step=row.parent_run_id is not None,
        parent=None if row.parent_state is None else RunState(row.parent_state),
        is_workflow=row.workflow_version is not None,
        has_open_steps=row.has_open_steps,
        has_changes=row.has_changes,
        is_asked_about=row.is_asked_about,
        is_to_stop=row.stop_requested_at is not None,
        needs_approval=row.needs_approval,
        answer=None if row.answered is None else _answer(row, definitions),
    )


def _answer(row: Any, definitions: Mapping[bytes, Definition | Exception]) -> RecordedApproval:
    return RecordedApproval(
        yes=row.answered in _YES,
        same_run=row.answered_about == row.run_id,
        same_inputs=_hash(row, definitions.get(row.run_id)) in (None, row.answered_hash),
    )


def _hash(row: Any, definition: Definition | Exception | None) -> str | None:
    """Hash of the run's inputs and of its agent's prompts.

    None where its definition is unreadable and nothing can be checked.
    """
    try:
        reply = proposed_reply(row.question, from_text(row.modifications))
        texts = texts_of(definition.action) if isinstance(definition, Definition) else None
        if row.inputs is not None:
            return agreed_hash(from_text(row.inputs), reply, texts)
    except ValueError:  # one text that was damaged is one run's trouble
        return ""
    if not isinstance(definition, Definition):
        return None
    return agreed_hash(current_inputs(row, definition), reply, texts)
