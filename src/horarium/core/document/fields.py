"""Fields of a schedule: the one table behind reader, other names, canonical form, schema, flags and keywords.

Each class is a part of the document, in the order in which it is written, and types the keywords of the client. A new
plain field is one line here and one in `definition.py`, which holds its default.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from horarium.core.document import checks
from horarium.core.document.assignee import Assignee, AssigneeType, parse_assignee
from horarium.core.document.definition import Action, SpecText
from horarium.core.document.field import (
    ANYTHING,
    TEXT,
    Field,
    FieldPart,
    FieldSpelling,
    Schema,
    alone,
    array_field,
    empty_array_is_empty_object,
    flag_field,
    map_field,
    negated,
    text_field,
    whole_field,
    word_field,
)
from horarium.core.document.part_fields import (
    ActionFields,
    ApprovalFields,
    BudgetFields,
    FailureFields,
    Flag,
    LimitsFields,
    Object,
    RetryFields,
    SpecFields,
    Text,
    Texts,
    Whole,
)
from horarium.core.document.states import Source
from horarium.core.policy import queue
from horarium.core.policy.approval import parse_approval_policy, parse_failure_policy, parse_retry_policy
from horarium.core.policy.limits import Budget, RunLimits, parse_budget, parse_limits, with_exact_amount
from horarium.core.policy.queue import (
    MAX_ID,
    MAX_PRIORITY,
    MIN_PRIORITY,
    CatchupPolicy,
    OverlapPolicy,
    checked_id,
    parse_catchup,
    parse_overlap,
    parse_rotation,
)

# Annotations are read here when the module is imported, so they are not postponed.


MAX_CALENDARS = 100

_OBJECT: Schema = {"type": "object"}


# ── parts of a definition that several fields make ────────────────────────────────────────────────


def _spec(given: dict[str, Any]) -> SpecText:
    return SpecText(jitter_ms=given.pop("jitter_seconds", 0), **given)


def _assignee(given: dict[str, Any]) -> Assignee | None:
    return parse_assignee(given.get("assignee_type"), given.get("assignee_id"))


def _budget(given: dict[str, Any]) -> Budget:
    return parse_budget(with_exact_amount(given, "spending_limit_credits"))


def _limits(given: dict[str, Any]) -> RunLimits:
    return parse_limits(with_exact_amount(given, "cost"))


_ASSIGNEE = FieldPart("assignee", _assignee)
_OVERLAP = FieldPart("overlap", parse_overlap)
_CATCHUP = FieldPart("catchup", parse_catchup)


# ── the document ──────────────────────────────────────────────────────────────────────────────────


class DocumentFields(TypedDict, total=False):
    """A whole document in its nested form."""

    # ── who it is ────────────────────────────────────────────────────────────────────────────────
    schedule_id: Annotated[
        Text,
        text_field(
            "Identifier, unique within the namespace. Generated if omitted at creation.",
            checked_id,
            most=MAX_ID,
            also=("id",),
            always=True,
        ),
    ]
    namespace: Annotated[
        Text,
        text_field(
            "Namespace of the schedule. Must match the `X-Namespace` header, if sent, and the token must "
            "be valid for it.",
            checked_id,
            most=MAX_ID,
            always=True,
            from_request=True,
        ),
    ]
    name: Annotated[Text, text_field("Display name, one line.", checks.one_line, most=checks.MAX_NAME)]
    note: Annotated[
        Text,
        text_field(
            "Free-text note.",
            checks.any_text(checks.MAX_NOTE),
            most=checks.MAX_NOTE,
            also=("notes", "description"),
        ),
    ]
    labels: Annotated[
        Mapping[str, str | float | bool] | None,
        map_field(
            {"type": ["string", "number", "boolean"]},
            "Key-value pairs for filtering. Numbers are stored as text.",
            checks.label,
            entries=True,
            spelled=empty_array_is_empty_object,
        ),
    ]
    memo: Annotated[
        Object,
        map_field(
            ANYTHING,
            "JSON object passed to the worker unchanged. Horarium does not interpret it.",
            checks.mapping,
            compiles=checks.small_memo,
            spelled=empty_array_is_empty_object,
        ),
    ]
    search_attributes: Annotated[
        Object,
        map_field(
            ANYTHING,
            "Typed values for the `query` filter of lists.",
            checks.attribute,
            entries=True,
            spelled=empty_array_is_empty_object,
        ),
    ]
    source: Annotated[
        Text, word_field(Source, "`template`: managed by code or a bundle. `runtime`: created by a user.")
    ]
    user_id: Annotated[Text, text_field("User the schedule belongs to. Taken from the credential.")]
    owner: Annotated[
        Text, text_field("Principal that may change the schedule, in addition to admins. Taken from the credential.")
    ]
    paused: Annotated[
        Flag,
        flag_field(
            "Create the schedule paused; same as `enabled: false`. Use pause and resume to change it later.",
            schema={"default": False},
            also=(FieldSpelling("enabled", negated), FieldSpelling("is_active", negated)),
        ),
    ]
    # ── when, and what ───────────────────────────────────────────────────────────────────────────
    spec: Annotated[SpecFields | None, FieldPart("spec", _spec, by_field=True, homes=("",))]
    action: Annotated[
        ActionFields | None, FieldPart("action", lambda given: Action(**given), by_field=True, homes=("",))
    ]
    assignee_type: Annotated[
        Text,
        word_field(
            AssigneeType,
            "Type of the assignee: an agent or a team of agents.",
            part=_ASSIGNEE,
            attribute="type",
            also=("assignee.type",),
        ),
    ]
    assignee_id: Annotated[
        Text, text_field("ID of the agent or team.", part=_ASSIGNEE, attribute="id", also=("assignee.id",))
    ]
    workflow_assignment_id: Annotated[
        Text, text_field("ID of the assignment that this schedule runs, if any.", checked_id)
    ]
    # ── whether ──────────────────────────────────────────────────────────────────────────────────
    calendars: Annotated[
        Texts,
        array_field(
            TEXT,
            "Calendars that must all allow the day. `name@Zone` evaluates a calendar in that time zone.",
            checks.calendar,
            most=MAX_CALENDARS,
            unique=True,
            also=(FieldSpelling("calendar_id", alone, single=True),),
        ),
    ]
    pre_dispatch_condition: Annotated[
        Object,
        Field(
            "Conditions keyed by JSON pointer. A run starts only if all of them hold.",
            _OBJECT,
            checks.condition,
            compiles=checks.compiled_condition,
        ),
    ]
    inputs_rotation: Annotated[
        Sequence[Mapping[str, Any]] | None,
        array_field(
            _OBJECT,
            "Inputs used in rotation, one per run. Each entry replaces `action.input`; nothing is merged. "
            "Templates read their values from the entry. An empty list removes the rotation.",
            lambda field, value: parse_rotation(value, field),
        ),
    ]
    budget: Annotated[BudgetFields | None, FieldPart("budget", _budget, homes=("", "limits"))]
    # ── while others run ─────────────────────────────────────────────────────────────────────────
    overlap_policy: Annotated[
        Text,
        word_field(
            OverlapPolicy,
            "Action when an occurrence is due while an earlier run is active. Default `allow_all` if the "
            "request has a `queue_policy` or a `p_…` name.",
            queue.parse_overlap_policy,
            part=_OVERLAP,
            attribute="policy",
            also=("queue_policy.mode", "queue_policy.overlap_policy"),
            always=True,
        ),
    ]
    max_concurrency: Annotated[
        Whole,
        whole_field(
            "Maximum active runs of the schedule (default 1; unlimited with `allow_all`).",
            least=1,
            part=_OVERLAP,
            also=("queue_policy.max_concurrency", "queue_policy.max_concurrent"),
        ),
    ]
    max_buffered: Annotated[
        Whole,
        whole_field(
            "Maximum buffered runs with `buffer_all` (default unlimited).",
            part=_OVERLAP,
            also=("queue_policy.max_buffered",),
        ),
    ]
    cancel_grace_seconds: Annotated[
        Whole,
        whole_field(
            "Seconds that `cancel_other` waits for active runs to stop before it terminates them.", part=_OVERLAP
        ),
    ]
    concurrency_key: Annotated[Text, text_field("Schedules with the same key share one `concurrency_limit`.")]
    concurrency_limit: Annotated[Whole, whole_field("Maximum active runs with the same `concurrency_key`.", least=1)]
    priority: Annotated[
        Whole,
        whole_field(
            "Priority of ready runs in the namespace. Higher-priority runs start first.",
            least=MIN_PRIORITY,
            most=MAX_PRIORITY,
            also=("queue_policy.priority",),
        ),
    ]
    # ── after an absence ─────────────────────────────────────────────────────────────────────────
    catchup_policy: Annotated[
        Text,
        word_field(
            CatchupPolicy,
            "Action for occurrences missed while no scheduler was running. Default `skip` if the request "
            "has a `queue_policy` or a `p_…` name.",
            queue.parse_catchup_policy,
            part=_CATCHUP,
            attribute="policy",
            also=("on_missed", "queue_policy.on_missed", "queue_policy.catchup_policy"),
            always=True,
        ),
    ]
    max_catchup: Annotated[
        Whole,
        whole_field(
            "Maximum missed occurrences that get a run. The newest ones are kept.",
            part=_CATCHUP,
            also=("max_backfill", "queue_policy.max_catchup", "queue_policy.max_backfill"),
        ),
    ]
    catchup_window_seconds: Annotated[
        Whole,
        whole_field(
            "Maximum age of a missed occurrence that gets a run, in seconds (default unlimited).", part=_CATCHUP
        ),
    ]
    catchup_spread_seconds: Annotated[
        Whole, whole_field("Seconds over which `spread` distributes the runs.", part=_CATCHUP)
    ]
    misfire_grace_seconds: Annotated[
        Whole,
        whole_field("Seconds after which an occurrence counts as missed if no scheduler was running.", part=_CATCHUP),
    ]
    # ── who must agree, when it fails, and what one run may use ──────────────────────────────────
    approval_policy: Annotated[ApprovalFields | None, FieldPart("approval", parse_approval_policy)]
    retry_policy: Annotated[RetryFields | None, FieldPart("retry", parse_retry_policy)]
    failure_policy: Annotated[FailureFields | None, FieldPart("failure", parse_failure_policy)]
    limits: Annotated[LimitsFields | None, FieldPart("limits", _limits)]
    pause_on_failure: Annotated[
        Whole, whole_field("Pause the schedule after this many consecutive failures (default never).", least=1)
    ]
    failing_after: Annotated[
        Whole,
        whole_field(
            "Consecutive unsuccessful runs after which health is `failing` (default: the setting `failing_after`, 3).",
            least=1,
        ),
    ]
    max_runs: Annotated[Whole, whole_field("Delete the schedule after this many runs (default never).", least=1)]


class ScheduleFields(DocumentFields, SpecFields, ActionFields, BudgetFields, total=False):
    """The keywords of the client: a document that may be nested, flat or both."""

    retries: Whole
    """The same as `retry_policy.max_retries`."""
