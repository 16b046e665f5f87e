"""What every field of a schedule holds and means: the table behind the reference page and the OpenAPI document.

The readers decide what is accepted; a test holds this table to them, so that it cannot tell another story.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from horarium.policy.approval import DEFAULT_EXPIRES_AFTER_SECONDS, ApprovalMode
from horarium.policy.catchup import Catchup, CatchupPolicy
from horarium.policy.failure import FailureMode
from horarium.policy.names import MAX_WHOLE
from horarium.policy.overlap import Overlap, OverlapPolicy
from horarium.policy.queue import MAX_PRIORITY, MIN_PRIORITY
from horarium.policy.retry import MAX_RETRIES, RetryCause, RetryPolicy
from horarium.recurrence.wall import DstFold, DstGap
from horarium.schedule.aliases import OBJECTS, TOP
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.definition import OTHER_TIMEOUT_SECONDS, PROMPT_TIMEOUT_SECONDS, ActionKind, Source
from horarium.schedule.read_action import MAX_PROMPT_BYTES, MAX_URL, METHODS
from horarium.schedule.read_definition import MAX_CALENDARS, MAX_NAME, MAX_NOTE
from horarium.schedule.read_spec import MAX_JITTER_SECONDS, MAX_ONE_OFFS, MAX_PARTS
from horarium.schedule.run import Delivery

Schema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """`schema` is JSON Schema; its `default` is what a field that is left out means."""

    schema: Schema
    says: str


def _text(says: str, **schema: Any) -> Field:
    return Field({"type": "string", **schema}, says)


def _whole(says: str, *, least: int = 0, most: int = MAX_WHOLE, **schema: Any) -> Field:
    return Field({"type": "integer", "minimum": least, "maximum": most, **schema}, says)


def _flag(says: str, **schema: Any) -> Field:
    return Field({"type": "boolean", **schema}, says)


def _one_of(kind: type[StrEnum], says: str, default: StrEnum | None = None) -> Field:
    known: dict[str, Any] = {} if default is None else {"default": default.value}
    return Field({"type": "string", "enum": [each.value for each in kind], **known}, says)


def _many(items: Schema, says: str, most: int | None = None, **schema: Any) -> Field:
    bound = {} if most is None else {"maxItems": most}
    return Field({"type": "array", "items": items, **bound, **schema}, says)


def _map(values: Schema, says: str) -> Field:
    return Field({"type": "object", "additionalProperties": values}, says)


_TEXT: Schema = {"type": "string"}
_ANYTHING: Schema = {}
_OBJECT: Schema = {"type": "object"}
_AMOUNT: Schema = {"type": ["number", "string"]}
_OVERLAP, _CATCHUP, _RETRY = Overlap(), Catchup(), RetryPolicy()

FIELDS: Final[Mapping[str, Field]] = MappingProxyType(
    {
        # ── who it is ────────────────────────────────────────────────────────────────────────────
        "schedule_id": _text(
            "Names it inside its namespace. Generated where it is left out at creation.", maxLength=128
        ),
        "namespace": _text("The tenant. It must be the one that the request speaks for.", maxLength=128),
        "name": _text("A line for people.", maxLength=MAX_NAME, default=""),
        "note": _text("A remark for people.", maxLength=MAX_NOTE),
        "labels": _map({"type": ["string", "number", "boolean"]}, "Texts to find it by; numbers are kept as text."),
        "memo": _map(_ANYTHING, "Anything that a worker should be handed; it is stored and not looked at."),
        "search_attributes": _map(_ANYTHING, "Values that a visibility query may ask for."),
        "source": _one_of(
            Source, "`template` follows the code or bundle that brought it, `runtime` is a user's own.", Source.RUNTIME
        ),
        "user_id": _text("Who it belongs to; taken from the credential."),
        "owner": _text("Who may change it beside admins; taken from the credential."),
        "paused": _flag(
            "Whether it begins paused; `enabled: false` says the same. Later a matter of pause and resume.",
            default=False,
        ),
        # ── when ─────────────────────────────────────────────────────────────────────────────────
        "spec.cron_expressions": _many(_TEXT, "Cron expressions in the zone of the spec; see the dialect.", MAX_PARTS),
        "spec.intervals": _many(
            {"type": "object", "properties": {"every": _TEXT, "offset": _TEXT}, "required": ["every"]},
            "ISO-8601 durations on a grid from the Unix epoch, shifted by their offset.",
            MAX_PARTS,
        ),
        "spec.at": _many({"type": "string", "format": "date-time"}, "Single moments, whole seconds.", MAX_ONE_OFFS),
        "spec.timezone": _text("A zone of the IANA database, in which crons are read.", default="UTC"),
        "spec.start_at": _text("No occurrence before this moment.", format="date-time"),
        "spec.end_at": _text("No occurrence after this moment.", format="date-time"),
        "spec.jitter_seconds": Field(
            {"type": "number", "minimum": 0, "maximum": MAX_JITTER_SECONDS, "default": 0},
            "How much later than its nominal time an occurrence may act, the same after every restart.",
        ),
        "spec.dst_gap": _one_of(
            DstGap,
            "A fixed time that the clock leaps over: at the next valid moment, or not at all.",
            DstGap.NEXT_VALID,
        ),
        "spec.dst_fold": _one_of(DstFold, "A fixed time that the clock shows twice: which of the two.", DstFold.FIRST),
        # ── what ─────────────────────────────────────────────────────────────────────────────────
        "action.kind": _one_of(ActionKind, "Who does the work. Guessed from the other fields where it is left out."),
        "action.workflow_type": _text("The name of the work, for workers and tasks that know it (workflow, pull)."),
        "action.workflow_id": _text("A workflow that is stored here (workflow)."),
        "action.workflow_class": _text("Another name of the work, for workers of other languages (workflow)."),
        "action.version": Field({"type": ["integer", "string"]}, "Of the stored workflow: a number, or `latest`."),
        "action.prompt": _text("What to tell an agent (prompt).", maxLength=MAX_PROMPT_BYTES),
        "action.url": _text("Where to send the request (http).", format="uri", maxLength=MAX_URL),
        "action.method": Field(
            {"type": "string", "enum": list(METHODS), "default": METHODS[0]}, "Of the request (http)."
        ),
        "action.headers": _map(_TEXT, "Of the request, beside ours (http)."),
        "action.secret": _text("The name of the secret that signs the request (http)."),
        "action.task": _text("The name of the task (celery, python)."),
        "action.callable": _text("Another word for the task of a python action."),
        "action.command": _text("The name of a command in the settings (command)."),
        "action.input": Field({"type": ["array", "object"]}, "Arguments by place or by name, or an encoded envelope."),
        "action.connection": _text("Handed to the worker as it is."),
        "action.queue": _text("The queue that workers claim from; a pull action must name one."),
        "action.global_model_id": _text("The model that every step is told to use."),
        "action.execution_timeout_seconds": _whole("As `timeout_seconds`, for all attempts of a workflow.", least=1),
        "action.run_timeout_seconds": _whole("As `timeout_seconds`, for one run of a workflow.", least=1),
        "action.timeout_seconds": _whole(
            f"How long a run may take, {OTHER_TIMEOUT_SECONDS} without one, {PROMPT_TIMEOUT_SECONDS} for a prompt.",
            least=1,
        ),
        "action.delivery": _one_of(
            Delivery, "Whether a launch of which nothing was heard is repeated.", Delivery.AT_LEAST_ONCE
        ),
        "assignee_type": _one_of(AssigneeType, "Who works on it: an agent or a team of them."),
        "assignee_id": _text("The id of that agent or team."),
        "workflow_assignment_id": _text("The assignment that this schedule stands for, where there is one."),
        "inputs_rotation": _many(_OBJECT, "Inputs that take turns, one for each run, laid over `action.input`."),
        # ── whether ──────────────────────────────────────────────────────────────────────────────
        "calendars": _many(
            _TEXT, "Calendars that must all allow the day; `name@Zone` reads one in a zone.", MAX_CALENDARS
        ),
        "pre_dispatch_condition": Field(_OBJECT, "Clauses by JSON pointer, all of which must hold."),
        "budget.spending_limit_credits": Field(_AMOUNT, "What its runs of one UTC day may cost together."),
        "budget.max_daily_runs": _whole("How many runs one UTC day may have."),
        "max_runs": _whole("Deleted when so many runs were born.", least=1),
        # ── while others run ─────────────────────────────────────────────────────────────────────
        "overlap_policy": _one_of(OverlapPolicy, "What happens while earlier runs are busy.", _OVERLAP.policy),
        "max_concurrency": _whole("How many runs may be busy at once; 1 unless the policy is `allow_all`.", least=1),
        "max_buffered": _whole("How many may be held (`buffer_all`); any number without it."),
        "cancel_grace_seconds": _whole(
            "How long `cancel_other` waits before it terminates.", default=_OVERLAP.cancel_grace_seconds
        ),
        "concurrency_key": _text("Schedules with the same key share the places of `concurrency_limit`."),
        "concurrency_limit": _whole("How many runs with this key may be busy at once.", least=1, default=1),
        "priority": _whole(
            "Of the ready runs of a namespace the greater is taken first.",
            least=MIN_PRIORITY,
            most=MAX_PRIORITY,
            default=0,
        ),
        # ── after an absence ─────────────────────────────────────────────────────────────────────
        "catchup_policy": _one_of(
            CatchupPolicy, "What becomes of occurrences that nobody was there to decide.", _CATCHUP.policy
        ),
        "max_catchup": _whole("How many of them, the newest, get a run.", default=_CATCHUP.max_catchup),
        "catchup_window_seconds": _whole("How old they may be at most; any age without it."),
        "catchup_spread_seconds": _whole(
            "Over how long `spread` deals them out.", default=_CATCHUP.catchup_spread_seconds
        ),
        "misfire_grace_seconds": _whole(
            "An occurrence that is later than this was missed, if nobody was there.",
            default=_CATCHUP.misfire_grace_seconds,
        ),
        # ── when it fails, and who must agree ────────────────────────────────────────────────────
        "retry_policy.max_retries": _whole("After a failure.", most=MAX_RETRIES, default=_RETRY.max_retries),
        "retry_policy.backoff_ms": _whole("The first pause; each is twice the one before.", default=_RETRY.backoff_ms),
        "retry_policy.max_backoff_ms": _whole("The longest pause.", default=_RETRY.max_backoff_ms),
        "retry_policy.retry_on": _many(
            {"type": "string", "enum": [cause.value for cause in RetryCause]},
            "Which failures. A run that used up its time is tried again only where a policy was written.",
            default=[cause.value for cause in _RETRY.retry_on],
        ),
        "retry_policy.timeout_ms": _whole("Of one attempt.", least=1),
        "failure_policy.mode": _one_of(
            FailureMode, "What the failure of a step means to the others of its workflow.", FailureMode.ISOLATE
        ),
        "failure_policy.fallback_assignee_id": _text("Who tries it instead (`fallback`)."),
        "pause_on_failure": _whole("Paused after so many failures in a row.", least=1),
        "approval_policy.requires_approval": _flag("Whether somebody must agree before a run starts."),
        "approval_policy.mode": _one_of(
            ApprovalMode, "What waits: every step, what is sensitive, or what says that it is blocked."
        ),
        "approval_policy.gates": _many(_TEXT, "What may not happen without a yes."),
        "approval_policy.expires_after_seconds": _whole(
            f"How long a yes is waited for, {DEFAULT_EXPIRES_AFTER_SECONDS} without one.", least=1
        ),
        # ── what one run may use ─────────────────────────────────────────────────────────────────
        "limits.runtime_seconds": _whole("How long.", least=1),
        "limits.cost": Field(_AMOUNT, "How much money."),
        "limits.tokens": Field({"type": "integer", "minimum": 0}, "How many tokens."),
        "limits.tool_calls": Field({"type": "integer", "minimum": 0}, "How many calls of tools."),
        "limits.allow_tools": _many(_TEXT, "Which tools; an empty list allows none."),
    }
)


def other_names(place: str) -> tuple[str, ...]:
    """Names that are read as this one, as they stand in a document, beside its own in the flat form."""
    top = [name for name, target in TOP.items() if target.place == place]
    inner = [
        f"{owner}.{name}" for owner, table in OBJECTS.items() for name, target in table.items() if target.place == place
    ]
    return tuple(name for name in dict.fromkeys([*top, *inner]) if name not in (place, place.rpartition(".")[2]))


def schema_of(places: Iterable[str] = tuple(FIELDS)) -> dict[str, Any]:
    """A JSON Schema of the nested form. Other names are read too, so unknown ones are not refused by it."""
    properties: dict[str, Any] = {}
    for place in places:
        part, _, own = place.rpartition(".")
        home = properties
        if part:
            home = properties.setdefault(part, {"type": "object", "properties": {}})["properties"]
        home[own] = {**FIELDS[place].schema, "description": FIELDS[place].says}
    return {"type": "object", "properties": properties}
