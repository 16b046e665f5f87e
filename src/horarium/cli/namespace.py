"""The commands of `horarium namespace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from horarium.cli.bulk import agree
from horarium.cli.lists import show_list
from horarium.cli.present import printable, show_columns, show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage namespaces and their quotas.",
    epilog="Example: horarium namespace list",
)


@app.command("create")
@with_remote
def create_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name; it cannot be changed.")],
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", show_default=False, help="Description.")
    ] = None,
) -> None:
    """Create a namespace.

    Example: horarium namespace create staging --description "pre-production"
    """
    made = remote.client.create_namespace(name, description=description)
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{made.namespace}: created"))
    else:
        show_document(made.raw, remote.output, [])


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Namespace.")],
    force: Annotated[bool, typer.Option("--force", help="Delete even with live schedules or open runs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete a namespace with its schedules, history, runs, calendars and tokens.

    Example: horarium namespace delete staging --force
    """
    found = remote.client.delete_namespace(name, dry_run=True)
    question = f"Delete namespace {name} with {found.schedules} live schedules and {found.open_runs} open runs?"
    if not force and (found.schedules or found.open_runs):
        refuse(f"{question} Use --force to delete them")
    agree(question, yes, deleted=found.schedules)
    done = remote.client.delete_namespace(name, force=force or None)
    if remote.output is Format.TABLE:
        rest = "; remaining rows are deleted in the background" if done.outcome == "deleting" else ""
        typer.echo(printable(f"{done.namespace}: {done.outcome}{rest}"))
    else:
        show_document(done.raw, remote.output, [])


_LIMIT = "NUMBER|none|default"
_DAYS = "DAYS|none|default"


def _limit(name: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar=_LIMIT, show_default=False, help=what)


def _days(name: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar=_DAYS, show_default=False, help=what)


@app.command("quota")
@with_remote
def quota_command(
    remote: Remote,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default="that of the request", help="Namespace.")
    ] = None,
    schedules: Annotated[str | None, _limit("schedules", "Maximum live schedules.")] = None,
    runs_per_minute: Annotated[str | None, _limit("runs-per-minute", "Maximum runs created per minute.")] = None,
    open_runs: Annotated[str | None, _limit("open-runs", "Maximum open runs.")] = None,
    bytes_stored: Annotated[str | None, _limit("bytes-stored", "Maximum stored data, in bytes.")] = None,
    shortest_gap: Annotated[
        str | None, _limit("shortest-gap", "Minimum interval between occurrences of a schedule, in seconds.")
    ] = None,
    keep_runs: Annotated[str | None, _days("keep-runs", "Retention of ended runs, in days.")] = None,
    keep_history: Annotated[str | None, _days("keep-history", "Retention of decisions, in days.")] = None,
) -> None:
    """Show or change the quotas and the retention of a namespace.

    none removes a limit; default restores the value of the settings.

    Example: horarium namespace quota staging --open-runs 1000 --keep-runs 30
    """
    which = name or remote.namespace
    asked = {
        "schedules": schedules,
        "runs_per_minute": runs_per_minute,
        "open_runs": open_runs,
        "bytes_stored": bytes_stored,
        "shortest_gap_seconds": shortest_gap,
    }
    quotas = _numbers(asked)
    retention = _numbers({"keep_runs_days": keep_runs, "keep_history_days": keep_history})
    if quotas or retention:
        found = remote.client.change_namespace(which, quotas=quotas or None, retention=retention or None)
    else:
        found = remote.client.get_namespace(which)
    _show_quotas(remote, found.raw)


def _show_quotas(remote: Remote, namespace: Mapping[str, Any]) -> None:
    if remote.output is not Format.TABLE:
        show_document(namespace, remote.output, [])
        return
    rows = [
        (
            quota,
            use.get("used"),
            "none" if use.get("limit") is None else use["limit"],
            "namespace" if use.get("own") else "",
        )
        for quota, use in _members(namespace, "quotas").items()
    ]
    kept = _members(namespace, "retention").items()
    rows += [(days, None, "none" if number is None else number, "") for days, number in kept]
    show_columns(("Quota", "Used", "Limit", "Source"), rows)


def _numbers(given: Mapping[str, str | None]) -> dict[str, int | str | None]:
    """Return the given numbers; the server validates them."""
    found: dict[str, int | str | None] = {}
    for name, text in given.items():
        if text is None:
            continue
        if text.lower() in ("none", "default"):
            found[name] = None if text.lower() == "none" else "default"
        elif text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
            found[name] = int(text)
        else:
            refuse(f"{name}: must be a whole number, none or default, not {text[:40]!r}")
    return found


_MOST_DIGITS = 18


def _members(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


@app.command("list")
@with_remote
def list_command(remote: Remote) -> None:
    """List namespaces. Only admins see other namespaces than their own.

    Example: horarium namespace list
    """
    show_list(
        remote,
        "namespaces",
        remote.client.list_namespaces(),
        ("Namespace", "Description", "Created"),
        lambda each: (each.namespace, each.description, each.created_at),
    )
