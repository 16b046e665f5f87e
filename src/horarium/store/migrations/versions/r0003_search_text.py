"""What a search for part of an id or a name looks at: both, folded, so that case is the same everywhere.

SQLite folds the letters of ASCII only, and PostgreSQL takes long to fold a hundred thousand names at each search.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_AT_ONCE = 1_000


def upgrade() -> None:
    op.add_column("schedules", sa.Column("search_text", sa.Text(), nullable=False, server_default=""))
    names = ("schedule_uid", "schedule_id", "name", "search_text")
    schedules = sa.table("schedules", *(sa.column(name) for name in names))
    mine = schedules.c.schedule_uid == sa.bindparam("uid")
    fill = sa.update(schedules).where(mine).values(search_text=sa.bindparam("folded"))
    connection = op.get_bind()
    rows = connection.execute(sa.select(schedules.c.schedule_uid, schedules.c.schedule_id, schedules.c.name)).all()
    for start in range(0, len(rows), _AT_ONCE):
        connection.execute(
            fill,
            [
                {"uid": uid, "folded": f"{schedule_id}\n{name}".casefold()}
                for uid, schedule_id, name in rows[start : start + _AT_ONCE]
            ],
        )


def downgrade() -> None:
    op.drop_column("schedules", "search_text")
