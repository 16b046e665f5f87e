"""A walk past the expressions that schedulers get wrong: what each says, when it fires, what lint thinks."""

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
    Exhibit("The night without a 02:30", "30 2 * * *", "America/New_York", "2027-03-12T12:00:00Z", 3),
    Exhibit("The night with two 01:30s", "30 1 * * *", "America/New_York", "2026-10-30T12:00:00Z", 3),
    Exhibit("Real time goes on through it", "*/30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", 4),
    Exhibit("A clock change of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T00:00:00Z", 3),
    Exhibit("The 13th or a Friday: either will do", "0 0 13 * 5", "Europe/Istanbul", "2026-11-09T00:00:00Z", 4),
    Exhibit("A time of its own, from its name", "H H * * *", "UTC", "2026-11-09T00:00:00Z", 2, key="nightly-report"),
    Exhibit("A grid that no zone moves", "@every PT90M", "UTC", "2026-11-09T00:00:00Z", 3),
    Exhibit("The last Friday of the month", "0 17 * * 5L", "Europe/London", "2026-11-09T00:00:00Z", 3),
    Exhibit("Every month has a last day, not a 31st", "5 6 31 * *", "UTC", "2026-11-09T00:00:00Z", 3),
)


def showcase_command() -> None:
    """Telling expressions, with words, fires and findings. Fixed dates, so it always prints the same.

    Example: horarium showcase
    """
    from rich.console import Console

    # Wide lines are better wrapped by the terminal than cut into words here.
    console = Console(markup=False, highlight=False, soft_wrap=True)
    for number, exhibit in enumerate(EXHIBITS):
        if number:
            console.print()
        console.print(exhibit.title, style="bold")
        for label, text in _lines(exhibit):
            console.print(f"  {label:<6} {text}")


def _lines(exhibit: Exhibit) -> list[tuple[str, str]]:
    from horarium.recurrence.lint import lint
    from horarium.recurrence.spec import compile_spec
    from horarium.recurrence.words import describe

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
