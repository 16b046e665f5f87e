"""Calls of the trigger paths of the plain cron scheduler.

Without an ID, equal documents are the same schedule. Missed occurrences are skipped by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from horarium.compat.registrar.model import Trigger, TriggerDeleted, TriggerPaused, TriggerRun, TriggerUpserted
from horarium.platform.client.call import Call, Method, Page, When, given, many, one

if TYPE_CHECKING:
    from horarium.core.document.fields import ScheduleFields


Document = Mapping[str, Any]

TRIGGER = "/schedules/{schedule_id}"


class RegistrarCalls:
    @Method
    @staticmethod
    def upsert_trigger(
        document: Document | None = None, /, *, confirm: bool | None = None, **fields: Unpack[ScheduleFields]
    ) -> Call[TriggerUpserted]:
        """Create or update a trigger: `workflow_id`, `version`, `user_id`, `cron_expr`, `timezone` and more. Safe to
        repeat.
        """
        body, query = {**(document or {}), **fields}, {"confirm": confirm}
        return Call("POST", "/schedules/upsert", one(TriggerUpserted), query=query, body=body)

    @Method
    @staticmethod
    def pause_trigger(
        schedule_id: str,
        paused: bool,
        *,
        reason: str | None = None,
        until: When | None = None,
        timezone: str | None = None,
        confirm: bool | None = None,
    ) -> Call[TriggerPaused]:
        """Pause a trigger, or resume it with `paused` false. With `until`, it resumes by itself at that time."""
        told = given(reason=reason, until=until, timezone=timezone)
        body = {"schedule_id": schedule_id, "paused": paused, **told}
        return Call("POST", "/schedules/pause", one(TriggerPaused), query={"confirm": confirm}, body=body)

    @Method
    @staticmethod
    def get_trigger(schedule_id: str) -> Call[Trigger]:
        """Show a trigger with its next five fire times."""
        return Call("GET", TRIGGER, one(Trigger), {"schedule_id": schedule_id})

    @Method
    @staticmethod
    def list_trigger_runs(schedule_id: str, *, limit: int | None = None) -> Call[Page[TriggerRun]]:
        """List the last runs and skips, newest first."""
        return Call(
            "GET", f"{TRIGGER}/runs", many(TriggerRun, "runs"), {"schedule_id": schedule_id}, query={"limit": limit}
        )

    @Method
    @staticmethod
    def delete_trigger(schedule_id: str) -> Call[TriggerDeleted]:
        return Call("DELETE", TRIGGER, one(TriggerDeleted), {"schedule_id": schedule_id})
