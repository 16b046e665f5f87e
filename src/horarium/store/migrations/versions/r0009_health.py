"""Which schedules fail, an index of them; and notices, which the feed tells without a number in any audit stream."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_FAILING = sa.text("failures_in_a_row >= 3 AND status <> 'deleted'")
_NOTICE = sa.text("sequence IS NULL")
_COLUMNS = (
    "feed_id, transaction_id, schedule_uid, sequence, namespace, event_type, recorded_at, nominal, nominal_last, "
    "run_id, payload"
)


def upgrade() -> None:
    op.create_index("positions_failing", "positions", ["namespace"], postgresql_where=_FAILING, sqlite_where=_FAILING)
    op.create_table(
        "unwell_schedules",
        sa.Column("schedule_uid", sa.LargeBinary(16), primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
    )
    _let_be_null(True)
    op.create_index("history_notices", "history", ["recorded_at"], postgresql_where=_NOTICE, sqlite_where=_NOTICE)


def downgrade() -> None:
    """What has no place in a stream is lost."""
    op.drop_index("history_notices", "history")
    op.execute("DELETE FROM history WHERE sequence IS NULL")
    _let_be_null(False)
    op.drop_table("unwell_schedules")
    op.drop_index("positions_failing", "positions")


def _let_be_null(nullable: bool) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _write_anew(nullable)
    else:
        op.alter_column("history", "schedule_uid", nullable=nullable)
        op.alter_column("history", "sequence", nullable=nullable)


def _write_anew(nullable: bool) -> None:
    """SQLite changes no column, and does not let a table go that a view names."""
    bind = op.get_bind()
    view = bind.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'v_history'").scalar_one()
    op.execute("DROP VIEW v_history")
    op.drop_index("history_in_order", "history")
    op.drop_index("history_feed", "history")
    op.rename_table("history", "history_before")
    op.create_table(
        "history",
        sa.Column("feed_id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("transaction_id", sa.BigInteger()),
        sa.Column("schedule_uid", sa.LargeBinary(16), nullable=nullable),
        sa.Column("sequence", sa.BigInteger(), nullable=nullable),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("nominal", sa.BigInteger()),
        sa.Column("nominal_last", sa.BigInteger()),
        sa.Column("run_id", sa.LargeBinary(16)),
        sa.Column("payload", sa.Text(), nullable=False),
    )
    op.execute(f"INSERT INTO history ({_COLUMNS}) SELECT {_COLUMNS} FROM history_before")
    op.drop_table("history_before")
    op.create_index("history_in_order", "history", ["schedule_uid", "sequence"], unique=True)
    op.create_index("history_feed", "history", ["namespace", "transaction_id", "feed_id"])
    bind.exec_driver_sql(view)
