"""Feed entries, for lists, streams and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.json_values import damage_of
from horarium.core.document.states import FEED_KINDS, EventType, NoticeType, RunState
from horarium.features.tenants.model import FeedEntry
from horarium.instant import Instant, from_rfc3339, to_datetime
from horarium.platform.ids import id_text
from horarium.platform.wire import encode

UNREADABLE_KIND = "unreadable"
"""Event of a stream for an entry that cannot be read; its data is an `UnreadableRow`."""
_SOURCE = "urn:horarium"
_OF_RUNS = ("duration_seconds", "workflow", "version", "approval")


class StoredEntry(Protocol):
    """Event or notice as the store returns it."""

    @property
    def namespace(self) -> str: ...
    @property
    def event_type(self) -> EventType | NoticeType: ...
    @property
    def recorded_at(self) -> Instant: ...
    @property
    def run_id(self) -> bytes | None: ...
    @property
    def sequence(self) -> int | None: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...


def entry_of(event: StoredEntry, cursor: str, schedule_id: str | None) -> FeedEntry:
    payload, kind = event.payload, event.event_type
    occurrence = payload.get("occurrence_time")
    return FeedEntry(
        id=cursor,
        kind=FEED_KINDS[kind],
        at=to_datetime(event.recorded_at),
        namespace=event.namespace,
        schedule_id=schedule_id,
        run_id=None if event.run_id is None else id_text(event.run_id),
        reason=payload.get("reason"),
        occurrence_time=None if occurrence is None else to_datetime(from_rfc3339(occurrence)),
        event_type=kind if isinstance(kind, EventType) else None,
        sequence=event.sequence,
        payload=payload,
        **(_told(kind, payload) if isinstance(kind, NoticeType) and damage_of(payload) is None else {}),
    )


def _told(kind: NoticeType, payload: Mapping[str, Any]) -> dict[str, Any]:
    match kind:
        case NoticeType.RUN_FINISHED:
            return {
                "state": RunState(payload["state"]),
                "error": payload.get("error"),
                "attempt": payload.get("attempt"),
                **{name: payload.get(name) for name in _OF_RUNS},
            }
        case NoticeType.SCHEDULE_HEALTH:
            return {"status": HealthStatus(payload["status"])}
        case (
            NoticeType.APPROVAL_BYPASS_ATTEMPT
            | NoticeType.APPROVAL_REQUESTED
            | NoticeType.APPROVAL_DECIDED
            | NoticeType.APPROVAL_EXPIRED
        ):
            return {}


def cloud_event(entry: FeedEntry) -> bytes:
    """An entry as a CloudEvents 1.0 event in one JSON object; the same bytes at every repetition."""
    subject = entry.namespace if entry.schedule_id is None else f"{entry.namespace}/{entry.schedule_id}"
    return encode(
        {
            "specversion": "1.0",
            "id": entry.id,
            "source": _SOURCE,
            "type": f"dev.horarium.feed.{entry.kind}.v1",
            "subject": subject,
            "time": entry.at,
            "datacontenttype": "application/json",
            "data": entry,
        }
    )


def message_id(subscription_id: bytes, entry: str) -> str:
    """Id by which a receiver recognises a repetition."""
    return f"{id_text(subscription_id)}:{entry}"
