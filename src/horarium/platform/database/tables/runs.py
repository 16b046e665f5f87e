"""Tables of runs: definitions, events, log lines, and approval requests."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    text,
)

from horarium.core.document.states import FINAL, RunState
from horarium.platform.database.run_states import (
    ENDED_BADLY,
    HANDED_OUT_LIST,
    OPEN_OF_ASSIGNEE,
    OPEN_OF_MEMBER,
    OPEN_ROOT,
    PROMPT_BUSY,
    PROMPT_OUT,
    PROMPT_UNMARKED,
    TO_STOP,
    WAITING_ROOT,
    sql_list,
)
from horarium.platform.database.tables.schema import metadata, partial_index, postgres_metadata

_UNAPPROVED = sql_list(FINAL | {RunState.HELD, RunState.AWAITING_APPROVAL})

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
    Column("rerun_of", LargeBinary(16)),  # the run that it does once more
    Column("requested_by", Text),  # who asked for it, where somebody did: the context of the command
    Column("claimed_by", Text),  # the principal that took it from a queue; NULL = nobody since it was last handed over
    Column("workflow_version", Integer),  # of a stored workflow, resolved at birth; NULL = `workflow` names none
    Column("of_workflow", Text),  # of a step: the stored workflow, and its version, of which it is a node
    Column("of_version", Integer),
    Column("node_path", Text),  # `sub/c1`: the node with those of the sub-workflows above it
    Column("fallback", Boolean, nullable=False, server_default=false()),  # it takes the place of a step that failed
    Column("assignee_type", Text),
    Column("member", Text),  # of the team that `assignee` is: whose turn it was
    Column("effective", Text),  # policies that held at birth, with their origins; NULL = as the revision says
    Column("progress", Text),  # of a workflow: a letter for each node, in the order of its document
    Column("gates_passed", Integer, nullable=False, server_default="0"),  # approvals after it had begun
    Column("heard", Boolean, nullable=False, server_default=false()),  # the target may know of this attempt already
    # No code path may launch what nobody approved, whatever the code says.
    CheckConstraint(
        f"NOT needs_approval OR approval_id IS NOT NULL OR state IN {_UNAPPROVED}", name="runs_wait_for_approval"
    ),
    # The lock of the promise: one run for one nominal time.
    partial_index(
        "runs_one_per_occurrence", "schedule_uid", "nominal", unique=True, where="origin IN ('scheduled', 'backfill')"
    ),
    partial_index("runs_by_callers_key", "namespace", "external_key", unique=True, where="external_key IS NOT NULL"),
    partial_index(
        "runs_ready", "namespace", "target", text("priority DESC"), "ready_at", "run_id", where="state = 'ready'"
    ),
    partial_index("runs_held", "schedule_uid", "nominal", where="state = 'held'"),
    partial_index("runs_held_by_key", "namespace", "concurrency_key", "nominal", where="state = 'held'"),
    partial_index("runs_queued", "namespace", "queue", text("priority DESC"), "run_id", where="state = 'queued'"),
    # The same for workers that know some types only, however many runs of other types wait before theirs.
    partial_index(
        "runs_queued_by_type",
        "namespace",
        "queue",
        "workflow",
        text("priority DESC"),
        "run_id",
        where="state = 'queued'",
    ),
    partial_index("runs_leased", "lease_until", where="lease_until IS NOT NULL"),
    partial_index("runs_timed", "deadline", where=f"state IN {HANDED_OUT_LIST}"),
    partial_index("runs_to_stop", "state", "run_id", where="stop_requested_at IS NOT NULL"),
    # The same of one schedule, however many of its runs are held or active.
    partial_index("runs_to_stop_by_schedule", "schedule_uid", "run_id", where=TO_STOP),
    partial_index("runs_open", "schedule_uid", where=OPEN_ROOT),
    # How many a tenant has, for its quota.
    partial_index("runs_open_by_namespace", "namespace", where=OPEN_ROOT),
    # Which wait for a yes, for schedules to which they are not busy.
    partial_index("runs_waiting", "schedule_uid", where=WAITING_ROOT),
    partial_index("runs_reruns", "rerun_of", where="rerun_of IS NOT NULL"),
    partial_index("runs_steps", "root_run_id", where="root_run_id IS NOT NULL"),
    # No node is run twice, except that a fallback may take its place once.
    partial_index(
        "runs_one_per_node", "parent_run_id", "node_id", "fallback", unique=True, where="parent_run_id IS NOT NULL"
    ),
    partial_index("runs_by_assignee", "namespace", "assignee", "run_id", where="assignee IS NOT NULL"),
    partial_index("runs_by_member", "namespace", "member", "run_id", where="member IS NOT NULL"),
    # What an agent has in hand, however much it has done.
    partial_index("runs_active_by_assignee", "namespace", "assignee", where=OPEN_OF_ASSIGNEE),
    partial_index("runs_active_by_member", "namespace", "member", where=OPEN_OF_MEMBER),
    # What is under way at an agent, of which it takes so many at a time; and what waits for a place there, since when.
    partial_index("runs_prompts_out", "namespace", "target", where=PROMPT_OUT),
    partial_index("runs_prompts_busy", "busy_since", where=PROMPT_BUSY),
    partial_index("runs_prompts_unmarked", "namespace", "target", where=PROMPT_UNMARKED),
    Index("runs_by_schedule", "schedule_uid", "run_id"),
    Index("runs_by_namespace", "namespace", "run_id"),
    # What went wrong, however much went well.
    partial_index("runs_unsuccessful", "namespace", "state", "run_id", where=ENDED_BADLY),
    partial_index("runs_by_workflow", "namespace", "workflow", "run_id", where="workflow IS NOT NULL"),
)

archived_columns = tuple(runs.c.keys())
"""Of a run in the archive: those of `runs`, in the same order."""

# Runs that are over and overtaken, on PostgreSQL, by weeks of their birth. A run is in one of the two
# tables; the indexes here are those of the doors that read, and the promises of `runs` are kept there.
runs_archive = Table(
    "runs_archive",
    postgres_metadata,
    *(Column(each.name, each.type, primary_key=each.primary_key, nullable=each.nullable) for each in runs.c),
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

# What a run has said, some lines a row. `sequence` is the number of the last of them, counted over all attempts.
run_logs = Table(
    "run_logs",
    metadata,
    Column("run_id", LargeBinary(16), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("bytes", Integer, nullable=False),  # of `lines`, which cannot be asked for without reading them
    Column("lines", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "sequence"),
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
    Column("root_run_id", LargeBinary(16)),
    Column("schedule_uid", LargeBinary(16)),
    Column("workflow", Text),
    Column("node_id", Text),
    Column("revision", Integer),  # of the schedule, when it was asked
    Column("approvals_required", Integer, nullable=False, server_default="1"),
    Column("approvers", Text, nullable=False, server_default="[]"),
    Column("allow_requester", Boolean, nullable=False, server_default=false()),
    Column("requesters", Text, nullable=False, server_default="[]"),
    Column("proposed", Text),  # inputs as they were shown first, where somebody has modified them
    Column("standing_id", LargeBinary(16)),
    Column("question", Text),  # of an agent, in its own words
    partial_index("approvals_pending", "expires_at", where="decision = 'pending'"),
    Index("approvals_inbox", "namespace", "decision", "requested_at"),
    Index("approvals_by_run", "run_id"),
    # As the inbox is read: ids are in order of birth, however many were asked at one instant.
    Index("approvals_by_schedule", "schedule_uid", "decision", "approval_id"),
    Index("approvals_by_status", "namespace", "decision", "approval_id"),
    Index("approvals_by_namespace", "namespace", "approval_id"),
)

# A vote is good for the inputs that were shown: `modify` makes another hash, for which nobody has voted yet.
approval_votes = Table(
    "approval_votes",
    metadata,
    Column("approval_id", LargeBinary(16), nullable=False),
    Column("principal", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("reason", Text),
    Column("voted_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("approval_id", "principal", "input_hash"),
)

standing_approvals = Table(
    "standing_approvals",
    metadata,
    Column("standing_id", LargeBinary(16), primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("schedule_uid", LargeBinary(16)),
    Column("workflow_id", Text),
    Column("revision", Integer),  # of the schedule, when it was made
    Column("gates", Text, nullable=False),
    Column("until", BigInteger),
    Column("max_uses", Integer),
    Column("uses", Integer, nullable=False),
    Column("reason", Text),
    Column("made_by", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("made_role", Text, nullable=False),  # the maker's, when it was made: a list of approvers may name roles
    Column("made_token", LargeBinary(16)),  # empty = no stored token
    Column("bound_to", Text),  # digests of the workflows and nodes that it was given for
    Column("ended_at", BigInteger),
    Column("ended_reason", Text),
    Index("standing_approvals_by_schedule", "schedule_uid"),
    Index("standing_approvals_by_namespace", "namespace", "workflow_id"),
)

# What became of steps, until their workflow has taken note of it. Inserted without a lock on the workflow's run,
# so that steps that end together do not wait for each other.
step_changes = Table(
    "step_changes",
    metadata,
    Column("change_id", LargeBinary(16), primary_key=True),
    Column("run_id", LargeBinary(16), nullable=False),  # of the workflow
    Column("step_run_id", LargeBinary(16)),  # NULL = the workflow itself is to be looked at: it begins, or is to stop
    Column("cost", BigInteger, nullable=False),  # by how much the step has used more
    Column("tokens", BigInteger, nullable=False),
    Column("tool_calls", BigInteger, nullable=False),
    Column("finish", Boolean, nullable=False),  # all its nodes are over, and it is to end
    Index("step_changes_by_run", "run_id"),
)

# Tasks at agents that nobody waits for any more, until the agent was told: runs end in many ways, and not all of them
# by somebody who can speak to it.
unwanted_tasks = Table(
    "unwanted_tasks",
    metadata,
    Column("run_id", LargeBinary(16), nullable=False),
    Column("reference", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("run_id", "reference"),
    Index("unwanted_tasks_due", "next_at"),
)
