"""Every table, once, for both databases: what is kept, and which index answers which question.

Instants are BIGINT microseconds, ids are the 16 bytes of a UUIDv7, amounts are BIGINT millionths of a
credit, documents are JSON text. A fire updates one row of `positions` and inserts one row into `runs`
and one into `history`; nothing else is on that path, so nothing else has a foreign key to it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from horarium.schedule.run import FINAL, HANDED_OUT, OPEN, RunState

metadata = MetaData()

# SQLite counts rows with INTEGER only; PostgreSQL needs BIGINT to be as wide.
_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")


def _in(states: frozenset[RunState]) -> str:
    return "(" + ", ".join(f"'{state}'" for state in sorted(states)) + ")"


_UNAPPROVED = _in(FINAL | {RunState.HELD, RunState.AWAITING_APPROVAL})
_OPEN = _in(OPEN)
# The condition of `runs_open`.
OPEN_ROOT = f"state IN {_OPEN} AND parent_run_id IS NULL"
_TIMED = _in(HANDED_OUT)

# ── schedules ────────────────────────────────────────────────────────────────────────────────────────

schedules = Table(
    "schedules",
    metadata,
    Column("schedule_uid", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("schedule_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("version", Integer, nullable=False),  # moves with every change that a reader can see: the ETag
    Column("name", Text, nullable=False),
    Column("workflow", Text),
    Column("source", Text, nullable=False),
    Column("owner", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
    Column("search_text", Text, nullable=False, server_default=""),  # see `schedules.rows.search_text`
    # A deleted id may be used again; the new schedule has a new uid and its own history.
    Index(
        "schedules_live_id",
        "namespace",
        "schedule_id",
        unique=True,
        postgresql_where=text("deleted_at IS NULL"),
        sqlite_where=text("deleted_at IS NULL"),
    ),
    Index("schedules_by_id", "namespace", "schedule_id", "created_at"),
    # As lists are ordered: schedules by the thousand may have been created at one instant.
    Index("schedules_by_creation", "namespace", text("created_at DESC"), "schedule_id"),
    Index("schedules_by_workflow", "namespace", "workflow"),
    Index("schedules_by_owner", "namespace", "owner", "created_at"),
    Index(
        "schedules_by_source",
        "namespace",
        "source",
        "created_at",
        postgresql_where=text("source <> 'runtime'"),
        sqlite_where=text("source <> 'runtime'"),
    ),
)

schedule_revisions = Table(
    "schedule_revisions",
    metadata,
    Column("schedule_uid", LargeBinary(16), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("planning", LargeBinary(16), nullable=False),
    Column("document", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("schedule_uid", "revision"),
    # Whether a planning text is still needed.
    Index("schedule_revisions_by_planning", "planning"),
)

# Planning texts by their hash: a tick reads the hash and has nearly always compiled the text before.
plannings = Table(
    "plannings",
    metadata,
    Column("planning", LargeBinary(16), primary_key=True),
    Column("text", Text, nullable=False),
)

positions = Table(
    "positions",
    metadata,
    Column("schedule_uid", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("schedule_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("next_due", BigInteger),
    Column("decided_until", BigInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("planning", LargeBinary(16), nullable=False),
    Column("next_sequence", BigInteger, nullable=False),
    Column("active", Integer, nullable=False),  # root runs that are neither final nor held
    Column("held", Integer, nullable=False),
    Column("runs_born", BigInteger, nullable=False),
    Column("fires_count", BigInteger, nullable=False),
    Column("failures_count", BigInteger, nullable=False),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("skipped_count", BigInteger, nullable=False),
    Column("rotation_index", BigInteger, nullable=False),
    Column("last_fired_at", BigInteger),
    Column("last_run_id", LargeBinary(16)),
    Column("last_skip_reason", Text),
    Column("last_skipped_at", BigInteger),
    Column("last_dispatch_status", Text),
    Column("last_error", Text),
    Column("last_error_at", BigInteger),
    Column("last_completed_at", BigInteger),
    Column("last_completed_run_id", LargeBinary(16)),
    Column("paused_at", BigInteger),
    Column("pause_reason", Text),
    # What an ordinary tick needs: work grows with what is due, not with what is stored.
    Index(
        "positions_due",
        "next_due",
        postgresql_where=text("status = 'active'"),
        sqlite_where=text("status = 'active'"),
    ),
    # For a tick that finds more than it can take: namespaces have their turns.
    Index(
        "positions_due_by_namespace",
        "namespace",
        "next_due",
        postgresql_where=text("status = 'active'"),
        sqlite_where=text("status = 'active'"),
    ),
    # For lists of the paused, finished and broken, which are few; a fire never touches it.
    Index(
        "positions_at_rest",
        "namespace",
        "status",
        postgresql_where=text("status <> 'active' AND status <> 'deleted'"),
        sqlite_where=text("status <> 'active' AND status <> 'deleted'"),
    ),
    # A position changes at every fire: leave room on the page for the next version of the row.
    postgresql_with={"fillfactor": "70"},
)

# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────

runs = Table(
    "runs",
    metadata,
    Column("run_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("schedule_uid", LargeBinary(16)),
    Column("revision", Integer),
    Column("workflow", Text),
    Column("kind", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("nominal", BigInteger, nullable=False),
    Column("due", BigInteger, nullable=False),
    Column("ready_at", BigInteger, nullable=False),  # not before: jitter, spread, back-off of a retry
    Column("deadline", BigInteger),
    Column("timeout_seconds", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("queue", Text),
    Column("delivery", Text, nullable=False),
    Column("attempt", Integer, nullable=False),  # known failures
    Column("launches", Integer, nullable=False),  # deliveries tried in this attempt
    Column("busy_since", BigInteger),
    Column("lease_epoch", Integer, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", BigInteger),
    Column("reference", Text),
    Column("needs_approval", Boolean, nullable=False),
    Column("approval_id", LargeBinary(16)),
    Column("rotation_index", Integer),
    Column("trigger_number", BigInteger),
    Column("covers_first", BigInteger),
    Column("covers_last", BigInteger),
    Column("covers_count", BigInteger),
    Column("concurrency_key", Text),
    Column("assignee", Text),
    Column("reserved", BigInteger, nullable=False),  # of the budget, until the run says what it cost
    Column("external_key", Text),
    Column("inputs", Text),  # NULL = as the revision says: inputs are not copied at every fire
    Column("result", Text),
    Column("error", Text),
    Column("error_class", Text),
    Column("cause", Text),
    Column("cost", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("tool_calls", BigInteger, nullable=False),
    Column("stop_requested_at", BigInteger),
    Column("parent_run_id", LargeBinary(16)),
    Column("root_run_id", LargeBinary(16)),
    Column("node_id", Text),
    Column("next_event", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    # What it is sent to, as far as one target's trouble is another's: scheme, host and port, a queue, an agent.
    Column("target", Text, nullable=False, server_default=""),
    Column("attempt_ms", BigInteger),  # NULL = an attempt may take `timeout_seconds`
    Column("runtime_seconds", Integer),  # all attempts together; NULL = any time
    Column("ends_by", BigInteger),  # when that is up: set by the first launch
    Column("earlier_cost", BigInteger, nullable=False, server_default="0"),  # of the attempts that are over
    Column("earlier_tokens", BigInteger, nullable=False, server_default="0"),
    Column("earlier_tool_calls", BigInteger, nullable=False, server_default="0"),
    # No code path may launch what nobody approved, whatever the code says.
    CheckConstraint(
        f"NOT needs_approval OR approval_id IS NOT NULL OR state IN {_UNAPPROVED}", name="runs_wait_for_approval"
    ),
    # The lock of the promise: one run for one nominal time.
    Index(
        "runs_one_per_occurrence",
        "schedule_uid",
        "nominal",
        unique=True,
        postgresql_where=text("origin IN ('scheduled', 'backfill')"),
        sqlite_where=text("origin IN ('scheduled', 'backfill')"),
    ),
    Index(
        "runs_by_callers_key",
        "namespace",
        "external_key",
        unique=True,
        postgresql_where=text("external_key IS NOT NULL"),
        sqlite_where=text("external_key IS NOT NULL"),
    ),
    Index(
        "runs_ready",
        "namespace",
        "target",
        text("priority DESC"),
        "ready_at",
        "run_id",
        postgresql_where=text("state = 'ready'"),
        sqlite_where=text("state = 'ready'"),
    ),
    Index(
        "runs_held",
        "schedule_uid",
        "nominal",
        postgresql_where=text("state = 'held'"),
        sqlite_where=text("state = 'held'"),
    ),
    Index(
        "runs_held_by_key",
        "namespace",
        "concurrency_key",
        "nominal",
        postgresql_where=text("state = 'held'"),
        sqlite_where=text("state = 'held'"),
    ),
    Index(
        "runs_queued",
        "namespace",
        "queue",
        text("priority DESC"),
        "run_id",
        postgresql_where=text("state = 'queued'"),
        sqlite_where=text("state = 'queued'"),
    ),
    Index(
        "runs_leased",
        "lease_until",
        postgresql_where=text("lease_until IS NOT NULL"),
        sqlite_where=text("lease_until IS NOT NULL"),
    ),
    Index(
        "runs_timed",
        "deadline",
        postgresql_where=text(f"state IN {_TIMED}"),
        sqlite_where=text(f"state IN {_TIMED}"),
    ),
    Index(
        "runs_to_stop",
        "state",
        "run_id",
        postgresql_where=text("stop_requested_at IS NOT NULL"),
        sqlite_where=text("stop_requested_at IS NOT NULL"),
    ),
    # The same of one schedule, however many of its runs are held or active.
    Index(
        "runs_to_stop_by_schedule",
        "schedule_uid",
        "run_id",
        postgresql_where=text("stop_requested_at IS NOT NULL AND finished_at IS NULL AND state <> 'held'"),
        sqlite_where=text("stop_requested_at IS NOT NULL AND finished_at IS NULL AND state <> 'held'"),
    ),
    Index(
        "runs_open",
        "schedule_uid",
        postgresql_where=text(OPEN_ROOT),
        sqlite_where=text(OPEN_ROOT),
    ),
    Index(
        "runs_steps",
        "root_run_id",
        postgresql_where=text("root_run_id IS NOT NULL"),
        sqlite_where=text("root_run_id IS NOT NULL"),
    ),
    Index("runs_by_schedule", "schedule_uid", "run_id"),
    Index("runs_by_namespace", "namespace", "run_id"),
    Index(
        "runs_by_workflow",
        "namespace",
        "workflow",
        "run_id",
        postgresql_where=text("workflow IS NOT NULL"),
        sqlite_where=text("workflow IS NOT NULL"),
    ),
)

# What a run is that no schedule asked for: its definition, under its own id.
run_definitions = Table(
    "run_definitions",
    metadata,
    Column("run_id", LargeBinary(16), primary_key=True),
    Column("document", Text, nullable=False),
)

run_events = Table(
    "run_events",
    metadata,
    Column("run_id", LargeBinary(16), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("payload", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "sequence"),
)

# ── audit ────────────────────────────────────────────────────────────────────────────────────────────

history = Table(
    "history",
    metadata,
    Column("feed_id", _ROW_NUMBER, primary_key=True, autoincrement=True),
    # The transaction that wrote the row, where the database tells: a reader of the feed must not pass
    # the oldest one that is still running, or it would skip rows that commit late.
    Column("transaction_id", BigInteger, server_default=None),
    Column("schedule_uid", LargeBinary(16), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("nominal", BigInteger),  # of the occurrence, or the first of a range
    Column("nominal_last", BigInteger),  # the last of a range
    Column("run_id", LargeBinary(16)),
    Column("payload", Text, nullable=False),
    Index("history_in_order", "schedule_uid", "sequence", unique=True),
    Index("history_feed", "namespace", "transaction_id", "feed_id"),
)

# The servers that have written history, one after the other: see `feed.py`. SQLite has none.
feed_epochs = Table(
    "feed_epochs",
    metadata,
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("server", Text, nullable=False),
    Column("first_feed_id", BigInteger, nullable=False),
)

# What retention leaves behind: history before `sequence` is gone, and was complete up to `decided_until`.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("schedule_uid", LargeBinary(16), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("decided_until", BigInteger, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)

approvals = Table(
    "approvals",
    metadata,
    Column("approval_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("run_id", LargeBinary(16), nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("gates", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("decider", Text),
    Column("reason", Text),
    Column("modifications", Text),
    Column("requested_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("decided_at", BigInteger),
    Index(
        "approvals_pending",
        "expires_at",
        postgresql_where=text("decision = 'pending'"),
        sqlite_where=text("decision = 'pending'"),
    ),
    Index("approvals_inbox", "namespace", "decision", "requested_at"),
    Index("approvals_by_run", "run_id"),
)

# ── what schedules refer to ──────────────────────────────────────────────────────────────────────────

calendars = Table(
    "calendars",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "name"),
)

workflows = Table(
    "workflows",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("owner", Text),
    Column("cycle", Text),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "workflow_id", "version"),
)

agents = Table(
    "agents",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "agent_id"),
)

teams = Table(
    "teams",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("team_id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "team_id"),
)

assignments = Table(
    "assignments",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("assignment_id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "assignment_id"),
)

# Labels and search attributes of schedules, for filters; the documents keep the truth.
schedule_attributes = Table(
    "schedule_attributes",
    metadata,
    Column("schedule_uid", LargeBinary(16), nullable=False),
    Column("namespace", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text, nullable=False),
    PrimaryKeyConstraint("schedule_uid", "kind", "name", "value"),
    Index("schedule_attributes_filter", "namespace", "kind", "name", "value", "schedule_uid"),
)

# ── counting ─────────────────────────────────────────────────────────────────────────────────────────

# `kind` is spent, runs or key; `day` is the UTC day for the first two and 0 for a concurrency key.
counters = Table(
    "counters",
    metadata,
    Column("kind", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("day", Integer, nullable=False),
    Column("value", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "owner", "day"),
)

# ── who may, who asked, who is alive ─────────────────────────────────────────────────────────────────

namespaces = Table(
    "namespaces",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("description", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, ForeignKey("namespaces.namespace"), nullable=False),
    Column("sha256", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("subject", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("namespace", "key"),
    Index("idempotency_by_age", "created_at"),
)

# One row for each process and loop (its heartbeat moves when a step has been completed), and named ones
# such as `ticker`, whose `since` says from when on some ticker has been there without a break.
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("beat_at", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("info", Text, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),  # `tzdata`: the version that planned what is stored
    Column("value", Text, nullable=False),
)
