"""Every table, once, for both databases: what is kept, and which index answers which question.

Instants are BIGINT microseconds, ids are the 16 bytes of a UUIDv7, amounts are BIGINT millionths of a
credit, documents are JSON text. A fire updates one row of `positions` and inserts one row into `runs`
and one into `history`, and a batch of them adds to a row of `namespace_usage` for each namespace; nothing else is on
that path, so nothing else has a foreign key to it.

On PostgreSQL `history`, `run_events`, `run_logs` and `runs_archive` are partitioned by weeks (`store/partitions.py`).
"""

from __future__ import annotations

from horarium.store.tables.audit import audit, audit_heads
from horarium.store.tables.callers import idempotency, installation, leases, namespaces, tokens
from horarium.store.tables.history import checkpoints, feed_epochs, history
from horarium.store.tables.references import agents, assignments, calendars, counters, releases, teams, workflows
from horarium.store.tables.runs import (
    approval_votes,
    approvals,
    archived_columns,
    run_definitions,
    run_events,
    run_logs,
    runs,
    runs_archive,
    standing_approvals,
    step_changes,
    unwanted_tasks,
)
from horarium.store.tables.schedules import (
    plannings,
    positions,
    schedule_attributes,
    schedule_revisions,
    schedules,
    unwell_schedules,
)
from horarium.store.tables.schema import metadata, postgres_metadata
from horarium.store.tables.secrets import secrets
from horarium.store.tables.subscriptions import dead_letters, subscriptions
from horarium.store.tables.usage import namespace_usage

__all__ = [
    "agents",
    "approval_votes",
    "approvals",
    "archived_columns",
    "assignments",
    "audit",
    "audit_heads",
    "calendars",
    "checkpoints",
    "counters",
    "dead_letters",
    "feed_epochs",
    "history",
    "idempotency",
    "installation",
    "leases",
    "metadata",
    "namespace_usage",
    "namespaces",
    "plannings",
    "positions",
    "postgres_metadata",
    "releases",
    "run_definitions",
    "run_events",
    "run_logs",
    "runs",
    "runs_archive",
    "schedule_attributes",
    "schedule_revisions",
    "schedules",
    "secrets",
    "standing_approvals",
    "step_changes",
    "subscriptions",
    "teams",
    "tokens",
    "unwanted_tasks",
    "unwell_schedules",
    "workflows",
]
