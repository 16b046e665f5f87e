"""Calls about schedules.

Each function only builds a Call. Field names are those of a schedule document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from horarium.features.runs.model import RunSummary
from horarium.features.schedules.change_model import BulkChanges
from horarium.features.schedules.model import Backfilled, HistoryEvent, Schedule, ScheduleHealth, Triggered, WriteResult
from horarium.platform.client.call import (
    Call,
    Method,
    Own,
    OwnPages,
    Page,
    Pages,
    When,
    given,
    if_match,
    many,
    one,
    rfc3339,
)

if TYPE_CHECKING:
    from horarium.core.document.fields import ScheduleFields


# Only type checkers ask for them, and all that a schedule can be takes longer to import than a call to be answered.

Document = Mapping[str, Any]

SCHEDULES = "/api/schedules"
SCHEDULE = "/api/schedules/{schedule_id}"

_write_result = one(WriteResult)


def _change(
    method: str,
    schedule_id: str,
    body: Document,
    version: int | None,
    confirm: bool | None,
    *,
    whole: bool | None = None,
) -> Call[WriteResult]:
    names, query = {"schedule_id": schedule_id}, {"confirm": confirm, "whole": whole}
    return Call(method, SCHEDULE, _write_result, names, query, body=body, headers=if_match(version))


def _send(method: str, part: str, schedule_id: str, body: Document, version: int | None) -> Call[WriteResult]:
    names = {"schedule_id": schedule_id}
    return Call(method, f"{SCHEDULE}/{part}", _write_result, names, body=body, headers=if_match(version))


def _clear(part: str, schedule_id: str, version: int | None) -> Call[WriteResult]:
    return Call("DELETE", f"{SCHEDULE}/{part}", _write_result, {"schedule_id": schedule_id}, headers=if_match(version))


class ScheduleCalls:
    @Method
    @staticmethod
    def create_schedule(
        document: Document | None = None, /, *, idempotency_key: str | None = None, **fields: Unpack[ScheduleFields]
    ) -> Call[WriteResult]:
        """Create a schedule from a document, fields, or both. Raises ScheduleAlreadyExists."""
        return Call("POST", SCHEDULES, _write_result, body={**(document or {}), **fields}, key=idempotency_key)

    @Method
    @staticmethod
    def upsert_schedule(
        document: Document | None = None, /, *, confirm: bool | None = None, **fields: Unpack[ScheduleFields]
    ) -> Call[WriteResult]:
        """Create or replace a schedule by `schedule_id`, or without an ID by its content. An equal definition changes
        nothing.
        """
        body = {**(document or {}), **fields}
        return Call("POST", f"{SCHEDULES}/upsert", _write_result, query={"confirm": confirm}, body=body)

    @Method
    @staticmethod
    def list_schedules(
        *,
        status: str | None = None,
        workflow_type: str | None = None,
        workflow_id: str | None = None,
        owner: str | None = None,
        source: str | None = None,
        bundle: str | None = None,
        text: str | None = None,
        labels: Mapping[str, str] | None = None,
        query: str | None = None,
        health: str | None = None,
        calendar: str | None = None,
        assignee: str | None = None,
        assignee_type: str | None = None,
        include_deleted: bool | None = None,
        include: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[Schedule]]:
        """List schedules, newest first. `text` matches a part of the ID or name. All `labels` must match.

        `include_deleted` or `status="deleted"` includes deleted schedules. `health`: a health status. `calendar`: a
        calendar in use. `assignee`: an assigned agent or team. `include="recent"` adds the last occurrences.
        """
        return Call(
            "GET",
            SCHEDULES,
            many(Schedule, "schedules"),
            query={
                "status": status,
                "workflow_type": workflow_type,
                "workflow_id": workflow_id,
                "owner": owner,
                "source": source,
                "bundle": bundle,
                "text": text,
                "label": labels,
                "query": query,
                "health": health,
                "calendar": calendar,
                "assignee": assignee,
                "assignee_type": assignee_type,
                "include_deleted": include_deleted,
                "include": include,
                "page_size": page_size,
                "next_page_token": next_page_token,
            },
            cursor="next_page_token",
        )

    @Method
    @staticmethod
    def describe_schedule(schedule_id: str, *, include_deleted: bool | None = None) -> Call[Schedule]:
        """Show a schedule with its next fire times; with `include_deleted`, also the last deleted one with this ID."""
        query = {"include_deleted": include_deleted}
        return Call("GET", SCHEDULE, one(Schedule), {"schedule_id": schedule_id}, query)

    @Method
    @staticmethod
    def update_schedule(
        schedule_id: str,
        changes: Document | None = None,
        /,
        *,
        if_version: int | None = None,
        confirm: bool | None = None,
        whole: bool | None = None,
        **fields: Unpack[ScheduleFields],
    ) -> Call[WriteResult]:
        """Update a schedule: given parts are replaced, other parts are kept, and an action is merged key by key.

        `whole` replaces the whole definition: omitted parts are removed.
        """
        return _change("PUT", schedule_id, {**(changes or {}), **fields}, if_version, confirm, whole=whole)

    @Method
    @staticmethod
    def patch_schedule(
        schedule_id: str,
        changes: Document | None = None,
        /,
        *,
        if_version: int | None = None,
        confirm: bool | None = None,
        **fields: Unpack[ScheduleFields],
    ) -> Call[WriteResult]:
        """Merge into the document (RFC 7396): None clears a field."""
        return _change("PATCH", schedule_id, {**(changes or {}), **fields}, if_version, confirm)

    @Method
    @staticmethod
    def delete_schedule(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
        """Delete a schedule. Runs that have not started are cancelled. History stays available."""
        return Call("DELETE", SCHEDULE, _write_result, {"schedule_id": schedule_id}, headers=if_match(if_version))

    @Method
    @staticmethod
    def pause_schedule(
        schedule_id: str,
        *,
        reason: str | None = None,
        note: str | None = None,
        until: When | None = None,
        timezone: str | None = None,
        if_version: int | None = None,
        confirm: bool | None = None,
    ) -> Call[WriteResult]:
        """Stop firing until the schedule is resumed, or until `until`. Active runs continue.

        `reason` is recorded with the pause; `note` replaces the note of the schedule. `until` may be a duration from
        now, such as `4h`, or a local time, such as `2026-11-17T09:00`, in `timezone` (default: the time zone of the
        schedule). Set `confirm` if the end of the pause would start more than 1,000 buffered runs.
        """
        body = given(reason=reason, note=note, until=until, timezone=timezone)
        return replace(_send("POST", "pause", schedule_id, body, if_version), query={"confirm": confirm})

    @Method
    @staticmethod
    def resume_schedule(
        schedule_id: str,
        *,
        reason: str | None = None,
        note: str | None = None,
        if_version: int | None = None,
        confirm: bool | None = None,
    ) -> Call[WriteResult]:
        """Resume. Occurrences missed while paused do not run. Set `confirm` if more than 1,000 buffered runs would
        start.
        """
        body = given(reason=reason, note=note)
        return replace(_send("POST", "resume", schedule_id, body, if_version), query={"confirm": confirm})

    @Method
    @staticmethod
    def trigger_schedule(
        schedule_id: str,
        *,
        overlap_policy: str | None = None,
        even_if_paused: bool | None = None,
        inputs: Any = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Triggered]:
        """Trigger a schedule now. A repeated `idempotency_key` returns the first trigger."""
        body = given(overlap_policy=overlap_policy, even_if_paused=even_if_paused, inputs=inputs, reason=reason)
        path = f"{SCHEDULE}/trigger"
        return Call("POST", path, one(Triggered), {"schedule_id": schedule_id}, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def backfill_schedule(
        schedule_id: str,
        start_time: When,
        end_time: When,
        *,
        overlap_policy: str | None = None,
        reverse: bool | None = None,
        dry_run: bool | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Backfilled]:
        """Run the occurrences from `start_time` to before `end_time` that have no run."""
        body = {
            "start_time": rfc3339(start_time),
            "end_time": rfc3339(end_time),
            **given(overlap_policy=overlap_policy, reverse=reverse, dry_run=dry_run, reason=reason),
        }
        path = f"{SCHEDULE}/backfill"
        return Call("POST", path, one(Backfilled), {"schedule_id": schedule_id}, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def bulk_schedules(
        action: str,
        *,
        ids: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        name_contains: str | None = None,
        status: str | None = None,
        everything: bool | None = None,
        set_labels: Mapping[str, str | None] | None = None,
        until: When | None = None,
        timezone: str | None = None,
        reason: str | None = None,
        dry_run: bool | None = None,
        limit: int | None = None,
        next_page_token: str | None = None,
        confirm: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[BulkChanges]:
        """Pause, resume, trigger, label or delete all matching schedules: at most 100 per request, with one outcome
        each.

        `labels` is a filter. `set_labels` are added; None removes a label. Set `confirm` if more than 1,000 runs would
        start. `until` may be a duration from now, or a local time in `timezone`.
        """
        chosen = given(
            ids=None if ids is None else list(ids), labels=labels, name_contains=name_contains, status=status
        )
        body = {
            "action": action,
            **given(filter=chosen or None, all=everything, until=until, reason=reason, dry_run=dry_run),
            **given(timezone=timezone),
            **given(labels=None if set_labels is None else dict(set_labels)),
            **given(limit=limit, next_page_token=next_page_token),
        }
        query = {"confirm": confirm}
        return Call("POST", f"{SCHEDULES}/bulk", one(BulkChanges), query=query, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def get_schedule_history(
        schedule_id: str,
        *,
        limit: int | None = None,
        after_sequence: int | None = None,
        uid: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> Call[Page[HistoryEvent]]:
        """List the history, oldest first unless `order` is `desc`. `uid` selects an older schedule with the same ID."""
        return Call(
            "GET",
            f"{SCHEDULE}/history",
            many(HistoryEvent, "events", cursor="next_cursor"),
            {"schedule_id": schedule_id},
            query={"limit": limit, "after_sequence": after_sequence, "uid": uid, "order": order},
            cursor="after_sequence",
        )

    @Method
    @staticmethod
    def list_schedule_runs(
        schedule_id: str,
        *,
        state: str | Sequence[str] | None = None,
        origin: str | Sequence[str] | None = None,
        workflow_id: str | None = None,
        assignee: str | None = None,
        finished_after: When | None = None,
        include: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[RunSummary]]:
        """List the runs of a schedule, newest first, also of a deleted one. `include="skips"` includes skipped
        occurrences.
        """
        return Call(
            "GET",
            f"{SCHEDULE}/runs",
            many(RunSummary, "runs"),
            {"schedule_id": schedule_id},
            query={
                "state": state,
                "origin": origin,
                "workflow_id": workflow_id,
                "assignee": assignee,
                "finished_after": finished_after,
                "include": include,
                "page_size": page_size,
                "next_page_token": next_page_token,
            },
            cursor="next_page_token",
        )

    @Method
    @staticmethod
    def get_schedule_health(schedule_id: str) -> Call[ScheduleHealth]:
        """Show the health of a schedule."""
        return Call("GET", f"{SCHEDULE}/health", one(ScheduleHealth), {"schedule_id": schedule_id})

    @Method
    @staticmethod
    def set_calendars(
        schedule_id: str, calendars: Sequence[str], *, if_version: int | None = None
    ) -> Call[WriteResult]:
        """Set the calendars of a schedule. All of them must allow a day."""
        return _send("PUT", "calendars", schedule_id, {"calendars": list(calendars)}, if_version)

    @Method
    @staticmethod
    def clear_calendars(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
        return _clear("calendars", schedule_id, if_version)

    @Method
    @staticmethod
    def set_condition(schedule_id: str, condition: Document, *, if_version: int | None = None) -> Call[WriteResult]:
        """Set the condition that must hold before a run starts."""
        return _send("PUT", "condition", schedule_id, {"pre_dispatch_condition": condition}, if_version)

    @Method
    @staticmethod
    def clear_condition(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
        return _clear("condition", schedule_id, if_version)

    @Method
    @staticmethod
    def set_rotation(schedule_id: str, inputs: Sequence[Any], *, if_version: int | None = None) -> Call[WriteResult]:
        """Set the input rotation. It restarts with the first entry."""
        return _send("PUT", "rotation", schedule_id, {"inputs_rotation": list(inputs)}, if_version)

    @Method
    @staticmethod
    def clear_rotation(schedule_id: str, *, if_version: int | None = None) -> Call[WriteResult]:
        return _clear("rotation", schedule_id, if_version)

    iter_schedules = Pages(list_schedules)
    iter_schedule_history = Pages(get_schedule_history)
    iter_schedule_runs = Pages(list_schedule_runs)


class ScheduleMethods:
    """Calls about one schedule, without its ID."""

    describe = Own(ScheduleCalls.describe_schedule)
    update = Own(ScheduleCalls.update_schedule)
    patch = Own(ScheduleCalls.patch_schedule)
    pause = Own(ScheduleCalls.pause_schedule)
    resume = Own(ScheduleCalls.resume_schedule)
    trigger = Own(ScheduleCalls.trigger_schedule)
    backfill = Own(ScheduleCalls.backfill_schedule)
    delete = Own(ScheduleCalls.delete_schedule)
    history = Own(ScheduleCalls.get_schedule_history)
    runs = Own(ScheduleCalls.list_schedule_runs)
    health = Own(ScheduleCalls.get_schedule_health)
    set_calendars = Own(ScheduleCalls.set_calendars)
    clear_calendars = Own(ScheduleCalls.clear_calendars)
    set_condition = Own(ScheduleCalls.set_condition)
    clear_condition = Own(ScheduleCalls.clear_condition)
    set_rotation = Own(ScheduleCalls.set_rotation)
    clear_rotation = Own(ScheduleCalls.clear_rotation)
    iter_history = OwnPages(ScheduleCalls.get_schedule_history)
    iter_runs = OwnPages(ScheduleCalls.list_schedule_runs)
