"""Build the request of a launch: action and inputs from the revision of the run, and what its preparers supplied."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from horarium.core.decision.run_policies import assignee_document, terms_of
from horarium.core.document.checks import opened_value, resolved_value
from horarium.core.document.definition import RunDefinition
from horarium.core.document.json_values import decode_input
from horarium.core.document.states import Delivery, Origin, delivery_key, instance_id, occurrence_key, step_key
from horarium.core.lifecycle.live_run import NO_RULES, Rules, rules_for
from horarium.core.lifecycle.outcome import ReportTokens
from horarium.core.policy.approval import UNASKED, LaunchRetry
from horarium.features.runs.preparation import LaunchDraft, inputs_of
from horarium.features.runs.work_rows import RunWork
from horarium.instant import MILLISECOND
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.ids import id_text
from horarium.platform.run_log import RunLog

NO_SECRETS: Final[Mapping[str, str]] = MappingProxyType({})
_OCCURRENCES = (Origin.SCHEDULED.value, Origin.BACKFILL.value)


def key_of(work: RunWork) -> str:
    """An occurrence is named by its schedule and time, a step by its root and its place; any other run by itself."""
    if work.root_run_id is not None and work.node_path is not None:
        return step_key(id_text(work.root_run_id), work.node_path, fallback=work.fallback)
    if work.schedule_uid is not None and work.origin in _OCCURRENCES:
        return occurrence_key(id_text(work.schedule_uid), work.nominal)
    return occurrence_key(id_text(work.run_id), work.nominal)


def rules_of(work: RunWork, definition: RunDefinition | Exception, launch_retry: LaunchRetry) -> Rules:
    """Rules for the run. Steps of a workflow are retried one by one, the workflow itself is not."""
    if isinstance(definition, Exception):
        return NO_RULES
    retry = definition.retry if work.workflow_version is None else UNASKED
    return rules_for(work.kind, retry, definition.limits, launch_retry)


def _place_of(work: RunWork) -> dict[str, Any]:
    """Where a run stands: which stored workflow it is a run or a step of, and below which runs."""
    of_workflow, version = work.of_workflow, work.of_version
    if work.workflow_version is not None:
        of_workflow, version = work.workflow, work.workflow_version
    return {
        "workflow": None if version is None else {"workflow_id": of_workflow, "version": version},
        "node_id": work.node_id,
        "parent_run_id": None if work.parent_run_id is None else id_text(work.parent_run_id),
        "root_run_id": None if work.root_run_id is None else id_text(work.root_run_id),
    }


def build_request(
    work: RunWork,
    definition: RunDefinition,
    tokens: ReportTokens | None = None,
    cancelled: asyncio.Event | None = None,
    log: RunLog | None = None,
    secrets: Mapping[str, str] = NO_SECRETS,
) -> LaunchRequest:
    """`secrets` are the values of those that it names."""
    run_id = id_text(work.run_id)
    inputs, action = inputs_of(work, definition), definition.action
    if secrets:
        inputs = resolved_value(inputs, secrets)
        action = opened_value(action, secrets)
    return LaunchRequest(
        run_id=run_id,
        namespace=work.namespace,
        key=delivery_key(key_of(work), work.attempt, work.gates_passed),
        nominal=work.nominal,
        due=work.due,
        origin=work.origin,
        action=action,
        deadline=work.deadline if work.deadline is not None else work.due + work.allowed_ms * MILLISECOND,
        instance_id=instance_id(definition.schedule_id, Origin(work.origin), work.nominal, run_id),
        schedule_id=None if work.schedule_uid is None else definition.schedule_id,
        attempt=work.attempt,
        inputs=decode_input(inputs),
        own_inputs=work.inputs is not None or bool(definition.inputs_rotation),
        priority=work.priority,
        trigger_number=work.trigger_number,
        user_id=definition.user_id,
        labels=definition.labels,
        memo=definition.memo,
        search_attributes=definition.search_attributes,
        **_place_of(work),
        assignee=assignee_document(work.assignee_type, work.assignee, work.member),
        terms=terms_of(
            definition.approval,
            definition.limits,
            action.global_model_id,
            has_assignee=work.assignee is not None,
            node_gates=definition.node_gates,
            approved_gates=definition.approved_gates,
        ),
        report_url=None if tokens is None else tokens.report_url(run_id),
        report_token=None if tokens is None else tokens.make(work.run_id, work.attempt, work.gates_passed),
        cancelled=cancelled,
        log=log,
        reference=work.reference,
        heard=work.heard,
        once=work.delivery == Delivery.AT_MOST_ONCE,
        secrets=tuple(secrets.values()),
    )


def to_agent(request: LaunchRequest, draft: LaunchDraft) -> LaunchRequest:
    """Add the agent's data; its token and `confided` texts are masked in what it returns."""
    line = draft.agent
    if line is None:
        return request
    secrets = (*request.secrets, *draft.confided, *(() if line.token is None else (line.token,)))
    return replace(request, agent=line, answer=draft.answer, secrets=secrets)
