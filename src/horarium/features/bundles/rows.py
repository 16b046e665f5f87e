"""SQL of releases: which have registered their templates, in the order in which they first did."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.platform.database.tables import releases

MOST_RELEASES = 200
"""Releases kept per application; an older release that reappears counts as new."""


def release_numbers(connection: Connection, namespace: str, bundle: str) -> dict[str, int]:
    """By release."""
    own = _of(namespace, bundle)
    rows = connection.execute(sa.select(releases.c.release, releases.c.number).where(*own)).all()
    return {row.release: row.number for row in rows}


def add_release(connection: Connection, namespace: str, bundle: str, release: str, number: int) -> None:
    """For whoever holds the lock of the namespace."""
    connection.execute(sa.insert(releases).values(namespace=namespace, bundle=bundle, release=release, number=number))
    connection.execute(sa.delete(releases).where(*_of(namespace, bundle), releases.c.number <= number - MOST_RELEASES))


def _of(namespace: str, bundle: str) -> tuple[sa.ColumnElement[bool], ...]:
    return releases.c.namespace == namespace, releases.c.bundle == bundle
