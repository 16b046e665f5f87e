"""The steps of a workflow's run as its answer lists them: each after those it needs, and not more than fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.damage import Unreadable
from horarium.schedule.run import RunState
from horarium.schedule.workflow import MAX_NODES
from horarium.store import workflow_graphs
from horarium.store.database.json_text import value_from_text
from horarium.store.database.page_bytes import MAX_PAGE_BYTES, sized
from horarium.store.runs import everywhere
from horarium.store.tables import runs
from horarium.store.workflow_graphs import WorkflowVersion

# A node has its step, and one more where somebody else took its place.
MAX_STEPS = 2 * MAX_NODES
_MAX_ERROR = 1_000
_STATES = frozenset(RunState)


@dataclass(frozen=True, slots=True)
class StepRow:
    """`omitted`: its result is there, and too large to be listed beside the others."""

    run_id: bytes
    node_id: str
    state: RunState
    attempt: int
    started_at: Instant | None
    finished_at: Instant | None
    error: str | None
    error_class: str | None
    cause: str | None
    workflow: str | None
    workflow_version: int | None
    assignee_type: str | None
    assignee: str | None
    member: str | None
    fallback: bool
    needs_approval: bool
    approval_id: bytes | None
    result: Any
    omitted: bool


_NAMES = [name for name in StepRow.__slots__ if name not in ("result", "omitted")]
_COLUMNS = [sa.func.substr(runs.c.error, 1, _MAX_ERROR) if name == "error" else runs.c[name] for name in _NAMES]
_STEPS = (
    sized(sa.select(*_COLUMNS, runs.c.result), runs.c.result)
    # As text, so that both databases see that it is the condition of the index `runs_one_per_node`.
    .where(sa.text("parent_run_id IS NOT NULL"), runs.c.parent_run_id == sa.bindparam("run_id"))
    .order_by(runs.c.run_id)
    .limit(MAX_STEPS)
)
_RESULTS = sa.select(runs.c.run_id, runs.c.result).where(runs.c.run_id.in_(sa.bindparam("run_ids", expanding=True)))


def steps_of(
    connection: Connection, run_id: bytes, namespace: str, workflow: str, version: int
) -> list[StepRow | Unreadable]:
    """In topological order; a step that took the place of another stands after it.

    Results are listed as far as they fit in a page, the first ones first.
    """
    rows = [tuple(row) for row in everywhere.either(connection, _STEPS, run_id, {"run_id": run_id})]
    places = _places(connection, WorkflowVersion(namespace, workflow, version))
    of_node, fallback = _NAMES.index("node_id"), _NAMES.index("fallback")
    # By birth where the workflow is gone.
    rows.sort(key=lambda row: (places.get(row[of_node], len(places)), row[fallback]))
    shown = within(row[-1] or 0 for row in rows)
    large = [row[0] for row, is_shown in zip(rows, shown, strict=True) if is_shown and row[-1] and row[-2] is None]
    loaded: Mapping[bytes, str | None] = {}
    if large:
        found = everywhere.every(connection, _RESULTS, {"run_ids": large}, most=len(large))
        loaded = {bytes(step_id): text for step_id, text in found}
    return [_step(row, is_shown, loaded) for row, is_shown in zip(rows, shown, strict=True)]


def _step(row: Sequence[Any], is_shown: bool, loaded: Mapping[bytes, str | None]) -> StepRow | Unreadable:
    *values, small, size = row
    named = dict(zip(_NAMES, values, strict=True))
    text = (small if small is not None else loaded.get(bytes(named["run_id"]))) if is_shown else None
    if named["state"] not in _STATES:
        return Unreadable(bytes(named["run_id"]), f"state: {named['state']!r} is unknown"[:200])
    return StepRow(
        **{**named, "state": RunState(named["state"]), "node_id": named["node_id"] or ""},
        result=value_from_text(text),
        omitted=bool(size) and not is_shown,
    )


def within(sizes: Iterable[int], most: int = MAX_PAGE_BYTES) -> list[bool]:
    """Choose what fits together, the first ones first; an item after one that is too large may still fit."""
    left, fit = most, []
    for size in sizes:
        fit.append(size <= left)
        left -= size if size <= left else 0
    return fit


def _places(connection: Connection, asked: WorkflowVersion) -> Mapping[str, int]:
    found = workflow_graphs.load(connection, [asked])[asked]
    # What cannot be read is listed by birth.
    return {} if isinstance(found, Exception) else {node: place for place, node in enumerate(found.order)}
