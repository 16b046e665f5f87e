"""The chain in the database: what the database refuses, what is found where somebody has forced it, what may go."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.audit_entries import BEGINNING, AuditAction, ChainLink
from horarium.features.audit.service import ChainCheck, check
from horarium.features.schedules.due_rows import Plannings
from horarium.features.tenants import removal_rows
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import DAY
from horarium.platform.database import Database, audit_chain
from horarium.platform.database.errors import DataError
from horarium.platform.database.tables import audit as entries
from horarium.platform.database.tables import audit_heads

_TRIGGERS = {"sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
             "postgresql": "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"}  # fmt: skip


def write(database: Database, count: int, namespace: str = "default", now: int = 0) -> None:
    deeds = [AuditAction("issue_token", f"who{number}", detail={"name": "ci\x00"}) for number in range(count)]
    database.write(lambda connection: audit_chain.append(connection, namespace, deeds, now=now))


def verdict(database: Database, namespace: str = "default", kept: ChainLink | None = None) -> ChainCheck:
    (found,) = check(database, namespace=namespace, kept=kept)
    return found


def force(database: Database, *statements: str) -> None:
    """As the owner of the database, who can take the triggers away."""

    def work(connection: Connection) -> None:
        for name, table in connection.exec_driver_sql(_TRIGGERS[database.dialect]).all():
            suffix = f" ON {table}" if database.dialect == "postgresql" else ""
            connection.exec_driver_sql(f"DROP TRIGGER {name}{suffix}")
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.write(work)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET principal = 'nobody' WHERE sequence = 2",
        "DELETE FROM audit WHERE sequence = 3",
        "DELETE FROM audit_heads",
        "UPDATE audit_heads SET sequence = 2",
    ],
)
def test_the_database_itself_refuses_to_change_what_was_written(database: Database, statement: str) -> None:
    write(database, 3)
    with pytest.raises(Exception, match="audit") as refused:
        database.write(lambda connection: connection.exec_driver_sql(statement))
    assert database.dialect == "postgresql" or isinstance(refused.value, DataError)
    assert verdict(database).broken is None


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_not_even_all_of_it_can_be_emptied(database: Database) -> None:
    write(database, 1)
    for table in ("audit", "audit_heads"):
        with pytest.raises(Exception, match="audit"):
            database.write(lambda connection, table=table: connection.exec_driver_sql(f"TRUNCATE {table}"))


def test_what_an_attacker_does_by_force_is_found_at_its_first_entry(database: Database) -> None:
    write(database, 6)
    kept = verdict(database).head
    force(
        database,
        "UPDATE audit SET sequence = 100 WHERE sequence = 4",
        "UPDATE audit SET sequence = 4 WHERE sequence = 5",
        "UPDATE audit SET sequence = 5 WHERE sequence = 100",
    )
    assert [verdict(database).broken.sequence] == [4]  # type: ignore[union-attr]  # None would fail as well
    force(database, 'UPDATE audit SET detail = \'{"name":"other"}\' WHERE sequence = 2')
    assert [verdict(database).broken.sequence] == [2]  # type: ignore[union-attr]  # None would fail as well
    force(database, "UPDATE audit SET detail = 'no JSON' WHERE sequence = 1")
    assert [verdict(database).broken.sequence] == [1]  # type: ignore[union-attr]  # None would fail as well
    force(database, "DELETE FROM audit", "DELETE FROM audit_heads")
    assert verdict(database, kept=kept).broken is not None


def test_a_tail_that_is_cut_off_is_found_and_with_a_kept_head_also_one_whose_head_agrees(database: Database) -> None:
    write(database, 4)
    kept = verdict(database).head
    force(database, "DELETE FROM audit WHERE sequence > 2")
    found = verdict(database)
    assert found.broken is not None
    assert found.broken.sequence == 3
    force(
        database,
        "UPDATE audit_heads SET sequence = 2, hash = (SELECT hash FROM audit WHERE sequence = 2)",
    )
    assert verdict(database).broken is None
    assert verdict(database, kept=kept).broken is not None


def test_many_at_once_make_one_chain(database: Database, open_another: Callable[[], Database]) -> None:
    others = [database, open_another()]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: write(others[number % 2], 2), range(8)))
    found = verdict(database)
    assert (found.entries, found.broken) == (16, None)


def test_an_entry_goes_with_the_transaction_that_it_tells_of(database: Database) -> None:
    def work(connection: Connection) -> None:
        audit_chain.append(connection, "default", [AuditAction("x")], now=0)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        database.write(work)
    assert verdict(database).head == BEGINNING


def test_what_is_trimmed_leaves_a_checkpoint_from_which_the_rest_is_checked(database: Database) -> None:
    write(database, 3, now=0)
    write(database, 2, now=5 * DAY)
    write(database, 1, namespace="other", now=0)
    trimmed = 0
    while step := database.write(lambda connection: audit_chain.trim(connection, recorded_before=DAY, limit=2)):
        trimmed += step
    assert trimmed == 4
    found = verdict(database)
    assert (found.entries, found.head.sequence, found.broken) == (2, 5, None)
    assert verdict(database, "other").broken is None
    write(database, 1, namespace="other", now=5 * DAY)
    assert (verdict(database, "other").head.sequence, verdict(database, "other").broken) == (2, None)
    with pytest.raises(Exception, match="audit"):
        database.write(lambda connection: connection.execute(sa.delete(entries)))


def test_a_clock_that_was_set_back_opens_no_gap(database: Database) -> None:
    for now in (0, 5 * DAY, 1):
        write(database, 1, now=now)
    while database.write(lambda connection: audit_chain.trim(connection, recorded_before=DAY, limit=10)):
        pass
    assert (verdict(database).entries, verdict(database).broken) == (2, None)


def test_nothing_is_trimmed_behind_an_entry_that_was_changed(database: Database) -> None:
    write(database, 4)
    force(database, "UPDATE audit SET principal = 'mallory' WHERE sequence = 2")
    while database.write(lambda connection: audit_chain.trim(connection, recorded_before=DAY, limit=10)):
        pass
    found = verdict(database)
    assert found.broken is not None
    assert found.broken.sequence == 2


def test_a_namespace_that_is_deleted_leaves_its_audit_and_its_name_begins_anew(database: Database) -> None:
    database.write(lambda connection: tenant_rows.insert_namespace(connection, "tenant", "", now=0))
    write(database, 2, "tenant")
    database.write(lambda connection: removal_rows.mark_deleted(connection, "tenant", now=1))
    step = removal_rows.RemovalStep.MORE
    while step is removal_rows.RemovalStep.MORE:
        step = database.write(lambda connection: removal_rows.remove_some(connection, Plannings(), "tenant", now=2))
    assert (verdict(database, "tenant").entries, verdict(database, "tenant").broken) == (2, None)
    database.write(lambda connection: tenant_rows.insert_namespace(connection, "tenant", "", now=3))
    head = database.read(lambda connection: connection.execute(sa.select(audit_heads.c.own_after)).scalars().all())
    assert head == [2]
