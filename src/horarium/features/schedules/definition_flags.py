"""A schedule definition from flags and a file.

`FLAGS` lists the flags with a special name, parser or panel; the others are derived from the table of fields. A flag
replaces the value of the file. The server validates the result; its errors name the flag, or the path in the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.platform.cli import options
from horarium.platform.cli.streams import json_value, pairs, part_value, read_object, refuse
from horarium.platform.cli.times import TIME, Times

if TYPE_CHECKING:
    from horarium.core.document.places import DocumentPlace


_WHEN, _WHAT, _WHO = "Timing", "Action", "Metadata"
_GUARDS, _POLICIES, _LIMITS = "Rules", "Policies", "Limits per run"

Read = Callable[[str, Any], Any]


def _as_it_is(_name: str, value: Any) -> Any:
    return value


def number_or_word(_name: str, value: str) -> int | str:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


def _seconds_or_never(name: str, value: str) -> int | None:
    if value == "never":
        return None
    found = number_or_word(name, value)
    return found if isinstance(found, int) else refuse(f"{name}: must be a number of seconds or never")


def _number(name: str, value: float) -> int | float:
    if not isfinite(value):
        refuse(f"{name}: must be a number")
    return int(value) if value.is_integer() else value


def _headers(name: str, texts: list[str]) -> dict[str, Any]:
    """Parse headers; a value may reference a secret: `Authorization={"$secret": "erp-token"}`."""
    from horarium.core.document.checks import SECRET_KEY

    def read(value: str) -> Any:
        is_reference = value.lstrip("{ ").startswith(f'"{SECRET_KEY}"')
        return json_value(name, value) if is_reference else value

    return {key: read(value) for key, value in pairs(name, texts).items()}


def _condition(name: str, value: str) -> Any:
    return part_value(name, "pre_dispatch_condition", value)


def _rotation(name: str, value: str) -> Any:
    return part_value(name, "inputs_rotation", value)


_JSON = (json_value, _condition, _rotation)


def _intervals(_name: str, values: list[str]) -> list[dict[str, str]]:
    """Parse such as `90m` or `PT1H`; `PT1H+PT5M` has an offset of five minutes."""
    found = []
    for value in values:
        every, plus, offset = map(_iso_duration, value.partition("+"))
        found.append({"every": every, "offset": offset} if plus else {"every": every})
    return found


def _iso_duration(text: str) -> str:
    """Write `1h30m` as `PT1H30M`; ISO-8601 is left for the server to check."""
    from horarium.core.recurrence.zone import format_duration, read_length

    if not text or text == "+" or text.upper().startswith("P"):
        return text
    seconds = read_length(text, field="--every")
    if seconds is None:
        refuse(f"--every: {text[:64]!r} is not a duration; use such as 90m, 1h30m or PT90M")
    return format_duration(seconds)


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: `place` is its path in the document, `read` parses its value.

    Type and help are those of the field.
    """

    name: str
    place: str
    panel: str
    metavar: str = ""
    read: Read = _as_it_is
    also: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def parameter(self) -> inspect.Parameter:
        from horarium.core.document.places import PLACES  # slow to import; needed only to write a schedule

        schema = PLACES[self.place].schema()
        kind = _type(self, schema)
        option = typer.Option(
            None,
            self.name if kind is not bool else f"{self.name}/--no-{self.name.removeprefix('--')}",
            *self.also,
            metavar=None if kind is bool else self.metavar or _metavar(self, schema),
            show_default=False,
            help=_help(self, schema),
            rich_help_panel=self.panel,
            autocompletion=options.of_field(self.place, schema),
        )
        return inspect.Parameter(self.key, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    return schema["type"] if isinstance(schema["type"], list) else [schema["type"]]


def _type(flag: Flag, schema: Mapping[str, Any]) -> Any:
    if flag.read in (*_JSON, number_or_word, _seconds_or_never):
        return str
    return next(_TYPES[kind] for kind in _kinds(schema) if kind in _TYPES)


def _metavar(flag: Flag, schema: Mapping[str, Any]) -> str:
    if {"integer", "number"} & {*_kinds(schema)}:
        return "S" if flag.name.endswith("-seconds") else "MS" if flag.name.endswith("-ms") else "N"
    if flag.read in _JSON:
        return "JSON"
    return "ID" if flag.name.endswith("-id") else "WORD" if options.words_of(schema) else "TEXT"


def _help(flag: Flag, schema: Mapping[str, Any]) -> str:
    known = options.words_of(schema)
    words = f" One of {', '.join(known)}." if known else ""
    typed = " JSON, or @FILE." if flag.read in _JSON else ""
    again = " Repeatable." if _type(flag, schema) == list[str] else ""
    return f"{schema['description']}{words}{typed}{again}"


_TYPES: Mapping[str, Any] = {
    "boolean": bool,
    "integer": int,
    "number": float,
    "array": list[str],
    "object": list[str],
    "string": str,
}

FLAGS = (
    Flag("--cron", "spec.cron_expressions", _WHEN, "EXPR"),
    Flag("--every", "spec.intervals", _WHEN, "DURATION", _intervals),
    Flag("--at", "spec.at", _WHEN, TIME),
    Flag("--timezone", "spec.timezone", _WHEN, "ZONE", also=("--tz",)),
    Flag("--start-at", "spec.start_at", _WHEN, TIME),
    Flag("--end-at", "spec.end_at", _WHEN, TIME),
    Flag("--jitter-seconds", "spec.jitter_seconds", _WHEN, read=_number),
    Flag("--dst-gap", "spec.dst_gap", _WHEN, "RULE"),
    Flag("--dst-fold", "spec.dst_fold", _WHEN, "RULE"),
    Flag("--workflow-type", "action.workflow_type", _WHAT, "NAME"),
    Flag("--workflow-id", "action.workflow_id", _WHAT, "ID"),
    Flag("--workflow-version", "action.version", _WHAT, "VERSION", number_or_word),
    Flag("--prompt", "action.prompt", _WHAT, "TEXT"),
    Flag("--url", "action.url", _WHAT, "URL"),
    Flag("--method", "action.method", _WHAT, "METHOD"),
    Flag("--header", "action.headers", _WHAT, "NAME=VALUE", _headers),
    Flag("--task", "action.task", _WHAT, "NAME"),
    Flag("--command", "action.command", _WHAT, "NAME"),
    Flag("--kind", "action.kind", _WHAT, "KIND"),
    Flag("--input", "action.input", _WHAT, "JSON", json_value),
    Flag("--template", "action.template", _WHAT),
    Flag("--queue", "action.queue", _WHAT, "NAME", also=("--task-queue",)),
    Flag("--timeout-seconds", "action.timeout_seconds", _WHAT),
    Flag("--delivery", "action.delivery", _WHAT, "RULE"),
    Flag("--name", "name", _WHO, "TEXT"),
    Flag("--note", "note", _WHO, "TEXT"),
    Flag("--label", "labels", _WHO, "NAME=VALUE", pairs),
    Flag("--assignee-type", "assignee_type", _WHO, "TYPE"),
    Flag("--assignee-id", "assignee_id", _WHO, "ID"),
    Flag("--workflow-assignment-id", "workflow_assignment_id", _WHO, "ID", also=("--assignment",)),
    Flag("--calendar", "calendars", _GUARDS, "NAME"),
    Flag("--condition", "pre_dispatch_condition", _GUARDS, "JSON", _condition),
    Flag("--rotation", "inputs_rotation", _GUARDS, "JSON", _rotation),
    Flag("--max-daily-runs", "budget.max_daily_runs", _GUARDS),
    Flag("--spending-limit", "budget.spending_limit_credits", _GUARDS, "CREDITS", _number),
    Flag("--overlap-policy", "overlap_policy", _POLICIES, "POLICY"),
    Flag("--max-concurrency", "max_concurrency", _POLICIES),
    Flag("--max-buffered", "max_buffered", _POLICIES),
    Flag("--concurrency-key", "concurrency_key", _POLICIES, "KEY"),
    Flag("--concurrency-limit", "concurrency_limit", _POLICIES),
    Flag("--priority", "priority", _POLICIES),
    Flag("--catchup-policy", "catchup_policy", _POLICIES, "POLICY"),
    Flag("--max-catchup", "max_catchup", _POLICIES),
    Flag("--misfire-grace-seconds", "misfire_grace_seconds", _POLICIES),
    Flag("--max-retries", "retry_policy.max_retries", _POLICIES, also=("--retries",)),
    Flag("--retry-backoff-ms", "retry_policy.backoff_ms", _POLICIES, "MS", also=("--backoff",)),
    Flag("--retry-on", "retry_policy.retry_on", _POLICIES, "CAUSE"),
    Flag("--requires-approval", "approval_policy.requires_approval", _POLICIES),
    Flag("--approval-gate", "approval_policy.gates", _POLICIES, "GATE", also=("--gate",)),
    Flag("--approval-expires-after-seconds", "approval_policy.expires_after_seconds", _POLICIES, "S|never",
         _seconds_or_never, also=("--approval-expires",)),
    Flag("--approver", "approval_policy.approvers", _POLICIES, "WHO", also=("--approvers",)),
    Flag("--approvals-required", "approval_policy.approvals_required", _POLICIES),
    Flag("--allow-requester", "approval_policy.allow_requester", _POLICIES),
    Flag("--while-waiting", "approval_policy.while_waiting", _POLICIES, "WORD"),
    Flag("--fallback-assignee-id", "failure_policy.fallback_assignee_id", _POLICIES, "ID"),
    Flag("--limit-cost", "limits.cost", _LIMITS, "CREDITS", _number, also=("--max-cost",)),
    Flag("--limit-tokens", "limits.tokens", _LIMITS, also=("--max-tokens",)),
    Flag("--allow-tool", "limits.allow_tools", _LIMITS, "TOOL"),
    Flag("--max-runs", "max_runs", _POLICIES),
    Flag("--pause-on-failure", "pause_on_failure", _POLICIES),
    Flag("--failing-after", "failing_after", _POLICIES),
)  # fmt: skip


def assignee_of(name: str, value: str) -> dict[str, str]:
    """Parse such as `agent:writer` or `team:desk`."""
    kind, colon, who = value.partition(":")
    if not (kind and colon and who):
        refuse(f"{name}: must be agent:ID or team:ID")
    return {"assignee_type": kind, "assignee_id": who}


def _on_failure(name: str, value: str) -> dict[str, str]:
    """Parse a mode; `fallback` has the ID of the assignee that takes over."""
    mode, colon, who = value.partition(":")
    if (mode == "fallback") != bool(colon and who):
        refuse(f"{name}: must be isolate, halt or fallback:ID")
    return {"failure_policy.mode": mode} | ({"failure_policy.fallback_assignee_id": who} if who else {})


@dataclass(frozen=True, slots=True)
class Short:
    """A flag that sets two fields; `read` returns both by their places."""

    name: str
    metavar: str
    panel: str
    help: str
    read: Callable[[str, str], Mapping[str, str]]
    completed: options.Completer | None = None

    @property
    def key(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def parameter(self) -> inspect.Parameter:
        option = typer.Option(
            None, self.name, metavar=self.metavar, show_default=False, help=self.help, rich_help_panel=self.panel,
            autocompletion=self.completed,
        )  # fmt: skip
        return inspect.Parameter(self.key, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str | None)


SHORT = (
    Short("--assignee", "TYPE:ID", _WHO, "Assignee: agent:ID or team:ID.", assignee_of, options.assignees),
    Short("--on-failure", "MODE", _POLICIES, "Action after a failed step: isolate, halt or fallback:ID.", _on_failure),
)

NOT_FLAGS: Mapping[str, str] = {
    "schedule_id": "an argument",
    "namespace": "an option of every command",
    "paused": "an option of create; changed by pause and resume",
    "source": "set by the interface that creates the schedule",
    "user_id": "taken from the credential",
    "owner": "taken from the credential",
    "action.callable": "alias of task",
}
"""The fields without a flag, and the reason."""

# The prefix of the flags of a part, and their panel in the help.
_PARTS: Mapping[str, tuple[str, str]] = {
    "spec": ("", _WHEN),
    "action": ("", _WHAT),
    "budget": ("", _GUARDS),
    "approval_policy": ("approval-", _POLICIES),
    "retry_policy": ("retry-", _POLICIES),
    "failure_policy": ("failure-", _POLICIES),
    "limits": ("limit-", _LIMITS),
}


@cache
def all_flags() -> tuple[Flag, ...]:
    """Return a flag for every field: those of `FLAGS`, then those derived from the table of fields."""
    from horarium.core.document.places import PLACES

    told = {flag.place for flag in FLAGS} | NOT_FLAGS.keys()
    return (*FLAGS, *(_derived(place) for path, place in PLACES.items() if path not in told))


def _derived(place: DocumentPlace) -> Flag:
    prefix, panel = _PARTS.get(place.owner, ("", _WHO if place.part is None else _POLICIES))
    kinds = _kinds(place.field.schema)
    read = json_value if "object" in kinds else _number if "number" in kinds else _as_it_is
    return Flag(f"--{prefix}{place.name.replace('_', '-')}", place.path, panel, read=read)


File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", show_default=False, help="Definition as JSON or YAML; - reads stdin."),
]


class Document(dict[str, Any]):
    """A schedule definition, and the flags that set its fields, by path."""

    flags: Mapping[str, str] = {}


class _Definition:
    """A parameter that Typer expands to one option for each flag."""

    def __call__(self, file: str | None = None, **flags: Any) -> Document:
        document = Document({} if file is None else read_object("--file", file))
        said = [(flag, flags[flag.key]) for flag in all_flags() if flags.get(flag.key) not in (None, [])]
        by_short = {
            place: (short.name, value)
            for short in SHORT
            if flags.get(short.key) is not None
            for place, value in short.read(short.name, flags[short.key]).items()
        }
        for place, (_, value) in by_short.items():
            put(document, place, value)
        for flag, typed in said:
            if flag.metavar != TIME:
                put(document, flag.place, flag.read(flag.name, typed))
        times = Times(_zone(document), "--tz" if flags.get("timezone") else "timezone")
        for flag, typed in said:
            if flag.metavar == TIME:
                put(document, flag.place, _moments(times, flag.name, typed))
        named = {place: name for place, (name, _) in by_short.items()}
        document.flags = named | {flag.place: flag.name for flag, _ in said}
        return document

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature that Typer reads."""
        kind = inspect.Parameter.KEYWORD_ONLY
        file = inspect.Parameter("file", kind, default=None, annotation=File)
        return inspect.Signature([file, *(flag.parameter for flag in all_flags()), *(each.parameter for each in SHORT)])


definition = _Definition()
"""The definition from the flags and the file."""


def _zone(document: Mapping[str, Any]) -> str | None:
    """Return the time zone of the schedule, in which local times are read."""
    spec = document.get("spec")
    found = (spec.get("timezone") if isinstance(spec, dict) else None) or document.get("timezone")
    return found if isinstance(found, str) else None


def _moments(times: Times, name: str, typed: str | list[str]) -> str | list[str]:
    return [times.future(name, each) for each in typed] if isinstance(typed, list) else times.future(name, typed)


def put(document: dict[str, Any], place: str, value: Any) -> None:
    """Set a value at a path such as `spec.timezone`; create missing parents."""
    *way, last = place.split(".")
    inner = document
    for step in way:
        found = inner.setdefault(step, {})
        if not isinstance(found, dict):
            refuse(f"{step}: must be an object to set {place}")
        inner = found
    inner[last] = value


def without_nothing(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if not document:
        refuse("the definition is empty; give flags or --file")
    return document
