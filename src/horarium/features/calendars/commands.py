"""The commands of `horarium calendar`, and the days in a file.

A file has one ISO date per line, or the all-day events of an iCalendar file (RFC 5545). Recurring events and events
with a time of day are refused with their line.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.platform.cli import options
from horarium.platform.cli.lists import Listing, Paging, show_list
from horarium.platform.cli.program import LaterModule, add_default_commands
from horarium.platform.cli.remote import Remote, by_flags, with_remote
from horarium.platform.cli.streams import Format, cell, printable, read_bytes, refuse, show_document, talk

if TYPE_CHECKING:
    from horarium.features.tenants.model import Calendar


# ── days in a file ────────────────────────────────────────────────────────────────────────────────────


_MAX_DAYS = 10_000
_COMMENT = "#"
_REPEATING = ("RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")
_BEGIN, _END = "BEGIN:VEVENT", "END:VEVENT"


def read_dates(file: str) -> list[str]:
    """Return the days of a file, sorted and without duplicates."""
    try:
        text = read_bytes("dates", file).decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(f"dates: {file!r} is not UTF-8 text")
    is_calendar = text.lstrip()[:15].upper() == "BEGIN:VCALENDAR"
    days = set(_events(text) if is_calendar else _lines(text))
    if not days:
        refuse(f"dates: {file!r} contains no days")
    if len(days) > _MAX_DAYS:
        refuse(f"dates: {file!r} contains {len(days)} days; a calendar has at most {_MAX_DAYS}")
    return [day.isoformat() for day in sorted(days)]


def _lines(text: str) -> Iterator[date]:
    """Yield the date of each line; text after it, or after a #, is a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition(_COMMENT)[0].split()
        if words:
            yield _day(words[0], number, dashed=True)


def _events(text: str) -> Iterator[date]:
    start: date | None = None
    end: date | None = None
    inside = False
    for number, line in _unfolded(text):
        name, parameters, value = _property(line)
        match line.upper():
            case "BEGIN:VEVENT":
                inside, start, end = True, None, None
            case "END:VEVENT":
                inside = False
                yield from _span(start, end, number)
            case _ if inside and name in _REPEATING:
                refuse(f"dates: line {number}: recurring events ({name}) are not supported; list the days")
            case _ if inside and name in ("DTSTART", "DTEND"):
                if "VALUE=DATE" not in parameters:
                    refuse(f"dates: line {number}: {name} has a time of day; only all-day events are supported")
                day = _day(value, number, dashed=False)
                start, end = (day, end) if name == "DTSTART" else (start, day)
            case _ if inside and name == "DURATION":
                refuse(f"dates: line {number}: DURATION is not supported; use DTEND")


def _span(start: date | None, end: date | None, number: int) -> Iterator[date]:
    """DTEND is the day after the last one; without it the event is one day (RFC 5545 section 3.6.1)."""
    if start is None:
        refuse(f"dates: line {number}: the event has no DTSTART")
    days = 1 if end is None else (end - start).days
    if not 1 <= days <= _MAX_DAYS:
        refuse(f"dates: line {number}: an event of {days} days is not supported")
    yield from (start + timedelta(days=each) for each in range(days))


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Join continuation lines, which begin with a blank (RFC 5545 section 3.1)."""
    held, at = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1] in (" ", "\t"):
            held += line[1:]
        else:
            yield at, held
            held, at = line.rstrip(), number
    yield at, held


def _property(line: str) -> tuple[str, list[str], str]:
    head, _, value = line.partition(":")
    name, *parameters = head.upper().split(";")
    return name, parameters, value.strip()


def _day(text: str, number: int, *, dashed: bool) -> date:
    example = "2026-01-31" if dashed else "20260131"
    # `date.fromisoformat` also accepts week dates.
    plain = len(text) == len(example) and text.replace("-", "").isdecimal() and text.count("-") == example.count("-")
    try:
        return date.fromisoformat(text if plain else "")
    except ValueError:
        refuse(f"dates: line {number}: {text[:40]!r} is not a date such as {example}")


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage calendars, which exclude or select days.",
    epilog="Example: horarium calendar show us-federal-holidays-2026",
)

_SKIP = "skip_dates"
_CLEARED = ("timezone", "rule", "covers")
_FLAGS = {"kind": "--kind", "timezone": "--tz", "dates": "--date", "rule": "--rule", "year": "--year"}

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", show_default=False, help="Calendar name.", autocompletion=options.calendar_names),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        show_default=_SKIP,
        help="Kind: skip_dates excludes its days, only_dates excludes all others.",
        autocompletion=options.calendar_kinds,
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        "--tz",
        metavar="ZONE",
        show_default="that of each schedule",
        help="Time zone of its days.",
        autocompletion=options.zones,
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        show_default=False,
        help="Rule: weekends, weekdays, or public holidays such as holidays:US.",
    ),
]


@app.command("create")
@with_remote
def create_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Calendar name.")],
    kind: Kind = None,
    timezone: Zone = None,
    date: Annotated[
        list[str] | None,
        typer.Option("--date", metavar="YYYY-MM-DD", show_default=False, help="Day; repeatable."),
    ] = None,
    rule: Rule = None,
) -> None:
    """Create a calendar from dates, a rule, or both.

    Without --timezone its days are in the time zone of the schedule that uses it.

    Example: horarium calendar create company-days --date 2026-12-24 --date 2026-12-31
    """
    said = {"timezone": timezone, "dates": date, "rule": rule}
    document = {"name": name, "kind": kind or _SKIP}
    with by_flags(_FLAGS):
        made = remote.client.create_calendar(document, **{field: value for field, value in said.items() if value})
    _show_calendar(remote, made, "created")


@app.command("list")
@with_remote
def list_command(remote: Remote) -> None:
    """List your calendars, the built-in ones and the rules. Country calendars such as holidays:US are not listed.

    Example: horarium calendar list
    """
    from horarium.features.calendars.operations import CalendarOperations

    show_list(
        remote,
        "calendars",
        list(Listing(remote, CalendarOperations.list_calendars(), Paging("calendars"), None)),
        ("Name", "Kind", "Time Zone", "Dates", "Rule", "Read Only", "Warning"),
        lambda c: (c.name, c.kind, c.timezone, len(c.dates), c.rule, c.read_only, c.warning),
    )


@app.command("show")
@with_remote
def show_command(
    remote: Remote,
    name: Name,
    year: Annotated[
        int | None,
        typer.Option("--year", metavar="YEAR", show_default=False, help="Include the days of its rule in this year."),
    ] = None,
) -> None:
    """Show a calendar and its days; also a built-in one, or a rule such as holidays:US.

    Example: horarium calendar show holidays:US --year 2027
    """
    with by_flags(_FLAGS):
        found = remote.client.get_calendar(name, year=year)
    show_document(found.raw, remote.output, _described(found))


@app.command("import")
@with_remote
def import_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Calendar name; created if missing.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", show_default=False, help="File with ISO dates or an iCalendar file; - reads stdin."
        ),
    ],
    kind: Kind = None,
    timezone: Zone = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the existing days.")] = False,
) -> None:
    """Import days from a file: one date per line, or an iCalendar file with all-day events.

    Recurring events and events with a time of day are refused.

    Example: horarium calendar import company-days days.ics --tz Europe/Istanbul
    """
    days = read_dates(file)
    now = _found(remote, name)
    if now is None:
        fresh = {"name": name, "kind": kind or _SKIP, "dates": days} | _given(timezone=timezone)
        _show_calendar(remote, remote.client.create_calendar(fresh), f"created with {len(days)} dates")
        return
    wanted = days if replace else sorted({*now.dates, *days})
    changes = {"dates": wanted} | _given(kind=kind, timezone=timezone)
    # The version prevents a lost update.
    done = remote.client.update_calendar(name, changes, if_version=now.version)
    added, removed = len({*wanted} - {*now.dates}), len({*now.dates} - {*wanted})
    _show_calendar(remote, done, f"{added} added, {removed} removed; {len(wanted)} dates in total")


@app.command("update")
@with_remote
def update_command(
    remote: Remote,
    name: Name,
    kind: Kind = None,
    timezone: Zone = None,
    rule: Rule = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(
            "--clear", metavar="FIELD", show_default=False, help="Remove a field: timezone, rule or covers; repeatable."
        ),
    ] = None,
) -> None:
    """Change the given fields of a calendar. Use import to change its dates.

    Example: horarium calendar update company-days --clear timezone
    """
    if unknown := set(clear or ()) - set(_CLEARED):
        refuse(f"--clear: {min(unknown)[:40]!r} is not one of {', '.join(_CLEARED)}")
    changes = dict.fromkeys(clear or ()) | _given(kind=kind, timezone=timezone, rule=rule)
    if not changes:
        refuse("no changes given; use an option")
    with by_flags(_FLAGS):
        done = remote.client.update_calendar(name, changes)
    _show_calendar(remote, done, "updated " + ", ".join(changes))


@app.command("clone")
@with_remote
def clone_command(
    remote: Remote,
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", show_default=False, help="Name of the copy.")],
) -> None:
    """Copy a calendar, for example to change a built-in one.

    Example: horarium calendar clone us-federal-holidays-2026 our-holidays
    """
    _show_calendar(remote, remote.client.clone_calendar(name, new_name), f"cloned from {name}")


@app.command("delete")
@with_remote
def delete_command(remote: Remote, name: Name) -> None:
    """Delete a calendar that no schedule uses.

    Example: horarium calendar delete company-days
    """
    remote.client.delete_calendar(name)
    talk(f"calendar {name} deleted")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _found(remote: Remote, name: str) -> Calendar | None:
    from horarium.platform.client.errors import CalendarNotFound

    try:
        return remote.client.get_calendar(name)
    except CalendarNotFound:
        return None


def _show_calendar(remote: Remote, calendar: Calendar, what: str) -> None:
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{calendar.name}: {what}"))
    else:
        show_document(calendar.raw, remote.output, [])
    if calendar.warning is not None:
        talk(f"warning: {printable(calendar.warning)}")


def _described(calendar: Calendar) -> Iterator[tuple[str, str]]:
    yield "calendar", calendar.name
    yield "kind", calendar.kind
    yield "time zone", calendar.timezone or "that of each schedule"
    if calendar.rule is not None:
        yield "rule", calendar.rule
    yield "read only", cell(calendar.read_only)
    if calendar.warning is not None:
        yield "warning", calendar.warning
    for number, day in enumerate(calendar.dates):
        yield ("" if number else "dates"), day
    for number, named in enumerate(calendar.days or ()):
        yield ("" if number else "days"), f"{named.date} {named.name or ''}".rstrip()


add_default_commands(app, "calendar", LaterModule("horarium.features.calendars.operations").CalendarOperations)
