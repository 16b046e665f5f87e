"""What grows with time is kept by weeks on PostgreSQL, and final runs get a table of their own beside `runs`.

`history`, `run_events` and `run_logs` become partitioned tables of the same names and columns. What they held is the
partition of the past, as it is: only the two unique indexes of history are built anew, since they must hold the
column by which it is partitioned. Whatever lies in no week goes into the partition `…_default`. SQLite has none of
this. Both databases get an index of the runs that did not go well.
"""

from __future__ import annotations

from typing import NamedTuple

from alembic import op

from horarium.store.database.grants import grant_as_before
from horarium.store.migrations.versions.r0002_views import RUNS, V_HISTORY, V_RUNS, create_view
from horarium.store.migrations.versions.r0017_workflows import V_RUNS_MORE

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
oldest_code = "0018"
brings = "partitions by weeks and an archive of old runs (both on PostgreSQL), and an index of runs that went wrong"

LOCK_WAIT = "5s"
"""For a transaction that is open, such as that of a backup; then all is undone, and tried again."""

_HISTORY = "history h LEFT JOIN schedules s USING (schedule_uid)"
_ALL_RUNS = RUNS.replace("runs r", "(SELECT * FROM runs UNION ALL SELECT * FROM runs_archive) r")
_SHOWN_OF_RUNS = f"{V_RUNS}{V_RUNS_MORE} r.heard"


class _Index(NamedTuple):
    """`name` comes after that of the table."""

    name: str
    columns: str
    where: str = ""
    unique: bool = False


class _Partitioned(NamedTuple):
    table: str
    by: str
    key: str
    indexes: tuple[_Index, ...] = ()


_HISTORY_INDEXES = (
    _Index("in_order", "schedule_uid, sequence, recorded_at", unique=True),
    _Index("feed", "namespace, transaction_id, feed_id"),
    _Index("by_occurrence", "namespace, nominal", "nominal IS NOT NULL"),
    _Index("notices", "recorded_at", "sequence IS NULL"),
)
# For the doors that read runs; none keeps a promise, since what is here is over.
_UNSUCCESSFUL = _Index(
    "unsuccessful",
    "namespace, state, run_id",
    "state IN ('cancelled', 'expired', 'failed', 'launch_failed', 'rejected', 'skipped', 'terminated', 'timed_out', "
    "'unknown')",
)
_ARCHIVE_INDEXES = (
    _UNSUCCESSFUL,
    _Index("by_schedule", "schedule_uid, run_id"),
    _Index("by_namespace", "namespace, run_id"),
    _Index("by_workflow", "namespace, workflow, run_id", "workflow IS NOT NULL"),
    _Index("by_occurrence", "schedule_uid, nominal", "origin IN ('scheduled', 'backfill')"),
    _Index("by_callers_key", "namespace, external_key", "external_key IS NOT NULL"),
    _Index("by_assignee", "namespace, assignee, run_id", "assignee IS NOT NULL"),
    _Index("by_member", "namespace, member, run_id", "member IS NOT NULL"),
    _Index("by_parent", "parent_run_id, node_id", "parent_run_id IS NOT NULL"),
    _Index("steps", "root_run_id", "root_run_id IS NOT NULL"),
    _Index("reruns", "rerun_of", "rerun_of IS NOT NULL"),
)
_GROWING = (
    _Partitioned("history", "recorded_at", "feed_id, recorded_at", _HISTORY_INDEXES),
    _Partitioned("run_events", "run_id", "run_id, sequence"),
    _Partitioned("run_logs", "run_id", "run_id, sequence"),
)
_ARCHIVE = _Partitioned("runs_archive", "run_id", "run_id", _ARCHIVE_INDEXES)

# The first instant of next week, in UTC: by then somebody has made a partition for it.
_EDGE = "(extract(epoch FROM date_trunc('week', now() AT TIME ZONE 'UTC') + interval '7 days') * 1000000)::bigint"
# The lowest id of that millisecond, as a UUIDv7 has it.
_EDGE_ID = f"lpad(to_hex({_EDGE} / 1000), 12, '0') || '70008000000000000000'"


def upgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    if on_postgres:
        # Whoever needs one of these tables waits as long as we do, and goes on for as long as we have not begun.
        op.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
    _create_index(_UNSUCCESSFUL, "runs")
    if on_postgres:
        _keep_by_weeks()


def _keep_by_weeks() -> None:
    # All of them before any is changed: whoever uses one of them next waits here, and not half way.
    op.execute(f"LOCK TABLE {', '.join(each.table for each in _GROWING)} IN ACCESS EXCLUSIVE MODE")
    for each in _GROWING:
        _partition(each)
    op.execute(f"CREATE TABLE runs_archive (LIKE runs INCLUDING DEFAULTS) PARTITION BY RANGE ({_ARCHIVE.by})")
    _create_indexes(_ARCHIVE, _ARCHIVE.table)
    _create_default(_ARCHIVE)
    _create_past_of_archive()
    grant_as_before(op.get_bind(), "runs", "runs_archive")
    create_view("v_history", V_HISTORY, _HISTORY, on_postgres=True, anew=True)
    create_view("v_runs", _SHOWN_OF_RUNS, _ALL_RUNS, on_postgres=True, anew=True)
    for each in _GROWING:
        _drop_if_empty(f"{each.table}_before")


def _create_past_of_archive() -> None:
    """For the runs that are there already: they move in one after the other, and go together."""
    if op.get_bind().exec_driver_sql("SELECT EXISTS (SELECT FROM runs)").scalar_one():
        name = f"{_ARCHIVE.table}_before"
        op.execute(f"CREATE TABLE {name} (LIKE {_ARCHIVE.table} INCLUDING DEFAULTS)")
        _create_indexes(_ARCHIVE, name)
        op.execute(
            f"ALTER TABLE {_ARCHIVE.table} ATTACH PARTITION {name} FOR VALUES FROM (MINVALUE) TO ({_edge(_ARCHIVE)})"
        )


def _partition(of: _Partitioned) -> None:
    before = f"{of.table}_before"
    _rename(of.table, before)
    op.execute(
        f"CREATE TABLE {of.table} (LIKE {before} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE ({of.by})"
    )
    if of.table == "history":
        op.execute("ALTER SEQUENCE history_feed_id_seq OWNED BY history.feed_id")
        _key_anew(of, before)
    _create_indexes(of, of.table)
    _create_default(of)
    edge = _edge(of)
    # A clock that was ahead: it is not to keep the weeks to come in the partition of the past.
    op.execute(
        f"WITH later AS (DELETE FROM {before} WHERE {of.by} >= {edge} RETURNING *) "
        f"INSERT INTO {of.table}_default SELECT * FROM later"
    )
    op.execute(f"ALTER TABLE {of.table} ATTACH PARTITION {before} FOR VALUES FROM (MINVALUE) TO ({edge})")
    grant_as_before(op.get_bind(), before, of.table)


def _edge(of: _Partitioned) -> str:
    connection = op.get_bind()
    if of.by == "recorded_at":
        return str(connection.exec_driver_sql(f"SELECT {_EDGE}").scalar_one())
    return f"'\\x{connection.exec_driver_sql(f'SELECT {_EDGE_ID}').scalar_one()}'::bytea"


def _rename(table: str, name: str) -> None:
    """With its indexes and keys, whose names the partitioned table takes."""
    op.execute(f"ALTER TABLE {table} RENAME TO {name}")
    own = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass"
    for (index,) in op.get_bind().exec_driver_sql(own, (name,)).all():
        if index.startswith(f"{table}_"):
            op.execute(f"ALTER INDEX {index} RENAME TO {name}{index.removeprefix(table)}")


def _key_anew(of: _Partitioned, before: str) -> None:
    op.execute(f"ALTER TABLE {before} DROP CONSTRAINT {before}_pkey, ADD PRIMARY KEY ({of.key})")
    op.execute(f"DROP INDEX {before}_in_order")
    op.execute(f"CREATE UNIQUE INDEX {before}_in_order ON {before} (schedule_uid, sequence, recorded_at)")


def _create_indexes(of: _Partitioned, table: str) -> None:
    op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY ({of.key})")
    for each in of.indexes:
        _create_index(each, table)


def _create_index(index: _Index, table: str) -> None:
    kind = "UNIQUE INDEX" if index.unique else "INDEX"
    where = f" WHERE {index.where}" if index.where else ""
    op.execute(f"CREATE {kind} {table}_{index.name} ON {table} ({index.columns}){where}")


def _create_default(of: _Partitioned) -> None:
    name = f"{of.table}_default"
    op.execute(f"CREATE TABLE {name} (LIKE {of.table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    _create_indexes(of, name)
    op.execute(f"ALTER TABLE {of.table} ATTACH PARTITION {name} DEFAULT")


def _drop_if_empty(table: str) -> None:
    """A new database has no past."""
    if not op.get_bind().exec_driver_sql(f"SELECT EXISTS (SELECT FROM {table})").scalar_one():
        op.execute(f"DROP TABLE {table}")


def downgrade() -> None:
    """Runs of the archive go back among the others."""
    op.execute("DROP INDEX runs_unsuccessful")
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute("INSERT INTO runs SELECT * FROM runs_archive")
    create_view("v_runs", _SHOWN_OF_RUNS, RUNS, on_postgres=True, anew=True)
    op.execute("DROP TABLE runs_archive")
    for each in _GROWING:
        _whole_again(each)
    create_view("v_history", V_HISTORY, _HISTORY, on_postgres=True, anew=True)
    for each in _GROWING:
        op.execute(f"DROP TABLE {each.table}_by_weeks")


def _whole_again(of: _Partitioned) -> None:
    apart = f"{of.table}_by_weeks"
    _rename(of.table, apart)
    op.execute(f"CREATE TABLE {of.table} (LIKE {apart} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    op.execute(f"INSERT INTO {of.table} SELECT * FROM {apart}")
    whole = of
    if of.table == "history":
        op.execute("ALTER SEQUENCE history_feed_id_seq OWNED BY history.feed_id")
        in_order = _Index("in_order", "schedule_uid, sequence", unique=True)
        whole = of._replace(key="feed_id", indexes=(in_order, *_HISTORY_INDEXES[1:]))
    _create_indexes(whole, of.table)
    grant_as_before(op.get_bind(), apart, of.table)
