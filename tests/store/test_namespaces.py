"""Namespaces."""

from __future__ import annotations

import pytest

from horarium.features.tenants import rows as tenant_rows
from horarium.platform.database import Database
from horarium.platform.database.errors import UniqueConflict


def test_a_namespace_is_made_once_and_found(database: Database) -> None:
    database.write(lambda c: tenant_rows.insert_namespace(c, "acme", "the others", now=3))
    assert database.read(lambda c: tenant_rows.find_namespace(c, "acme")) == tenant_rows.NamespaceRow(
        "acme", "the others", 3
    )
    assert database.read(lambda c: tenant_rows.find_namespace(c, "nobody")) is None
    assert [row.namespace for row in database.read(tenant_rows.all_namespaces)] == ["acme", "default"]
    with pytest.raises(UniqueConflict) as taken:
        database.write(lambda c: tenant_rows.insert_namespace(c, "acme", "", now=4))
    assert taken.value.constraint == "namespaces_pkey"
