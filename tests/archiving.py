"""The tests of the doors once more, on a PostgreSQL where every run that may move to the archive has moved already.

Nobody who asks may see a difference. The whole of `api/` and `operations/` runs so in the full run. Tests with the mark
`archived` always do, and there all that has ended moves, also the newest of a schedule, which in earnest stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.features.runs import archive_rows
from horarium.features.runs.retention_rows import Found, overtaken_runs
from horarium.instant import DAY
from horarium.platform.database import Database
from horarium.platform.database.run_archive import has_archive
from horarium.platform.database.run_states import FINAL_NAMES
from horarium.platform.database.tables import runs

T = TypeVar("T")
DIALECT = "archived"
_FOLDERS = ("api", "operations")
_FOR_EVER = 100_000 * DAY
_LOOKS = 500


@pytest.hookimpl(tryfirst=True)  # before the fixture says on which databases it runs
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dialect" not in metafunc.fixturenames or _is_chosen(metafunc):
        return
    is_marked = metafunc.definition.get_closest_marker("archived") is not None
    if is_marked or metafunc.definition.path.parent.name in _FOLDERS:
        third = DIALECT if is_marked else pytest.param(DIALECT, marks=pytest.mark.long)
        metafunc.definition.add_marker(
            pytest.mark.parametrize("dialect", ["sqlite", "postgresql", third], indirect=True)
        )


def _is_chosen(metafunc: pytest.Metafunc) -> bool:
    """Whether the test says itself on which databases it runs."""
    return any("dialect" in str(mark.args[0]) for mark in metafunc.definition.iter_markers("parametrize"))


def move_all(connection: Connection) -> int:
    """Whatever is overtaken, as soon as it has ended; how many rows."""
    rows, after = 0, b""
    while True:
        found = overtaken_runs(connection, finished_before=_FOR_EVER, after=after, looks=_LOOKS)
        moved = archive_rows.move(connection, found)
        rows += moved.rows
        if moved.after is None:
            return rows
        after = moved.after


def move_ended(connection: Connection) -> int:
    """Also what nothing has overtaken."""
    roots = sa.select(runs.c.run_id).where(runs.c.parent_run_id.is_(None), runs.c.state.in_(FINAL_NAMES))
    found = connection.execute(roots.order_by(runs.c.run_id).limit(_LOOKS)).scalars()
    return archive_rows.move(connection, Found(tuple(found), None)).rows


def move_with_every_write(monkeypatch: pytest.MonkeyPatch, move: Callable[[Connection], int]) -> None:
    """In the transaction of each write, so that nobody ever sees what has ended in its old place."""
    plain = Database.write

    def write(self: Database, work: Callable[[Connection], T]) -> T:
        def both(connection: Connection) -> T:
            done = work(connection)
            if has_archive(connection):
                move(connection)
            return done

        return plain(self, both)

    monkeypatch.setattr(Database, "write", write)
