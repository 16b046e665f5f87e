"""Responses about runs: in lists, alone, and for the worker that claims them."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

from horarium.core.decision.run_policies import FullPolicies, Terms, policies_of, terms_of
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.canonical import action_document
from horarium.core.document.definition import agent_in
from horarium.core.document.field import amount
from horarium.core.document.json_values import damage_of
from horarium.core.document.rendering import texts_of
from horarium.core.document.states import Origin, RunState, public_status
from horarium.core.policy.approval import NEVER, ApprovalDecision
from horarium.core.policy.limits import MILLIONTHS
from horarium.features.approvals.rows import NewestApproval
from horarium.features.runs import model
from horarium.features.runs.events import RunEventEntry
from horarium.features.runs.model import (
    Covered,
    RunApproval,
    RunAssignee,
    RunPlace,
    RunPolicies,
    RunStep,
    RunSummary,
    RunUsage,
    RunWorkflow,
)
from horarium.features.runs.occurrences import Skipped
from horarium.features.runs.reports import Claimed
from horarium.features.runs.rows import RunRow, StepRow
from horarium.features.runs.service import RunView, StepView
from horarium.instant import from_rfc3339, to_datetime
from horarium.platform.database.errors import CannotRead
from horarium.platform.http.limits import readable_row
from horarium.platform.ids import id_text
from horarium.platform.wire import time_of


def summary(run: RunView) -> RunSummary:
    return RunSummary(**_common(run))


def shown(run: RunView) -> model.Run:
    view = partial(_step, run)
    steps: Any = None if run.steps is None else tuple(readable_row(each, view, _name_of_step) for each in run.steps)
    again = tuple(id_text(each) for each in run.reruns)
    return model.Run(**_whole(run), reruns=again, steps=steps, waiting_for=_place(run))


def _place(run: RunView) -> RunPlace | None:
    places, agent_id = run.waits_at, agent_in(run.row.target)
    if places is None or places.capacity is None or agent_id is None:
        return None
    return RunPlace(agent_id=agent_id, in_use=places.out, capacity=places.capacity)


def claimed(taken: Claimed) -> model.ClaimedRun:
    definition = taken.run.definition
    return model.ClaimedRun(
        **_whole(taken.run),
        action=None if definition is None else action_document(definition.action),
        step_of=_step_of(taken.run.row),
        **_terms(taken).document(),
        lease_epoch=taken.lease_epoch,
        lease_until=to_datetime(taken.lease_until),
        lease_seconds=taken.lease_seconds,
        report_url=taken.report_url,
        report_token=taken.report_token,
    )


def _step_of(row: RunRow) -> RunWorkflow | None:
    if row.of_workflow is None or row.of_version is None:
        return None
    return RunWorkflow(workflow_id=row.of_workflow, version=row.of_version)


def _terms(taken: Claimed) -> Terms:
    row, definition = taken.run.row, taken.run.definition
    if definition is None:
        return Terms()
    return terms_of(
        definition.approval,
        definition.limits,
        definition.action.global_model_id,
        has_assignee=row.assignee is not None,
        node_gates=taken.node_gates,
        approved_gates=taken.approved_gates,
    )


def skipped(row: Skipped) -> RunSummary:
    """An occurrence without a run, among the runs; a range of missed ones is one row with its first, last and count."""
    event, said = row.event, row.event.payload
    nominal = said.get("occurrence_time") or said.get("first")
    recorded = to_datetime(event.recorded_at)
    covers = None
    if "first" in said:
        covers = Covered(first=_time(said["first"]), last=_time(said["last"]), count=said["count"])
    nobody: Any = None
    return RunSummary(
        run_id=nobody,
        schedule_id=row.schedule_id,
        schedule_name=row.schedule_name or None,
        namespace=event.namespace,
        origin=Origin(said.get("origin", Origin.SCHEDULED)),
        state=RunState.SKIPPED,
        status=public_status(RunState.SKIPPED),
        nominal=None if nominal is None else _time(nominal),
        due=None,
        created_at=recorded,
        started_at=None,
        finished_at=recorded,
        duration_seconds=None,
        deadline=None,
        stop_requested_at=None,
        covers=covers,
        workflow_instance_id=None,
        workflow_type=None,
        key=row.key,
        kind=None,
        attempt=0,
        revision=None,
        trigger_number=None,
        rotation_index_used=None,
        task_queue=None,
        error=None,
        error_class=None,
        cause=None,
        cost=0,
        tokens=0,
        tool_calls=0,
        usage=RunUsage(runtime_seconds=0, cost=0, tokens=0, tool_calls=0),
        workflow=None,
        assignee=None,
        policies=None,
        approval=None,
        labels={},
        parent_run_id=None,
        root_run_id=None,
        node_id=None,
        reason=said.get("reason"),
        reason_alias=said.get("reason_alias"),
        detail=said.get("detail"),
        sequence=event.sequence,
    )


def run_event(event: RunEventEntry) -> model.RunEvent:
    return model.RunEvent(
        run_id=id_text(event.run_id),
        node_id=event.node_id,
        sequence=event.sequence,
        event_type=event.event_type,
        recorded_at=to_datetime(event.recorded_at),
        payload=event.payload,
    )


def _whole(run: RunView) -> dict[str, Any]:
    row, definition = run.row, run.definition
    return _common(run) | {
        "inputs": run.inputs,
        "rendered": None if definition is None else texts_of(definition.action),
        "result": None if damage_of(row.result) is not None else row.result,
        "memo": {} if definition is None else definition.memo,
        "search_attributes": {} if definition is None else definition.search_attributes,
        "user_id": None if definition is None else definition.user_id,
    }


def _common(run: RunView) -> dict[str, Any]:
    row, definition = run.row, run.definition
    used = {"cost": amount(Decimal(row.cost) / MILLIONTHS), "tokens": row.tokens, "tool_calls": row.tool_calls}
    usage: dict[str, Any] = {"runtime_seconds": run.runtime_seconds, **used}
    return {
        "run_id": id_text(row.run_id),
        "schedule_id": row.schedule_id,
        "namespace": row.namespace,
        "workflow_instance_id": run.instance_id,
        "workflow_type": row.workflow,
        "key": run.key,
        "kind": row.kind,
        "origin": row.origin,
        "state": row.state,
        "status": public_status(row.state),
        "attempt": row.attempt,
        "revision": row.revision,
        "trigger_number": row.trigger_number,
        "rotation_index_used": row.rotation_index,
        "task_queue": row.queue,
        "error": row.error,
        "error_class": row.error_class,
        "cause": row.cause,
        "covers": _covers(row),
        "labels": {} if definition is None else definition.labels,
        **used,
        "usage": RunUsage(**usage),
        "workflow": _workflow(run, row),
        "assignee": _assignee(run, row),
        "policies": _policies(run),
        "approval": _approval(row, run.asked),
        "nominal": to_datetime(row.nominal),
        "due": to_datetime(row.due),
        "created_at": to_datetime(row.created_at),
        "started_at": time_of(row.started_at),
        "finished_at": time_of(row.finished_at),
        "duration_seconds": None if row.finished_at is None or row.started_at is None else run.runtime_seconds,
        "deadline": time_of(row.deadline),
        "stop_requested_at": time_of(row.stop_requested_at),
        "parent_run_id": None if row.parent_run_id is None else id_text(row.parent_run_id),
        "root_run_id": None if row.root_run_id is None else id_text(row.root_run_id),
        "node_id": row.node_id,
        "timezone": None if definition is None else definition.spec.timezone,
        "rerun_of": None if row.rerun_of is None else id_text(row.rerun_of),
        "broken": row.damage,
        "schedule_name": row.schedule_name or None,
    }


def _covers(row: RunRow) -> Covered | None:
    if row.covers_count is None or row.covers_first is None or row.covers_last is None:
        return None
    return Covered(first=to_datetime(row.covers_first), last=to_datetime(row.covers_last), count=row.covers_count)


def _name_of_step(step: StepView) -> bytes:
    return step.row.run_id


def _step(run: RunView, step: StepView) -> RunStep:
    row, broken = step.row, damage_of(step.row.result)
    return RunStep(
        node_id=row.node_id,
        run_id=id_text(row.run_id),
        state=row.state,
        attempt=row.attempt,
        started_at=time_of(row.started_at),
        finished_at=time_of(row.finished_at),
        result=None if broken is not None else row.result,
        error=row.error,
        error_class=row.error_class,
        cause=row.cause,
        assignee=_assignee(run, row),
        approval=_approval(row, step.asked),
        workflow=_workflow(run, row),
        fallback=row.fallback,
        result_omitted=row.omitted,
        broken=None if broken is None else f"result: {broken}",
    )


def _workflow(run: RunView, row: RunRow | StepRow) -> RunWorkflow | None:
    """The workflow of a run, or of one of its steps."""
    if row.workflow is None or row.workflow_version is None:
        return None
    name = run.names.workflow(run.row.namespace, row.workflow, row.workflow_version)
    return RunWorkflow(workflow_id=row.workflow, version=row.workflow_version, name=name)


def _assignee(run: RunView, row: RunRow | StepRow) -> RunAssignee | None:
    """The assignee of a run, or of one of its steps. Runs from before teams had runs say no type: they are agents'."""
    if row.assignee is None:
        return None
    names, namespace = run.names, run.row.namespace
    return RunAssignee(
        type=AssigneeType(row.assignee_type or AssigneeType.AGENT),
        id=row.assignee,
        member=row.member,
        name=names.assignee(namespace, row.assignee_type, row.assignee),
        member_name=None if row.member is None else names.assignee(namespace, AssigneeType.AGENT, row.member),
    )


def _policies(run: RunView) -> RunPolicies | None:
    is_root = run.row.schedule_uid is not None and run.row.parent_run_id is None
    told = policies_of(run.row.effective, run.definition, of_schedule=is_root)
    return None if told is None else shown_policies(told)


def shown_policies(told: FullPolicies) -> RunPolicies:
    return RunPolicies(**{name: getattr(told, name) for name in RunPolicies.__struct_fields__})


def _approval(row: RunRow | StepRow, asked: NewestApproval | None) -> RunApproval | None:
    if not row.needs_approval and row.approval_id is None:
        return None
    if asked is None:
        approval_id = None if row.approval_id is None else id_text(row.approval_id)
        return RunApproval(
            needed=row.needs_approval,
            approval_id=approval_id,
            status=None,
            gates=(),
            expires_at=None,
            decided_by=None,
            decided_at=None,
            reason=None,
        )
    return RunApproval(
        needed=row.needs_approval,
        approval_id=id_text(asked.approval_id),
        status=_decision(asked.approval_id, asked.status),
        gates=asked.gates,
        expires_at=None if asked.expires_at >= NEVER else to_datetime(asked.expires_at),
        decided_by=asked.decided_by,
        decided_at=time_of(asked.decided_at),
        reason=asked.reason,
        question=asked.question,
    )


def _decision(approval_id: bytes, name: str) -> ApprovalDecision:
    try:
        return ApprovalDecision(name)
    except ValueError:
        raise CannotRead("approval", approval_id, f"decision: {name!r} is not known") from None


def _time(text: str) -> Any:
    return to_datetime(from_rfc3339(text))
