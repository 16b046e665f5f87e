"""The audit stream: numbered and complete."""

from __future__ import annotations

from dataclasses import fields

import pytest

from horarium.core.decision.facts import Missed
from horarium.core.decision.record import NewEvent
from horarium.core.document.states import CommandContext, EventType, Reason
from horarium.features.history import rows as history
from horarium.features.history.rows import HistoryRow, Journal
from horarium.features.history.rows import append as append_events
from horarium.platform.database import Database
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.tables import history as history_table
from horarium.platform.ids import new_id


def event(
    sequence: int, kind: EventType = EventType.TRIGGERED, first: int | None = None, last: int | None = None
) -> NewEvent:
    return NewEvent(sequence, kind, first, last, None, {"n": sequence, "text": "ü \0"})


def append(database: Database, uid: bytes, *events: NewEvent, namespace: str = "default") -> None:
    database.write(lambda c: append_events(c, [(uid, namespace, events)], now=9))


def test_every_column_of_history_is_in_the_row() -> None:
    assert {each.name for each in fields(HistoryRow)} == {column.name for column in history_table.columns}


def test_events_are_read_in_order_and_in_pieces(database: Database) -> None:
    uid, other = new_id(), new_id()
    append(database, uid, event(1), event(2), event(3))
    append(database, other, event(1))
    rows = database.read(lambda c: history.read(c, uid, limit=2))
    assert [row.sequence for row in rows] == [1, 2]
    assert rows[0].payload == {"n": 1, "text": "ü \0"}
    assert (rows[0].event_type, rows[0].recorded_at, rows[0].namespace) == (EventType.TRIGGERED, 9, "default")
    rest = database.read(lambda c: history.read(c, uid, after_sequence=2, limit=2))
    assert [row.sequence for row in rest] == [3]


def test_events_are_read_newest_first(database: Database) -> None:
    uid = new_id()
    append(database, uid, event(1), event(2), event(3))
    newest = database.read(lambda c: history.read_newest(c, uid, limit=2))
    assert [row.sequence for row in newest] == [3, 2]
    older = database.read(lambda c: history.read_newest(c, uid, before_sequence=2, limit=2))
    assert [row.sequence for row in older] == [1]


def test_a_number_is_given_once(database: Database) -> None:
    uid = new_id()
    append(database, uid, event(1))
    with pytest.raises(UniqueConflict) as taken:
        append(database, uid, event(1))
    assert taken.value.constraint == "history_in_order"


def test_streams_of_several_schedules_are_written_together(database: Database) -> None:
    uids = [new_id(), new_id()]
    streams = [(uid, "default", [event(1), event(2)]) for uid in uids]
    database.write(lambda c: append_events(c, streams, now=9))
    for uid in uids:
        assert [row.sequence for row in database.read(lambda c, uid=uid: history.read(c, uid, limit=9))] == [1, 2]


def test_a_journal_numbers_what_a_change_leaves_and_names_who_asked(database: Database) -> None:
    uid, journal = new_id(), Journal(4, 9, CommandContext(principal="ada"))
    journal.missed(None)
    journal.missed(Missed(10, 30, 3, Reason.SUPERSEDED))
    journal.add(EventType.PAUSED, reason="rest")
    assert database.write(lambda c: journal.write(c, uid, "default")) == journal.next_sequence == 6
    missed, paused = database.read(lambda c: history.read(c, uid, limit=9))
    assert (missed.sequence, missed.event_type, missed.nominal, missed.nominal_last) == (4, EventType.MISSED, 10, 30)
    assert (paused.sequence, paused.event_type, paused.nominal) == (5, EventType.PAUSED, None)
    assert paused.payload == {"reason": "rest", "command_context": {"principal": "ada"}}


def test_a_journal_of_nothing_leaves_the_number_where_it_was(database: Database) -> None:
    assert database.write(lambda c: Journal(4, 9).write(c, new_id(), "default")) == 4


@pytest.mark.parametrize(
    ("nominal", "sequence"),
    [(9, None), (10, 1), (11, None), (20, 2), (25, 2), (30, 2), (31, None), (40, 3)],
)
def test_the_decision_about_an_instant_is_found_also_inside_a_range(
    database: Database, nominal: int, sequence: int | None
) -> None:
    uid = new_id()
    buffered, released = event(3, EventType.BUFFERED, 40, 40), event(4, EventType.TRIGGERED, 40, 40)
    append(database, uid, event(1, first=10), event(2, EventType.MISSED, 20, 30), buffered, released, event(5))
    append(database, new_id(), event(1, first=11, last=11))
    decided = database.read(lambda c: history.decision_about(c, uid, nominal))
    assert (None if decided is None else decided.sequence) == sequence
    about = database.read(lambda c: history.events_about(c, uid, nominal))
    assert [row.sequence for row in about] == ([3, 4] if nominal == 40 else [sequence] if sequence else [])
