"""The service may work under a role that owns no tables, and goes on with what it was granted after an upgrade."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from later_release import become_later
from sqlalchemy import Connection, make_url
from structlog.testing import capture_logs
from world import FakeClock

from horarium.core.policy.limits import RetentionSubject
from horarium.engine.partitions import PartitionUpkeep, UpkeepResult
from horarium.instant import DAY, from_rfc3339
from horarium.platform.database import Database, open_database, partition_upkeep, schema
from horarium.platform.database.limits import Cutoffs
from horarium.platform.database.partitions import TABLES
from horarium.platform.database.schema import Fit
from horarium.platform.ids import id_text, new_id

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"])
NOW = from_rfc3339("2026-11-18T00:00:00Z")


def _grant(connection: Connection, role: str) -> None:
    """As somebody does who knows of the tables that are there."""
    connection.exec_driver_sql(f"CREATE ROLE {role}")
    connection.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    connection.exec_driver_sql(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")


@pytest.fixture
def role(empty_url: str) -> Iterator[str]:
    name = f"service_{id_text(new_id()).lower()}"
    yield name
    owner = open_database(empty_url)
    owner.write(lambda c: c.exec_driver_sql(f"DROP OWNED BY {name}"))
    owner.write(lambda c: c.exec_driver_sql(f"DROP ROLE {name}"))
    owner.close()


@pytest.fixture
def owner(empty_url: str, role: str) -> Iterator[Database]:
    """Return the database of the role that owns the tables."""
    database = open_database(empty_url)
    schema.migrate(database)
    database.write(lambda c: _grant(c, role))
    yield database
    database.close()


@pytest.fixture
def service(empty_url: str, owner: Database, role: str) -> Iterator[Database]:
    url = make_url(empty_url).update_query_dict({"options": f"-c role={role}"})
    database = open_database(url.render_as_string(hide_password=False))
    yield database
    database.close()


def _forgets(now: int) -> tuple[Cutoffs, Cutoffs]:
    old = now - 30 * DAY
    return Cutoffs(RetentionSubject.HISTORY, old, now, old), Cutoffs(RetentionSubject.RUNS, old, now, old)


def test_whoever_was_granted_the_tables_goes_on_after_the_migration(
    owner: Database, service: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    become_later(monkeypatch, tmp_path)
    assert schema.check_schema(service).fit is Fit.OLDER
    schema.migrate(owner)
    assert schema.check_schema(service).fit is Fit.EXACT


def test_whoever_owns_no_tables_leaves_the_weeks_to_others(owner: Database, service: Database) -> None:
    upkeep = PartitionUpkeep(service, FakeClock(NOW), _forgets)
    with capture_logs() as told:
        assert [upkeep.step(), upkeep.step()] == [UpkeepResult(), UpkeepResult()]
    assert [each["event"] for each in told] == ["partition_create_denied"]
    mine = PartitionUpkeep(owner, FakeClock(NOW), lambda _now: (None, None))
    assert mine.step() == UpkeepResult(made=5 * len(TABLES), more=True)
    later = PartitionUpkeep(service, FakeClock(NOW + 400 * DAY), _forgets)
    assert later.step() == UpkeepResult()
    assert len(owner.read(partition_upkeep.there)) == 6 * len(TABLES)
