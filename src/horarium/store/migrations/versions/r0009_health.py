"""Who is told of failures: an index of what fails, notices, which no audit stream numbers, and subscriptions."""

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
    _create_subscriptions()
    _let_be_null(True)
    op.create_index("history_notices", "history", ["recorded_at"], postgresql_where=_NOTICE, sqlite_where=_NOTICE)


def downgrade() -> None:
    """What has no place in a stream is lost."""
    op.drop_index("history_notices", "history")
    op.execute("DELETE FROM history WHERE sequence IS NULL")
    _let_be_null(False)
    for table in ("unwell_schedules", "dead_letters", "subscriptions"):
        op.drop_table(table)
    op.drop_index("positions_failing", "positions")


def _create_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("subscription_id", sa.LargeBinary(16), primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("filter", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("cursor", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.BigInteger()),
        sa.Column("delivered_count", sa.BigInteger(), nullable=False),
        sa.Column("last_delivered_at", sa.BigInteger()),
        sa.Column("last_error", sa.Text()),
        sa.Column("last_error_at", sa.BigInteger()),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.BigInteger()),
    )
    op.create_index("subscriptions_by_name", "subscriptions", ["namespace", "name"], unique=True)
    op.create_table(
        "dead_letters",
        sa.Column("dead_letter_id", sa.LargeBinary(16), primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("subscription_id", sa.LargeBinary(16), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("failed_at", sa.BigInteger(), nullable=False),
        sa.Column("redeliver_at", sa.BigInteger()),
    )
    op.create_index("dead_letters_of_one", "dead_letters", ["subscription_id", "dead_letter_id"])
    asked = sa.text("redeliver_at IS NOT NULL")
    op.create_index(
        "dead_letters_to_redeliver",
        "dead_letters",
        ["subscription_id"],
        postgresql_where=asked,
        sqlite_where=asked,
    )


def _let_be_null(nullable: bool) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _write_anew(nullable)
    else:
        op.alter_column("history", "schedule_uid", nullable=nullable)
        op.alter_column("history", "sequence", nullable=nullable)


def _write_anew(nullable: bool) -> None:
    """SQLite changes no column, and does not let a table go that a view names.

    From here on it gives no number twice: a cursor may stand behind rows that were deleted since.
    """
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
        sqlite_autoincrement=nullable,
    )
    op.execute(f"INSERT INTO history ({_COLUMNS}) SELECT {_COLUMNS} FROM history_before")
    op.drop_table("history_before")
    op.create_index("history_in_order", "history", ["schedule_uid", "sequence"], unique=True)
    op.create_index("history_feed", "history", ["namespace", "transaction_id", "feed_id"])
    bind.exec_driver_sql(view)
