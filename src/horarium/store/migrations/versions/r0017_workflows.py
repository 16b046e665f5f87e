"""Runs of workflows know their steps, approvals their votes, and what was settled at a birth stays with the run."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from horarium.store.migrations.versions.r0002_views import RUNS, V_RUNS, create_view

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

V_RUNS_MORE = """
    r.workflow_version r.of_workflow r.of_version r.node_path r.fallback r.assignee_type r.member r.effective
    r.progress r.gates_passed
"""


def _added() -> dict[str, tuple[sa.Column[Any], ...]]:
    """Columns by table; a column can be used once."""
    return {
        "runs": (
            sa.Column("workflow_version", sa.Integer()),
            sa.Column("of_workflow", sa.Text()),
            sa.Column("of_version", sa.Integer()),
            sa.Column("node_path", sa.Text()),
            sa.Column("fallback", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("assignee_type", sa.Text()),
            sa.Column("member", sa.Text()),
            sa.Column("effective", sa.Text()),
            sa.Column("progress", sa.Text()),
            sa.Column("gates_passed", sa.Integer(), nullable=False, server_default="0"),
        ),
        "approvals": (
            sa.Column("root_run_id", sa.LargeBinary(16)),
            sa.Column("schedule_uid", sa.LargeBinary(16)),
            sa.Column("workflow", sa.Text()),
            sa.Column("node_id", sa.Text()),
            sa.Column("revision", sa.Integer()),
            sa.Column("approvals_required", sa.Integer(), nullable=False, server_default="1"),
            sa.Column("approvers", sa.Text(), nullable=False, server_default="[]"),
            sa.Column("allow_requester", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("requesters", sa.Text(), nullable=False, server_default="[]"),
            sa.Column("proposed", sa.Text()),
            sa.Column("standing_id", sa.LargeBinary(16)),
        ),
        "schedules": (sa.Column("created_by", sa.Text()), sa.Column("edited_by", sa.Text())),
        "workflows": (
            sa.Column("bundle", sa.Text()),
            sa.Column("created_by", sa.Text()),
            sa.Column("name", sa.Text()),
            sa.Column("nodes", sa.Integer()),
            sa.Column("uses", sa.Text()),
        ),
        "agents": (
            sa.Column("bundle", sa.Text()),
            sa.Column("parent_id", sa.Text()),
            sa.Column("last_seen_at", sa.BigInteger()),
        ),
        "teams": (sa.Column("bundle", sa.Text()),),
        "assignments": (sa.Column("bundle", sa.Text()),),
    }


def upgrade() -> None:
    for table, columns in _added().items():
        for column in columns:
            op.add_column(table, column)
    _create("runs_one_per_node", "runs", ["parent_run_id", "node_id", "fallback"], "parent_run_id IS NOT NULL", True)
    _create("runs_by_assignee", "runs", ["namespace", "assignee", "run_id"], "assignee IS NOT NULL")
    _create("runs_by_member", "runs", ["namespace", "member", "run_id"], "member IS NOT NULL")
    for who in ("assignee", "member"):
        open_ones = f"{who} IS NOT NULL AND finished_at IS NULL"
        _create(f"runs_active_by_{who}", "runs", ["namespace", who], open_ones)
    _create("runs_waiting", "runs", ["schedule_uid"], "state = 'awaiting_approval' AND parent_run_id IS NULL")
    _create("approvals_by_schedule", "approvals", ["schedule_uid", "decision", "approval_id"], None)
    _create("approvals_by_status", "approvals", ["namespace", "decision", "approval_id"], None)
    _create("approvals_by_namespace", "approvals", ["namespace", "approval_id"], None)
    op.create_table(
        "approval_votes",
        sa.Column("approval_id", sa.LargeBinary(16), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("voted_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("approval_id", "principal", "input_hash"),
    )
    op.create_table(
        "standing_approvals",
        sa.Column("standing_id", sa.LargeBinary(16), primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("schedule_uid", sa.LargeBinary(16)),
        sa.Column("workflow_id", sa.Text()),
        sa.Column("revision", sa.Integer()),
        sa.Column("gates", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger()),
        sa.Column("max_uses", sa.Integer()),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("made_role", sa.Text(), nullable=False),
    )
    op.create_index("standing_approvals_by_schedule", "standing_approvals", ["schedule_uid"])
    op.create_index("standing_approvals_by_namespace", "standing_approvals", ["namespace", "workflow_id"])
    op.create_table(
        "step_changes",
        sa.Column("change_id", sa.LargeBinary(16), primary_key=True),
        sa.Column("run_id", sa.LargeBinary(16), nullable=False),
        sa.Column("step_run_id", sa.LargeBinary(16)),
        sa.Column("cost", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("tool_calls", sa.BigInteger(), nullable=False),
        sa.Column("finish", sa.Boolean(), nullable=False),
    )
    op.create_index("step_changes_by_run", "step_changes", ["run_id"])
    on_postgres = op.get_bind().dialect.name == "postgresql"
    create_view("v_runs", V_RUNS + V_RUNS_MORE, RUNS, on_postgres, anew=True)


def _create(name: str, table: str, columns: list[str], where: str | None, unique: bool = False) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, postgresql_where=condition, sqlite_where=condition)


def downgrade() -> None:
    """Steps and open questions remain as rows that an older program never moves."""
    op.execute("DROP VIEW v_runs")
    create_view("v_runs", V_RUNS, RUNS, op.get_bind().dialect.name == "postgresql")
    op.drop_table("step_changes")
    op.drop_table("standing_approvals")
    op.drop_table("approval_votes")
    for name in ("approvals_by_namespace", "approvals_by_status", "approvals_by_schedule"):
        op.drop_index(name, "approvals")
    active = ("runs_active_by_member", "runs_active_by_assignee")
    for name in (*active, "runs_waiting", "runs_by_member", "runs_by_assignee", "runs_one_per_node"):
        op.drop_index(name, "runs")
    for table, columns in reversed(_added().items()):
        for column in reversed(columns):
            op.drop_column(table, column.name)
