"""How a PostgreSQL database that a test has used becomes as good as new: emptied, and with the rows of its template.

Whoever is still connected is thrown out, tables with something in them are truncated, and what the migrations had
written is put back. One whose schema is not the template's any more, or that somebody has analysed, is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

import psycopg
from psycopg import sql
from sqlalchemy import make_url

_LEFT: dict[str, list[str]] = defaultdict(list)
_PATIENCE = "10s"

# Of a partition its table: the numbers that begin anew are counted there.
_FILLED = """
SELECT DISTINCT coalesce(pg_partition_root(oid), oid)::regclass::text FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 ORDER BY 1
"""
_SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1"
# All that a test may have changed beside rows, in one text; statistics, since plans depend on them.
_SHAPE = """
SELECT md5(string_agg(line, ',' ORDER BY line)) FROM (
  SELECT format('%s %s %s %s', relname, relkind, reloptions, relpersistence) AS line FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s.%s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull, atthasdef)
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0
  UNION ALL SELECT format('%s %s %s', tgrelid::regclass, tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT pg_get_indexdef(indexrelid) || indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT proname || prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT viewname || definition FROM pg_views WHERE schemaname = 'public'
  UNION ALL SELECT nspname || coalesce(nspacl::text, '') FROM pg_namespace
    WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
  UNION ALL SELECT 'statistics of ' || starelid::regclass FROM pg_statistic JOIN pg_class c ON c.oid = starelid
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT 'settings ' || array_to_string(setconfig, ',') FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS lines
"""
_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class _Template(NamedTuple):
    shape: str
    rows: dict[str, bytes]
    sequences: tuple[tuple[str, int | None], ...]


def give_back(template: str, name: str) -> None:
    """Somebody may want it next; the server and all that is in it end with the session."""
    _LEFT[template].append(name)


def emptied(server: str, template: str) -> str | None:
    """One that is as the template is; None = there is none, and one has to be made."""
    while _LEFT[template]:
        name = _LEFT[template].pop()
        if _empty(server, template, name):
            return name
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
    return None


@lru_cache
def _read_template(server: str, template: str) -> _Template:
    with psycopg.connect(_address(server, template), autocommit=True) as connection:
        rows = {table: _copied(connection, table) for (table,) in connection.execute(_FILLED)}
        return _Template(_shape(connection), rows, tuple(connection.execute(_SEQUENCES).fetchall()))


def _empty(server: str, template: str, name: str) -> bool:
    wanted = _read_template(server, template)
    try:
        with psycopg.connect(_address(server, name)) as connection:
            connection.execute(_OTHERS)
            if _shape(connection) != wanted.shape:
                return False
            # Triggers that keep entries from being taken away are none of ours.
            connection.execute(f"SET LOCAL session_replication_role = replica; SET LOCAL lock_timeout = '{_PATIENCE}'")
            filled = [sql.Identifier(table) for (table,) in connection.execute(_FILLED)]
            if filled:
                connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(sql.SQL(", ").join(filled)))
            for table, content in wanted.rows.items():
                with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
                    copy.write(content)
            return tuple(connection.execute(_SEQUENCES).fetchall()) == wanted.sequences
    except psycopg.Error:
        return False


def _copied(connection: psycopg.Connection[tuple[object, ...]], table: object) -> bytes:
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(str(table)))) as copy:
        return b"".join(bytes(piece) for piece in copy)


def _shape(connection: psycopg.Connection[tuple[object, ...]]) -> str:
    found = connection.execute(_SHAPE).fetchone()
    assert found is not None
    return str(found[0])


def _address(server: str, name: str) -> str:
    return make_url(server).set(database=name).render_as_string(hide_password=False)
