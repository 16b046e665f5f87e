"""Commands that need no server: cron expressions, conditions, the showcase and help."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import typer

from horarium.condition import compile_condition, evaluate_condition
from horarium.core.document.condition_context import is_context, never_there
from horarium.core.recurrence.parts import DstFold, DstGap
from horarium.core.recurrence.spec import next_fires, split_zone
from horarium.core.recurrence.zone import load_zone
from horarium.errors import ConditionError
from horarium.instant import Instant, from_datetime, from_rfc3339, to_datetime, to_rfc3339
from horarium.platform.cli import options
from horarium.platform.cli.program import escaped, write_commands, write_options
from horarium.platform.cli.streams import (
    STDIN,
    Format,
    Json,
    local_time,
    part_of,
    printable,
    read_json,
    refuse,
    show,
    show_json,
    talk,
)
from horarium.platform.cli.times import TIME, Times
from horarium.platform.clock import SystemClock

_CALENDAR_ENDS = "calendar_ends"

Expression = Annotated[
    str,
    typer.Argument(
        metavar="EXPR",
        show_default=False,
        help="Cron expression, macro such as @daily, or interval such as '@every PT30M'.",
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        show_default="UTC",
        help="Time zone, such as Europe/Istanbul.",
        autocompletion=options.zones,
    ),
]
After = Annotated[str | None, typer.Option("--after", metavar=TIME, show_default="now", help="Start time, exclusive.")]
Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", show_default=False, help="Hash key for H: a schedule ID.")
]
Gap = Annotated[DstGap, typer.Option("--dst-gap", help="Rule for a nonexistent local time (DST): next_valid or skip.")]
Fold = Annotated[
    DstFold, typer.Option("--dst-fold", help="Rule for an ambiguous local time (DST): first, second or both.")
]


def next_command(
    expr: Expression,
    tz: TimeZone = None,
    after: After = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", help="Number of times.")] = 1,
    dst_gap: Gap = DstGap.NEXT_VALID,
    dst_fold: Fold = DstFold.FIRST,
    key: Key = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = Format.JSON,
) -> None:
    """Print the next fire times of an expression, in UTC.

    Exit code 2: the expression is invalid.

    Example: horarium next "30 2 * * *" --tz America/New_York --after 2026-03-07T12:00:00Z --count 3
    """
    start = to_datetime(_moment(expr, tz, after))
    fires = next_fires(
        expr, timezone=tz, after=start, count=count, dst_gap=dst_gap.value, dst_fold=dst_fold.value, key=key
    )
    instants = [from_datetime(fire) for fire in fires]
    zone = load_zone(split_zone(expr)[0] or tz or "UTC")
    cells = [(to_rfc3339(instant), local_time(instant, zone)) for instant in instants] if output is Format.TABLE else []
    show([to_rfc3339(instant) for instant in instants], output, columns=("UTC", zone.key), cells=cells)


def explain_command(expr: Expression, tz: TimeZone = None, key: Key = None) -> None:
    """Describe an expression in English.

    Example: horarium explain-cron "0 9 * * 1-5" --tz Europe/Istanbul
    """
    from horarium.core.recurrence.words import describe

    typer.echo(describe(expr, timezone=tz, key=key))


def lint_command(
    expr: Expression,
    tz: TimeZone = None,
    after: After = None,
    dst_gap: Gap = DstGap.NEXT_VALID,
    dst_fold: Fold = DstFold.FIRST,
    key: Key = None,
    calendars: Annotated[
        list[str] | None,
        typer.Option(
            "--calendar",
            metavar="NAME",
            show_default="none",
            help="Built-in calendar whose end is checked; repeatable.",
        ),
    ] = None,
    output: Annotated[
        Format | None, typer.Option("--output", "-o", show_default="code: message", help="Output format.")
    ] = None,
) -> None:
    """Check an expression for common mistakes: DST changes of the coming year, short months, uneven steps, peak times.

    Exit code 0: no findings; 1: findings; 2: the expression is invalid.

    Example: horarium lint "30 2 * * *" --tz America/New_York --after 2026-12-01T00:00:00Z
    """
    from horarium.core.recurrence.lint import lint

    moment = _moment(expr, tz, after)
    findings = lint(expr, timezone=tz, after=moment, key=key, dst_gap=dst_gap, dst_fold=dst_fold)
    found = [(each.code.value, each.message) for each in findings] + _ending(calendars or [], moment)
    if output is not None:
        rows: list[Json] = [{"code": code, "message": message} for code, message in found]
        show(rows, output, columns=("code", "message"), cells=found)
    else:
        for code, message in found:
            typer.echo(f"{code}: {message}")
    if found:
        raise typer.Exit(1)
    talk("no findings")


def _ending(names: list[str], now: Instant) -> list[tuple[str, str]]:
    from horarium.core.document.calendar import coverage_warning, shared_calendar

    found = []
    for name in names:
        calendar = shared_calendar(name)
        if calendar is None:
            refuse(f"--calendar: unknown built-in calendar {name!r}; see `horarium calendar list`")
        warning = coverage_warning(calendar, to_datetime(now).date())
        found += [] if warning is None else [(_CALENDAR_ENDS, warning)]
    return found


def condition_test_command(
    filter_file: Annotated[
        str, typer.Option("--filter", metavar="FILE", show_default=False, help="Condition as JSON; - reads stdin.")
    ],
    context_file: Annotated[
        str, typer.Option("--context", metavar="FILE", show_default=False, help="Context as JSON; - reads stdin.")
    ],
) -> None:
    """Evaluate a condition against a context.

    Prints {"result": true or false, "error": null or text}. An invalid condition has the result false and an error. A
    pointer that no context of a schedule can have is a warning on stderr.

    Exit code 2: a file is unreadable or not JSON; otherwise 0.

    Example: horarium condition test --filter filter.json --context context.json
    """
    if filter_file == context_file == STDIN:
        refuse("only one of --filter and --context can read stdin")
    condition = part_of("pre_dispatch_condition", read_json("filter", filter_file))
    context = read_json("context", context_file)
    try:
        answer: Json = {"result": evaluate_condition(condition, context), "error": None}
    except ConditionError as wrong:
        answer = {"result": False, "error": wrong.message}
    else:
        _warn(condition, context)
    show_json(answer)


def _warn(condition: Json, context: Json) -> None:
    """Warn about pointers that cannot match, if the context is that of a schedule."""
    if is_context(context):
        for said in never_there(compile_condition(condition)):
            talk(f"warning: {printable(said)}")


def _moment(expr: str, tz: str | None, after: str | None) -> Instant:
    """Read --after in the time zone of the expression."""
    if after is None:
        return SystemClock().now()
    return from_rfc3339(Times(split_zone(expr)[0] or tz).future("--after", after))


@dataclass(frozen=True, slots=True)
class Exhibit:
    title: str
    expr: str
    timezone: str
    after: str
    count: int
    key: str | None = None


EXHIBITS = (
    Exhibit("DST start: no 02:30 on that day", "30 2 * * *", "America/New_York", "2027-03-12T12:00:00Z", 3),
    Exhibit("DST end: 01:30 occurs twice", "30 1 * * *", "America/New_York", "2026-10-30T12:00:00Z", 3),
    Exhibit("DST end: */30 fires in both hours", "*/30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", 4),
    Exhibit("A DST change of 30 minutes", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T00:00:00Z", 3),
    Exhibit("Day of month and day of week: either matches", "0 0 13 * 5", "Europe/Istanbul", "2026-11-09T00:00:00Z", 4),
    Exhibit(
        "H: a time derived from the schedule ID", "H H * * *", "UTC", "2026-11-09T00:00:00Z", 2, key="nightly-report"
    ),
    Exhibit("An interval is independent of the time zone", "@every PT90M", "UTC", "2026-11-09T00:00:00Z", 3),
    Exhibit("The last Friday of the month", "0 17 * * 5L", "Europe/London", "2026-11-09T00:00:00Z", 3),
    Exhibit("The 31st does not exist in every month", "5 6 31 * *", "UTC", "2026-11-09T00:00:00Z", 3),
)


def showcase_command() -> None:
    """Show example expressions with description, fire times and lint findings. The dates are fixed.

    Example: horarium showcase
    """
    from rich.console import Console

    # Let the terminal wrap wide lines.
    console = Console(markup=False, highlight=False, soft_wrap=True)
    for number, exhibit in enumerate(EXHIBITS):
        if number:
            console.print()
        console.print(exhibit.title, style="bold")
        for label, text in _lines(exhibit):
            console.print(f"  {label:<6} {text}")


def _lines(exhibit: Exhibit) -> list[tuple[str, str]]:
    from horarium.core.recurrence.lint import lint
    from horarium.core.recurrence.spec import compile_spec
    from horarium.core.recurrence.words import describe

    after = from_rfc3339(exhibit.after)
    spec = compile_spec(cron_expressions=[exhibit.expr], timezone=exhibit.timezone, key=exhibit.key)
    fires = islice(spec.occurrences(after), exhibit.count)
    findings = lint(exhibit.expr, timezone=exhibit.timezone, after=after, key=exhibit.key)
    return [
        ("expr", exhibit.expr if exhibit.key is None else f"{exhibit.expr}   for {exhibit.key!r}"),
        ("says", describe(exhibit.expr, timezone=exhibit.timezone, key=exhibit.key)),
        *(("fires", f"{local_time(fire, spec.zone)} = {to_rfc3339(fire)}") for fire in fires),
        *(("lint", f"{finding.code}: {finding.message}") for finding in findings),
    ]


def help_command(
    context: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", show_default="the overview", help="`commands`, `options`, or a command."),
    ] = None,
) -> None:
    """Show all commands, the connection options, or the help of a command.

    Example: horarium help options
    """
    root: Any = context.find_root()
    writer = {"commands": write_commands, "options": write_options}.get(" ".join(topic or ()))
    if writer is None:
        typer.echo(_context_of(root, topic or []).get_help())
        return
    formatter = root.make_formatter()
    writer(root.command, root, formatter)
    typer.echo(escaped(formatter.getvalue().strip()))


def _context_of(context: Any, path: list[str]) -> Any:
    for depth, name in enumerate(path, 1):
        command = getattr(context.command, "commands", {}).get(name)
        if command is None:
            refuse(f"no help for {' '.join(path[:depth])[:64]!r}; `horarium help commands` lists the commands")
        context = type(context)(command, info_name=name, parent=context)
    return context
