"""What is due by namespace, since namespaces take turns; and who needs a planning text, since retention asks."""

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
    op.create_index("schedule_revisions_by_planning", "schedule_revisions", ["planning"])


def downgrade() -> None:
    op.drop_index("schedule_revisions_by_planning", "schedule_revisions")
    op.drop_index("positions_due_by_namespace", "positions")
