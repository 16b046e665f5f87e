"""What a fair dispatcher and one life of a run need: targets, the time of an attempt, usage of earlier attempts.

Runs that no schedule asked for posed as schedules of their own; now they have a table for their definitions.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_MOST = 100
_OPEN = "('awaiting_approval', 'held', 'launching', 'queued', 'ready', 'running')"


def upgrade() -> None:
    op.add_column("runs", sa.Column("target", sa.Text(), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("attempt_ms", sa.BigInteger()))
    op.add_column("runs", sa.Column("runtime_seconds", sa.Integer()))
    op.add_column("runs", sa.Column("ends_by", sa.BigInteger()))
    for used in ("cost", "tokens", "tool_calls"):
        column = sa.Column(f"earlier_{used}", sa.BigInteger(), nullable=False, server_default="0")
        op.add_column("runs", column)
    # Those that are open wait for one target a kind; what is born from now on names its own.
    op.execute(f"UPDATE runs SET target = kind || ':' WHERE state IN {_OPEN}")
    _index("runs_ready", ["namespace", "target", sa.text("priority DESC"), "ready_at", "run_id"], "state = 'ready'")
    _index("runs_queued", ["namespace", "queue", sa.text("priority DESC"), "run_id"], "state = 'queued'")
    op.create_table(
        "run_definitions",
        sa.Column("run_id", sa.LargeBinary(16), primary_key=True),
        sa.Column("document", sa.Text(), nullable=False),
    )
    op.execute(
        "INSERT INTO run_definitions (run_id, document) "
        "SELECT runs.run_id, schedule_revisions.document FROM runs JOIN schedule_revisions "
        "ON schedule_revisions.schedule_uid = runs.run_id WHERE runs.origin = 'api'"
    )
    op.execute("DELETE FROM schedule_revisions WHERE schedule_uid IN (SELECT run_id FROM run_definitions)")
    op.execute("UPDATE runs SET schedule_uid = NULL, revision = NULL WHERE origin = 'api'")

    _bound_priorities()


def _bound_priorities() -> None:
    """A priority lies between -100 and 100 now; a document beyond that could not be read any more."""
    op.execute("UPDATE runs SET priority = CASE WHEN priority > 0 THEN 100 ELSE -100 END WHERE abs(priority) > 100")
    names = ("schedule_uid", "revision", "document")
    revisions = sa.table("schedule_revisions", *(sa.column(name) for name in names))
    connection = op.get_bind()
    rows = connection.execute(sa.select(revisions).where(revisions.c.document.contains('"priority":'))).all()
    for uid, number, text in rows:
        document = json.loads(text)
        priority = document.get("priority", 0)
        if abs(priority) > _MOST:
            document["priority"] = _MOST if priority > 0 else -_MOST
            mine = sa.and_(revisions.c.schedule_uid == uid, revisions.c.revision == number)
            connection.execute(sa.update(revisions).where(mine).values(document=json.dumps(document)))


def _index(name: str, columns: list[str | sa.TextClause], where: str) -> None:
    op.drop_index(name, "runs")
    op.create_index(name, "runs", columns, postgresql_where=sa.text(where), sqlite_where=sa.text(where))
