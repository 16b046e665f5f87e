"""The routes of the audit stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from horarium.api.answers import Answer
from horarium.api.requests import CallerOf, DeskOf
from horarium.api.views import Body, moment
from horarium.ids import id_text, parse_id
from horarium.operations import history
from horarium.operations.history import HistoryPage
from horarium.store.history import HistoryRow

router = APIRouter(prefix="/api/schedules/{schedule_id}", tags=["history"])


@router.get("/history")
def read(
    desk: DeskOf,
    caller: CallerOf,
    schedule_id: str,
    limit: Annotated[int | None, Query(description="1 to 500; beyond is cut")] = None,
    after_sequence: int = 0,
    uid: Annotated[str | None, Query(description="an older schedule that had the same id")] = None,
) -> Answer:
    older = None if uid is None else parse_id(uid, "uid")
    page = history.read(desk, caller, schedule_id, limit=limit, after_sequence=after_sequence, uid=older)
    return Answer(_page(page))


def _page(page: HistoryPage) -> Body:
    return {
        "schedule_id": page.schedule.schedule_id,
        "uid": id_text(page.schedule.schedule_uid),
        "namespace": page.schedule.namespace,
        "events": [event(row) for row in page.rows],
        "has_more": page.next_cursor is not None,
        "next_cursor": page.next_cursor,
    }


def event(row: HistoryRow) -> Body:
    return {
        "id": f"{id_text(row.schedule_uid)}:{row.sequence}",
        "sequence": row.sequence,
        "namespace": row.namespace,
        "event_type": row.event_type.value,
        "recorded_at": moment(row.recorded_at),
        "workflow_instance_id": row.payload.get("workflow_instance_id"),
        "workflow_run_id": row.payload.get("workflow_run_id"),
        "payload": row.payload,
    }
