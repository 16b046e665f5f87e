"""Which fields the parts of a schedule have: spec, action, budget, limits and three policies (see `fields.py`)."""

# Annotations are read here when the module is imported, so they are not postponed.

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypedDict

from horarium.instant import to_rfc3339
from horarium.policy.approval import (
    DEFAULT_EXPIRES_AFTER_SECONDS,
    MAX_APPROVALS_REQUIRED,
    NEVER_SECONDS,
    ApprovalMode,
    WhileWaiting,
)
from horarium.policy.failure import FailureMode
from horarium.policy.retry import MAX_RETRIES, RetryCause
from horarium.recurrence.wall import DstFold, DstGap
from horarium.schedule import checks
from horarium.schedule.definition import OTHER_TIMEOUT_SECONDS, PROMPT_TIMEOUT_SECONDS
from horarium.schedule.field import (
    TEXT,
    Also,
    Field,
    Schema,
    alone,
    array_field,
    flag_field,
    from_milliseconds,
    map_field,
    seconds,
    text_field,
    timeout_field,
    whole_field,
    whole_seconds,
    word_field,
)
from horarium.schedule.json_limits import MAX_URL
from horarium.schedule.naming import checked_id
from horarium.schedule.run import Delivery
from horarium.schedule.secret import SCHEMA as SECRET_SCHEMA

# What `compile_spec` takes; a longer array is refused before its items are looked at.
MAX_PARTS = 100
MAX_ONE_OFFS = 10_000

_AMOUNT: Schema = {"type": ["number", "string"]}
_TIME: Schema = {"format": "date-time"}
_COUNT: Schema = {"type": "integer", "minimum": 0}

Text: TypeAlias = str | None
Whole: TypeAlias = int | None
Flag: TypeAlias = bool | None
Amount: TypeAlias = float | str | None
Time: TypeAlias = str | datetime | None
Texts: TypeAlias = Sequence[str] | None
Object: TypeAlias = Mapping[str, Any] | None


class IntervalFields(TypedDict, total=False):
    every: str
    offset: Text


class SpecFields(TypedDict, total=False):
    cron_expressions: Annotated[
        Texts,
        array_field(
            TEXT,
            "Cron expressions in the zone of the spec; see the dialect.",
            checks.spec_text,
            most=MAX_PARTS,
            compiles=checks.compiled_cron,
            also=(Also("cron_expr", alone, single=True), Also("cron_expression", alone, single=True)),
        ),
    ]
    intervals: Annotated[
        Sequence[IntervalFields] | None,
        array_field(
            {"type": "object", "properties": {"every": TEXT, "offset": TEXT}, "required": ["every"]},
            "ISO-8601 durations on a grid from the Unix epoch, shifted by their offset.",
            checks.interval,
            most=MAX_PARTS,
            compiles=checks.compiled_interval,
            written=lambda found: [each.document() for each in found],
        ),
    ]
    at: Annotated[
        Sequence[str | datetime] | None,
        array_field(
            {"type": "string", **_TIME},
            "Single moments, whole seconds.",
            checks.spec_text,
            most=MAX_ONE_OFFS,
            compiles=checks.compiled_one_off,
        ),
    ]
    timezone: Annotated[
        Text,
        text_field(
            "A zone of the IANA database, in which crons are read.",
            checks.spec_text,
            compiles=checks.zone,
            schema={"default": "UTC"},
        ),
    ]
    start_at: Annotated[
        Time, text_field("No occurrence before this moment.", checks.instant, schema=_TIME, written=to_rfc3339)
    ]
    end_at: Annotated[
        Time, text_field("No occurrence after this moment.", checks.instant, schema=_TIME, written=to_rfc3339)
    ]
    jitter_seconds: Annotated[
        float | None,
        Field(
            "How much later than its nominal time an occurrence may act, the same after every restart.",
            {"type": "number", "minimum": 0, "maximum": checks.MAX_JITTER_SECONDS},
            checks.jitter_ms,
            spelled=whole_seconds,
            also=(Also("jitter_ms", from_milliseconds),),
            attribute="jitter_ms",
            written=seconds,
        ),
    ]
    dst_gap: Annotated[
        Text, word_field(DstGap, "A fixed time that the clock leaps over: at the next valid moment, or not at all.")
    ]
    dst_fold: Annotated[Text, word_field(DstFold, "A fixed time that the clock shows twice: which of the two.")]


class ActionFields(TypedDict, total=False):
    """The fields of all shipped kinds together; `kinds.py` says which kind has which."""

    kind: Annotated[
        Text,
        text_field(
            "Who does the work. Guessed from the other fields where it is left out.",
            spelled=lambda value: value.lower().replace("-", "_") if isinstance(value, str) else value,
        ),
    ]
    workflow_type: Annotated[
        Text, text_field("The name of the work, for workers and tasks that know it (workflow, pull).")
    ]
    workflow_id: Annotated[Text, text_field("A workflow that is stored here (workflow).", checked_id)]
    workflow_class: Annotated[Text, text_field("Another name of the work, for workers of other languages (workflow).")]
    version: Annotated[
        int | str | None,
        Field("Of the stored workflow: a number, or `latest`.", {"type": ["integer", "string"]}, checks.version),
    ]
    prompt: Annotated[Text, text_field("What to tell an agent (prompt).", checks.prompt, most=checks.MAX_PROMPT_BYTES)]
    url: Annotated[
        Text, text_field("Where to send the request (http).", checks.url, most=MAX_URL, schema={"format": "uri"})
    ]
    method: Annotated[
        Text,
        text_field(
            "Of the request (http).", checks.method, schema={"enum": list(checks.METHODS), "default": checks.METHODS[0]}
        ),
    ]
    headers: Annotated[
        Mapping[str, str | Mapping[str, str]] | None,
        map_field(
            {"anyOf": [TEXT, SECRET_SCHEMA]},
            'Of the request, beside ours (http). A value is a text, or `{"$secret": "name"}`; a text that carries '
            "credentials is moved into a secret.",
            checks.headers,
        ),
    ]
    secret: Annotated[Text, text_field("The name of the secret that signs the request (http).")]
    task: Annotated[Text, text_field("The name of the task (celery, python).")]
    args: Annotated[
        Sequence[Any] | None,
        Field(
            "Arguments by place (celery). An input that is an array stands for them.", {"type": "array"}, checks.array
        ),
    ]
    kwargs: Annotated[
        Object,
        Field(
            "Arguments by name (celery). An input that is an object stands for them.",
            {"type": "object"},
            checks.mapping,
        ),
    ]
    callable: Annotated[Text, text_field("Another word for the task of a python action.", same_as="task")]
    command: Annotated[Text, text_field("The name of a command in the settings (command).")]
    input: Annotated[
        Sequence[Any] | Mapping[str, Any] | None,
        Field(
            "Arguments by place or by name, or an encoded envelope.",
            {"type": ["array", "object"]},
            checks.any_input,
            also=("inputs", "inputs_template", "arguments"),
        ),
    ]
    template: Annotated[
        Flag, flag_field("Render the expressions (`{{ nominal }}`) in the prompt and the input of each run.")
    ]
    connection: Annotated[
        Text,
        text_field("The broker that a celery action is published to, by its name in the settings; else as it is."),
    ]
    queue: Annotated[
        Text, text_field("The queue that workers take from; a pull action must name one.", also=("task_queue",))
    ]
    global_model_id: Annotated[Text, text_field("The model that every step is told to use.")]
    # The other names are those that the Durable Workflow server had before it counted in seconds by name.
    execution_timeout_seconds: Annotated[
        Whole,
        timeout_field("As `timeout_seconds`, for all attempts of a workflow.", also=("workflow_execution_timeout",)),
    ]
    run_timeout_seconds: Annotated[
        Whole, timeout_field("As `timeout_seconds`, for one run of a workflow.", also=("workflow_run_timeout",))
    ]
    timeout_seconds: Annotated[
        Whole,
        timeout_field(
            f"How long a run may take, {OTHER_TIMEOUT_SECONDS} without one, {PROMPT_TIMEOUT_SECONDS} for a prompt."
        ),
    ]
    delivery: Annotated[Text, word_field(Delivery, "Whether a launch of which nothing was heard is repeated.")]


class BudgetFields(TypedDict, total=False):
    spending_limit_credits: Annotated[Amount, Field("What its runs of one UTC day may cost together.", _AMOUNT)]
    max_daily_runs: Annotated[Whole, whole_field("How many runs one UTC day may have.", also=("max_daily_battles",))]


class ApprovalFields(TypedDict, total=False):
    requires_approval: Annotated[
        Flag, flag_field("Whether somebody must agree before a run starts.", also=("require_approval",))
    ]
    mode: Annotated[
        Text, word_field(ApprovalMode, "What waits: every step, what is sensitive, or what says that it is blocked.")
    ]
    gates: Annotated[
        Texts, array_field(TEXT, "What may not happen without a yes.", written=lambda gates: sorted(gates) or None)
    ]
    expires_after_seconds: Annotated[
        Whole,
        whole_field(
            f"How long a yes is waited for, {DEFAULT_EXPIRES_AFTER_SECONDS} without one; null for as long as it takes.",
            least=1,
            null=NEVER_SECONDS,
        ),
    ]
    approvals_required: Annotated[
        Whole, whole_field("How many different people must agree, 1 without it.", least=1, most=MAX_APPROVALS_REQUIRED)
    ]
    approvers: Annotated[
        Texts,
        array_field(
            TEXT,
            "Who may decide: principals, or `role:x`. Without them whoever holds the permission approve.",
            written=lambda approvers: sorted(approvers) or None,
        ),
    ]
    allow_requester: Annotated[
        Flag, flag_field("Whether who wrote the schedule or asked for the run may decide; not without it.")
    ]
    while_waiting: Annotated[
        Text,
        word_field(
            WhileWaiting,
            "What a run that waits for a yes is to the next occurrence: busy (`count`, without it), out of date "
            "(`supersede`: it ends, and the newer one asks in its place), or nothing (`ignore`).",
        ),
    ]


class RetryFields(TypedDict, total=False):
    max_retries: Annotated[Whole, whole_field("After a failure.", most=MAX_RETRIES, also=(".retries",))]
    backoff_ms: Annotated[Whole, whole_field("The first pause; each is twice the one before.")]
    max_backoff_ms: Annotated[Whole, whole_field("The longest pause.")]
    retry_on: Annotated[
        Texts,
        array_field(
            {"type": "string", "enum": [cause.value for cause in RetryCause]},
            "Which failures. A run that used up its time is tried again only where a policy was written.",
        ),
    ]
    timeout_ms: Annotated[Whole, whole_field("Of one attempt.", least=1)]


class FailureFields(TypedDict, total=False):
    mode: Annotated[Text, word_field(FailureMode, "What the failure of a step means to the others of its workflow.")]
    fallback_assignee_id: Annotated[Text, text_field("Who tries it instead (`fallback`).")]


class LimitsFields(TypedDict, total=False):
    runtime_seconds: Annotated[Whole, whole_field("How long.", least=1, also=("runtime", "max_runtime_seconds"))]
    cost: Annotated[Amount, Field("How much money.", _AMOUNT, also=("max_cost",))]
    tokens: Annotated[Whole, Field("How many tokens.", _COUNT, also=("max_tokens", ".max_tokens"))]
    tool_calls: Annotated[Whole, Field("How many calls of tools.", _COUNT, also=("max_tool_calls",))]
    allow_tools: Annotated[Texts, array_field(TEXT, "Which tools; an empty list allows none.", also=(".allow_tools",))]
