"""An index of what is due by namespace: when more is due than one batch holds, namespaces take turns."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    active = text("status = 'active'")
    op.create_index(
        "positions_due_by_namespace",
        "positions",
        ["namespace", "next_due"],
        postgresql_where=active,
        sqlite_where=active,
    )


def downgrade() -> None:
    op.drop_index("positions_due_by_namespace", "positions")
