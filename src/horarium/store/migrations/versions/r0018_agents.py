"""Prompts know what an agent made of them: its card, its questions, what waits there, and what is no longer wanted."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from horarium.store.migrations.versions.r0002_views import RUNS, V_RUNS, create_view
from horarium.store.migrations.versions.r0017_workflows import V_RUNS_MORE

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_OUT = "kind = 'prompt' AND (state IN ('launching', 'running') OR (state = 'ready' AND heard))"
_BUSY = "kind = 'prompt' AND state = 'ready' AND busy_since IS NOT NULL"
_UNMARKED = "kind = 'prompt' AND state = 'ready' AND busy_since IS NULL"


def _added() -> dict[str, tuple[sa.Column[Any], ...]]:
    """Columns by table; a column can be used once."""
    return {
        "runs": (sa.Column("heard", sa.Boolean(), nullable=False, server_default=sa.false()),),
        "approvals": (sa.Column("question", sa.Text()),),
        "agents": (
            sa.Column("card", sa.Text()),
            sa.Column("card_etag", sa.Text()),
            sa.Column("card_at", sa.BigInteger()),
            sa.Column("card_error", sa.Text()),
            sa.Column("dialect", sa.Text()),
        ),
        "schedules": (sa.Column("workspace", sa.Text()),),
        "positions": (
            sa.Column("empty_in_a_row", sa.Integer(), nullable=False, server_default="0"),
            sa.Column("last_state", sa.Text()),
        ),
    }


def upgrade() -> None:
    for table, columns in _added().items():
        for column in columns:
            op.add_column(table, column)
    _create("runs_prompts_out", "runs", ["namespace", "target"], _OUT)
    _create("runs_prompts_busy", "runs", ["busy_since"], _BUSY)
    _create("runs_prompts_unmarked", "runs", ["namespace", "target"], _UNMARKED)
    _create("schedules_by_workspace", "schedules", ["namespace", "workspace", "created_at"], "workspace IS NOT NULL")
    _fill_workspaces(op.get_bind())
    op.create_table(
        "unwanted_tasks",
        sa.Column("run_id", sa.LargeBinary(16), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "reference"),
    )
    op.create_index("unwanted_tasks_due", "unwanted_tasks", ["next_at"])
    on_postgres = op.get_bind().dialect.name == "postgresql"
    create_view("v_runs", f"{V_RUNS}{V_RUNS_MORE} r.heard", RUNS, on_postgres, anew=True)


def _fill_workspaces(connection: sa.Connection) -> None:
    """The schedules whose prompt goes to one agent stand in its workspace, as those do that are written from now on.

    A document that cannot be read is that schedule's trouble.
    """
    found = connection.execute(_WITH_PROMPT).all()
    mine = sa.text("UPDATE schedules SET workspace = :workspace WHERE schedule_uid = :uid")
    for uid, text in found:
        try:
            document = json.loads(text)
        except ValueError:
            continue
        workspace = _workspace(document)
        if workspace is not None:
            connection.execute(mine, {"workspace": workspace, "uid": uid})


# The texts of documents are compact; one that has the words elsewhere is looked at and left as it is.
_WITH_PROMPT = sa.text(
    "SELECT s.schedule_uid, r.document FROM schedules s JOIN schedule_revisions r"
    " ON r.schedule_uid = s.schedule_uid AND r.revision = s.revision"
    """ WHERE s.deleted_at IS NULL AND r.document LIKE '%"prompt"%' AND r.document LIKE '%"assignee_id"%'"""
)


def _workspace(document: Any) -> str | None:
    action = document.get("action") if isinstance(document, dict) else None
    if not isinstance(action, dict) or action.get("kind") != "prompt" or document.get("assignee_type") != "agent":
        return None
    agent = document.get("assignee_id")
    return agent if isinstance(agent, str) else None


def _create(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, postgresql_where=condition, sqlite_where=condition)


def downgrade() -> None:
    """What agents were asked to stop and have not heard of stays with them."""
    op.execute("DROP VIEW v_runs")
    create_view("v_runs", V_RUNS + V_RUNS_MORE, RUNS, op.get_bind().dialect.name == "postgresql")
    op.drop_table("unwanted_tasks")
    op.drop_index("schedules_by_workspace", "schedules")
    for name in ("runs_prompts_unmarked", "runs_prompts_busy", "runs_prompts_out"):
        op.drop_index(name, "runs")
    for table, columns in reversed(_added().items()):
        for column in reversed(columns):
            op.drop_column(table, column.name)
