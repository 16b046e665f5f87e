"""A database that an earlier version has written: its plain credentials become secrets, and nothing of them is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from world import FakeClock

from horarium.operations import secrets
from horarium.store import plain_credentials
from horarium.store.database import Connection, Database, open_database
from horarium.store.sealing import Sealer
from horarium.store.tables import history, installation, run_definitions, schedule_revisions
from horarium.testing import Accepted, Finished, service

CANARY = "Bearer canary-of-old-{}"


def document(number: int) -> dict[str, Any]:
    headers = {"X-Team": "red", "X-Filler": "f" * 3_000}
    return {
        "schedule_id": f"old-{number}",
        "cron_expressions": ["0 * * * *"],
        "action": {"url": "https://api.example.com/x", "headers": headers},
    }


def _as_it_was(text: str, value: str) -> str:
    """What the version before wrote: the header in plain."""
    written = json.loads(text)
    written["action"]["headers"]["Authorization"] = value
    return json.dumps(written)


def _write_plain(connection: Connection) -> None:
    """Each revision has a value of its own; what was told of a schedule has that of its first."""
    for table, column in ((schedule_revisions, "document"), (history, "payload")):
        key = list(table.primary_key.columns)
        for *values, text in connection.execute(sa.select(*key, table.c[column])).all():
            if '"headers"' in text:
                mine = [each == value for each, value in zip(key, values, strict=True)]
                plain = CANARY.format(values[1] if table is schedule_revisions else 1)
                connection.execute(sa.update(table).where(*mine).values({column: _as_it_was(text, plain)}))
    connection.execute(sa.delete(installation).where(installation.c.name == "plain_credentials"))


def _everything(database: Database) -> str:
    def look(connection: Connection) -> str:
        parts = [connection.execute(sa.select(table.c[column])).scalars().all() for table, column in (
            (schedule_revisions, "document"), (history, "payload"), (run_definitions, "document"))]  # fmt: skip
        return json.dumps([list(part) for part in parts])

    return database.read(look)


def test_old_rows_are_moved_at_start_and_the_newest_value_is_sent(database_url: str, tmp_path: Path) -> None:
    with service(at="2026-03-01T00:00:00Z", answer=Accepted(), database=database_url) as before:
        for number in range(3):
            before.create(document(number))
        before.http().patch("/api/schedules/old-0", json={"action": {"headers": {"X-Team": "blue"}}})
        before.http().delete("/api/schedules/old-2")
        before.resources.database.write(_write_plain)
        assert "canary" in _everything(before.resources.database)
    with service(at="2026-03-01T00:30:00Z", answer=Finished(), database=database_url) as after:
        assert "canary" not in _everything(after.resources.database)
        if database_url.startswith("sqlite"):
            for file in tmp_path.glob("horarium.db*"):
                assert b"canary" not in file.read_bytes()
        found = secrets.list_secrets(after.resources, after.caller).secrets
        assert [(each.name, each.hosts) for each in found] == [
            ("schedule.old-0.authorization", ("api.example.com",)),
            ("schedule.old-1.authorization", ("api.example.com",)),
        ]
        shown = after.http().get("/api/schedules/old-0").json()
        assert shown["action"]["headers"]["Authorization"] == {"$secret": "schedule.old-0.authorization"}
        after.advance(hours=1)
        sent = {each.schedule_id: each.action.target["headers"]["Authorization"] for each in after.launcher.deliveries}
        assert sent == {"old-0": CANARY.format(2), "old-1": CANARY.format(1)}


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_move_that_was_broken_off_goes_on(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with service(at="2026-03-01T00:00:00Z", answer=Accepted(), database=database_url) as before:
        for number in range(5):
            before.create(document(number))
        before.resources.database.write(_write_plain)
        damaged = sa.update(run_definitions).values(document='{"headers"')
        before.resources.database.write(lambda connection: connection.execute(damaged))
    monkeypatch.setattr(plain_credentials, "_BATCH", 2)
    database, sealer, clock = open_database(database_url), Sealer(b"key"), FakeClock()
    steps = 0

    def fails_later(connection: Connection, *given: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise KeyboardInterrupt
        return step(connection, *given)

    step = plain_credentials._step
    monkeypatch.setattr(plain_credentials, "_step", fails_later)
    try:
        with pytest.raises(KeyboardInterrupt):
            plain_credentials.move(database, sealer, clock)
        assert "canary" in _everything(database)
        assert not plain_credentials.are_moved(database)
        assert plain_credentials.move(database, sealer, clock) == 10
        assert plain_credentials.are_moved(database)
        assert "canary" not in _everything(database)
        assert plain_credentials.move(database, sealer, clock) == 0
    finally:
        database.close()
