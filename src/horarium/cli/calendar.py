"""The commands of `horarium calendar`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli import completion
from horarium.cli.dates import read_dates
from horarium.cli.lists import show_list
from horarium.cli.naming import by_flags
from horarium.cli.pages import Listing, Paging
from horarium.cli.present import cell, printable, show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, talk

if TYPE_CHECKING:
    from horarium.features.tenants.model import Calendar

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
    typer.Argument(metavar="NAME", show_default=False, help="Calendar name.", autocompletion=completion.calendar_names),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        show_default=_SKIP,
        help="Kind: skip_dates excludes its days, only_dates excludes all others.",
        autocompletion=completion.calendar_kinds,
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
        autocompletion=completion.zones,
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
    _show_kept(remote, made, "created")


@app.command("list")
@with_remote
def list_command(remote: Remote) -> None:
    """List your calendars, the built-in ones and the rules. Country calendars such as holidays:US are not listed.

    Example: horarium calendar list
    """
    from horarium.client.service_calls import ServiceCalls

    show_list(
        remote,
        "calendars",
        list(Listing(remote, ServiceCalls.list_calendars(), Paging("calendars"), None)),
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
        fresh = {"name": name, "kind": kind or _SKIP, "dates": days} | _said(timezone=timezone)
        _show_kept(remote, remote.client.create_calendar(fresh), f"created with {len(days)} dates")
        return
    wanted = days if replace else sorted({*now.dates, *days})
    changes = {"dates": wanted} | _said(kind=kind, timezone=timezone)
    # The version prevents a lost update.
    done = remote.client.update_calendar(name, changes, if_version=now.version)
    added, removed = len({*wanted} - {*now.dates}), len({*now.dates} - {*wanted})
    _show_kept(remote, done, f"{added} added, {removed} removed; {len(wanted)} dates in total")


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
    changes = dict.fromkeys(clear or ()) | _said(kind=kind, timezone=timezone, rule=rule)
    if not changes:
        refuse("no changes given; use an option")
    with by_flags(_FLAGS):
        done = remote.client.update_calendar(name, changes)
    _show_kept(remote, done, "updated " + ", ".join(changes))


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
    _show_kept(remote, remote.client.clone_calendar(name, new_name), f"cloned from {name}")


@app.command("delete")
@with_remote
def delete_command(remote: Remote, name: Name) -> None:
    """Delete a calendar that no schedule uses.

    Example: horarium calendar delete company-days
    """
    remote.client.delete_calendar(name)
    talk(f"calendar {name} deleted")


def _said(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _found(remote: Remote, name: str) -> Calendar | None:
    from horarium.client.errors import CalendarNotFound

    try:
        return remote.client.get_calendar(name)
    except CalendarNotFound:
        return None


def _show_kept(remote: Remote, calendar: Calendar, what: str) -> None:
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
