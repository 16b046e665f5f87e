"""How a schedule is written on the command line: one flag for each common field, a file for the whole document.

What a flag says replaces what the file says in the same place. The server reads the result; a flag that
it does not like is refused in its words, with the path of the field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from horarium.cli.reading import json_value, pairs, read_object, refuse

_WHEN, _WHAT, _WHO = "When", "What", "About it"
_GUARDS, _POLICIES = "Guards", "Policies"

Read = Callable[[str, Any], Any]


def _as_it_is(_name: str, value: Any) -> Any:
    return value


def _number(_name: str, value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _intervals(_name: str, values: list[str]) -> list[dict[str, str]]:
    """`PT1H`, or `PT1H+PT5M` where the grid begins five minutes late."""
    found = []
    for value in values:
        every, plus, offset = value.partition("+")
        found.append({"every": every, "offset": offset} if plus else {"every": every})
    return found


@dataclass(frozen=True, slots=True)
class Flag:
    """`place` is where its value goes in the document; `read` makes the value of what was typed."""

    name: str
    place: str
    metavar: str
    help: str
    panel: str
    kind: Any = str
    read: Read = _as_it_is
    also: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def parameter(self) -> inspect.Parameter:
        option = typer.Option(
            None,
            self.name,
            *self.also,
            metavar=self.metavar,
            show_default=False,
            help=self.help,
            rich_help_panel=self.panel,
        )
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.key, kind, default=option, annotation=self.kind | None)


_MANY = list[str]

FLAGS = (
    Flag("--cron", "spec.cron_expressions", "EXPR", "A cron expression; may be repeated.", _WHEN, _MANY),
    Flag("--every", "spec.intervals", "DURATION", "PT30M, or PT1H+PT5M; may be repeated.", _WHEN, _MANY, _intervals),
    Flag("--at", "spec.at", "RFC3339", "One moment; may be repeated.", _WHEN, _MANY),
    Flag("--timezone", "spec.timezone", "ZONE", "A zone such as Europe/Istanbul.", _WHEN, also=("--tz",)),
    Flag("--start-at", "spec.start_at", "RFC3339", "Nothing before this moment.", _WHEN),
    Flag("--end-at", "spec.end_at", "RFC3339", "Nothing after this moment.", _WHEN),
    Flag("--jitter-seconds", "spec.jitter_seconds", "S", "Spread fires over so many seconds.", _WHEN, float, _number),
    Flag("--dst-gap", "spec.dst_gap", "RULE", "next_valid or skip.", _WHEN),
    Flag("--dst-fold", "spec.dst_fold", "RULE", "first, second or both.", _WHEN),
    Flag("--workflow-type", "action.workflow_type", "NAME", "A workflow, a task, or work for a queue.", _WHAT),
    Flag("--workflow-id", "action.workflow_id", "ID", "A stored workflow.", _WHAT),
    Flag("--prompt", "action.prompt", "TEXT", "What to ask the assigned agent.", _WHAT),
    Flag("--url", "action.url", "URL", "An address to call.", _WHAT),
    Flag("--method", "action.method", "METHOD", "POST unless another is named.", _WHAT),
    Flag("--header", "action.headers", "NAME=VALUE", "A header; may be repeated.", _WHAT, _MANY, pairs),
    Flag("--task", "action.task", "NAME", "A task; with --kind celery or python.", _WHAT),
    Flag("--command", "action.command", "NAME", "A command that the server allows.", _WHAT),
    Flag("--kind", "action.kind", "KIND", "Which kind of action, where it is not plain.", _WHAT),
    Flag("--input", "action.input", "JSON", "Its input; @FILE reads a file.", _WHAT, read=json_value),
    Flag("--queue", "action.queue", "NAME", "The queue of its runs.", _WHAT, also=("--task-queue",)),
    Flag("--timeout-seconds", "action.timeout_seconds", "S", "How long a run may take.", _WHAT, int),
    Flag("--delivery", "action.delivery", "RULE", "at_least_once or at_most_once.", _WHAT),
    Flag("--name", "name", "TEXT", "A name for people.", _WHO),
    Flag("--note", "note", "TEXT", "A note for people.", _WHO),
    Flag("--label", "labels", "NAME=VALUE", "A label; may be repeated.", _WHO, _MANY, pairs),
    Flag("--assignee-type", "assignee_type", "TYPE", "agent or team.", _WHO),
    Flag("--assignee-id", "assignee_id", "ID", "Who does it.", _WHO),
    Flag("--calendar", "calendars", "NAME", "A calendar that must allow the day; may be repeated.", _GUARDS, _MANY),
    Flag("--condition", "pre_dispatch_condition", "JSON", "What must hold; @FILE.", _GUARDS, read=json_value),
    Flag("--rotation", "inputs_rotation", "JSON", "Inputs to take in turn; @FILE.", _GUARDS, read=json_value),
    Flag("--max-daily-runs", "budget.max_daily_runs", "N", "Runs in a UTC day, at most.", _GUARDS, int),
    Flag("--spending-limit", "budget.spending_limit_credits", "CREDITS", "In a UTC day.", _GUARDS, float, _number),
    Flag("--overlap-policy", "overlap_policy", "POLICY", "skip, buffer_one, buffer_all, allow_all, …", _POLICIES),
    Flag("--max-concurrency", "max_concurrency", "N", "How many runs at once.", _POLICIES, int),
    Flag("--max-buffered", "max_buffered", "N", "How many runs may wait.", _POLICIES, int),
    Flag("--concurrency-key", "concurrency_key", "KEY", "Schedules that share it take turns.", _POLICIES),
    Flag("--priority", "priority", "N", "Higher goes first.", _POLICIES, int),
    Flag("--catchup-policy", "catchup_policy", "POLICY", "fire_once, skip, fire_all or spread.", _POLICIES),
    Flag("--max-catchup", "max_catchup", "N", "Missed occurrences to make up for.", _POLICIES, int),
    Flag("--misfire-grace-seconds", "misfire_grace_seconds", "S", "How late is still on time.", _POLICIES, int),
    Flag("--max-runs", "max_runs", "N", "The schedule ends after so many.", _POLICIES, int),
    Flag("--pause-on-failure", "pause_on_failure", "N", "Pause after so many failures in a row.", _POLICIES, int),
)

File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", show_default=False, help="The document, JSON; - is stdin."),
]


def definition(file: File = None, **flags: Any) -> dict[str, Any]:
    """The document that the flags and the file say together."""
    document = {} if file is None else read_object("file", file)
    for flag in FLAGS:
        typed = flags[flag.key]
        if typed is not None and typed != []:
            put(document, flag.place, flag.read(flag.name, typed))
    return document


def put(document: dict[str, Any], place: str, value: Any) -> None:
    """At a path such as `spec.timezone`; what is on the way is made."""
    *way, last = place.split(".")
    inner = document
    for step in way:
        found = inner.setdefault(step, {})
        if not isinstance(found, dict):
            refuse(f"{step}: must be an object, to hold {place}")
        inner = found
    inner[last] = value


def without_nothing(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if not document:
        refuse("nothing is said about the schedule; give flags or --file")
    return document


# The command line sees one parameter for each flag.
definition.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("file", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=File),
        *(flag.parameter for flag in FLAGS),
    ]
)
