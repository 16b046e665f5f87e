"""Calendars that people made."""

from __future__ import annotations

import pytest

from horarium.features.calendars import rows as calendar_rows
from horarium.platform.database import Database
from horarium.platform.database.errors import UniqueConflict

DOCUMENT = {"kind": "skip_dates", "dates": ["2026-12-25"]}


def add(database: Database, name: str, namespace: str = "default") -> None:
    database.write(lambda c: calendar_rows.insert(c, namespace, name, DOCUMENT, now=1))


def test_a_calendar_is_kept_until_it_is_deleted(database: Database) -> None:
    add(database, "plant")
    row = database.read(lambda c: calendar_rows.find(c, "default", "plant"))
    assert row == calendar_rows.CalendarRow("default", "plant", DOCUMENT, 1, 1, 1)
    assert database.read(lambda c: calendar_rows.find(c, "other", "plant")) is None
    assert database.write(lambda c: calendar_rows.delete(c, "default", "plant"))
    assert not database.write(lambda c: calendar_rows.delete(c, "default", "plant"))
    assert database.read(lambda c: calendar_rows.find(c, "default", "plant")) is None


def test_a_name_is_taken_in_its_namespace_only(database: Database) -> None:
    add(database, "plant")
    add(database, "plant", namespace="other")
    with pytest.raises(UniqueConflict) as taken:
        add(database, "plant")
    assert taken.value.constraint == "calendars_pkey"


def test_an_update_needs_the_version_it_was_made_from(database: Database) -> None:
    add(database, "plant")

    def update(expected: int) -> int:
        return database.write(
            lambda c: calendar_rows.update(c, "default", "plant", {"dates": []}, expected_version=expected, now=2)
        )

    assert update(1) == 2
    with pytest.raises(UniqueConflict, match=r"calendars\.version"):
        update(1)
    row = database.read(lambda c: calendar_rows.find(c, "default", "plant"))
    assert row == calendar_rows.CalendarRow("default", "plant", {"dates": []}, 2, 1, 2)


def test_calendars_are_listed_by_name_and_found_together(database: Database) -> None:
    for name in ("c", "a", "b"):
        add(database, name)
    add(database, "z", namespace="other")
    page, more = database.read(lambda c: calendar_rows.list_page(c, "default", limit=2))
    assert ([row.name for row in page], more) == (["a", "b"], True)
    rest, more = database.read(lambda c: calendar_rows.list_page(c, "default", after_name="b", limit=2))
    assert ([row.name for row in rest], more) == (["c"], False)
    assert set(database.read(lambda c: calendar_rows.find_many(c, "default", ["a", "c", "z"]))) == {"a", "c"}
    assert database.read(lambda c: calendar_rows.find_many(c, "default", [])) == {}
