"""A migration leaves tables on which the code of the release before goes on: it adds, and takes nothing away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from later_release import DROPS, EXPANDS, become_later
from upgrade.programs import OWN_SOURCE, previous_source
from upgrade.shape import Column, Shape, losses, shape_of

from horarium.platform.database import Database, open_database, schema
from horarium.platform.database.schema import OLDEST_SCHEMA

_TEXT, _NEEDED = Column("TEXT", may_be_empty=True), Column("TEXT", needed=True)
_BEFORE = Shape({"runs": {"id": _NEEDED, "note": _TEXT}}, {"one": "runs (id)"}, frozenset({"one on runs"}))
_RUNS = _BEFORE.tables["runs"]
_CASES = {
    "nothing": (_BEFORE, []),
    "a table more": (replace(_BEFORE, tables={"runs": _RUNS, "more": {"id": _NEEDED}}), []),
    "a column more, which may be empty": (replace(_BEFORE, tables={"runs": {**_RUNS, "more": _TEXT}}), []),
    "a column more, which has a default": (replace(_BEFORE, tables={"runs": {**_RUNS, "more": Column("TEXT")}}), []),
    "an index more": (replace(_BEFORE, indexes=_BEFORE.indexes | {"two on runs"}), []),
    "a unique index of a new table": (
        Shape({"runs": _RUNS, "more": {}}, {"one": "runs (id)", "two": "more (id)"}, _BEFORE.indexes), [],
    ),
    "a table less": (Shape({}), ["table runs"]),
    "a table under another name": (Shape({"past_runs": _RUNS}), ["table runs"]),
    "a column less": (replace(_BEFORE, tables={"runs": {"id": _NEEDED}}), ["column runs.note"]),
    "a column under another name": (
        replace(_BEFORE, tables={"runs": {"id": _NEEDED, "notes": _TEXT}}), ["column runs.note"],
    ),
    "a column of another type": (
        replace(_BEFORE, tables={"runs": {**_RUNS, "note": replace(_TEXT, type="BIGINT")}}), ["type of runs.note"],
    ),
    "a column that older code does not fill": (
        replace(_BEFORE, tables={"runs": {**_RUNS, "more": _NEEDED}}), ["inserts into runs without more"],
    ),
    "a column that must be filled now": (
        replace(_BEFORE, tables={"runs": {**_RUNS, "note": _NEEDED}}), ["default of runs.note"],
    ),
    "a column that must not be empty any more": (
        replace(_BEFORE, tables={"runs": {**_RUNS, "note": Column("TEXT")}}), ["emptiness of runs.note"],
    ),
    "an index less": (replace(_BEFORE, indexes=frozenset()), ["index one on runs"]),
    "a unique index more": (
        replace(_BEFORE, uniques={"one": "runs (id)", "two": "runs (note)"}), ["freedom of two"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("after", "lost"), _CASES.values(), ids=_CASES)
def test_what_older_code_loses_has_a_name(after: Shape, lost: list[str]) -> None:
    assert list(losses(_BEFORE, after)) == lost


def _since_the_previous_release() -> list[ModuleType]:
    found = reversed(list(schema._scripts().iterate_revisions("head", OLDEST_SCHEMA)))
    return [script.module for script in found]


@pytest.fixture(params=["this release", EXPANDS, DROPS], ids=["this release", "one that expands", "one that drops"])
def release(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Become a release: this one, which may have migrations of its own, or the next one."""
    if request.param != "this release":
        become_later(monkeypatch, tmp_path, request.param)


@pytest.mark.usefixtures("release")
def test_every_migration_of_a_release_lets_the_previous_release_continue() -> None:
    """One that shuts it out is a release of its own, to which nobody can go step by step."""
    declared = {module.revision: getattr(module, "oldest_code", None) for module in _since_the_previous_release()}
    assert declared == dict.fromkeys(declared, OLDEST_SCHEMA)
    assert all(getattr(module, "brings", None) for module in _since_the_previous_release())


@pytest.mark.usefixtures("release")
def test_a_migration_takes_away_only_what_it_names(empty_url: str) -> None:
    """`drops` names what the previous release does not use any more."""
    database = open_database(empty_url)
    schema.migrate(database, until=OLDEST_SCHEMA)
    before = database.read(shape_of)
    for module in _since_the_previous_release():
        schema.migrate(database, until=module.revision)
        after = database.read(shape_of)
        assert set(losses(before, after)) == set(getattr(module, "drops", ())), module.revision
        before = after
    database.close()


_KNOWN = """
import json
from horarium.platform.database.tables import metadata
from horarium.core.audit_entries import Act
from horarium.core.document.states import EventType, NoticeType, RunEventType
from horarium.core.document.states import Status
from horarium.core.document.states import Reason
from horarium.core.document.states import Delivery, Origin, RunState
words = (Act, EventType, NoticeType, RunEventType, Status, Reason, Delivery, Origin, RunState)
print(json.dumps({
    "columns": sorted(f"{table.name}.{name}" for table in metadata.sorted_tables for name in table.columns.keys()),
    "words": sorted(f"{each.__name__}.{word.value}" for each in words for word in each),
}))
"""
# What an older process never comes to read, with the reason.
_UNREAD_WORDS: dict[str, str] = {}


def _known(source: Path) -> dict[str, set[str]]:
    """To the program there."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    told = subprocess.run([sys.executable, "-c", _KNOWN], env=environment, capture_output=True, text=True, check=True)
    return {name: set(found) for name, found in json.loads(told.stdout).items()}


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_releases_know_the_same_names(database: Database, tmp_path: Path) -> None:
    """Columns that the older one uses are there, and it can read every word that the newer one writes."""
    older, newer = _known(previous_source(tmp_path)), _known(OWN_SOURCE)
    there = {f"{table}.{name}" for table, columns in database.read(shape_of).tables.items() for name in columns}
    assert len(older["columns"]) > 100
    assert older["columns"] - there == set()
    assert newer["words"] - older["words"] == set(_UNREAD_WORDS)
