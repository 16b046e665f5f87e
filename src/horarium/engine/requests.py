"""How a run becomes a request to a launcher: its action and inputs come from the revision that it names."""

from __future__ import annotations

import asyncio
import json

from horarium.ids import id_text
from horarium.instant import MILLISECOND
from horarium.job.run_log import RunLog
from horarium.launchers.launcher import LaunchRequest
from horarium.life.report_token import ReportTokens
from horarium.policy.rotation import inputs_for
from horarium.schedule.definition import RunDefinition
from horarium.schedule.envelope import decode_input
from horarium.schedule.run import Origin, delivery_key, instance_id, occurrence_key
from horarium.store.runs.work import Work

_OCCURRENCES = (Origin.SCHEDULED.value, Origin.BACKFILL.value)


def key_of(work: Work) -> str:
    """An occurrence is named by its schedule and time; a run that nobody scheduled by itself."""
    if work.schedule_uid is not None and work.origin in _OCCURRENCES:
        return occurrence_key(id_text(work.schedule_uid), work.nominal)
    return occurrence_key(id_text(work.run_id), work.nominal)


def build_request(
    work: Work,
    definition: RunDefinition,
    tokens: ReportTokens | None = None,
    cancelled: asyncio.Event | None = None,
    log: RunLog | None = None,
) -> LaunchRequest:
    run_id = id_text(work.run_id)
    if work.inputs is not None:
        inputs = json.loads(work.inputs)
    else:
        inputs = inputs_for(definition.action.input, definition.inputs_rotation, work.rotation_index or 0)
    return LaunchRequest(
        run_id=run_id,
        namespace=work.namespace,
        key=delivery_key(key_of(work), work.attempt),
        nominal=work.nominal,
        due=work.due,
        origin=work.origin,
        action=definition.action,
        deadline=work.deadline if work.deadline is not None else work.due + work.allowed_ms * MILLISECOND,
        instance_id=instance_id(definition.schedule_id, Origin(work.origin), work.nominal, run_id),
        schedule_id=None if work.schedule_uid is None else definition.schedule_id,
        attempt=work.attempt,
        inputs=decode_input(inputs),
        trigger_number=work.trigger_number,
        user_id=definition.user_id,
        labels=definition.labels,
        memo=definition.memo,
        report_url=None if tokens is None else tokens.report_url(run_id),
        report_token=None if tokens is None else tokens.make(work.run_id, work.attempt),
        cancelled=cancelled,
        log=log,
    )
