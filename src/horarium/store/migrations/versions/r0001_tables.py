"""The first tables. A frozen copy of what `store/tables.py` was then: revisions are never edited."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.LargeBinary(16)
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_schedules()
    _create_runs()
    _create_audit()
    _create_references()
    _create_counters()
    _create_callers()


def _index(
    name: str, table: str, columns: Sequence[str | sa.TextClause], *, unique: bool = False, where: str | None = None
) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, postgresql_where=condition, sqlite_where=condition)


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("schedule_uid", ID, primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("workflow", sa.Text()),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
    )
    _index("schedules_live_id", "schedules", ["namespace", "schedule_id"], unique=True, where="deleted_at IS NULL")
    _index("schedules_by_id", "schedules", ["namespace", "schedule_id", "created_at"])
    _index("schedules_by_creation", "schedules", ["namespace", sa.text("created_at DESC"), "schedule_id"])
    _index("schedules_by_workflow", "schedules", ["namespace", "workflow"])
    _index("schedules_by_owner", "schedules", ["namespace", "owner", "created_at"])
    _index("schedules_by_source", "schedules", ["namespace", "source", "created_at"], where="source <> 'runtime'")

    op.create_table(
        "schedule_revisions",
        sa.Column("schedule_uid", ID, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("planning", ID, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_uid", "revision"),
    )

    op.create_table(
        "plannings",
        sa.Column("planning", ID, primary_key=True),
        sa.Column("text", sa.Text(), nullable=False),
    )

    op.create_table(
        "positions",
        sa.Column("schedule_uid", ID, primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("next_due", sa.BigInteger()),
        sa.Column("decided_until", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("planning", ID, nullable=False),
        sa.Column("next_sequence", sa.BigInteger(), nullable=False),
        sa.Column("active", sa.Integer(), nullable=False),
        sa.Column("held", sa.Integer(), nullable=False),
        sa.Column("runs_born", sa.BigInteger(), nullable=False),
        sa.Column("fires_count", sa.BigInteger(), nullable=False),
        sa.Column("failures_count", sa.BigInteger(), nullable=False),
        sa.Column("failures_in_a_row", sa.Integer(), nullable=False),
        sa.Column("skipped_count", sa.BigInteger(), nullable=False),
        sa.Column("rotation_index", sa.BigInteger(), nullable=False),
        sa.Column("last_fired_at", sa.BigInteger()),
        sa.Column("last_run_id", ID),
        sa.Column("last_skip_reason", sa.Text()),
        sa.Column("last_skipped_at", sa.BigInteger()),
        sa.Column("last_dispatch_status", sa.Text()),
        sa.Column("last_error", sa.Text()),
        sa.Column("last_error_at", sa.BigInteger()),
        sa.Column("last_completed_at", sa.BigInteger()),
        sa.Column("last_completed_run_id", ID),
        sa.Column("paused_at", sa.BigInteger()),
        sa.Column("pause_reason", sa.Text()),
        postgresql_with={"fillfactor": "70"},
    )
    _index("positions_due", "positions", ["next_due"], where="status = 'active'")
    _index(
        "positions_at_rest", "positions", ["namespace", "status"], where="status <> 'active' AND status <> 'deleted'"
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", ID, primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("schedule_uid", ID),
        sa.Column("revision", sa.Integer()),
        sa.Column("workflow", sa.Text()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("nominal", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("ready_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.BigInteger()),
        sa.Column("timeout_seconds", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("queue", sa.Text()),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("launches", sa.Integer(), nullable=False),
        sa.Column("busy_since", sa.BigInteger()),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_until", sa.BigInteger()),
        sa.Column("reference", sa.Text()),
        sa.Column("needs_approval", sa.Boolean(), nullable=False),
        sa.Column("approval_id", ID),
        sa.Column("rotation_index", sa.Integer()),
        sa.Column("trigger_number", sa.BigInteger()),
        sa.Column("covers_first", sa.BigInteger()),
        sa.Column("covers_last", sa.BigInteger()),
        sa.Column("covers_count", sa.BigInteger()),
        sa.Column("concurrency_key", sa.Text()),
        sa.Column("assignee", sa.Text()),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("external_key", sa.Text()),
        sa.Column("inputs", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("error_class", sa.Text()),
        sa.Column("cause", sa.Text()),
        sa.Column("cost", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("tool_calls", sa.BigInteger(), nullable=False),
        sa.Column("stop_requested_at", sa.BigInteger()),
        sa.Column("parent_run_id", ID),
        sa.Column("root_run_id", ID),
        sa.Column("node_id", sa.Text()),
        sa.Column("next_event", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.CheckConstraint(
            "NOT needs_approval OR approval_id IS NOT NULL OR state IN ('awaiting_approval', 'cancelled', 'expired', "
            "'failed', 'held', 'launch_failed', 'rejected', 'skipped', 'succeeded', 'terminated', 'timed_out', "
            "'unknown')",
            name="runs_wait_for_approval",
        ),
    )
    _index(
        "runs_one_per_occurrence",
        "runs",
        ["schedule_uid", "nominal"],
        unique=True,
        where="origin IN ('scheduled', 'backfill')",
    )
    _index("runs_by_callers_key", "runs", ["namespace", "external_key"], unique=True, where="external_key IS NOT NULL")
    _index("runs_ready", "runs", [sa.text("priority DESC"), "ready_at", "run_id"], where="state = 'ready'")
    _index("runs_held", "runs", ["schedule_uid", "nominal"], where="state = 'held'")
    _index("runs_held_by_key", "runs", ["namespace", "concurrency_key", "nominal"], where="state = 'held'")
    _index("runs_queued", "runs", ["namespace", "queue", "run_id"], where="state = 'queued'")
    _index("runs_leased", "runs", ["lease_until"], where="lease_until IS NOT NULL")
    _index("runs_timed", "runs", ["deadline"], where="state IN ('launching', 'queued', 'running')")
    _index("runs_to_stop", "runs", ["state", "run_id"], where="stop_requested_at IS NOT NULL")
    _index(
        "runs_open",
        "runs",
        ["schedule_uid"],
        where="state IN ('awaiting_approval', 'held', 'launching', 'queued', 'ready', 'running') "
        "AND parent_run_id IS NULL",
    )
    _index("runs_steps", "runs", ["root_run_id"], where="root_run_id IS NOT NULL")
    _index("runs_by_schedule", "runs", ["schedule_uid", "run_id"])
    _index("runs_by_namespace", "runs", ["namespace", "run_id"])
    _index("runs_by_workflow", "runs", ["namespace", "workflow", "run_id"], where="workflow IS NOT NULL")

    op.create_table(
        "run_events",
        sa.Column("run_id", ID, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sequence"),
    )


def _create_audit() -> None:
    # Where the database can tell, it notes by itself which transaction wrote a row.
    on_postgres = op.get_bind().dialect.name == "postgresql"
    this_transaction = sa.text("(pg_current_xact_id()::text::bigint)") if on_postgres else None
    op.create_table(
        "history",
        sa.Column("feed_id", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column("transaction_id", sa.BigInteger(), server_default=this_transaction),
        sa.Column("schedule_uid", ID, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("nominal", sa.BigInteger()),
        sa.Column("nominal_last", sa.BigInteger()),
        sa.Column("run_id", ID),
        sa.Column("payload", sa.Text(), nullable=False),
    )
    _index("history_in_order", "history", ["schedule_uid", "sequence"], unique=True)
    _index("history_feed", "history", ["namespace", "transaction_id", "feed_id"])

    op.create_table(
        "checkpoints",
        sa.Column("schedule_uid", ID, primary_key=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("decided_until", sa.BigInteger(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
    )

    op.create_table(
        "approvals",
        sa.Column("approval_id", ID, primary_key=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("gates", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("decider", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("modifications", sa.Text()),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger()),
    )
    _index("approvals_pending", "approvals", ["expires_at"], where="decision = 'pending'")
    _index("approvals_inbox", "approvals", ["namespace", "decision", "requested_at"])
    _index("approvals_by_run", "approvals", ["run_id"])


def _create_references() -> None:
    op.create_table(
        "calendars",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name"),
    )

    op.create_table(
        "workflows",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("cycle", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "workflow_id", "version"),
    )

    op.create_table(
        "agents",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "agent_id"),
    )

    op.create_table(
        "teams",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "team_id"),
    )

    op.create_table(
        "assignments",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("assignment_id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "assignment_id"),
    )

    op.create_table(
        "schedule_attributes",
        sa.Column("schedule_uid", ID, nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_uid", "kind", "name", "value"),
    )
    _index("schedule_attributes_filter", "schedule_attributes", ["namespace", "kind", "name", "value", "schedule_uid"])


def _create_counters() -> None:
    op.create_table(
        "counters",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "owner", "day"),
    )


def _create_callers() -> None:
    op.create_table(
        "namespaces",
        sa.Column("namespace", sa.Text(), primary_key=True),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
    )

    op.create_table(
        "tokens",
        sa.Column("token_id", ID, primary_key=True),
        sa.Column("namespace", sa.Text(), sa.ForeignKey("namespaces.namespace"), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False, unique=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("last_used_at", sa.BigInteger()),
    )

    op.create_table(
        "idempotency",
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "key"),
    )
    _index("idempotency_by_age", "idempotency", ["created_at"])

    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("beat_at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger()),
        sa.Column("info", sa.Text(), nullable=False),
    )

    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
