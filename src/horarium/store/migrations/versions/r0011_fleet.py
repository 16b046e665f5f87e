"""For those who look after many: pauses that end, history by time, runs done again, and secrets in turn."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_ENDS = sa.text("status = 'paused' AND paused_until IS NOT NULL")
_ABOUT = sa.text("nominal IS NOT NULL")
_AGAIN = sa.text("rerun_of IS NOT NULL")
_ROTATED = sa.text("previous_sha256 IS NOT NULL")


def upgrade() -> None:
    op.add_column("positions", sa.Column("paused_until", sa.BigInteger()))
    op.add_column("positions", sa.Column("paused_by", sa.Text()))
    op.create_index("positions_paused_until", "positions", ["paused_until"], postgresql_where=_ENDS, sqlite_where=_ENDS)

    op.create_index(
        "history_by_occurrence", "history", ["namespace", "nominal"], postgresql_where=_ABOUT, sqlite_where=_ABOUT
    )
    op.add_column("runs", sa.Column("rerun_of", sa.LargeBinary(16)))
    op.create_index("runs_reruns", "runs", ["rerun_of"], postgresql_where=_AGAIN, sqlite_where=_AGAIN)
    op.add_column("tokens", sa.Column("previous_sha256", sa.Text()))
    op.add_column("tokens", sa.Column("previous_until", sa.BigInteger()))
    op.create_index(
        "tokens_by_previous",
        "tokens",
        ["previous_sha256"],
        unique=True,
        postgresql_where=_ROTATED,
        sqlite_where=_ROTATED,
    )
    op.add_column("namespaces", sa.Column("deleted_at", sa.BigInteger()))


def downgrade() -> None:
    """Pauses stay, and wait for somebody to end them; secrets that were rotated open nothing any more."""
    op.drop_column("namespaces", "deleted_at")
    op.drop_index("tokens_by_previous", "tokens")
    op.drop_column("tokens", "previous_until")
    op.drop_column("tokens", "previous_sha256")
    op.drop_index("runs_reruns", "runs")
    op.drop_column("runs", "rerun_of")
    op.drop_index("history_by_occurrence", "history")
    op.drop_index("positions_paused_until", "positions")
    op.drop_column("positions", "paused_by")
    op.drop_column("positions", "paused_until")
