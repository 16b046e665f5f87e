"""SQL that creates approval requests together with the runs that wait for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, update

from horarium.core.document.definition import Definition
from horarium.core.document.document import from_canonical
from horarium.core.document.effective_policies import read_effective
from horarium.core.document.rendering import texts_of
from horarium.core.document.states import NoticeType, RunEventType
from horarium.core.policy.approval import (
    AGENT_INPUT,
    MAX_QUESTION,
    NEVER,
    TOLD_QUESTION,
    ApprovalDecision,
    ApprovalMode,
    ApprovalPolicy,
    StepWaits,
    agreed_hash,
    step_needs_approval,
)
from horarium.core.policy.queue import inputs_for
from horarium.features.approvals import standing_rows
from horarium.features.approvals.rows import NewApproval, close_of_ended, told_of
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.runs import update_rows
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.work_rows import RunWork, lock_works
from horarium.features.workflows.graph_rows import node_gates
from horarium.instant import Instant, to_rfc3339
from horarium.platform.database.statements import RowInsert, from_text, kept_text, select_by_ids, to_text
from horarium.platform.database.tables import approvals, runs
from horarium.platform.ids import id_text, new_id

__all__ = ["close_of_ended", "current_inputs", "request"]

_INSERT = RowInsert(approvals, NewApproval._fields)
_COUNT_EVENT = update(runs).where(runs.c.run_id == bindparam("id")).values(next_event=runs.c.next_event + 1)
_NO_GATES: Mapping[bytes, Sequence[str]] = MappingProxyType({})
_NO_QUESTIONS: Mapping[bytes, str] = MappingProxyType({})


def request(
    connection: Connection,
    run_ids: Sequence[bytes],
    now: Instant,
    gates: Mapping[bytes, Sequence[str]] = _NO_GATES,
    asked: Mapping[bytes, str] = _NO_QUESTIONS,
) -> list[bytes]:
    """One open question for each run, until the time its policy allows; its stream and the feed tell of it.

    `gates` are those that runs came to in their midst, `asked` what their targets want to know there. The runs that
    standing approvals have let go are returned.
    """
    if not run_ids:
        return []
    # Locked for the number of its next event.
    waiting = lock_works(connection, sorted(run_ids))
    definitions = Definitions(from_canonical).load(connection, waiting)
    declared = node_gates(connection, waiting)
    requesters = _requesters(connection, waiting)
    hashes = _Hashes()
    made = [
        _row(run, definitions[run.run_id], _asked(run, gates, declared), requesters[run.run_id], hashes, now)._replace(
            question=_kept(asked.get(run.run_id))
        )
        for run in waiting
    ]
    _INSERT.run(connection, made)
    connection.execute(_COUNT_EVENT, [{"id": run.run_id} for run in waiting])
    told = list(zip(waiting, made, strict=True))
    update_rows.append_events(connection, [_event(run.next_event, row) for run, row in told], now=now)
    history_rows.append_notices(connection, [_notice(run, row) for run, row in told], now=now)
    counted = [(run._replace(next_event=run.next_event + 1), row) for run, row in told]
    return standing_rows.answer(connection, counted, frozenset(gates), now)


def _kept(question: str | None) -> str | None:
    return None if question is None else kept_text(question, MAX_QUESTION)


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────


class _GateSources(NamedTuple):
    """`came_to` are gates that the run reported, `declared` those of its node; None = it is no step."""

    came_to: Sequence[str] | None
    declared: Sequence[str] | None


def _asked(run: RunWork, gates: Mapping[bytes, Sequence[str]], declared: Mapping[bytes, Sequence[str]]) -> _GateSources:
    of_node = declared.get(run.run_id, ()) if run.parent_run_id is not None else None
    return _GateSources(gates.get(run.run_id), of_node)


class _Hashes:
    """The hashes of inputs, each computed once: many runs of a request have the same large ones."""

    def __init__(self) -> None:
        self._known: dict[object, str] = {}

    def of(self, run: RunWork, definition: Definition) -> str:
        if (texts := texts_of(definition.action)) is not None:
            return agreed_hash(current_inputs(run, definition), None, texts)
        key = run.inputs if run.inputs is not None else (id(definition), run.rotation_index)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = agreed_hash(current_inputs(run, definition), None, None)
        return found


def _row(
    run: RunWork,
    definition: Definition | Exception,
    asked: _GateSources,
    requesters: Sequence[str],
    hashes: _Hashes,
    now: Instant,
) -> NewApproval:
    if isinstance(definition, Exception):
        raise definition
    policy = definition.approval if run.effective is None else read_effective(run.effective).approval
    gates = _gates(run, policy, asked)
    return NewApproval(
        approval_id=new_id(),
        namespace=run.namespace,
        run_id=run.run_id,
        input_hash=hashes.of(run, definition),
        gates=to_text(gates),
        decision=ApprovalDecision.PENDING.value,
        requested_at=now,
        expires_at=policy.expires_at(now),
        root_run_id=run.root_run_id or run.run_id,
        schedule_uid=run.schedule_uid,
        workflow=run.of_workflow or run.workflow,
        node_id=run.node_id,
        revision=run.revision,
        approvals_required=policy.approvals_required or 1,
        approvers=to_text(sorted(policy.approvers)),
        # What an agent asks its own people is theirs to answer.
        allow_requester=bool(policy.allow_requester) or gates == [AGENT_INPUT],
        requesters=to_text(requesters),
    )


def current_inputs(run: Any, definition: Definition) -> Any:
    """Inputs of the run: its own, else those of its revision. `run` is a row of `runs`, parsed or not."""
    if run.inputs is None:
        return inputs_for(definition.action.input, definition.inputs_rotation, run.rotation_index or 0)
    return from_text(run.inputs) if isinstance(run, RunWork) else run.inputs


def _gates(run: RunWork, policy: ApprovalPolicy, asked: _GateSources) -> list[str]:
    """Gates of a run: all that its policy lists if it waits to start, else those that stopped it."""
    if asked.came_to is not None:
        return sorted(set(asked.came_to))
    if asked.declared is None:
        return sorted(policy.gates)
    mode = policy.mode or (ApprovalMode.SENSITIVE_ACTIONS if run.assignee is not None else None)
    held = step_needs_approval(ApprovalPolicy(policy.requires_approval, mode, policy.gates), node_gates=asked.declared)
    return list(held.gates) if isinstance(held, StepWaits) else []


_WHO_ASKED = "SELECT run_id, requested_by FROM runs WHERE run_id"
_WHO_WROTE = "SELECT schedule_uid, created_by, edited_by FROM schedules WHERE schedule_uid"


def _requesters(connection: Connection, waiting: Sequence[RunWork]) -> dict[bytes, list[str]]:
    """Authors of the schedule, and requesters of the run or of the root run if it is a step."""
    roots = {run.run_id: run.root_run_id or run.run_id for run in waiting}
    found = select_by_ids(connection, _WHO_ASKED, sorted({*roots.values(), *roots}))
    asked = {run_id: (from_text(said) or {}).get("principal") for run_id, said in found}
    uids = sorted({run.schedule_uid for run in waiting if run.schedule_uid is not None})
    wrote = {uid: set(who) for uid, *who in select_by_ids(connection, _WHO_WROTE, uids)} if uids else {}
    return {
        run.run_id: sorted(
            {*wrote.get(run.schedule_uid or b"", ()), asked.get(run.run_id), asked.get(roots[run.run_id])} - {None}
        )
        for run in waiting
    }


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────


def _event(number: int, made: NewApproval) -> update_rows.NewRunEvent:
    said = {"approval_id": id_text(made.approval_id), "gates": from_text(made.gates)}
    if made.question is not None:
        said["question"] = made.question[:TOLD_QUESTION]
    if made.expires_at < NEVER:
        said["expires_at"] = to_rfc3339(made.expires_at)
    return made.run_id, number, RunEventType.RUN_APPROVAL_REQUESTED, said


def _notice(run: RunWork, made: NewApproval) -> Notice:
    kind = NoticeType.APPROVAL_REQUESTED
    return Notice(kind, made.namespace, made.schedule_uid, made.run_id, told_of(made, run.origin, run.nominal))
