"""Runs know who claimed them, tokens the queues that they are good for, and calendars their owner."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("claimed_by", sa.Text()))
    op.add_column("tokens", sa.Column("queues", sa.Text()))
    op.add_column("calendars", sa.Column("owner", sa.Text()))


def downgrade() -> None:
    """Tokens are good for every queue again, and calendars for whoever may write."""
    op.drop_column("calendars", "owner")
    op.drop_column("tokens", "queues")
    op.drop_column("runs", "claimed_by")
