"""Namespaces."""

from __future__ import annotations

import pytest

from horarium.store import namespaces
from horarium.store.database import Database
from horarium.store.errors import Conflict


def test_a_namespace_is_made_once_and_found(database: Database) -> None:
    database.write(lambda c: namespaces.insert(c, "acme", "the others", now=3))
    assert database.read(lambda c: namespaces.find(c, "acme")) == namespaces.NamespaceRow("acme", "the others", 3)
    assert database.read(lambda c: namespaces.find(c, "nobody")) is None
    assert [row.namespace for row in database.read(namespaces.all_namespaces)] == ["acme", "default"]
    with pytest.raises(Conflict) as taken:
        database.write(lambda c: namespaces.insert(c, "acme", "", now=4))
    assert taken.value.constraint == "namespaces_pkey"
