"""The partitioned tables of PostgreSQL: each has a partition for the rows that are in no week of their own."""

from __future__ import annotations

from alembic import op

from horarium.platform.database.migrations.initial.indexes import indexes

_KEYS = {
    "history": "feed_id, recorded_at",
    "run_events": "run_id, sequence",
    "run_logs": "run_id, sequence",
    "runs_archive": "run_id",
}


def create_archive() -> None:
    op.execute("CREATE TABLE runs_archive (LIKE runs INCLUDING DEFAULTS) PARTITION BY RANGE (run_id)")
    op.execute("ALTER TABLE runs_archive ADD CONSTRAINT runs_archive_pkey PRIMARY KEY (run_id)")


def create_default_partitions() -> None:
    """Create each with its indexes and attach it then: PostgreSQL would name the indexes otherwise."""
    for table, key in _KEYS.items():
        name = f"{table}_default"
        op.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
        op.execute(f"ALTER TABLE {name} ADD CONSTRAINT {name}_pkey PRIMARY KEY ({key})")
        for index in indexes(on_postgres=True):
            if index.table == table:
                own = index._replace(name=name + index.name.removeprefix(table), table=name)
                op.execute(own.sql())
        op.execute(f"ALTER TABLE {table} ATTACH PARTITION {name} DEFAULT")
