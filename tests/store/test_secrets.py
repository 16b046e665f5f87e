"""Secrets lie in the database sealed, and whoever has the database alone opens nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretName
from horarium.platform.database import Database, installation
from horarium.platform.database.installation import CannotUnseal, KeyReplaced, Sealer
from horarium.platform.database.tables import secrets as table

VALUE = "Bearer sesame-5e5a3e"
SEALER = Sealer(b"k" * 32)


def put(database: Database, name: str, value: str = VALUE, namespace: str = "default", now: int = 1) -> SecretName:
    return database.write(lambda c: secret_rows.put(c, SEALER, namespace, name, value, ["a.example"], False, now))


def test_a_secret_is_set_replaced_and_deleted(database: Database) -> None:
    assert put(database, "erp") == SecretName("default", "erp", ("a.example",), False, None, 1, 1, 1)
    again = put(database, "erp", "another", now=2)
    assert (again.version, again.created_at, again.updated_at) == (2, 1, 2)
    found = database.read(lambda c: secret_rows.find_all(c, "default", ["erp", "none"]))
    assert secret_rows.opened(SEALER, found) == {"erp": "another"}
    assert database.write(lambda c: secret_rows.delete(c, "default", "erp"))
    assert not database.write(lambda c: secret_rows.delete(c, "default", "erp"))
    assert database.read(lambda c: secret_rows.find_all(c, "default", ["erp"])) == {}


def test_names_are_listed_in_their_namespace_without_values(database: Database) -> None:
    for name, namespace in (("b", "default"), ("a", "default"), ("c", "other")):
        put(database, name, namespace=namespace)
    rows = database.read(lambda c: secret_rows.names(c, "default"))
    assert [row.name for row in rows] == ["a", "b"]
    assert not hasattr(rows[0], "sealed")
    assert [row.name for row in database.read(lambda c: secret_rows.names(c, "default", after_name="a", limit=1))] == [
        "b"
    ]
    assert set(database.read(lambda c: secret_rows.find_names(c, "default", ["a", "c"]))) == {"a"}
    assert database.read(lambda c: secret_rows.find_all(c, "default", ["c"])) == {}
    assert database.read(lambda c: secret_rows.count(c, "default")) == 2


def test_a_row_that_is_copied_to_another_tenant_or_name_opens_nothing(database: Database) -> None:
    """Somebody who can write the database, but has no key, makes a stolen value the own one."""
    put(database, "erp")
    for namespace, name in (("thief", "erp"), ("default", "mine")):
        columns = [sa.literal(namespace), sa.literal(name), *list(table.c)[2:]]
        stolen = sa.select(*columns).where(table.c.namespace == "default", table.c.name == "erp")
        database.write(lambda c, stolen=stolen: c.execute(sa.insert(table).from_select(table.c.keys(), stolen)))
        row = database.read(lambda c, key=(namespace, name): secret_rows.find_all(c, key[0], [key[1]]))[name]
        with pytest.raises(CannotUnseal):
            row.unseal(SEALER)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_value_stands_in_no_file_of_the_database(database: Database, tmp_path: Path) -> None:
    put(database, "erp")
    files = [path for path in tmp_path.iterdir() if path.name.startswith("horarium.db")]
    assert any(b"a.example" in path.read_bytes() for path in files)
    assert not any(b"sesame" in path.read_bytes() for path in files)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_dump_of_all_tables_does_not_show_the_value(database: Database) -> None:
    row = put(database, "erp")
    dump = database.read(lambda c: repr(c.execute(sa.select(table)).all()))
    assert "erp" in dump
    assert "sesame" not in dump
    found = database.read(lambda c: secret_rows.find_all(c, "default", ["erp"]))
    assert "sesame" not in repr(found) + repr(row)
    assert found["erp"].sealed not in repr(found)


def test_a_process_with_a_replaced_key_seals_nothing(database: Database) -> None:
    """Nobody could ever open what it wrote."""
    old, new = Sealer(b"o" * 32, "old"), Sealer(b"n" * 32, "new")
    database.write(lambda c: installation.set_key_fingerprint(c, "new"))
    with pytest.raises(KeyReplaced, match="restart this process"):
        database.write(lambda c: secret_rows.put(c, old, "default", "erp", VALUE, None, False, 1))
    database.write(lambda c: secret_rows.put(c, new, "default", "erp", VALUE, None, False, 1))
