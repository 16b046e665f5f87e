"""What people need who look after many schedules: pauses that end, and history by the time of its occurrences."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_ENDS = sa.text("status = 'paused' AND paused_until IS NOT NULL")
_ABOUT = sa.text("nominal IS NOT NULL")


def upgrade() -> None:
    op.add_column("positions", sa.Column("paused_until", sa.BigInteger()))
    op.add_column("positions", sa.Column("paused_by", sa.Text()))
    op.create_index("positions_paused_until", "positions", ["paused_until"], postgresql_where=_ENDS, sqlite_where=_ENDS)

    op.create_index(
        "history_by_occurrence", "history", ["namespace", "nominal"], postgresql_where=_ABOUT, sqlite_where=_ABOUT
    )


def downgrade() -> None:
    """Pauses stay, and wait for somebody to end them."""
    op.drop_index("history_by_occurrence", "history")
    op.drop_index("positions_paused_until", "positions")
    with op.batch_alter_table("positions") as table:
        table.drop_column("paused_by")
        table.drop_column("paused_until")
