"""The indexes of the initial schema, except primary keys."""

from __future__ import annotations

from typing import NamedTuple


class Index(NamedTuple):
    """An index of `table`; `where` limits it to some rows."""

    name: str
    table: str
    columns: str
    where: str = ""
    unique: bool = False

    def sql(self) -> str:
        kind = "UNIQUE INDEX" if self.unique else "INDEX"
        where = f" WHERE {self.where}" if self.where else ""
        return f"CREATE {kind} {self.name} ON {self.table} ({self.columns}){where}"


_OPEN_ROOT = (
    "state IN ('awaiting_approval', 'held', 'launching', 'queued', 'ready', 'running') AND parent_run_id IS NULL"
)
_UNSUCCESSFUL = (
    "state IN ('cancelled', 'expired', 'failed', 'launch_failed', 'rejected', 'skipped', 'terminated', 'timed_out', "
    "'unknown')"
)

_INDEXES = (
    Index("schedules_live_id", "schedules", "namespace, schedule_id", "deleted_at IS NULL", unique=True),
    Index("schedules_by_id", "schedules", "namespace, schedule_id, created_at"),
    Index("schedules_by_creation", "schedules", "namespace, created_at DESC, schedule_id"),
    Index("schedules_by_workflow", "schedules", "namespace, workflow"),
    Index("schedules_by_owner", "schedules", "namespace, owner, created_at"),
    Index("schedules_by_source", "schedules", "namespace, source, created_at", "source <> 'runtime'"),
    Index("schedules_by_bundle", "schedules", "bundle, namespace, created_at", "bundle IS NOT NULL"),
    Index("schedules_by_workspace", "schedules", "namespace, workspace, created_at", "workspace IS NOT NULL"),
    Index("positions_due", "positions", "next_due", "status = 'active'"),
    Index("positions_at_rest", "positions", "namespace, status", "status <> 'active' AND status <> 'deleted'"),
    Index("positions_due_by_namespace", "positions", "namespace, next_due", "status = 'active'"),
    Index("positions_failing", "positions", "namespace", "failures_in_a_row >= 3 AND status <> 'deleted'"),
    Index("positions_paused_until", "positions", "paused_until", "status = 'paused' AND paused_until IS NOT NULL"),
    Index("positions_failed", "positions", "namespace", "failures_in_a_row > 0 AND status <> 'deleted'"),
    Index(
        "runs_one_per_occurrence", "runs", "schedule_uid, nominal", "origin IN ('scheduled', 'backfill')", unique=True
    ),
    Index("runs_by_callers_key", "runs", "namespace, external_key", "external_key IS NOT NULL", unique=True),
    Index("runs_held", "runs", "schedule_uid, nominal", "state = 'held'"),
    Index("runs_held_by_key", "runs", "namespace, concurrency_key, nominal", "state = 'held'"),
    Index("runs_leased", "runs", "lease_until", "lease_until IS NOT NULL"),
    Index("runs_timed", "runs", "deadline", "state IN ('launching', 'queued', 'running')"),
    Index("runs_to_stop", "runs", "state, run_id", "stop_requested_at IS NOT NULL"),
    Index("runs_open", "runs", "schedule_uid", _OPEN_ROOT),
    Index("runs_steps", "runs", "root_run_id", "root_run_id IS NOT NULL"),
    Index("runs_by_schedule", "runs", "schedule_uid, run_id"),
    Index("runs_by_namespace", "runs", "namespace, run_id"),
    Index("runs_by_workflow", "runs", "namespace, workflow, run_id", "workflow IS NOT NULL"),
    Index("runs_ready", "runs", "namespace, target, priority DESC, ready_at, run_id", "state = 'ready'"),
    Index("runs_queued", "runs", "namespace, queue, priority DESC, run_id", "state = 'queued'"),
    Index(
        "runs_to_stop_by_schedule",
        "runs",
        "schedule_uid, run_id",
        "stop_requested_at IS NOT NULL AND finished_at IS NULL AND state <> 'held'",
    ),
    Index("runs_reruns", "runs", "rerun_of", "rerun_of IS NOT NULL"),
    Index("runs_queued_by_type", "runs", "namespace, queue, workflow, priority DESC, run_id", "state = 'queued'"),
    Index("runs_open_by_namespace", "runs", "namespace", _OPEN_ROOT),
    Index("runs_one_per_node", "runs", "parent_run_id, node_id, fallback", "parent_run_id IS NOT NULL", unique=True),
    Index("runs_by_assignee", "runs", "namespace, assignee, run_id", "assignee IS NOT NULL"),
    Index("runs_by_member", "runs", "namespace, member, run_id", "member IS NOT NULL"),
    Index("runs_active_by_assignee", "runs", "namespace, assignee", "assignee IS NOT NULL AND finished_at IS NULL"),
    Index("runs_active_by_member", "runs", "namespace, member", "member IS NOT NULL AND finished_at IS NULL"),
    Index("runs_waiting", "runs", "schedule_uid", "state = 'awaiting_approval' AND parent_run_id IS NULL"),
    Index(
        "runs_prompts_out",
        "runs",
        "namespace, target",
        "kind = 'prompt' AND (state IN ('launching', 'running') OR (state = 'ready' AND heard))",
    ),
    Index("runs_prompts_busy", "runs", "busy_since", "kind = 'prompt' AND state = 'ready' AND busy_since IS NOT NULL"),
    Index(
        "runs_prompts_unmarked",
        "runs",
        "namespace, target",
        "kind = 'prompt' AND state = 'ready' AND busy_since IS NULL",
    ),
    Index("runs_unsuccessful", "runs", "namespace, state, run_id", _UNSUCCESSFUL),
    Index("approvals_pending", "approvals", "expires_at", "decision = 'pending'"),
    Index("approvals_inbox", "approvals", "namespace, decision, requested_at"),
    Index("approvals_by_run", "approvals", "run_id"),
    Index("approvals_by_schedule", "approvals", "schedule_uid, decision, approval_id"),
    Index("approvals_by_status", "approvals", "namespace, decision, approval_id"),
    Index("approvals_by_namespace", "approvals", "namespace, approval_id"),
    Index("schedule_attributes_filter", "schedule_attributes", "namespace, kind, name, value, schedule_uid"),
    Index("idempotency_by_age", "idempotency", "created_at"),
    Index("schedule_revisions_by_planning", "schedule_revisions", "planning"),
    Index("subscriptions_by_name", "subscriptions", "namespace, name", unique=True),
    Index("dead_letters_of_one", "dead_letters", "subscription_id, dead_letter_id"),
    Index("dead_letters_to_redeliver", "dead_letters", "subscription_id", "redeliver_at IS NOT NULL"),
    Index("history_feed", "history", "namespace, transaction_id, feed_id"),
    Index("history_by_occurrence", "history", "namespace, nominal", "nominal IS NOT NULL"),
    Index("history_notices", "history", "recorded_at", "sequence IS NULL"),
    Index("tokens_by_previous", "tokens", "previous_sha256", "previous_sha256 IS NOT NULL", unique=True),
    Index("audit_by_act", "audit", "namespace, act, sequence"),
    Index("audit_by_principal", "audit", "namespace, principal, sequence"),
    Index("standing_approvals_by_schedule", "standing_approvals", "schedule_uid"),
    Index("standing_approvals_by_namespace", "standing_approvals", "namespace, workflow_id"),
    Index("step_changes_by_run", "step_changes", "run_id"),
    Index("unwanted_tasks_due", "unwanted_tasks", "next_at"),
)

_ARCHIVE_INDEXES = (
    Index("runs_archive_unsuccessful", "runs_archive", "namespace, state, run_id", _UNSUCCESSFUL),
    Index("runs_archive_by_schedule", "runs_archive", "schedule_uid, run_id"),
    Index("runs_archive_by_namespace", "runs_archive", "namespace, run_id"),
    Index("runs_archive_by_workflow", "runs_archive", "namespace, workflow, run_id", "workflow IS NOT NULL"),
    Index("runs_archive_by_occurrence", "runs_archive", "schedule_uid, nominal", "origin IN ('scheduled', 'backfill')"),
    Index("runs_archive_by_callers_key", "runs_archive", "namespace, external_key", "external_key IS NOT NULL"),
    Index("runs_archive_by_assignee", "runs_archive", "namespace, assignee, run_id", "assignee IS NOT NULL"),
    Index("runs_archive_by_member", "runs_archive", "namespace, member, run_id", "member IS NOT NULL"),
    Index("runs_archive_by_parent", "runs_archive", "parent_run_id, node_id", "parent_run_id IS NOT NULL"),
    Index("runs_archive_steps", "runs_archive", "root_run_id", "root_run_id IS NOT NULL"),
    Index("runs_archive_reruns", "runs_archive", "rerun_of", "rerun_of IS NOT NULL"),
)


def indexes(on_postgres: bool) -> tuple[Index, ...]:
    """Return them in the order of creation.

    PostgreSQL requires that a unique index of a partitioned table contains the column of the partitions.
    """
    columns = "schedule_uid, sequence, recorded_at" if on_postgres else "schedule_uid, sequence"
    in_order = Index("history_in_order", "history", columns, unique=True)
    return (in_order, *_INDEXES, *(_ARCHIVE_INDEXES if on_postgres else ()))
