"""Which runs of one schedule were asked to stop: so that the end of a run need not read all that are open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TO_STOP = sa.text("stop_requested_at IS NOT NULL AND finished_at IS NULL AND state <> 'held'")


def upgrade() -> None:
    op.create_index(
        "runs_to_stop_by_schedule",
        "runs",
        ["schedule_uid", "run_id"],
        postgresql_where=_TO_STOP,
        sqlite_where=_TO_STOP,
    )


def downgrade() -> None:
    op.drop_index("runs_to_stop_by_schedule", "runs")
