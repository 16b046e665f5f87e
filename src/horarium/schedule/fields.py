"""Which fields a schedule has: the one table behind reader, other names, canonical form, schema, flags and keywords.

Each class is a part of the document, in the order in which it is written, and types the keywords of the client as
well. A new plain field is one line here and one in `definition.py`, whose default is the field's.
"""

# Annotations are read here when the module is imported, so they are not postponed.

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from horarium.policy import catchup, overlap
from horarium.policy.approval import parse_approval_policy
from horarium.policy.catchup import CatchupPolicy, parse_catchup
from horarium.policy.failure import parse_failure_policy
from horarium.policy.limits import Budget, RunLimits, parse_budget, parse_limits, with_exact_amount
from horarium.policy.overlap import OverlapPolicy, parse_overlap
from horarium.policy.queue import MAX_PRIORITY, MIN_PRIORITY
from horarium.policy.retry import parse_retry_policy
from horarium.policy.rotation import parse_rotation
from horarium.schedule import checks
from horarium.schedule.assignee import Assignee, AssigneeType, parse_assignee
from horarium.schedule.definition import Action, SpecText
from horarium.schedule.field import (
    ANYTHING,
    TEXT,
    Also,
    Field,
    Part,
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
from horarium.schedule.naming import MAX_ID, checked_id
from horarium.schedule.part_fields import (
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
from horarium.schedule.source import Source

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


_ASSIGNEE = Part("assignee", _assignee)
_OVERLAP = Part("overlap", parse_overlap)
_CATCHUP = Part("catchup", parse_catchup)


# ── the document ──────────────────────────────────────────────────────────────────────────────────


class DocumentFields(TypedDict, total=False):
    """A whole document in its nested form."""

    # ── who it is ────────────────────────────────────────────────────────────────────────────────
    schedule_id: Annotated[
        Text,
        text_field(
            "Names it inside its namespace. Generated where it is left out at creation.",
            checked_id,
            most=MAX_ID,
            also=("id",),
            always=True,
        ),
    ]
    namespace: Annotated[
        Text,
        text_field(
            "The namespace of the schedule. It must not contradict the header `X-Namespace`, "
            "and the token must be valid for it.",
            checked_id,
            most=MAX_ID,
            always=True,
            from_request=True,
        ),
    ]
    name: Annotated[Text, text_field("A line for people.", checks.one_line, most=checks.MAX_NAME)]
    note: Annotated[
        Text,
        text_field(
            "A remark for people.",
            checks.any_text(checks.MAX_NOTE),
            most=checks.MAX_NOTE,
            also=("notes", "description"),
        ),
    ]
    labels: Annotated[
        Mapping[str, str | float | bool] | None,
        map_field(
            {"type": ["string", "number", "boolean"]},
            "Texts to find it by; numbers are kept as text.",
            checks.label,
            entries=True,
            spelled=empty_array_is_empty_object,
        ),
    ]
    memo: Annotated[
        Object,
        map_field(
            ANYTHING,
            "Anything that a worker should be handed; it is stored and not looked at.",
            checks.mapping,
            compiles=checks.small_memo,
            spelled=empty_array_is_empty_object,
        ),
    ]
    search_attributes: Annotated[
        Object,
        map_field(
            ANYTHING,
            "Values that a visibility query may ask for.",
            checks.attribute,
            entries=True,
            spelled=empty_array_is_empty_object,
        ),
    ]
    source: Annotated[
        Text, word_field(Source, "`template` follows the code or bundle that brought it, `runtime` is a user's own.")
    ]
    user_id: Annotated[Text, text_field("Who it belongs to; taken from the credential.")]
    owner: Annotated[Text, text_field("Who may change it beside admins; taken from the credential.")]
    paused: Annotated[
        Flag,
        flag_field(
            "Whether it begins paused; `enabled: false` says the same. Later a matter of pause and resume.",
            schema={"default": False},
            also=(Also("enabled", negated), Also("is_active", negated)),
        ),
    ]
    # ── when, and what ───────────────────────────────────────────────────────────────────────────
    spec: Annotated[SpecFields | None, Part("spec", _spec, by_field=True, homes=("",))]
    action: Annotated[ActionFields | None, Part("action", lambda given: Action(**given), by_field=True, homes=("",))]
    assignee_type: Annotated[
        Text,
        word_field(
            AssigneeType,
            "Who works on it: an agent or a team of them.",
            part=_ASSIGNEE,
            attribute="type",
            also=("assignee.type",),
        ),
    ]
    assignee_id: Annotated[
        Text, text_field("The id of that agent or team.", part=_ASSIGNEE, attribute="id", also=("assignee.id",))
    ]
    workflow_assignment_id: Annotated[
        Text, text_field("The assignment that this schedule stands for, where there is one.", checked_id)
    ]
    # ── whether ──────────────────────────────────────────────────────────────────────────────────
    calendars: Annotated[
        Texts,
        array_field(
            TEXT,
            "Calendars that must all allow the day; `name@Zone` reads one in a zone.",
            checks.calendar,
            most=MAX_CALENDARS,
            unique=True,
            also=(Also("calendar_id", alone, single=True),),
        ),
    ]
    pre_dispatch_condition: Annotated[
        Object,
        Field(
            "Clauses by JSON pointer, all of which must hold.",
            _OBJECT,
            checks.condition,
            compiles=checks.compiled_condition,
        ),
    ]
    inputs_rotation: Annotated[
        Sequence[Mapping[str, Any]] | None,
        array_field(
            _OBJECT,
            "Inputs that take turns, one for each run; the entry replaces `action.input`, nothing is merged. "
            "A template reads its values from the entry. An empty list clears it.",
            lambda field, value: parse_rotation(value, field),
        ),
    ]
    budget: Annotated[BudgetFields | None, Part("budget", _budget, homes=("", "limits"))]
    # ── while others run ─────────────────────────────────────────────────────────────────────────
    overlap_policy: Annotated[
        Text,
        word_field(
            OverlapPolicy,
            "What happens while earlier runs are busy; `allow_all` where a `queue_policy`, or a `p_…` name, is given.",
            overlap.parse,
            part=_OVERLAP,
            attribute="policy",
            also=("queue_policy.mode", "queue_policy.overlap_policy"),
            always=True,
        ),
    ]
    max_concurrency: Annotated[
        Whole,
        whole_field(
            "How many runs may be busy at once; 1 unless the policy is `allow_all`.",
            least=1,
            part=_OVERLAP,
            also=("queue_policy.max_concurrency", "queue_policy.max_concurrent"),
        ),
    ]
    max_buffered: Annotated[
        Whole,
        whole_field(
            "How many may be held (`buffer_all`); any number without it.",
            part=_OVERLAP,
            also=("queue_policy.max_buffered",),
        ),
    ]
    cancel_grace_seconds: Annotated[
        Whole, whole_field("How long `cancel_other` waits before it terminates.", part=_OVERLAP)
    ]
    concurrency_key: Annotated[Text, text_field("Schedules with the same key share the places of `concurrency_limit`.")]
    concurrency_limit: Annotated[Whole, whole_field("How many runs with this key may be busy at once.", least=1)]
    priority: Annotated[
        Whole,
        whole_field(
            "Of the ready runs of a namespace the greater is taken first.",
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
            "What becomes of occurrences that nobody was there to decide; `skip` where a `queue_policy`, or a "
            "`p_…` name, is given.",
            catchup.parse,
            part=_CATCHUP,
            attribute="policy",
            also=("on_missed", "queue_policy.on_missed", "queue_policy.catchup_policy"),
            always=True,
        ),
    ]
    max_catchup: Annotated[
        Whole,
        whole_field(
            "How many of them, the newest, get a run.",
            part=_CATCHUP,
            also=("max_backfill", "queue_policy.max_catchup", "queue_policy.max_backfill"),
        ),
    ]
    catchup_window_seconds: Annotated[
        Whole, whole_field("How old they may be at most; any age without it.", part=_CATCHUP)
    ]
    catchup_spread_seconds: Annotated[Whole, whole_field("Over how long `spread` deals them out.", part=_CATCHUP)]
    misfire_grace_seconds: Annotated[
        Whole, whole_field("An occurrence that is later than this was missed, if nobody was there.", part=_CATCHUP)
    ]
    # ── who must agree, when it fails, and what one run may use ──────────────────────────────────
    approval_policy: Annotated[ApprovalFields | None, Part("approval", parse_approval_policy)]
    retry_policy: Annotated[RetryFields | None, Part("retry", parse_retry_policy)]
    failure_policy: Annotated[FailureFields | None, Part("failure", parse_failure_policy)]
    limits: Annotated[LimitsFields | None, Part("limits", _limits)]
    pause_on_failure: Annotated[Whole, whole_field("Paused after so many failures in a row.", least=1)]
    failing_after: Annotated[
        Whole,
        whole_field(
            "Unsuccessful runs in a row that make its health `failing`; without it the setting `failing_after` (3).",
            least=1,
        ),
    ]
    max_runs: Annotated[Whole, whole_field("Deleted when so many runs were born.", least=1)]


class ScheduleFields(DocumentFields, SpecFields, ActionFields, BudgetFields, total=False):
    """What a document may say: nested, flat or both. The keywords of the client."""

    retries: Whole
    """The same as `retry_policy.max_retries`."""
