"""The command `horarium showcase`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from horarium.cli.render import local_time
from horarium.instant import from_rfc3339, to_rfc3339


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
