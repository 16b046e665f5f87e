"""A database of 0.1.0 is brought up to date: nothing in it is lost, and the engine goes on where it was.

The files beside this one were dumped from databases that the code of 0.1.0 had filled.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from store.feeds import read_feed
from store.schema import definitions

from horarium.decision.tick import PlanTime
from horarium.engine.batch import decide_claims
from horarium.instant import MINUTE, from_rfc3339
from horarium.operations.audit import check
from horarium.schedule.document import from_canonical
from horarium.schedule.position import Status
from horarium.schedule.run import Origin, RunState
from horarium.store import audit, installation, namespaces, tokens
from horarium.store.database import Connection, Database, open_database
from horarium.store.history import events as history
from horarium.store.migrate import DIRECTORY, check_schema, migrate
from horarium.store.runs import claims
from horarium.store.runs import read as runs_read
from horarium.store.runs.definitions import Definitions
from horarium.store.schedules import due, lists
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import ScheduleRow

_DUMPS = Path(__file__).parent
HEAD = ScriptDirectory(DIRECTORY).get_current_head()
_BEGAN = from_rfc3339("2026-03-02T08:00:00Z")
_PROGRAMS_RUN = bytes.fromhex("0195557eb00070008000000000000005")


@pytest.fixture
def old(empty_url: str) -> Iterator[Database]:
    """As 0.1.0 left it."""
    dialect = "sqlite" if empty_url.startswith("sqlite") else "postgresql"
    script = (_DUMPS / f"schema_0_1_0_{dialect}.sql").read_text("utf-8")
    if dialect == "sqlite":
        with closing(sqlite3.connect(empty_url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(empty_url, autocommit=True) as connection:
            connection.execute(script.encode())
    database = open_database(empty_url)
    yield database
    database.close()


@pytest.fixture
def upgraded(old: Database) -> Database:
    assert migrate(old)[0] == "0003"
    check_schema(old)
    return old


def _schedule(database: Database, schedule_id: str) -> ScheduleRow:
    row = database.read(lambda c: schedules.find(c, "default", schedule_id))
    assert row is not None
    return row


def test_the_upgrade_itself_is_on_record(upgraded: Database) -> None:
    (entry,) = upgraded.read(lambda connection: audit.read_page(connection, "default"))
    assert (entry.deed.act, entry.deed.source, entry.deed.detail["after"]) == ("database_migrated", "service", HEAD)
    assert [checked.broken for checked in check(upgraded)] == [None]


def test_the_schema_is_that_of_a_new_database(upgraded: Database, database: Database) -> None:
    assert upgraded.read(definitions) == database.read(definitions)


def test_schedules_keep_what_was_written_and_how_far_they_are(upgraded: Database) -> None:
    active, paused = _schedule(upgraded, "Morning-Report"), _schedule(upgraded, "every-hour")
    assert (active.status, active.decided_until, active.next_due) == (
        Status.ACTIVE, _BEGAN + 30 * MINUTE, _BEGAN + 45 * MINUTE,
    )  # fmt: skip
    assert (active.name, active.owner, active.active, active.fires_count, active.next_sequence) == (
        "Été",
        "ada",
        1,
        2,
        3,
    )
    assert (paused.status, paused.paused_at, paused.pause_reason) == (Status.PAUSED, _BEGAN, "a rest")
    revision = upgraded.read(lambda c: schedules.find_revision(c, active.schedule_uid, 1))
    assert revision is not None
    definition = from_canonical(revision.document)
    assert (definition.action.kind, definition.action.input, definition.priority) == (
        "http",
        {"number": 7},
        100,
    )


def test_schedules_are_found_by_what_was_not_searched_before(upgraded: Database) -> None:
    page = upgraded.read(lambda c: lists.list_page(c, "default", lists.Filter(text="ÉTÉ"), limit=9))
    assert [row.schedule_id for row in page.rows] == ["Morning-Report"]


def test_runs_keep_their_state_and_can_be_launched(upgraded: Database) -> None:
    uid = _schedule(upgraded, "Morning-Report").schedule_uid
    waiting, ended = upgraded.read(lambda c: runs_read.page_of_schedule(c, uid, limit=9, whole=True)).rows
    assert (ended.state, ended.result, ended.cost) == (RunState.SUCCEEDED, {"sent": True}, 1_500_000)
    assert [each.sequence for each in upgraded.read(lambda c: runs_read.events(c, ended.run_id))] == [3]
    assert (waiting.state, waiting.target, waiting.priority) == (RunState.READY, "http:", 100)
    (target,) = upgraded.read(lambda c: claims.ready_targets(c, {"default": ""}, 9))

    def take(connection: Connection) -> list[bytes]:
        now = _BEGAN + 31 * MINUTE
        ids = [each.run_id for each in claims.candidates(connection, [(target, 9)], now)]
        return [each.run_id for each in claims.take(connection, ids, owner="me", now=now, lease_seconds=30)]

    assert set(upgraded.write(take)) == {waiting.run_id, _PROGRAMS_RUN}


def test_a_run_that_a_program_started_has_its_definition_and_no_schedule(upgraded: Database) -> None:
    run = upgraded.read(lambda c: runs_read.find(c, "default", _PROGRAMS_RUN))
    assert run is not None
    assert (run.origin, run.schedule_uid, run.priority) == (Origin.API, None, -100)
    definition = upgraded.read(lambda c: Definitions(from_canonical).of(c, run))
    assert not isinstance(definition, Exception)
    assert definition.action.target["url"] == "https://example.org/once"


def test_history_and_the_feed_go_on(upgraded: Database) -> None:
    uid = _schedule(upgraded, "Morning-Report").schedule_uid

    def tick(connection: Connection) -> None:
        known, now = Plannings(), _BEGAN + 45 * MINUTE
        decide_claims(connection, known, due.claim(connection, known, now, 9), PlanTime(now, _BEGAN))

    upgraded.write(tick)
    told = upgraded.read(lambda c: history.read(c, uid, limit=9))
    assert [(each.sequence, each.nominal) for each in told] == [
        (number, _BEGAN + number * 15 * MINUTE) for number in (1, 2, 3)
    ]
    assert read_feed(upgraded, "default", awaits=3)[0] == [1, 2, 3]


def test_tokens_namespaces_and_what_is_said_of_the_installation_stay(upgraded: Database) -> None:
    token = upgraded.read(lambda c: tokens.find_by_secret(c, "hor_a-token-of-0-1-0", now=_BEGAN))
    assert token is not None
    assert (token.name, token.role) == ("ci", "admin")
    assert [each.namespace for each in upgraded.read(namespaces.all_namespaces)] == ["default"]
    assert upgraded.read(installation.planned_with) == "2026.1"


def test_a_note_moves_from_the_document_to_the_schedule(old: Database) -> None:
    def write(connection: Connection) -> None:
        rows = connection.exec_driver_sql("SELECT document FROM schedule_revisions").all()
        for (text,) in rows:
            noted = json.dumps({**json.loads(text), "note": "it's “noted”"})
            change = sa.text("UPDATE schedule_revisions SET document = :noted WHERE document = :text")
            connection.execute(change, {"noted": noted, "text": text})

    old.write(write)
    migrate(old)
    assert {_schedule(old, name).note for name in ("Morning-Report", "every-hour")} == {"it's “noted”"}
