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
from horarium.cli.times import TIME, Times

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
    """`place` is where its value goes in the document; `read` makes the value of what was typed.

    What it takes and means is what the table of fields says of its place.
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
        from horarium.schedule.places import PLACES  # all that a schedule can be: only who writes one waits for it

        schema = PLACES[self.place].schema()
        option = typer.Option(
            None,
            self.name,
            *self.also,
            metavar=self.metavar or ("S" if self.name.endswith("-seconds") else "N"),
            show_default=False,
            help=_help(self, schema),
            rich_help_panel=self.panel,
        )
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.key, kind, default=option, annotation=_type(self, schema) | None)


def _type(flag: Flag, schema: Mapping[str, Any]) -> Any:
    if flag.read is json_value:
        return str
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return next(_TYPES[kind] for kind in kinds if kind in _TYPES)


def _help(flag: Flag, schema: Mapping[str, Any]) -> str:
    words = f" One of {', '.join(schema['enum'])}." if "enum" in schema else ""
    typed = " JSON; @FILE reads a file." if flag.read is json_value else ""
    again = " May be repeated." if _type(flag, schema) == list[str] else ""
    return f"{schema['description']}{words}{typed}{again}"


_TYPES: Mapping[str, Any] = {"integer": int, "number": float, "array": list[str], "object": list[str], "string": str}

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
    Flag("--prompt", "action.prompt", _WHAT, "TEXT"),
    Flag("--url", "action.url", _WHAT, "URL"),
    Flag("--method", "action.method", _WHAT, "METHOD"),
    Flag("--header", "action.headers", _WHAT, "NAME=VALUE", pairs),
    Flag("--task", "action.task", _WHAT, "NAME"),
    Flag("--command", "action.command", _WHAT, "NAME"),
    Flag("--kind", "action.kind", _WHAT, "KIND"),
    Flag("--input", "action.input", _WHAT, "JSON", json_value),
    Flag("--queue", "action.queue", _WHAT, "NAME", also=("--task-queue",)),
    Flag("--timeout-seconds", "action.timeout_seconds", _WHAT),
    Flag("--delivery", "action.delivery", _WHAT, "RULE"),
    Flag("--name", "name", _WHO, "TEXT"),
    Flag("--note", "note", _WHO, "TEXT"),
    Flag("--label", "labels", _WHO, "NAME=VALUE", pairs),
    Flag("--assignee-type", "assignee_type", _WHO, "TYPE"),
    Flag("--assignee-id", "assignee_id", _WHO, "ID"),
    Flag("--calendar", "calendars", _GUARDS, "NAME"),
    Flag("--condition", "pre_dispatch_condition", _GUARDS, "JSON", json_value),
    Flag("--rotation", "inputs_rotation", _GUARDS, "JSON", json_value),
    Flag("--max-daily-runs", "budget.max_daily_runs", _GUARDS),
    Flag("--spending-limit", "budget.spending_limit_credits", _GUARDS, "CREDITS", _number),
    Flag("--overlap-policy", "overlap_policy", _POLICIES, "POLICY"),
    Flag("--max-concurrency", "max_concurrency", _POLICIES),
    Flag("--max-buffered", "max_buffered", _POLICIES),
    Flag("--concurrency-key", "concurrency_key", _POLICIES, "KEY"),
    Flag("--priority", "priority", _POLICIES),
    Flag("--catchup-policy", "catchup_policy", _POLICIES, "POLICY"),
    Flag("--max-catchup", "max_catchup", _POLICIES),
    Flag("--misfire-grace-seconds", "misfire_grace_seconds", _POLICIES),
    Flag("--max-retries", "retry_policy.max_retries", _POLICIES),
    Flag("--max-runs", "max_runs", _POLICIES),
    Flag("--pause-on-failure", "pause_on_failure", _POLICIES),
)

File = Annotated[
    str | None, typer.Option("--file", "-f", metavar="FILE", show_default=False, help="The document, JSON; - is stdin.")
]


class _Definition:
    """The command line sees one parameter for each flag."""

    def __call__(self, file: str | None = None, **flags: Any) -> dict[str, Any]:
        document = {} if file is None else read_object("file", file)
        said = [(flag, flags[flag.key]) for flag in FLAGS if flags[flag.key] not in (None, [])]
        for flag, typed in said:
            if flag.metavar != TIME:
                put(document, flag.place, flag.read(flag.name, typed))
        times = Times(_zone(document), "--tz" if flags["timezone"] else "timezone")
        for flag, typed in said:
            if flag.metavar == TIME:
                put(document, flag.place, _moments(times, flag.name, typed))
        return document

    @property
    def __signature__(self) -> inspect.Signature:
        """What typer reads."""
        kind = inspect.Parameter.KEYWORD_ONLY
        file = inspect.Parameter("file", kind, default=None, annotation=File)
        return inspect.Signature([file, *(flag.parameter for flag in FLAGS)])


definition = _Definition()
"""The document that the flags and the file say together."""


def _zone(document: Mapping[str, Any]) -> str | None:
    """Where a local time of this schedule is: in its own zone, as its crons."""
    spec = document.get("spec")
    found = (spec.get("timezone") if isinstance(spec, dict) else None) or document.get("timezone")
    return found if isinstance(found, str) else None


def _moments(times: Times, name: str, typed: str | list[str]) -> str | list[str]:
    return [times.future(name, each) for each in typed] if isinstance(typed, list) else times.future(name, typed)


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
