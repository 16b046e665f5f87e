"""Schedules and calendars know the bundle that brought them, and bundles of applications their releases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schedules", sa.Column("bundle", sa.Text()))
    op.add_column("calendars", sa.Column("bundle", sa.Text()))
    owned = sa.text("bundle IS NOT NULL")
    op.create_index(
        "schedules_by_bundle",
        "schedules",
        ["bundle", "namespace", "created_at"],
        postgresql_where=owned,
        sqlite_where=owned,
    )
    op.create_table(
        "releases",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("bundle", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "bundle", "release"),
    )


def downgrade() -> None:
    op.drop_table("releases")
    op.drop_index("schedules_by_bundle", "schedules")
    op.drop_column("calendars", "bundle")
    op.drop_column("schedules", "bundle")
