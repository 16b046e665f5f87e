"""Responses about schedules: the definition as written, and computed values. Filters of lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from msgspec import Raw

from horarium.core.decision.run_policies import told
from horarium.core.decision.statuses import HealthStatus, Recent
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.descriptions import spec_words
from horarium.core.document.document import from_canonical
from horarium.core.document.json_values import damage_of
from horarium.core.document.states import Source, Status, instance_id
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy, shown
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs.rows import RunRow
from horarium.features.schedules.creation import ScheduleChange
from horarium.features.schedules.filters import LISTED
from horarium.features.schedules.health_rows import SIGNED
from horarium.features.schedules.lists import Described, Listed
from horarium.features.schedules.model import (
    HeldAction,
    RecentAction,
    RecentOccurrence,
    Schedule,
    ScheduleDetails,
    ScheduleInfo,
    ScheduleState,
    ScheduleWithRecent,
    Standing,
    WriteResult,
)
from horarium.instant import to_datetime
from horarium.platform.ids import id_text
from horarium.platform.wire import merge, time_of

# What a document leaves out, because it says no more than this, and an answer has all the same.
_ALWAYS_SHOWN: dict[str, Any] = {
    "memo": {},
    "search_attributes": {},
    "labels": {},
    "max_runs": None,
    "source": Source.RUNTIME,
    "owner": None,
}

# In the place of a document that cannot be read, so that the answer has the fields that all have.
_BARE: dict[str, Any] = {
    "spec": {},
    "action": {},
    "overlap_policy": OverlapPolicy.SKIP,
    "catchup_policy": CatchupPolicy.FIRE_ONCE,
}


def written(done: ScheduleChange) -> WriteResult:
    return WriteResult(
        schedule_id=done.schedule_id,
        outcome=done.outcome,
        namespace=done.namespace,
        status=done.status,
        next_fire_at=time_of(done.next_due),
        next_run_at=time_of(done.next_run.due),
        next_run_reason=done.next_run.reason,
        version=done.version,
        changed_fields=done.changed,
        warnings=done.warnings,
        exhausted=done.exhausted,
        paused_until=time_of(done.paused_until),
        effective_retries=done.retries,
    )


def listed(schedule: Listed, resources: Resources) -> Schedule:
    """One that somebody has damaged is shown as far as it is known, and is no trouble of the others."""
    recent = None if schedule.recent is None else tuple(_occurrence(each) for each in schedule.recent)

    def told(state: Mapping[str, Any]) -> ScheduleState:
        return ScheduleState(**state) if recent is None else ScheduleWithRecent(**state, recent=recent)

    return _told(schedule, resources, told)


def described(schedule: Described, resources: Resources) -> Schedule:
    return _told(schedule, resources, lambda state: _details(schedule, state))


def _told(schedule: Listed, resources: Resources, told: Callable[[Mapping[str, Any]], ScheduleState]) -> Schedule:
    try:
        return _shown(schedule, told(_state(schedule)))
    except (HorariumError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        why = _why(schedule.document)
        if why is None:
            raise
    row = schedule.row
    about = {"namespace": row.namespace, "schedule_id": row.schedule_id}
    resources.damages.tell(resources.telemetry, "schedule", f"{row.namespace}/{row.schedule_id}", why, **about)
    bare = replace(schedule, document=_BARE | {"schedule_id": row.schedule_id, "namespace": row.namespace})
    return _shown(bare, told({**_state(bare), "words": None, "broken": f"The definition cannot be read: {why}"}))


def _why(document: Mapping[str, Any]) -> str | None:
    """None = there is nothing wrong with the document: somebody else is."""
    try:
        from_canonical(document)
    except InvalidDefinition as wrong:
        return damage_of(document) or wrong.message[:200]
    return None


def _details(schedule: Described, state: Mapping[str, Any]) -> ScheduleDetails:
    last = schedule.row.last_completed_run_id
    return ScheduleDetails(
        **state,
        latest_workflow_instance_id=schedule.last_instance_id,
        last_completed_run_id=None if last is None else id_text(last),
        last_result=schedule.last_result,
        next_fire_times=tuple(to_datetime(fire.due) for fire in schedule.next_fires),
        error=schedule.error,
        effective_retries=schedule.retries,
        state=Standing(
            status=schedule.row.status,
            paused=schedule.row.status is Status.PAUSED,
            note=schedule.row.note,
        ),
        info=_info(schedule),
        **_policies(schedule),
    )


def _policies(schedule: Described) -> dict[str, Any]:
    """Null for a definition that cannot be read."""
    try:
        definition = from_canonical(schedule.document)
    except InvalidDefinition:
        return dict.fromkeys(("queue_policy", "failure_policy", "effective_overlap_policy"))
    return {
        # Without values that the definition leaves out: an edit of the answer gives them at one place.
        "queue_policy": {name: value for name, value in definition.queue.document().items() if value},
        "failure_policy": told(definition.failure),
        "effective_overlap_policy": definition.queue.under(schedule.queue).overlap.policy,
    }


def _shown(schedule: Listed, state: ScheduleState) -> Schedule:
    """As text: the document holds fields that nobody here needs to know, and goes out as it is."""
    document = schedule.document
    action = document["action"]
    if "queue" in action:
        action = {**action, "task_queue": action["queue"]}
    jitter = document["spec"].get("jitter_seconds", 0)
    beside = {"note": schedule.row.note, "action": action, "jitter_seconds": jitter}
    whole: Raw = merge({**_ALWAYS_SHOWN, **document, **beside}, state)
    return cast("Schedule", whole)


def _state(schedule: Listed) -> dict[str, Any]:
    row = schedule.row
    next_fire, last_fire = time_of(schedule.next_due), time_of(row.last_fired_at)
    return {
        "status": row.status,
        "paused": row.status is Status.PAUSED,
        "workflow_type": row.workflow,
        "remaining_actions": schedule.remaining_runs,
        "fires_count": row.fires_count,
        "failures_count": row.failures_count,
        "consecutive_failures": row.failures_in_a_row,
        "skipped_trigger_count": row.skipped_count,
        "active_runs": row.active,
        "held_runs": row.held,
        "rotation_index": row.rotation_index,
        "next_fire_at": next_fire,
        "next_fire": next_fire,
        "next_run_at": time_of(schedule.next_run.due),
        "next_run_reason": schedule.next_run.reason,
        "last_fired_at": last_fire,
        "last_fire": last_fire,
        "last_run_at": last_fire,
        "last_run_id": None if row.last_run_id is None else id_text(row.last_run_id),
        "last_completed_at": time_of(row.last_completed_at),
        "last_dispatch_status": row.last_dispatch_status,
        "last_status": row.last_status,
        "consecutive_empty_runs": row.empty_in_a_row,
        "last_skip_reason": row.last_skip_reason,
        "last_skipped_at": time_of(row.last_skipped_at),
        "last_error_at": time_of(row.last_error_at),
        "last_error_message": row.last_error,
        "paused_at": time_of(row.paused_at),
        "pause_reason": row.pause_reason,
        "paused_until": time_of(row.paused_until),
        "paused_by": row.paused_by,
        "bundle": row.bundle,
        "created_at": to_datetime(row.created_at),
        "updated_at": to_datetime(row.updated_at),
        "deleted_at": time_of(row.deleted_at),
        "version": row.version,
        "revision": row.revision,
        "generation": row.generation,
        "uid": id_text(row.schedule_uid),
        "words": spec_words(schedule.document["spec"], row.schedule_id),
    }


def _occurrence(each: Recent) -> RecentOccurrence:
    return RecentOccurrence(
        at=to_datetime(each.at),
        outcome=each.outcome,
        reason=each.reason,
        run_id=None if each.run_id is None else id_text(each.run_id),
        origin=each.origin,
        state=each.state,
        duration_seconds=each.duration_seconds,
        late_seconds=each.late_seconds,
        count=each.covers,
    )


def _info(schedule: Described) -> ScheduleInfo:
    row = schedule.row
    return ScheduleInfo(
        next_fire=time_of(schedule.next_due),
        last_fire=time_of(row.last_fired_at),
        next_fire_times=tuple(to_datetime(fire.due) for fire in schedule.next_fires),
        fires_count=row.fires_count,
        failures_count=row.failures_count,
        skipped_trigger_count=row.skipped_count,
        last_skip_reason=row.last_skip_reason,
        last_skipped_at=time_of(row.last_skipped_at),
        held_runs=row.held,
        buffered_actions=tuple(
            HeldAction(buffered_at=to_datetime(run.created_at), occurrence_time=to_datetime(run.nominal))
            for run in reversed(schedule.held)
        ),
        recent_actions=tuple(_recent(run) for run in schedule.newest),
    )


def _recent(run: RunRow) -> RecentAction:
    return RecentAction(
        workflow_id=instance_id(run.schedule_id or "", run.origin, run.nominal, id_text(run.run_id)),
        run_id=id_text(run.run_id),
        outcome=run.state,
        fired_at=to_datetime(run.created_at),
        occurrence_time=to_datetime(run.nominal),
    )


# Each is a condition of its own in the query.
_MAX_LABELS = 20


def check_texts(given: Mapping[str, Sequence[str]]) -> None:
    """No database holds U+0000, and nobody means a blank."""
    if any("\x00" in value for values in given.values() for value in values):
        raise InvalidDefinition({"query": ["must not contain the character U+0000"]})
    blank = {name: ["must not be blank"] for name, values in given.items() if not all(map(str.strip, values))}
    if blank:
        raise InvalidDefinition(blank)


def status_of(text: str, known: Mapping[str, Status] = LISTED) -> Status:
    found = known.get(text.lower())
    if found is None:
        raise InvalidDefinition({"status": [f"must be one of {', '.join(known)}, not {shown(text)}"]})
    return found


def health_of(text: str) -> HealthStatus:
    found = next((each for each in SIGNED if each == text.lower()), None)
    if found is None:
        raise InvalidDefinition({"health": [f"must be one of {', '.join(SIGNED)}, not {shown(text)}"]})
    return found


def assignee_type_of(text: str) -> AssigneeType:
    found = next((each for each in AssigneeType if each == text.lower()), None)
    if found is None:
        raise InvalidDefinition({"assignee_type": [f"must be one of {', '.join(AssigneeType)}, not {shown(text)}"]})
    return found


def labels_of(pairs: Sequence[str]) -> dict[str, str] | None:
    """`name=value`, each of which must fit."""
    split = [pair.partition("=") for pair in pairs]
    if any(not name or not equals for name, equals, _ in split):
        raise InvalidDefinition({"label": ["must be name=value"]})
    if len(pairs) > _MAX_LABELS:
        raise InvalidDefinition({"label": [f"accepts at most {_MAX_LABELS} values"]})
    return {name: value for name, _, value in split} or None
