"""`horarium copy`: a filled database arrives on the other kind as it was, and comes back; or nothing happens at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from archiving import move_all
from client.any_worker import until

from horarium.cli.main import main
from horarium.features.history import entry_rows
from horarium.features.history.entry_rows import FeedCursor, FeedRow
from horarium.features.secrets import rows as secret_rows
from horarium.platform.clock import SystemClock
from horarium.platform.database import Connection, Database, open_database, processes
from horarium.platform.database import audit_chain as audit_entries
from horarium.platform.database.copying import first_filled_table
from horarium.platform.database.tables import audit, audit_heads, feed_epochs, history, metadata
from horarium.serve.maintenance import opened
from horarium.testing import Accepted, RunFailed, service

START = "2026-03-01T00:00:00Z"
HOURLY = {"cron_expressions": ["0 * * * *"], "workflow_type": "report"}


@pytest.fixture
def filled(tmp_path: Path, sqlite_template: Path) -> str:
    """The URL of a SQLite database in which every table has rows."""
    path = tmp_path / "old.db"
    path.write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{path}"
    with service(at=START, answer=Accepted(), script=[RunFailed("no disk", "disk")], database=url) as horarium:
        _use(horarium.http())
        for number, policy in enumerate(("skip", "buffer_all", "allow_all", "terminate_other")):
            horarium.create(HOURLY, schedule_id=f"s{number}", overlap_policy=policy, labels={"team": "ğ"})
        horarium.create(HOURLY, schedule_id="asks", approval_policy={"mode": "every_node"})
        horarium.create(HOURLY, schedule_id="spends", budget={"max_daily_runs": 3})
        horarium.advance(hours=5)
        horarium.finish(horarium.runs("s0")[-1], {"rows": [1, None, "ü"]})
    with _open(url) as database:
        database.write(_fill_the_rest)
    return url


def _use(http: Any) -> None:
    headers = {"Idempotency-Key": "k"}
    made = [
        http.post("/api/namespaces", json={"namespace": "shop"}),
        http.post("/api/tokens", json={"name": "ci", "role": "viewer"}),
        http.post("/api/calendars", json={"name": "closed", "kind": "skip_dates", "dates": ["2026-03-02"]}),
        http.post("/api/schedules", json={**HOURLY, "schedule_id": "once"}, headers=headers),
        http.put("/api/secrets/erp", json={"value": "open-sesame"}),
        http.post("/api/schedules/once/pause", json={"note": "later"}),
    ]
    assert [answer.status_code // 100 for answer in made] == [2] * len(made)


def _fill_the_rest(connection: Connection) -> None:
    """One row for each table that nothing above has filled, made of its columns: no table can be forgotten."""
    for table in metadata.sorted_tables:
        if table is not feed_epochs and not connection.execute(sa.select(table).limit(1)).all():
            connection.execute(sa.insert(table).values({column.name: _value(column) for column in table.columns}))


def _value(column: sa.Column[Any]) -> Any:
    if column.foreign_keys:
        return "default"
    match column.type:
        case sa.LargeBinary():
            return bytes(range(16))
        case sa.Boolean():
            return True
        case sa.Text():
            return "{}"
        case _:
            return 7


@contextmanager
def _open(url: str) -> Iterator[Database]:
    database = open_database(url)
    try:
        yield database
    finally:
        database.close()


def _everything(url: str) -> dict[str, list[str]]:
    """All rows of all tables, but for what each server numbers, and for the audit, which tells of the copy."""

    def look(connection: Connection) -> dict[str, list[str]]:
        kept = [table for table in metadata.sorted_tables if table not in (feed_epochs, audit, audit_heads)]
        return {table.name: sorted(map(repr, _rows(connection, table))) for table in kept}

    with _open(url) as database:
        return database.read(look)


def _audit(url: str) -> list[str]:
    with _open(url) as database:
        found = database.read(lambda connection: audit_entries.read_page(connection, "default"))
    return [entry.deed.act for entry in found]


def _rows(connection: Connection, table: sa.Table) -> Iterator[tuple[Any, ...]]:
    columns = [column for column in table.columns if column is not history.c.transaction_id]
    yield from map(tuple, connection.execute(sa.select(*columns)))


def _onward(url: str, after: FeedCursor, limit: int = 1_000) -> list[FeedRow]:
    with _open(url) as database:
        return database.read(lambda connection: entry_rows.onward(connection, None, after=after, limit=limit)[0])


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_everything_goes_to_postgresql_and_comes_back(
    filled: str, empty_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, acts = _everything(filled), _audit(filled)
    assert min(map(len, before.values())) > 0
    seen, *rest = _onward(filled, entry_rows.START, 3)[1:] + _onward(
        filled, _onward(filled, entry_rows.START, 3)[-1].cursor
    )
    assert main(["copy", "--from", filled, "--to", empty_url]) == 0
    told = capsys.readouterr()
    assert f"copied {sum(map(len, before.values())) + len(acts) + 1} rows" in told.out
    assert "verified" in told.out
    assert "secret.key" in told.err
    assert _everything(empty_url) == before
    # Whoever followed the feed goes on where it was, and hears of what is new.
    assert [row.event.feed_id for row in _onward(empty_url, seen.cursor)] == [row.event.feed_id for row in rest]
    with _open(empty_url) as database:
        assert database.write(move_all) > 0  # what is in the archive comes back among the others
    back = f"sqlite:///{tmp_path / 'back.db'}"
    assert main(["copy", "--from", empty_url, "--to", back]) == 0
    assert _everything(back) == before
    # The chain goes on in the copy, and is whole there.
    assert [*acts, "database_copied", "database_copied"] == _audit(back)
    assert main(["audit", "verify", "--database", back]) == 0
    with service(at="2026-03-02T00:00:00Z", database=empty_url) as horarium:
        horarium.create(HOURLY, schedule_id="new")
        horarium.advance(hours=1)
        assert horarium.verify() == []
        sealer = horarium.resources.sealer
        found = horarium.resources.database.read(lambda c: secret_rows.find_all(c, "default", ["erp"]))
        assert sealer is not None
        assert secret_rows.opened(sealer, found) == {"erp": "open-sesame"}
    # A transaction anywhere on the server, such as another test's, holds the feed back for a while.
    until(lambda: len(_onward(empty_url, seen.cursor)) > len(rest))
    heard = [row.event.feed_id for row in _onward(empty_url, seen.cursor)]
    assert heard[: len(rest)] == [row.event.feed_id for row in rest]
    assert heard == sorted(set(heard))


def test_a_copy_that_breaks_off_leaves_nothing(filled: str, tmp_path: Path) -> None:
    new = f"sqlite:///{tmp_path / 'new.db'}"

    def break_off(done: int) -> None:
        if done > 20:
            raise OSError("the cable")

    with pytest.raises(OSError, match="the cable"), opened(filled, new) as move:
        move.copy(break_off)
    with _open(new) as database:
        assert first_filled_table(database) is None
    assert main(["copy", "--from", filled, "--to", new]) == 0
    assert _everything(new) == _everything(filled)


def test_what_stands_against_a_copy_is_said_in_one_line(
    tmp_path: Path, sqlite_template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def url(name: str, *, of: Path | None = sqlite_template) -> str:
        path = tmp_path / f"{name}.db"
        if of is not None:
            path.write_bytes(of.read_bytes())
        return f"sqlite:///{path}"

    def refused(source: str, target: str) -> str:
        assert main(["copy", "--from", source, "--to", target]) == 1
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        return told.err

    good, busy, old, bare = url("good"), url("busy"), url("old"), url("bare", of=None)
    with _open(bare):
        pass
    assert "has no Horarium tables; migrate it first" in refused(bare, url("new", of=None))
    with _open(old) as database:
        database.write(lambda connection: connection.exec_driver_sql("UPDATE schema_revision SET version_num = '0020'"))
    assert "--from: The database was created by an unreleased version" in refused(old, url("new", of=None))
    assert "--to: The database was created by an unreleased version" in refused(good, old)
    assert "does not exist" in refused(url("missing", of=None), url("new", of=None))
    assert not (tmp_path / "missing.db").exists()
    assert "the same database" in refused(good, good)
    with _open(busy) as database:
        now = SystemClock().now()
        database.write(lambda connection: processes.beat_lease(connection, "process:host:1", "host:1", now, 30, {}))
    assert "Process host:1 uses this database" in refused(busy, url("new", of=None))
    assert "Process host:1 uses this database" in refused(good, busy)
    with service(at=START, database=busy) as horarium:
        horarium.create(HOURLY, schedule_id="s")
        horarium.resources.database.write(
            lambda connection: processes.delete_lease(connection, "process:host:1", "host:1")
        )
    assert "has rows; use an empty database" in refused(good, busy)
    assert main(["copy", "--from", good, "--to", "nonsense://"]) in (1, 2)
