"""How history is written: by this file alone, whoever has decided or done something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import Connection

from horarium.decision.plan import Missed
from horarium.decision.record import NewEvent, missed_values
from horarium.instant import Instant
from horarium.schedule.event import CommandContext, EventType, checked_payload
from horarium.store.database.json_text import event_text
from horarium.store.database.set_wise import Insert
from horarium.store.tables import history

Stream: TypeAlias = tuple[bytes, str, Sequence[NewEvent]]
"""The uid and the namespace of a schedule, and what is new about it."""

_ROWS = Insert(
    history,
    (
        "schedule_uid", "sequence", "namespace", "event_type", "recorded_at", "nominal", "nominal_last", "run_id",
        "payload",
    ),
)  # fmt: skip


def append(connection: Connection, streams: Iterable[Stream], *, now: Instant) -> None:
    """Raises Conflict(`history_in_order`) if a number is taken."""
    _ROWS.run(
        connection,
        [
            (uid, sequence, namespace, kind.value, now, nominal, nominal_last, run_id, event_text(payload))
            for uid, namespace, events in streams
            for sequence, kind, nominal, nominal_last, run_id, payload in events
        ],
    )


class Journal:
    """The events that one change leaves, numbered from where the schedule's stream ends."""

    def __init__(self, next_sequence: int, now: Instant, context: CommandContext | None = None) -> None:
        self.next_sequence = next_sequence
        self._now = now
        self._context = context
        self._events: list[NewEvent] = []

    def add(self, event_type: EventType, **values: object) -> None:
        self.about(event_type, values)

    def missed(self, range_: Missed | None) -> None:
        """Occurrences that the change overtook; None = there were none."""
        if range_ is not None:
            self.about(EventType.MISSED, missed_values(range_), range_.first, range_.last)

    def about(
        self,
        event_type: EventType,
        values: Mapping[str, object],
        nominal: Instant | None = None,
        nominal_last: Instant | None = None,
        run_id: bytes | None = None,
    ) -> None:
        """An event about an occurrence, a range of them, or a run."""
        said = values if self._context is None else {**values, "command_context": self._context}
        payload = checked_payload(event_type, said)
        self._events.append(NewEvent(self.next_sequence, event_type, nominal, nominal_last, run_id, payload))
        self.next_sequence += 1

    def stream(self, uid: bytes, namespace: str) -> Stream:
        """For whoever writes several at once; `next_sequence` is what the position has to keep."""
        return uid, namespace, tuple(self._events)

    def write(self, connection: Connection, uid: bytes, namespace: str) -> int:
        """The number of the next event, for the position to keep."""
        append(connection, [(uid, namespace, self._events)], now=self._now)
        return self.next_sequence
