"""Code and tables of two releases meet: which of them get on, what is off meanwhile, and when what is new is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from later_release import CONTRACTS, EXPANDS, HEAD, LATER, become_later

from horarium.instant import SECOND
from horarium.platform.database import Connection, Database, open_database, processes, schema
from horarium.platform.database.errors import SchemaMissing, SchemaTooNew
from horarium.platform.database.schema import Fit, SchemaState, read_state

NOW = 1_000 * SECOND
AsLaterCode = Callable[..., None]


@pytest.fixture
def as_later_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsLaterCode:
    return partial(become_later, monkeypatch, tmp_path)


def test_code_goes_on_when_newer_code_has_expanded_the_tables(
    database: Database, as_later_code: AsLaterCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_later_code(EXPANDS)
    assert schema.migrate(database) == [LATER]
    assert schema.examine_schema(database).fit is Fit.EXACT
    monkeypatch.undo()
    assert database.read(read_state) == SchemaState(LATER, HEAD)
    assert schema.check_schema(database).fit is Fit.NEWER
    assert schema.migrate(database) == []
    assert database.read(read_state) == SchemaState(LATER, HEAD)
    with pytest.raises(SchemaTooNew, match="this needs the newer program"):
        schema.check_exact_schema(database)


def test_code_is_refused_when_newer_code_has_contracted_the_tables(
    database: Database, as_later_code: AsLaterCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_later_code(CONTRACTS)
    assert schema.migrate(database) == [LATER]
    monkeypatch.undo()
    for attempt in (schema.check_schema, schema.migrate):
        with pytest.raises(SchemaTooNew, match=f"revision {LATER}"):
            attempt(database)
    assert database.read(read_state) == SchemaState(LATER, LATER)


def test_newer_code_says_what_is_off_until_the_tables_are_migrated(
    database: Database, as_later_code: AsLaterCode
) -> None:
    as_later_code(EXPANDS)
    found = schema.check_schema(database)
    assert (found.fit, found.missing) == (Fit.OLDER, ("second thoughts",))
    assert f"revision {HEAD}" in found.sentence
    assert "until you migrate it: second thoughts" in found.sentence
    with pytest.raises(SchemaMissing, match="migrate it first"):
        schema.check_exact_schema(database)


def test_what_a_process_asks_for_is_there_from_the_migration_on(database: Database, as_later_code: AsLaterCode) -> None:
    as_later_code(EXPANDS)
    assert schema.has(database, HEAD)
    assert not schema.has(database, LATER)
    schema.migrate(database)
    assert schema.has(database, LATER)
    assert database.read(lambda connection: schema.has(connection, LATER))
    assert not schema.has(database, "9999")


def test_another_process_notices_a_migration_without_being_told(
    database: Database, database_url: str, as_later_code: AsLaterCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_later_code(EXPANDS)
    passed = [0.0]
    monkeypatch.setattr("horarium.platform.database.schema.monotonic", lambda: passed[0])
    assert not schema.has(database, LATER)
    monkeypatch.setattr(schema, "look_again", lambda: None)
    other = open_database(database_url)
    schema.migrate(other)
    other.close()
    assert not schema.has(database, LATER)  # so soon nobody looks again
    passed[0] = 10.0
    assert schema.has(database, LATER)


# ── who knows it ─────────────────────────────────────────────────────────────────────────────────────

Beats = Mapping[str, tuple[float, Mapping[str, Any]]]
_NEW, _OLD, _NEWER = {"schema": "0019"}, {"ticker": 5}, {"schema": "0020"}
_CROWDS: dict[str, tuple[Beats, bool]] = {
    "nobody else": ({}, True),
    "all are new": ({"process:a": (0, _NEW), "process:b": (29, _NEWER)}, True),
    "one says nothing, as old code does": ({"process:a": (0, _NEW), "process:b": (0, _OLD)}, False),
    "one is of the release before": ({"process:a": (0, {"schema": "0018"})}, False),
    "the old one is gone": ({"process:a": (0, _NEW), "process:b": (31, _OLD)}, True),
    "the old one drains": ({"process:a": (0, {"draining": "yes"})}, False),
    "what tickers share is no process": ({"ticker": (0, {}), "process:a": (0, _NEW)}, True),
    "one says something else": ({"process:a": (0, {"schema": ["0019"]})}, False),
}


@pytest.mark.parametrize(("beats", "known"), _CROWDS.values(), ids=_CROWDS)
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_everybody_knows_what_every_live_process_says_it_knows(database: Database, beats: Beats, known: bool) -> None:
    _beat(database, beats)
    assert database.read(lambda connection: schema.everybody_knows(connection, "0019", NOW)) is known


def test_older_code_is_shut_out_before_anything_goes_where_it_does_not_look(
    database: Database, as_later_code: AsLaterCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may_use(connection: Connection, after: int = 0) -> bool:
        return schema.may_use(connection, LATER, NOW + after * SECOND)

    as_later_code(EXPANDS)
    assert not database.write(may_use)  # the tables are not there
    schema.migrate(database)
    _beat(database, {"process:old": (0, {"schema": HEAD})})
    assert not database.write(may_use)
    assert database.read(read_state) == SchemaState(LATER, HEAD)
    _beat(database, {"process:old": (0, {"schema": LATER})})
    after = [database.write(partial(may_use, after=seconds)) for seconds in (0, 0, 29, 30, 30)]
    assert after == [False, False, False, True, True]
    monkeypatch.undo()
    with pytest.raises(SchemaTooNew):
        schema.check_schema(database)
    _beat(database, {"process:old": (0, {"schema": HEAD})})
    assert not database.write(may_use)  # it had not looked again


def _beat(database: Database, beats: Beats) -> None:
    for name, (ago, info) in beats.items():
        at = NOW - round(ago * SECOND)
        database.write(lambda c, name=name, at=at, info=info: processes.beat_lease(c, name, name, at, 30, info))
