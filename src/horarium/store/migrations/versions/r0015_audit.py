"""The audit: a chain of entries for each namespace, which the database itself refuses to change; runs name who asked.

An entry may be deleted only where the checkpoint in its head covers it. A head moves forward and is never deleted.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_CHANGED = "an entry of the audit cannot be changed"
_DELETED = "an entry of the audit cannot be deleted"
_HEAD = "the head of an audit chain only moves forward"
_BACKWARDS = (
    "NEW.namespace <> OLD.namespace OR NEW.sequence < OLD.sequence OR NEW.trimmed_sequence < OLD.trimmed_sequence"
)
_KEPT = (
    "NOT EXISTS (SELECT 1 FROM audit_heads "
    "WHERE audit_heads.namespace = OLD.namespace AND audit_heads.trimmed_sequence >= OLD.sequence)"
)

_SQLITE = (
    f"CREATE TRIGGER audit_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, '{_CHANGED}'); END",
    f"CREATE TRIGGER audit_deleted BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, '{_DELETED}') WHERE {_KEPT}; END",
    "CREATE TRIGGER audit_head_moved BEFORE UPDATE ON audit_heads "
    f"WHEN {_BACKWARDS} BEGIN SELECT RAISE(ABORT, '{_HEAD}'); END",
    f"CREATE TRIGGER audit_head_deleted BEFORE DELETE ON audit_heads BEGIN SELECT RAISE(ABORT, '{_HEAD}'); END",
)
_POSTGRES = (
    "CREATE FUNCTION horarium_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"IF TG_OP = 'DELETE' THEN IF {_KEPT} THEN RAISE EXCEPTION '{_DELETED}'; END IF; RETURN OLD; END IF; "
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


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("act", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.Column("source", sa.Text()),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "sequence"),
    )
    op.create_index("audit_by_act", "audit", ["namespace", "act", "sequence"])
    op.create_index("audit_by_principal", "audit", ["namespace", "principal", "sequence"])
    op.create_table(
        "audit_heads",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("trimmed_sequence", sa.BigInteger(), nullable=False),
        sa.Column("trimmed_hash", sa.Text(), nullable=False),
        sa.Column("own_after", sa.BigInteger(), nullable=False),
    )
    op.add_column("runs", sa.Column("requested_by", sa.Text()))
    for statement in _POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)


def downgrade() -> None:
    """What was done is no longer on record."""
    op.drop_column("runs", "requested_by")
    op.drop_table("audit")
    op.drop_table("audit_heads")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION horarium_keep_audit()")
        op.execute("DROP FUNCTION horarium_keep_audit_head()")
