"""Schedules, their positions, and what schedules refer to."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, PrimaryKeyConstraint, Table, Text

metadata = MetaData()
ID = LargeBinary(16)

Table(
    "schedules",
    metadata,
    Column("schedule_uid", ID, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("schedule_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("workflow", Text),
    Column("source", Text, nullable=False),
    Column("owner", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
    Column("search_text", Text, nullable=False, server_default=""),
    Column("note", Text),
    Column("bundle", Text),
    Column("created_by", Text),
    Column("edited_by", Text),
    Column("workspace", Text),
    Column("written_by", Text),
)

Table(
    "schedule_revisions",
    metadata,
    Column("schedule_uid", ID, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("planning", ID, nullable=False),
    Column("document", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("schedule_uid", "revision"),
)

Table(
    "plannings",
    metadata,
    Column("planning", ID, primary_key=True),
    Column("text", Text, nullable=False),
)

Table(
    "positions",
    metadata,
    Column("schedule_uid", ID, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("schedule_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("next_due", BigInteger),
    Column("decided_until", BigInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("planning", ID, nullable=False),
    Column("next_sequence", BigInteger, nullable=False),
    Column("active", Integer, nullable=False),
    Column("held", Integer, nullable=False),
    Column("runs_born", BigInteger, nullable=False),
    Column("fires_count", BigInteger, nullable=False),
    Column("failures_count", BigInteger, nullable=False),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("skipped_count", BigInteger, nullable=False),
    Column("rotation_index", BigInteger, nullable=False),
    Column("last_fired_at", BigInteger),
    Column("last_run_id", ID),
    Column("last_skip_reason", Text),
    Column("last_skipped_at", BigInteger),
    Column("last_dispatch_status", Text),
    Column("last_error", Text),
    Column("last_error_at", BigInteger),
    Column("last_completed_at", BigInteger),
    Column("last_completed_run_id", ID),
    Column("paused_at", BigInteger),
    Column("pause_reason", Text),
    Column("paused_until", BigInteger),
    Column("paused_by", Text),
    Column("empty_in_a_row", Integer, nullable=False, server_default="0"),
    Column("last_state", Text),
    postgresql_with={"fillfactor": "70"},
)

Table(
    "unwell_schedules",
    metadata,
    Column("schedule_uid", ID, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
)

Table(
    "schedule_attributes",
    metadata,
    Column("schedule_uid", ID, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text, nullable=False),
    PrimaryKeyConstraint("schedule_uid", "kind", "name", "value"),
)

Table(
    "calendars",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("bundle", Text),
    Column("owner", Text),
    PrimaryKeyConstraint("namespace", "name"),
)

Table(
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
    Column("name", Text),
    Column("nodes", Integer),
    Column("uses", Text),
    PrimaryKeyConstraint("namespace", "workflow_id", "version"),
)

Table(
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
    Column("card", Text),
    Column("card_etag", Text),
    Column("card_at", BigInteger),
    Column("card_error", Text),
    Column("dialect", Text),
    PrimaryKeyConstraint("namespace", "agent_id"),
)

Table(
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

Table(
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

Table(
    "counters",
    metadata,
    Column("kind", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("day", Integer, nullable=False),
    Column("value", BigInteger, nullable=False),
    PrimaryKeyConstraint("kind", "owner", "day"),
)

Table(
    "releases",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("bundle", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("number", Integer, nullable=False),
    PrimaryKeyConstraint("namespace", "bundle", "release"),
)
