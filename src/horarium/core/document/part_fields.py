"""Fields of the parts of a schedule: spec, action, budget, limits and three policies (see `fields.py`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypedDict

from horarium.core.document import checks
from horarium.core.document.checks import SECRET_SCHEMA
from horarium.core.document.definition import OTHER_TIMEOUT_SECONDS, PROMPT_TIMEOUT_SECONDS
from horarium.core.document.field import (
    TEXT,
    Field,
    FieldSpelling,
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
from horarium.core.document.json_values import MAX_URL
from horarium.core.document.states import Delivery
from horarium.core.policy.approval import (
    DEFAULT_EXPIRES_AFTER_SECONDS,
    MAX_APPROVALS_REQUIRED,
    MAX_RETRIES,
    NEVER_SECONDS,
    ApprovalMode,
    FailureMode,
    RetryCause,
    WhileWaiting,
)
from horarium.core.policy.queue import checked_id
from horarium.core.recurrence.parts import DstFold, DstGap
from horarium.instant import to_rfc3339

# Annotations are read here when the module is imported, so they are not postponed.


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
            "Cron expressions, evaluated in `timezone`.",
            checks.spec_text,
            most=MAX_PARTS,
            compiles=checks.compiled_cron,
            also=(FieldSpelling("cron_expr", alone, single=True), FieldSpelling("cron_expression", alone, single=True)),
        ),
    ]
    intervals: Annotated[
        Sequence[IntervalFields] | None,
        array_field(
            {"type": "object", "properties": {"every": TEXT, "offset": TEXT}, "required": ["every"]},
            "Fixed intervals as ISO 8601 durations, counted from the Unix epoch plus `offset`.",
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
            "One-time runs: dates and times with whole seconds.",
            checks.spec_text,
            most=MAX_ONE_OFFS,
            compiles=checks.compiled_one_off,
        ),
    ]
    timezone: Annotated[
        Text,
        text_field(
            "IANA time zone of the cron expressions.",
            checks.spec_text,
            compiles=checks.zone,
            schema={"default": "UTC"},
        ),
    ]
    start_at: Annotated[
        Time,
        text_field("First time at which an occurrence may be due.", checks.instant, schema=_TIME, written=to_rfc3339),
    ]
    end_at: Annotated[
        Time,
        text_field("Last time at which an occurrence may be due.", checks.instant, schema=_TIME, written=to_rfc3339),
    ]
    jitter_seconds: Annotated[
        float | None,
        Field(
            "Maximum random delay of each occurrence, in seconds. The delay of an occurrence does not "
            "change after a restart.",
            {"type": "number", "minimum": 0, "maximum": checks.MAX_JITTER_SECONDS},
            checks.jitter_ms,
            spelled=whole_seconds,
            also=(FieldSpelling("jitter_ms", from_milliseconds),),
            attribute="jitter_ms",
            written=seconds,
        ),
    ]
    dst_gap: Annotated[
        Text,
        word_field(
            DstGap, "Action for a local time that does not exist because of DST: run at the next valid time, or skip."
        ),
    ]
    dst_fold: Annotated[
        Text,
        word_field(
            DstFold, "Action for a local time that occurs twice because of DST: run at the first, the second, or both."
        ),
    ]


class ActionFields(TypedDict, total=False):
    """The fields of all shipped kinds together; `kinds.py` assigns them to kinds."""

    kind: Annotated[
        Text,
        text_field(
            "Kind of action. Derived from the other fields if omitted.",
            spelled=lambda value: value.lower().replace("-", "_") if isinstance(value, str) else value,
        ),
    ]
    workflow_type: Annotated[Text, text_field("Workflow type that workers register (kinds workflow and pull).")]
    workflow_id: Annotated[Text, text_field("ID of a stored workflow (kind workflow).", checked_id)]
    workflow_class: Annotated[
        Text, text_field("Class name of the workflow, for workers not written in Python (kind workflow).")
    ]
    version: Annotated[
        int | str | None,
        Field("Version of the stored workflow: a number or `latest`.", {"type": ["integer", "string"]}, checks.version),
    ]
    prompt: Annotated[
        Text, text_field("Prompt to send to the agent (kind prompt).", checks.prompt, most=checks.MAX_PROMPT_BYTES)
    ]
    url: Annotated[
        Text, text_field("URL of the request (kind http).", checks.url, most=MAX_URL, schema={"format": "uri"})
    ]
    method: Annotated[
        Text,
        text_field(
            "HTTP method (kind http).",
            checks.method,
            schema={"enum": list(checks.METHODS), "default": checks.METHODS[0]},
        ),
    ]
    headers: Annotated[
        Mapping[str, str | Mapping[str, str]] | None,
        map_field(
            {"anyOf": [TEXT, SECRET_SCHEMA]},
            'Additional request headers (kind http). A value is a text or `{"$secret": "name"}`. A text that '
            "contains credentials is moved into a secret.",
            checks.headers,
        ),
    ]
    secret: Annotated[Text, text_field("Name of the secret that signs the request (kind http).")]
    task: Annotated[Text, text_field("Name of the task (kinds celery and python).")]
    args: Annotated[
        Sequence[Any] | None,
        Field(
            "Positional arguments (kind celery). An `input` that is an array has the same effect.",
            {"type": "array"},
            checks.array,
        ),
    ]
    kwargs: Annotated[
        Object,
        Field(
            "Keyword arguments (kind celery). An `input` that is an object has the same effect.",
            {"type": "object"},
            checks.mapping,
        ),
    ]
    callable: Annotated[Text, text_field("Alias of `task` for python actions.", same_as="task")]
    command: Annotated[Text, text_field("Name of a command from the setting `commands` (kind command).")]
    input: Annotated[
        Sequence[Any] | Mapping[str, Any] | None,
        Field(
            "Input of the run: positional arguments as an array, named arguments as an object, or an encoded envelope.",
            {"type": ["array", "object"]},
            checks.any_input,
            also=("inputs", "inputs_template", "arguments"),
        ),
    ]
    template: Annotated[
        Flag, flag_field("Render template expressions such as `{{ nominal }}` in the prompt and input of each run.")
    ]
    connection: Annotated[
        Text,
        text_field(
            "Connection to use. For celery: name of a broker from the settings. Other kinds receive it unchanged."
        ),
    ]
    queue: Annotated[Text, text_field("Queue that workers claim from. Required for pull.", also=("task_queue",))]
    global_model_id: Annotated[Text, text_field("Model ID passed to every step.")]
    # The other names are those that the Durable Workflow server had before it counted in seconds by name.
    execution_timeout_seconds: Annotated[
        Whole,
        timeout_field(
            "Alternative name of `timeout_seconds`. Used if neither that nor `run_timeout_seconds` is set.",
            also=("workflow_execution_timeout",),
        ),
    ]
    run_timeout_seconds: Annotated[
        Whole,
        timeout_field(
            "Alternative name of `timeout_seconds`, which takes precedence.",
            also=("workflow_run_timeout",),
        ),
    ]
    timeout_seconds: Annotated[
        Whole,
        timeout_field(
            f"Maximum duration of a run, in seconds (default {OTHER_TIMEOUT_SECONDS}; "
            f"{PROMPT_TIMEOUT_SECONDS} for prompts)."
        ),
    ]
    delivery: Annotated[
        Text,
        word_field(
            Delivery,
            "Delivery guarantee if the outcome of a launch is unknown: `at_least_once` retries the "
            "launch, `at_most_once` does not.",
        ),
    ]


class BudgetFields(TypedDict, total=False):
    spending_limit_credits: Annotated[
        Amount, Field("Maximum total cost of the runs of a UTC day, in credits.", _AMOUNT)
    ]
    max_daily_runs: Annotated[Whole, whole_field("Maximum runs per UTC day.", also=("max_daily_battles",))]


class ApprovalFields(TypedDict, total=False):
    requires_approval: Annotated[Flag, flag_field("Require approval before a run starts.", also=("require_approval",))]
    mode: Annotated[
        Text,
        word_field(
            ApprovalMode, "Steps that need approval: all, those with sensitive gates, or those that report `blocked`."
        ),
    ]
    gates: Annotated[
        Texts, array_field(TEXT, "Gates that always need approval.", written=lambda gates: sorted(gates) or None)
    ]
    expires_after_seconds: Annotated[
        Whole,
        whole_field(
            f"Seconds until an approval request expires (default {DEFAULT_EXPIRES_AFTER_SECONDS}; null = never).",
            least=1,
            null=NEVER_SECONDS,
        ),
    ]
    approvals_required: Annotated[
        Whole, whole_field("Number of different approvers required (default 1).", least=1, most=MAX_APPROVALS_REQUIRED)
    ]
    approvers: Annotated[
        Texts,
        array_field(
            TEXT,
            "Principals or roles (`role:x`) that may decide. Default: every principal with the permission `approve`.",
            written=lambda approvers: sorted(approvers) or None,
        ),
    ]
    allow_requester: Annotated[Flag, flag_field("Let the schedule's author or the requester approve (default: no).")]
    while_waiting: Annotated[
        Text,
        word_field(
            WhileWaiting,
            "Treatment of a run awaiting approval at the next occurrence: `count` it as active (default), "
            "`supersede` it with a new approval request, or `ignore` it.",
        ),
    ]


class RetryFields(TypedDict, total=False):
    max_retries: Annotated[
        Whole, whole_field("Maximum retries after a failed attempt.", most=MAX_RETRIES, also=(".retries",))
    ]
    backoff_ms: Annotated[Whole, whole_field("Initial backoff before a retry, in ms. Each further backoff doubles.")]
    max_backoff_ms: Annotated[Whole, whole_field("Maximum backoff between retries, in ms.")]
    retry_on: Annotated[
        Texts,
        array_field(
            {"type": "string", "enum": [cause.value for cause in RetryCause]},
            "Causes of failure to retry. Timeouts are retried only if a retry policy is set.",
        ),
    ]
    timeout_ms: Annotated[
        Whole, whole_field("Timeout of each attempt, in ms (default: the timeout of the action).", least=1)
    ]


class FailureFields(TypedDict, total=False):
    mode: Annotated[
        Text,
        word_field(
            FailureMode,
            "Effect of a failed step: `isolate` skips the steps that depend on it, `halt` stops the "
            "workflow, `fallback` runs the step with another assignee.",
        ),
    ]
    fallback_assignee_id: Annotated[Text, text_field("Assignee that takes over a failed step (`fallback`).")]


class LimitsFields(TypedDict, total=False):
    runtime_seconds: Annotated[
        Whole, whole_field("Maximum duration of a run, in seconds.", least=1, also=("runtime", "max_runtime_seconds"))
    ]
    cost: Annotated[Amount, Field("Maximum cost of a run, in credits.", _AMOUNT, also=("max_cost",))]
    tokens: Annotated[Whole, Field("Maximum tokens of a run.", _COUNT, also=("max_tokens", ".max_tokens"))]
    tool_calls: Annotated[Whole, Field("Maximum tool calls of a run.", _COUNT, also=("max_tool_calls",))]
    allow_tools: Annotated[
        Texts,
        array_field(
            TEXT, "Tools that a run may call. An empty list allows none (default: all).", also=(".allow_tools",)
        ),
    ]
