"""Add the columns and tables that bound approvals, stored responses and the feed."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
oldest_code = "0018"
_FAILED = sa.text("failures_in_a_row > 0 AND status <> 'deleted'")

brings = "bounded standing approvals and a feed that no foreign transaction delays"


def _added() -> dict[str, tuple[sa.Column[Any], ...]]:
    """Return the new columns by table. SQLAlchemy lets a column object be used only once."""
    return {
        "subscriptions": (
            sa.Column("parked_at", sa.BigInteger()),
            sa.Column("unreadable_count", sa.BigInteger()),
            sa.Column("last_unreadable", sa.Text()),
        ),
        "standing_approvals": (
            sa.Column("made_token", sa.LargeBinary(16)),
            sa.Column("bound_to", sa.Text()),
            sa.Column("ended_at", sa.BigInteger()),
            sa.Column("ended_reason", sa.Text()),
        ),
        "schedules": (sa.Column("written_by", sa.Text()),),
    }


def upgrade() -> None:
    for table, columns in _added().items():
        for column in columns:
            op.add_column(table, column)
    op.create_index("positions_failed", "positions", ["namespace"], postgresql_where=_FAILED, sqlite_where=_FAILED)


def downgrade() -> None:
    op.drop_index("positions_failed", "positions")
    for table, columns in reversed(_added().items()):
        for column in reversed(columns):
            op.drop_column(table, column.name)
