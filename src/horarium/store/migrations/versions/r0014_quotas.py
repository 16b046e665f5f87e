"""Namespaces have quotas and days of their own to keep things, and are told what they have added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, kind in (("quotas", sa.Text()), ("keep_runs_days", sa.Integer()), ("keep_history_days", sa.Integer())):
        op.add_column("namespaces", sa.Column(name, kind))
    for name in ("bytes_stored", "bytes_base"):
        op.add_column("namespaces", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    sums = ("minute", "born", "births", "schedules", "bytes")
    op.create_table(
        "namespace_usage",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in sums),
        sa.PrimaryKeyConstraint("namespace", "shard"),
    )
    open_root = sa.text(
        "state IN ('awaiting_approval', 'held', 'launching', 'queued', 'ready', 'running') AND parent_run_id IS NULL"
    )
    op.create_index("runs_open_by_namespace", "runs", ["namespace"], postgresql_where=open_root, sqlite_where=open_root)


def downgrade() -> None:
    """Own limits are lost."""
    op.drop_index("runs_open_by_namespace", "runs")
    op.drop_table("namespace_usage")
    for name in ("bytes_base", "bytes_stored", "keep_history_days", "keep_runs_days", "quotas"):
        op.drop_column("namespaces", name)
