"""The triggers that protect the audit, and the functions that detect a restored PostgreSQL server.

An audit entry cannot be changed, and can be deleted only if the checkpoint in the head of its chain covers it. A head
moves forward only and cannot be deleted.

A server has an identity and a timeline: a restore from a dump changes the first, a point-in-time recovery the second.
The service calls `horarium_notice_server` on every new connection, before it writes.
"""

from __future__ import annotations

from alembic import op

_CHANGED = "an entry of the audit cannot be changed"
_DELETED = "an entry of the audit cannot be deleted"
_HEAD = "the head of an audit chain only moves forward"
_BACKWARDS = (
    "NEW.namespace <> OLD.namespace OR NEW.sequence < OLD.sequence OR NEW.trimmed_sequence < OLD.trimmed_sequence"
)
_NOT_TRIMMED = (
    "NOT EXISTS (SELECT 1 FROM audit_heads "
    "WHERE audit_heads.namespace = OLD.namespace AND audit_heads.trimmed_sequence >= OLD.sequence)"
)

_AUDIT_SQLITE = (
    f"CREATE TRIGGER audit_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, '{_CHANGED}'); END",
    "CREATE TRIGGER audit_deleted BEFORE DELETE ON audit BEGIN "
    f"SELECT RAISE(ABORT, '{_DELETED}') WHERE {_NOT_TRIMMED}; END",
    "CREATE TRIGGER audit_head_moved BEFORE UPDATE ON audit_heads "
    f"WHEN {_BACKWARDS} BEGIN SELECT RAISE(ABORT, '{_HEAD}'); END",
    f"CREATE TRIGGER audit_head_deleted BEFORE DELETE ON audit_heads BEGIN SELECT RAISE(ABORT, '{_HEAD}'); END",
)
_AUDIT_POSTGRES = (
    "CREATE FUNCTION horarium_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"IF TG_OP = 'DELETE' THEN IF {_NOT_TRIMMED} THEN RAISE EXCEPTION '{_DELETED}'; END IF; RETURN OLD; END IF; "
    f"RAISE EXCEPTION '{_CHANGED}'; END $$",
    "CREATE FUNCTION horarium_keep_audit_head() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"IF TG_OP <> 'UPDATE' THEN RAISE EXCEPTION '{_HEAD}'; END IF; "
    f"IF {_BACKWARDS} THEN RAISE EXCEPTION '{_HEAD}'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER audit_changed BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION horarium_keep_audit()",
    "CREATE TRIGGER audit_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION horarium_keep_audit()",
    "CREATE TRIGGER audit_head_moved BEFORE UPDATE OR DELETE ON audit_heads "
    "FOR EACH ROW EXECUTE FUNCTION horarium_keep_audit_head()",
    "CREATE TRIGGER audit_heads_emptied BEFORE TRUNCATE ON audit_heads "
    "FOR EACH STATEMENT EXECUTE FUNCTION horarium_keep_audit_head()",
)

# Returns '' where the server does not tell, as some hosted servers do not.
_SERVER = """
CREATE FUNCTION horarium_server() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF pg_is_in_recovery() THEN RETURN ''; END IF;
  RETURN left(encode(sha256(convert_to(
    (SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8), 'UTF8'
  )), 'hex'), 8);
EXCEPTION WHEN OTHERS THEN RETURN '';
END $$
"""
_NOTICE = """
CREATE FUNCTION horarium_notice_server() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  here text := horarium_server();
  newest feed_epochs%ROWTYPE;
BEGIN
  SELECT * INTO newest FROM feed_epochs ORDER BY epoch DESC LIMIT 1;
  IF here = '' OR here = newest.server THEN RETURN; END IF;
  INSERT INTO feed_epochs (epoch, server, first_feed_id)
  SELECT COALESCE(newest.epoch, 0) + 1, here,
    CASE WHEN newest.epoch IS NULL THEN 0 ELSE COALESCE(max(feed_id), 0) + 1 END
  FROM history ON CONFLICT DO NOTHING;
END $$
"""


def create_triggers(on_postgres: bool) -> None:
    postgres = (*_AUDIT_POSTGRES, _SERVER, _NOTICE, "SELECT horarium_notice_server()")
    for statement in postgres if on_postgres else _AUDIT_SQLITE:
        op.execute(statement)
