"""Routes of the audit stream of a schedule."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.pages import readable, within_bytes
from horarium.api.requests import CallerOf, ResourcesOf
from horarium.api.routing import READ, Routes
from horarium.errors import InvalidDefinition
from horarium.ids import id_text, parse_id
from horarium.instant import to_datetime
from horarium.operations import history
from horarium.store.history.events import HistoryRow
from horarium.wire.schedules import History, HistoryEvent


class Order(StrEnum):
    ASC = "asc"
    DESC = "desc"


routes = Routes("/api/schedules/{schedule_id}", tag="history")
waterline = Routes("/waterline/api/v2/schedules/{schedule_id}", tag="waterline")

_MAX_DIGITS = 18  # fit in 64 bits


_HISTORY: dict[str, Any] = {
    "needs": READ,
    "summary": "List the history of a schedule",
    "answer": History,
    "example": History(
        schedule_id="nightly-report",
        uid=examples.UID,
        namespace="default",
        events=(examples.EVENT,),
        has_more=False,
        next_cursor=None,
    ),
}


@routes("GET", "/history", **_HISTORY)
@waterline("GET", "/history", name="waterline_schedule_history", **_HISTORY)
def get_schedule_history(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    limit: Annotated[
        str | None, Query(description=("Page size, 1 to 500 (default 100). Larger values are reduced to 500."))
    ] = None,
    after_sequence: Annotated[str, Query(description="Sequence number, or `next_cursor` of the previous page.")] = "0",
    uid: Annotated[str | None, Query(description="UID of an older schedule with the same ID.")] = None,
    order: Annotated[
        Order, Query(description="Sort order: oldest first (`asc`) or newest first (`desc`).")
    ] = Order.ASC,
) -> Reply:
    """Also available for deleted schedules. With `desc`, pages continue with older events."""
    older = None if uid is None else parse_id(uid, "uid")
    after = _sequence(after_sequence)
    page, events = within_bytes(
        _limit(limit),
        lambda most: history.read(
            resources,
            caller,
            schedule_id,
            limit=most,
            after_sequence=after,
            uid=older,
            newest_first=order is Order.DESC,
        ),
        lambda page: readable(resources, "event", page.rows, history_event, lambda each: each.sequence),
    )
    return Reply(
        History(
            schedule_id=page.schedule.schedule_id,
            uid=id_text(page.schedule.schedule_uid),
            namespace=page.schedule.namespace,
            events=events,
            has_more=page.next_cursor is not None,
            next_cursor=page.next_cursor,
        )
    )


class InvalidAfterSequence(InvalidDefinition):
    """The contract has a reason of its own for it."""

    reason = "invalid_after_sequence"


def _sequence(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidAfterSequence({"after_sequence": ["must be a whole number of at least 0"]})
    return int(text)


def _limit(text: str | None) -> int | None:
    """Read a limit; any text that is no positive number means the default, since the contract never rejects one."""
    if text is None or not (text.isascii() and text.isdigit()) or not text.strip("0"):
        return None
    return history.MAX_LIMIT if len(text) > _MAX_DIGITS else int(text)


def history_event(row: HistoryRow) -> HistoryEvent:
    return HistoryEvent(
        id=f"{id_text(row.schedule_uid)}:{row.sequence}",
        sequence=row.sequence,
        namespace=row.namespace,
        event_type=row.event_type,
        recorded_at=to_datetime(row.recorded_at),
        workflow_instance_id=row.payload.get("workflow_instance_id"),
        workflow_run_id=row.payload.get("workflow_run_id"),
        payload=row.payload,
    )
