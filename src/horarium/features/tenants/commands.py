"""The commands of `horarium token` and `horarium namespace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.platform.cli import options
from horarium.platform.cli.bulk import agree
from horarium.platform.cli.lists import show_list
from horarium.platform.cli.options import with_options
from horarium.platform.cli.program import LaterModule, add_default_commands
from horarium.platform.cli.remote import Remote, by_flags, remote_options, with_remote
from horarium.platform.cli.streams import Format, cell, printable, refuse, show_columns, show_document, talk
from horarium.platform.cli.times import TIME, Times, time_options

if TYPE_CHECKING:
    from horarium.features.tenants.model import IssuedToken


token_app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage API tokens.",
    epilog="Example: horarium token list",
)


@token_app.command("create")
@with_options(times=time_options, remote=remote_options)
def create_token_command(
    remote: Remote,
    times: Times,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the token.")],
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            show_default=False,
            help="Role: admin, owner, operator, viewer or agent.",
            autocompletion=options.roles,
        ),
    ],
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="WHO",
            show_default="NAME",
            help="Subject of the token; for the role agent, the agent ID.",
        ),
    ] = None,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar=TIME, show_default="never", help="Expiry time; 90d means in 90 days."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue", metavar="QUEUE", show_default="all", help="Queue that the token may claim from; repeatable."
        ),
    ] = None,
) -> None:
    """Create a token for the namespace. The secret is printed only once and not stored.

    Example: horarium token create deploys --role operator
    """
    until = times.future("--expires-at", expires_at)
    flags = {"expires_at": "--expires-at", "role": "--role", "subject": "--subject", "queues": "--queue"}
    with by_flags(flags):
        token = remote.client.issue_token(name, role, subject=subject, expires_at=until, queues=queue or None)
    show_issued(remote, token)


def show_issued(remote: Remote, token: IssuedToken) -> None:
    """Print only the secret on stdout, so that it can be piped."""
    if remote.output is not Format.TABLE:
        show_document(token.raw, remote.output, [])
        return
    typer.echo(token.secret)
    talk(printable(f"token {token.token_id}, role {token.role}; the secret is shown only once"))


@token_app.command("list")
@with_remote
def list_tokens_command(remote: Remote) -> None:
    """List tokens without their secrets.

    Example: horarium token list
    """
    show_list(
        remote,
        "tokens",
        remote.client.list_tokens(),
        ("Token ID", "Name", "Role", "Subject", "Created", "Expires", "Revoked"),
        lambda t: (t.token_id, t.name, t.role, t.subject, t.created_at, t.expires_at, t.revoked_at),
    )


@token_app.command("rotate")
@with_remote
def rotate_token_command(
    remote: Remote,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN_ID", show_default=False, help="Token ID.")],
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            min=0,
            metavar="SECONDS",
            show_default="86400",
            help="Time that the old secret stays valid, in seconds; 0 = not at all.",
        ),
    ] = None,
) -> None:
    """Replace the secret of a token. The new secret is printed only once; the old one stays valid for --overlap.

    Example: horarium token rotate 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --overlap 3600
    """
    token = remote.client.rotate_token(token_id, overlap_seconds=overlap)
    if remote.output is not Format.TABLE:
        show_document(token.raw, remote.output, [])
        return
    typer.echo(token.secret)
    talk(f"token {token.token_id}; the old secret is valid until {cell(token.previous_until)}")


@token_app.command("revoke")
@with_remote
def revoke_token_command(
    remote: Remote,
    token_id: Annotated[
        str,
        typer.Argument(metavar="TOKEN_ID", show_default=False, help="Token ID.", autocompletion=options.token_ids),
    ],
) -> None:
    """Revoke a token. It is invalid immediately.

    Example: horarium token revoke 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    remote.client.revoke_token(token_id)
    talk(f"token {token_id} revoked")


namespace_app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage namespaces and their quotas.",
    epilog="Example: horarium namespace list",
)


@namespace_app.command("create")
@with_remote
def create_namespace_command(
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


@namespace_app.command("delete")
@with_remote
def delete_namespace_command(
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


@namespace_app.command("quota")
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


@namespace_app.command("list")
@with_remote
def list_namespaces_command(remote: Remote) -> None:
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


_declared = LaterModule("horarium.features.tenants.operations")
add_default_commands(token_app, "token", _declared.TokenOperations)
add_default_commands(namespace_app, "namespace", _declared.NamespaceOperations)
