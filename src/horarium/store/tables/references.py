"""The tables of what schedules refer to, and of what is counted across them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text

from horarium.store.tables.schema import metadata

calendars = Table(
    "calendars",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("bundle", Text),  # the one that brought it
    Column("owner", Text),  # who may change it beside admins; NULL = whoever may write
    PrimaryKeyConstraint("namespace", "name"),
)

# The releases of applications whose templates were put in place; `number` says in which order they first were.
releases = Table(
    "releases",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("bundle", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("namespace", "bundle", "release"),
)

workflows = Table(
    "workflows",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("owner", Text),
    Column("cycle", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("bundle", Text),
    Column("created_by", Text),
    # Of its document, so that lists and searches need not read it.
    Column("name", Text),
    Column("nodes", Integer),  # how many
    Column("uses", Text),  # JSON: the workflows that its nodes name, each with its version; NULL = none
    PrimaryKeyConstraint("namespace", "workflow_id", "version"),
)

agents = Table(
    "agents",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("bundle", Text),
    Column("parent_id", Text),
    Column("last_seen_at", BigInteger),
    # What it says of itself, as it was found last; NULL = nobody has asked, or it could not be had.
    Column("card", Text),
    Column("card_etag", Text),
    Column("card_at", BigInteger),
    Column("card_error", Text),
    Column("dialect", Text),  # of the protocol: that in which it answered last
    PrimaryKeyConstraint("namespace", "agent_id"),
)

teams = Table(
    "teams",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("team_id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("bundle", Text),
    PrimaryKeyConstraint("namespace", "team_id"),
)

assignments = Table(
    "assignments",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("assignment_id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("bundle", Text),
    PrimaryKeyConstraint("namespace", "assignment_id"),
)

# `kind` is spent, runs or key; `day` is the UTC day for the first two and 0 for a concurrency key.
counters = Table(
    "counters",
    metadata,
    Column("kind", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("day", Integer, nullable=False),
    Column("value", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "owner", "day"),
)
