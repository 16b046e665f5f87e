"""What holds for the whole installation is kept under that name: `facts` are what decisions are made from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _move("facts", "installation")


def downgrade() -> None:
    _move("installation", "facts")


def _move(old: str, new: str) -> None:
    """Two rows; a new table, since a renamed one keeps the old name in its constraint, or quotes the new one."""
    op.create_table(new, sa.Column("name", sa.Text(), primary_key=True), sa.Column("value", sa.Text(), nullable=False))
    op.execute(f"INSERT INTO {new} (name, value) SELECT name, value FROM {old}")
    op.drop_table(old)
