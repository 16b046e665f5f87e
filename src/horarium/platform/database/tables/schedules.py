"""Tables of schedules: revisions, positions, documents that schedules refer to, and shared counters."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text, text

from horarium.platform.database.tables.schema import metadata, partial_index

# The condition of the index `positions_failed`.
FAILED = "failures_in_a_row > 0 AND status <> 'deleted'"

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
    Column("search_text", Text, nullable=False, server_default=""),  # see `schedules/write.py`
    Column("note", Text),  # no part of the definition: a pause sets it too
    Column("bundle", Text),  # the one that brought it; no part of the definition either
    Column("created_by", Text),  # who may not approve its runs, beside whoever asks for one
    Column("edited_by", Text),
    Column("workspace", Text),  # the agent that its prompt goes to, where it is a prompt to one agent
    Column("written_by", Text),  # the surface that created it
    # A deleted id may be used again; the new schedule has a new uid and its own history.
    partial_index("schedules_live_id", "namespace", "schedule_id", unique=True, where="deleted_at IS NULL"),
    Index("schedules_by_id", "namespace", "schedule_id", "created_at"),
    # As lists are ordered: schedules by the thousand may have been created at one instant.
    Index("schedules_by_creation", "namespace", text("created_at DESC"), "schedule_id"),
    Index("schedules_by_workflow", "namespace", "workflow"),
    Index("schedules_by_owner", "namespace", "owner", "created_at"),
    partial_index("schedules_by_source", "namespace", "source", "created_at", where="source <> 'runtime'"),
    partial_index("schedules_by_workspace", "namespace", "workspace", "created_at", where="workspace IS NOT NULL"),
    # An application asks in which namespaces it has any.
    partial_index("schedules_by_bundle", "bundle", "namespace", "created_at", where="bundle IS NOT NULL"),
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
    Column("paused_until", BigInteger),  # when it goes on by itself; null = when somebody resumes it
    Column("paused_by", Text),
    Column("empty_in_a_row", Integer, nullable=False, server_default="0"),  # answers of an agent without a text
    Column("last_state", Text),  # of the run that ended last
    # What an ordinary tick needs: work grows with what is due, not with what is stored.
    partial_index("positions_due", "next_due", where="status = 'active'"),
    # For a tick that finds more than it can take: namespaces have their turns.
    partial_index("positions_due_by_namespace", "namespace", "next_due", where="status = 'active'"),
    # For lists of the paused, finished and broken, which are few; a fire never touches it.
    partial_index("positions_at_rest", "namespace", "status", where="status <> 'active' AND status <> 'deleted'"),
    # Schedules whose last run failed. A fire never touches it, an end only where a row of failures begins or breaks.
    partial_index("positions_failed", "namespace", where=FAILED),
    # The same from three failures on; no statement uses it.
    partial_index("positions_failing", "namespace", where="failures_in_a_row >= 3 AND status <> 'deleted'"),
    # Pauses that end by themselves, by their end: few, and a fire never touches it.
    partial_index("positions_paused_until", "paused_until", where="status = 'paused' AND paused_until IS NOT NULL"),
    # A position changes at every fire: leave room on the page for the next version of the row.
    postgresql_with={"fillfactor": "70"},
)

# Schedules that were told to need somebody: see `engine/chores.py`.
unwell_schedules = Table(
    "unwell_schedules",
    metadata,
    Column("schedule_uid", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
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


calendars = Table(
    "calendars",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("bundle", Text),  # the one that brought it
    Column("owner", Text),  # who may change it beside admins; NULL = whoever may write
    PrimaryKeyConstraint("namespace", "name"),
)

# The releases of applications whose templates were put in place; `number` says in which order they first were.
releases = Table(
    "releases",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("bundle", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("namespace", "bundle", "release"),
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
    Column("bundle", Text),
    Column("created_by", Text),
    # Of its document, so that lists and searches need not read it.
    Column("name", Text),
    Column("nodes", Integer),  # how many
    Column("uses", Text),  # JSON: the workflows that its nodes name, each with its version; NULL = none
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
    Column("bundle", Text),
    Column("parent_id", Text),
    Column("last_seen_at", BigInteger),
    # What it says of itself, as it was found last; NULL = nobody has asked, or it could not be had.
    Column("card", Text),
    Column("card_etag", Text),
    Column("card_at", BigInteger),
    Column("card_error", Text),
    Column("dialect", Text),  # of the protocol: that in which it answered last
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
    Column("bundle", Text),
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
    Column("bundle", Text),
    PrimaryKeyConstraint("namespace", "assignment_id"),
)

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
