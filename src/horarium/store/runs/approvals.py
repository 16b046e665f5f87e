"""Requests for a yes: made with the run that waits for it, bound to the inputs that it will have.

Whoever makes a run wait calls `request` in the same transaction. Standing approvals answer there and then, as votes
that are on record like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, update

from horarium.ids import id_text, new_id
from horarium.instant import Instant, to_rfc3339
from horarium.policy.approval import (
    AGENT_INPUT,
    NEVER,
    ApprovalDecision,
    ApprovalMode,
    ApprovalPolicy,
    StepWaits,
    step_needs_approval,
)
from horarium.policy.replying import MAX_QUESTION, TOLD_QUESTION, agreed_hash
from horarium.policy.rotation import inputs_for
from horarium.schedule.definition import Definition
from horarium.schedule.document import from_canonical
from horarium.schedule.effective import read_effective
from horarium.schedule.event import NoticeType, RunEventType
from horarium.schedule.rendering import texts_of
from horarium.store.database.json_text import from_text, kept_text, to_text
from horarium.store.database.set_wise import Insert, select_by_ids
from horarium.store.history import notices
from horarium.store.history.notices import Notice
from horarium.store.runs import events, standing_approvals
from horarium.store.runs.closed_approvals import close_of_ended
from horarium.store.runs.definitions import Definitions
from horarium.store.runs.new_approval import NewApproval, told_of
from horarium.store.runs.node_gates import node_gates
from horarium.store.runs.work import Work, lock_works
from horarium.store.tables import approvals, runs

__all__ = ["close_of_ended", "current_inputs", "request"]

_INSERT = Insert(approvals, NewApproval._fields)
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
    events.append(connection, [_event(run.next_event, row) for run, row in told], now=now)
    notices.append(connection, [_notice(run, row) for run, row in told], now=now)
    counted = [(run._replace(next_event=run.next_event + 1), row) for run, row in told]
    return standing_approvals.answer(connection, counted, frozenset(gates), now)


def _kept(question: str | None) -> str | None:
    return None if question is None else kept_text(question, MAX_QUESTION)


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────


class _Asked(NamedTuple):
    """`came_to` are gates that the run reported, `declared` those of its node; None = it is no step."""

    came_to: Sequence[str] | None
    declared: Sequence[str] | None


def _asked(run: Work, gates: Mapping[bytes, Sequence[str]], declared: Mapping[bytes, Sequence[str]]) -> _Asked:
    of_node = declared.get(run.run_id, ()) if run.parent_run_id is not None else None
    return _Asked(gates.get(run.run_id), of_node)


class _Hashes:
    """The hashes of inputs, each computed once: many runs of a request have the same large ones."""

    def __init__(self) -> None:
        self._known: dict[object, str] = {}

    def of(self, run: Work, definition: Definition) -> str:
        if (texts := texts_of(definition.action)) is not None:
            return agreed_hash(current_inputs(run, definition), None, texts)
        key = run.inputs if run.inputs is not None else (id(definition), run.rotation_index)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = agreed_hash(current_inputs(run, definition), None, None)
        return found


def _row(
    run: Work,
    definition: Definition | Exception,
    asked: _Asked,
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
    return from_text(run.inputs) if isinstance(run, Work) else run.inputs


def _gates(run: Work, policy: ApprovalPolicy, asked: _Asked) -> list[str]:
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


def _requesters(connection: Connection, waiting: Sequence[Work]) -> dict[bytes, list[str]]:
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


def _event(number: int, made: NewApproval) -> events.NewRunEvent:
    said = {"approval_id": id_text(made.approval_id), "gates": from_text(made.gates)}
    if made.question is not None:
        said["question"] = made.question[:TOLD_QUESTION]
    if made.expires_at < NEVER:
        said["expires_at"] = to_rfc3339(made.expires_at)
    return made.run_id, number, RunEventType.RUN_APPROVAL_REQUESTED, said


def _notice(run: Work, made: NewApproval) -> Notice:
    kind = NoticeType.APPROVAL_REQUESTED
    return Notice(kind, made.namespace, made.schedule_uid, made.run_id, told_of(made, run.origin, run.nominal))
