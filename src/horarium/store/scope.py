"""The namespaces that a query covers: one of them, or all for an admin of the installation.

A namespace that is being removed is in none of them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import sqlalchemy as sa

from horarium.store.tables import namespaces

Scope: TypeAlias = str | None
"""A namespace; None = all of the installation."""


_GONE = sa.select(namespaces.c.namespace).where(namespaces.c.deleted_at.is_not(None))
_LIVE = sa.select(namespaces.c.namespace).where(namespaces.c.deleted_at.is_(None))


def within(column: sa.ColumnElement[Any], scope: Scope) -> sa.ColumnElement[bool]:
    """For a list in the order of ids, which needs no index on the namespace to cover all of them."""
    return column.not_in(_GONE) if scope is None else column == scope


def within_each(column: sa.ColumnElement[Any], scope: Scope) -> sa.ColumnElement[bool]:
    """For a count along an index that begins with the namespace: SQLite seeks each namespace in it."""
    return column.in_(_LIVE) if scope is None else column == scope
