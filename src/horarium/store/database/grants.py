"""Who may do what on PostgreSQL, where the service works under another role than the one that makes its tables."""

from __future__ import annotations

from sqlalchemy import Connection

_GRANTED = (
    "SELECT privilege_type, CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(rolname) END, is_grantable "
    "FROM pg_class, aclexplode(relacl) LEFT JOIN pg_roles ON pg_roles.oid = grantee "
    "WHERE pg_class.oid = %s::regclass AND grantee <> relowner AND (grantee = 0 OR rolname IS NOT NULL)"
)


def grant_as_before(connection: Connection, before: str, table: str) -> None:
    """Whoever was allowed something by name still is; a grant to a role that is gone is passed over by the join."""
    for privilege, role, may_grant in connection.exec_driver_sql(_GRANTED, (before,)).all():
        connection.exec_driver_sql(
            f"GRANT {privilege} ON {table} TO {role}{' WITH GRANT OPTION' if may_grant else ''}".replace("%", "%%")
        )
