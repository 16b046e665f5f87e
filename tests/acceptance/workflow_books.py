"""What must be true of runs, steps and approvals at every moment, read from the tables beside what was delivered.

Whether a run had to ask is worked out here once more, from the documents that people wrote, and not from what the
engine noted about the run.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.states import FINAL, RunState
from horarium.core.policy.approval import SENSITIVE_GATES, input_hash
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.database.tables import (
    agents,
    approval_votes,
    approvals,
    positions,
    run_definitions,
    runs,
    schedule_revisions,
    step_changes,
    workflows,
)
from horarium.platform.ids import id_text

_SAID_YES = ("approved", "modified")
_FINAL = {state.value for state in FINAL}
# States in which somebody outside has seen a run, or which only such a run can come to.
_SEEN = {state.value for state in (RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED)}


@dataclass(frozen=True)
class Books:
    """All rows at one moment."""

    runs: Mapping[bytes, Any]
    approvals: Sequence[Any]
    votes: Sequence[Any]
    positions: Sequence[Any]
    definitions: Mapping[Any, Mapping[str, Any]]
    nodes: Mapping[tuple[str, int, str], Mapping[str, Any]]
    floors: Mapping[tuple[str, int], Mapping[str, Any]]
    agents: Mapping[str, Mapping[str, Any]]
    changes: int
    yes: Mapping[bytes, set[str]] = field(default_factory=dict)

    def ancestors(self, run: Any) -> Iterable[Any]:
        """The run itself, and the runs that it is a step of."""
        while run is not None:
            yield run
            run = self.runs.get(run.parent_run_id) if run.parent_run_id is not None else None

    def root(self, run: Any) -> Any:
        return self.runs[run.root_run_id] if run.root_run_id is not None else run


def open_books(connection: Connection) -> Books:
    def rows(table: sa.Table) -> list[Any]:
        return list(connection.execute(sa.select(table)))

    asked = rows(approvals)
    yes: dict[bytes, set[str]] = defaultdict(set)
    for row in asked:
        if row.decision in _SAID_YES and row.decided_at is not None and row.decider is not None:
            yes[row.run_id].add(row.input_hash)
    documents: dict[Any, Mapping[str, Any]] = {
        (row.schedule_uid, row.revision): json.loads(row.document) for row in rows(schedule_revisions)
    }
    documents |= {row.run_id: json.loads(row.document) for row in rows(run_definitions)}
    nodes: dict[tuple[str, int, str], Mapping[str, Any]] = {}
    floors: dict[tuple[str, int], Mapping[str, Any]] = {}
    for row in rows(workflows):
        document = json.loads(row.document)
        floors[row.workflow_id, row.version] = document.get("approval_policy") or {}
        nodes |= {(row.workflow_id, row.version, node["id"]): node for node in document["nodes"]}
    return Books(
        {row.run_id: row for row in rows(runs)},
        asked,
        rows(approval_votes),
        rows(positions),
        documents,
        nodes,
        floors,
        {row.agent_id: json.loads(row.document) for row in rows(agents)},
        connection.execute(sa.select(sa.func.count()).select_from(step_changes)).scalar_one(),
        yes,
    )


# ── who had to ask ───────────────────────────────────────────────────────────────────────────────────


def _definition(books: Books, run: Any) -> Mapping[str, Any]:
    root = books.root(run)
    found = books.definitions.get((root.schedule_uid, root.revision))
    return found if found is not None else books.definitions[root.run_id]


def _policies(books: Books, run: Any) -> list[Mapping[str, Any]]:
    """Of the schedule, of the agent that does this run, and of every workflow above it."""
    root = books.root(run)
    doing = {run.assignee, run.member, root.assignee, root.member}
    above = [(each.workflow, each.workflow_version) for each in books.ancestors(run)]
    return [
        _definition(books, run).get("approval_policy") or {},
        *((books.agents.get(each, {}).get("policies") or {}).get("approval_policy") or {} for each in doing),
        *(books.floors.get(each, {}) for each in above),
    ]


def must_ask(books: Books, run: Any) -> bool:
    """A root: somebody demands it, or it has an assignee and its schedule says nothing. A step: its node's gates."""
    told = _policies(books, run)
    if run.parent_run_id is None:
        own = told[0].get("requires_approval")
        unsaid = own is None and run.assignee is not None
        return unsaid or any(each.get("requires_approval") is True for each in told)
    node = books.nodes[run.of_workflow, run.of_version, run.node_id]
    gates = set(node.get("gates") or ())
    listed = {gate for each in told for gate in each.get("gates") or ()}
    mode = next((each["mode"] for each in told if each.get("mode")), None)
    if mode is None and (books.root(run).assignee is not None or run.assignee is not None):
        mode = "sensitive_actions"
    if mode == "every_node" or gates & listed:
        return True
    return mode == "sensitive_actions" and bool(gates & SENSITIVE_GATES)


# ── what must be true ────────────────────────────────────────────────────────────────────────────────


def delivered_wrongly(books: Books, request: LaunchRequest, over: set[str]) -> list[str]:
    """`over` are the runs that had ended before this delivery was made."""
    found = []
    if request.run_id in over:
        found.append(f"{request.run_id} had ended and was delivered again")
    run = next(row for row in books.runs.values() if id_text(row.run_id) == request.run_id)
    for each in books.ancestors(run):
        if not (each.needs_approval or must_ask(books, each)):
            continue
        # Of a run above it is enough that somebody said yes: what it was given is not handed out.
        said = books.yes.get(each.run_id, set())
        if not said or (each is run and input_hash(request.inputs) not in said):
            found.append(f"{request.run_id} was launched, and nobody said yes to {id_text(each.run_id)} {each.node_id}")
    return found


def problems(books: Books) -> list[str]:
    return [*_of_approvals(books), *_of_steps(books), *_of_positions(books)]


def _of_approvals(books: Books) -> Iterable[str]:
    pending = Counter(row.run_id for row in books.approvals if row.decision == "pending")
    for run in books.runs.values():
        name = f"{id_text(run.run_id)} {run.node_id} ({run.state})"
        waits = run.state == "awaiting_approval"
        if pending[run.run_id] != int(waits):
            yield f"{name} has {pending[run.run_id]} open questions"
        if waits and (run.lease_owner is not None or run.lease_until is not None):
            yield f"{name} waits and holds a lease"
        if run.state in _SEEN and must_ask(books, run) and not books.yes.get(run.run_id):
            yield f"{name}, {run.origin}, had to ask and went on without a decision: {_policies(books, run)}"


def _of_steps(books: Books) -> Iterable[str]:
    places: Counter[tuple[bytes, str]] = Counter()
    for run in books.runs.values():
        if run.parent_run_id is None:
            continue
        if run.state == "succeeded":
            places[run.root_run_id, run.node_path] += 1
        above = books.runs.get(run.parent_run_id)
        if above is None:
            yield f"{id_text(run.run_id)} {run.node_id} has lost the run that it is a step of"
        elif above.state in _FINAL and run.state not in _FINAL:
            yield f"{id_text(run.run_id)} {run.node_id} is {run.state} in a workflow that is {above.state}"
    for (root, path), count in places.items():
        if count > 1:
            yield f"{path} of {id_text(root)} succeeded {count} times"


def _of_positions(books: Books) -> Iterable[str]:
    counted: dict[bytes, Counter[str]] = defaultdict(Counter)
    for run in books.runs.values():
        if run.parent_run_id is None and run.schedule_uid is not None:
            kind = "over" if run.state in _FINAL else "held" if run.state == "held" else "active"
            counted[run.schedule_uid][kind] += 1
    for row in books.positions:
        real = counted[row.schedule_uid]
        if (row.active, row.held, row.runs_born) != (real["active"], real["held"], real.total()):
            yield f"{row.schedule_id} counts {row.active}, {row.held}, {row.runs_born}; it has {dict(real)}"


def unfinished(books: Books) -> list[str]:
    """What is left when everything should have come to its end."""
    found = [
        f"{id_text(run.run_id)} {run.node_path or ''} is still {run.state}"
        for run in books.runs.values()
        if run.state not in _FINAL
    ]
    found += [f"an open question of {id_text(row.run_id)}" for row in books.approvals if row.decision == "pending"]
    if books.changes:
        found.append(f"{books.changes} changes of steps that nobody took note of")
    return [*found, *_of_usage(books)]


def _of_usage(books: Books) -> Iterable[str]:
    """A workflow has used what its steps have used, once it has taken note of them all."""
    used: dict[bytes, Counter[str]] = defaultdict(Counter)
    for run in books.runs.values():
        if run.parent_run_id is not None:
            used[run.parent_run_id] += Counter(cost=run.cost, tokens=run.tokens, tool_calls=run.tool_calls)
    for run_id, sums in used.items():
        row = books.runs[run_id]
        own = (row.cost, row.tokens, row.tool_calls)
        if own != (sums["cost"], sums["tokens"], sums["tool_calls"]):
            yield f"{id_text(run_id)} says that it used {own}, its steps {dict(sums)}"
