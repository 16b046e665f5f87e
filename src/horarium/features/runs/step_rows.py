"""SQL of workflow steps: create and read them, and queue what their workflows have yet to process.

`step_changes` has a row for each thing that happened to a step or to its workflow. It is inserted in the transaction
of what it describes, without a lock on the workflow's run, so that steps that end together do not wait for each other.
The transaction that advances the run deletes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.advance import StepFact
from horarium.core.document.states import FINAL, OPEN, Origin, RunEventType, RunState
from horarium.core.lifecycle.outcome import UsedResources
from horarium.features.approvals import request_rows
from horarium.features.runs import update_rows
from horarium.features.runs.work_rows import COLUMNS, RunWork
from horarium.features.schedules.decision_rows import ZEROS
from horarium.instant import Instant
from horarium.platform.database.run_states import sql_list
from horarium.platform.database.statements import RowInsert, RowUpdate, select_by_ids
from horarium.platform.database.tables import runs, step_changes
from horarium.platform.ids import id_at, new_id

NodeOf: TypeAlias = tuple[bytes, str]
"""The run of a workflow, and a node of it."""

# That it was created is read off the row; its place in the workflow is the first that is stored.
_FIRST_EVENT = 2
_AT_ONCE = 400


class Advancing(NamedTuple):
    """The run of a workflow, under lock."""

    work: RunWork
    progress: str | None
    priority: int


class NewStep(NamedTuple):
    """Columns of `runs` that a step is born with; the others have their defaults."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes | None
    revision: int | None
    nominal: Instant
    due: Instant
    priority: int
    parent_run_id: bytes
    root_run_id: bytes
    node_id: str
    node_path: str
    of_workflow: str
    of_version: int
    fallback: bool = False
    effective: str | None = None
    assignee: str | None = None
    assignee_type: str | None = None
    member: str | None = None
    state: str = RunState.READY.value
    workflow: str | None = None
    workflow_version: int | None = None
    kind: str = ""
    target: str = ""
    timeout_seconds: int = 0
    attempt_ms: int | None = None
    queue: str | None = None
    delivery: str = "at_least_once"
    needs_approval: bool = False
    inputs: str | None = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None


_SHARED = ("origin", "ready_at", "created_at", "finished_at", "next_event", "reserved")
_STEPS = RowInsert(runs, (*NewStep._fields, *_SHARED), ZEROS)


def insert(connection: Connection, steps: Sequence[NewStep], now: Instant) -> None:
    """With the first event of each, and the question where one waits for a yes."""
    _STEPS.run(connection, [_row(step, now) for step in steps])
    update_rows.append_events(connection, [(step.run_id, _FIRST_EVENT, *_step_event(step)) for step in steps], now=now)
    waiting = [step.run_id for step in steps if step.state == RunState.AWAITING_APPROVAL]
    if waiting:
        request_rows.request(connection, waiting, now)


def _row(step: NewStep, now: Instant) -> tuple[Any, ...]:
    finished = now if step.state in FINAL else None
    return (*step, Origin.STEP.value, now, now, finished, _FIRST_EVENT + 1, 0)


def _step_event(step: NewStep) -> tuple[RunEventType, dict[str, Any]]:
    said = {
        "node_id": step.node_id,
        "assignee": step.assignee,
        "member": step.member,
        "error": step.error,
        "error_class": step.error_class,
        "cause": step.cause,
    }
    kind = {
        RunState.SKIPPED.value: RunEventType.NODE_SKIPPED,
        RunState.FAILED.value: RunEventType.NODE_FAILED,
        RunState.LAUNCH_FAILED.value: RunEventType.NODE_LAUNCH_FAILED,
    }.get(step.state, RunEventType.NODE_QUEUED)
    return kind, {name: value for name, value in said.items() if value is not None}


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────

_WORKFLOWS = f"SELECT progress, priority, {COLUMNS} FROM runs WHERE run_id"
_FACTS = "SELECT parent_run_id, node_id, state, error_class, assignee, fallback, cause FROM runs WHERE run_id"


def lock_workflows(connection: Connection, run_ids: Sequence[bytes]) -> list[Advancing]:
    """Those that nobody else advances just now."""
    tail = "ORDER BY run_id FOR UPDATE SKIP LOCKED" if connection.dialect.name == "postgresql" else "ORDER BY run_id"
    return _advancing(select_by_ids(connection, _WORKFLOWS, run_ids, tail) if run_ids else [])


def read_workflows(connection: Connection, run_ids: Sequence[bytes]) -> list[Advancing]:
    return _advancing(select_by_ids(connection, _WORKFLOWS, run_ids) if run_ids else [])


def _advancing(rows: Iterable[Sequence[Any]]) -> list[Advancing]:
    return [Advancing(RunWork._make(row[2:]), row[0], row[1]) for row in rows]


def facts(connection: Connection, step_ids: Collection[bytes]) -> dict[bytes, list[StepFact]]:
    """By workflow run."""
    found: dict[bytes, list[StepFact]] = {}
    for parent, *rest in select_by_ids(connection, _FACTS, list(step_ids)) if step_ids else ():
        found.setdefault(parent, []).append(_fact(rest))
    return found


def _fact(row: Sequence[Any]) -> StepFact:
    node_id, state, error_class, assignee, fallback, cause = row
    return StepFact(node_id, RunState(state), error_class, assignee, bool(fallback), cause)


_OF_NODES = (
    "WITH asked (parent, node) AS ({asked}) SELECT parent_run_id, node_id, {columns} FROM asked "
    "JOIN runs ON parent_run_id = parent AND node_id = node WHERE {which}"
)
_SUCCEEDED = ("result", "state = 'succeeded'")
# PostgreSQL reads no large text to tell its length so; SQLite has no other word for it.
_SIZE = {"postgresql": "octet_length({0})", "sqlite": "length(CAST({0} AS BLOB))"}
_MARK = {"postgresql": "%s", "sqlite": "?"}
_SIZES = (
    "SELECT runs.run_id, {} FROM runs LEFT JOIN workflows ON workflows.namespace = runs.namespace AND "
    "workflows.workflow_id = runs.workflow AND workflows.version = runs.workflow_version WHERE runs.run_id"
)
_FAILED = ("state, error_class, assignee, fallback, cause", f"state IN {sql_list(FINAL - {RunState.SUCCEEDED})}")


def results(connection: Connection, wanted: Collection[NodeOf]) -> dict[NodeOf, str | None]:
    """As they are stored, of those that succeeded."""
    return {(parent, node): text for parent, node, text in _of_nodes(connection, wanted, *_SUCCEEDED)}


def result_sizes(connection: Connection, wanted: Collection[NodeOf]) -> dict[NodeOf, int]:
    """Size of each result in bytes, for callers that must not read them all."""
    size_of, which = _SIZE[connection.dialect.name].format("result"), _SUCCEEDED[1]
    return {(parent, node): size or 0 for parent, node, size in _of_nodes(connection, wanted, size_of, which)}


def failures(connection: Connection, wanted: Collection[NodeOf]) -> dict[NodeOf, StepFact]:
    """Failed nodes; the failure of a fallback precedes that of its step."""
    found: dict[NodeOf, StepFact] = {}
    for parent, node, *rest in _of_nodes(connection, wanted, *_FAILED):
        fact = _fact([node, *rest])
        if fact.fallback or (parent, node) not in found:
            found[parent, node] = fact
    return found


def _of_nodes(connection: Connection, wanted: Collection[NodeOf], columns: str, which: str) -> list[Sequence[Any]]:
    asked = list(wanted)
    if not asked:
        return []
    if connection.dialect.name == "postgresql":
        statement = _OF_NODES.format(
            asked="SELECT * FROM unnest(%s::bytea[], %s::text[])", columns=columns, which=which
        )
        both = [run_id for run_id, _ in asked], [node for _, node in asked]
        return list(connection.exec_driver_sql(statement, both))
    found: list[Sequence[Any]] = []
    for first in range(0, len(asked), _AT_ONCE):
        part = asked[first : first + _AT_ONCE]
        statement = _sqlite(len(part), columns, which)
        found += connection.exec_driver_sql(statement, tuple(each for pair in part for each in pair))
    return found


@lru_cache(maxsize=_AT_ONCE * 2)
def _sqlite(count: int, columns: str, which: str) -> str:
    return _OF_NODES.format(asked=f"VALUES {', '.join(['(?, ?)'] * count)}", columns=columns, which=which)


def count_below(connection: Connection, root_run_id: bytes, most: int) -> int:
    """Number of a root's steps at all depths; counting stops at `most`."""
    some = f"SELECT 1 FROM runs WHERE root_run_id = {_MARK[connection.dialect.name]} LIMIT {most:d}"
    counted = connection.exec_driver_sql(f"SELECT count(*) FROM ({some}) AS found", (root_run_id,))
    return int(counted.scalar_one())


def open_input_bytes(connection: Connection, root_run_id: bytes) -> int:
    """Sum the inputs of the steps of a root that are not over."""
    size, mark = _SIZE[connection.dialect.name].format("inputs"), _MARK[connection.dialect.name]
    total = f"SELECT coalesce(sum({size}), 0) FROM runs WHERE state IN {sql_list(OPEN)} AND root_run_id = {mark}"
    return int(connection.exec_driver_sql(total, (root_run_id,)).scalar_one())


def sizes(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes, int]:
    """Sum the bytes of the inputs of workflow runs and of the documents of their workflows, by run."""
    size = _SIZE[connection.dialect.name]
    both = " + ".join(f"coalesce({size.format(each)}, 0)" for each in ("runs.inputs", "workflows.document"))
    return {run_id: int(total) for run_id, total in select_by_ids(connection, _SIZES.format(both), run_ids)}


# ── moving on ────────────────────────────────────────────────────────────────────────────────────────

_MOVE = RowUpdate(runs, ("run_id", "progress", "cost", "tokens", "tool_calls"))

_BEGIN = RowUpdate(runs, ("run_id", "workflow_version", "deadline"))


def set_versions(connection: Connection, begun: Sequence[tuple[bytes, int, Instant | None]]) -> None:
    """Set the version and the deadline of workflow runs that begin."""
    _BEGIN.run(connection, begun)


def move(connection: Connection, moved: Mapping[bytes, tuple[str | None, UsedResources]]) -> None:
    """The letters of each run, and what it has used in all; the caller holds the locks."""
    _MOVE.run(connection, [(run_id, progress, *used) for run_id, (progress, used) in sorted(moved.items())])


NOTHING_USED = UsedResources(0, 0, 0)
_ROWS = RowInsert(step_changes, ("change_id", "run_id", "step_run_id", "cost", "tokens", "tool_calls", "finish"))


class StepChange(NamedTuple):
    """`run_id` is the workflow's; without a step the workflow itself is to be looked at. `used`: by how much more."""

    run_id: bytes
    step_run_id: bytes | None = None
    used: UsedResources = NOTHING_USED
    finish: bool = False


def add_changes(connection: Connection, noted: Iterable[StepChange]) -> None:
    _ROWS.run(connection, [(new_id(), each.run_id, each.step_run_id, *each.used, each.finish) for each in noted])


_RUNNING_WORKFLOWS = "SELECT run_id FROM runs WHERE workflow_version IS NOT NULL AND state = 'running' AND run_id"


def add_stops(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """These were asked to stop: workflows among them pass it on to their steps."""
    if run_ids:
        add_changes(connection, [StepChange(row[0]) for row in select_by_ids(connection, _RUNNING_WORKFLOWS, run_ids)])


_FIRST = """
SELECT DISTINCT run_id, finish
FROM (SELECT run_id, finish FROM step_changes ORDER BY change_id LIMIT {limit:d}) AS oldest
"""


class FirstChanged(NamedTuple):
    """Workflows: those to be moved on, and those to be ended."""

    to_move: list[bytes]
    to_end: list[bytes]


def first_changed(connection: Connection, limit: int) -> FirstChanged:
    """The workflows that the oldest rows are about."""
    rows = list(connection.exec_driver_sql(_FIRST.format(limit=limit)))
    return FirstChanged([run_id for run_id, ends in rows if not ends], [run_id for run_id, ends in rows if ends])


_TAKE = "DELETE FROM step_changes WHERE {which} AND run_id"
_TAKEN = "RETURNING run_id, step_run_id, cost, tokens, tool_calls"


def take_changes(connection: Connection, run_ids: Sequence[bytes], *, finish: bool) -> list[StepChange]:
    """All that is noted of these workflows; the caller acts on it in this transaction."""
    if not run_ids:
        return []
    statement = _TAKE.format(which="finish" if finish else "NOT finish")
    rows = select_by_ids(connection, statement, run_ids, _TAKEN)
    return [StepChange(run_id, step, UsedResources(*used), finish) for run_id, step, *used in rows]


def delete_changes_of_missing(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """Delete notes about runs that no longer exist: no workflow would ever read them."""
    known = {row[0] for row in select_by_ids(connection, "SELECT run_id FROM runs WHERE run_id", run_ids)}
    delete_changes(connection, [run_id for run_id in run_ids if run_id not in known])


def delete_changes(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """Nothing that was noted of these matters any more: they have ended."""
    if run_ids:
        select_by_ids(connection, "DELETE FROM step_changes WHERE run_id", run_ids, "RETURNING run_id")


def count_pending(connection: Connection, *, made_before: Instant | None = None) -> int:
    """Number of workflows with unprocessed changes."""
    count = sa.select(sa.func.count()).select_from(step_changes)
    if made_before is not None:
        count = count.where(step_changes.c.change_id < id_at(made_before))
    number: int = connection.execute(count).scalar_one()
    return number
