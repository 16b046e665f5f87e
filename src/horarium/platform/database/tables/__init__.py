"""Tables of both databases, with the query that each index serves.

Instants are BIGINT microseconds, ids are the 16 bytes of a UUIDv7, amounts are BIGINT millionths of a
credit, documents are JSON text. A fire updates one row of `positions` and inserts one row into `runs`
and one into `history`, and a batch of them adds to a row of `namespace_usage` for each namespace; nothing else is on
that path, so nothing else has a foreign key to it.

On PostgreSQL `history`, `run_events`, `run_logs` and `runs_archive` are partitioned by weeks
(`platform/database/partitions.py`).
"""

from __future__ import annotations

from horarium.platform.database.tables.audit import audit, audit_heads
from horarium.platform.database.tables.history import checkpoints, feed_epochs, history
from horarium.platform.database.tables.runs import (
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
from horarium.platform.database.tables.schedules import (
    agents,
    assignments,
    calendars,
    counters,
    plannings,
    positions,
    releases,
    schedule_attributes,
    schedule_revisions,
    schedules,
    teams,
    unwell_schedules,
    workflows,
)
from horarium.platform.database.tables.schema import metadata, postgres_metadata
from horarium.platform.database.tables.secrets import secrets
from horarium.platform.database.tables.subscriptions import dead_letters, subscriptions
from horarium.platform.database.tables.tenants import (
    idempotency,
    installation,
    leases,
    namespace_usage,
    namespaces,
    tokens,
)

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
