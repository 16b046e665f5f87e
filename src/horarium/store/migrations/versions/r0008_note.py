"""The note of a schedule lives beside its definition: a pause sets it too, and makes no new revision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schedules", sa.Column("note", sa.Text()))
    postgresql = op.get_bind().dialect.name == "postgresql"
    note = "(document::json) ->> 'note'" if postgresql else "json_extract(document, '$.note')"
    op.execute(
        f"UPDATE schedules SET note = (SELECT {note} FROM schedule_revisions "
        "WHERE schedule_revisions.schedule_uid = schedules.schedule_uid "
        "AND schedule_revisions.revision = schedules.revision)"
    )


def downgrade() -> None:
    """Notes that were written since are lost: the documents of older programs hold their own."""
    op.drop_column("schedules", "note")
