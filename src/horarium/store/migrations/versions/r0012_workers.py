"""What waits on a queue is found by its type, since workers ask for what they know; and runs keep what they say."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    queued = sa.text("state = 'queued'")
    op.create_index(
        "runs_queued_by_type",
        "runs",
        ["namespace", "queue", "workflow", sa.text("priority DESC"), "run_id"],
        postgresql_where=queued,
        sqlite_where=queued,
    )
    op.create_table(
        "run_logs",
        sa.Column("run_id", sa.LargeBinary(16), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sequence"),
    )


def downgrade() -> None:
    """What runs have said is lost."""
    op.drop_table("run_logs")
    op.drop_index("runs_queued_by_type", "runs")
