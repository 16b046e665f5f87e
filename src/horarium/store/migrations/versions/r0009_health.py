"""Which schedules fail: an index of them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_FAILING = text("failures_in_a_row >= 3 AND status <> 'deleted'")


def upgrade() -> None:
    op.create_index("positions_failing", "positions", ["namespace"], postgresql_where=_FAILING, sqlite_where=_FAILING)


def downgrade() -> None:
    op.drop_index("positions_failing", "positions")
