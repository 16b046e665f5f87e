"""The commands of `horarium agent`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from horarium.core.document.assignee import AgentSchedules
from horarium.features.agents.document_commands import (
    Clear,
    File,
    IfVersion,
    Replace,
    Writing,
    agent_lines,
    check_lines,
    in_tree,
    show_deleted,
)
from horarium.features.tenants.commands import show_issued
from horarium.platform.cli import options
from horarium.platform.cli.bulk import agree
from horarium.platform.cli.lists import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import ExitCode, Remote, by_flags, remote_options, with_remote
from horarium.platform.cli.streams import (
    Format,
    json_value,
    printable,
    read_bytes,
    refuse,
    show_columns,
    show_document,
    talk,
)
from horarium.platform.cli.times import TIME, Times, time_options

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage agents and their limits.",
    epilog="Example: horarium agent list",
)

_MAX_TOKEN = 4_096
_FLAGS = {
    "name": "--name", "url": "--url", "parent_id": "--parent", "capacity": "--capacity", "protocol": "--protocol",
    "context": "--conversation", "token": "--token-file", "allowed_hosts": "--allowed-host", "schedules": "--schedules",
    "policies": "--policies", "native_scheduler": "--native-scheduler",
    "policies.approval_policy.requires_approval": "--requires-approval",
    "policies.budget.spending_limit_credits": "--spending-limit", "policies.budget.max_daily_runs": "--max-daily-runs",
}  # fmt: skip

AgentId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Agent ID.", autocompletion=options.agent_ids),
]


def agent_fields(
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", show_default=False, help="Display name.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", show_default=False, help="URL of the agent (A2A).")
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option(
            "--parent", metavar="ID", show_default="none", help="Parent agent.", autocompletion=options.agent_ids
        ),
    ] = None,
    capacity: Annotated[
        int | None, typer.Option("--capacity", metavar="N", show_default="1", help="Maximum concurrent runs.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", metavar="WORD", show_default="auto", help="A2A version: auto, 0.3 or 1.0."),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation",
            metavar="WORD",
            show_default="fresh",
            help="A2A context of prompts: fresh for each run, or schedule to share one per schedule.",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            show_default=False,
            help="File with the bearer token of the agent; - reads stdin.",
        ),
    ] = None,
    requires_approval: Annotated[
        bool | None,
        typer.Option(
            "--requires-approval/--no-requires-approval", show_default=False, help="Require approval of its runs."
        ),
    ] = None,
    spending_limit: Annotated[
        float | None,
        typer.Option(
            "--spending-limit",
            metavar="CREDITS",
            show_default=False,
            help="Maximum cost of its runs per day (UTC), in credits.",
        ),
    ] = None,
    max_daily_runs: Annotated[
        int | None,
        typer.Option("--max-daily-runs", metavar="N", show_default=False, help="Maximum runs per day (UTC)."),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies", metavar="JSON", show_default=False, help="Policies of its runs, as JSON; @FILE reads a file."
        ),
    ] = None,
    native_scheduler: Annotated[
        bool | None,
        typer.Option(
            "--native-scheduler/--no-native-scheduler",
            show_default=False,
            help="Agent schedules itself: its schedules are not run here.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="HOST",
            show_default=False,
            help="Additional host that the agent card may point to; repeatable.",
        ),
    ] = None,
    schedules: Annotated[
        AgentSchedules | None,
        typer.Option(
            "--schedules",
            show_default="own",
            help="Workspace schedules that the token of the agent may change and delete.",
        ),
    ] = None,
) -> Writing:
    """The fields of an agent, as options."""
    said = {
        "name": name,
        "url": url,
        "parent_id": parent,
        "capacity": capacity,
        "protocol": protocol,
        "context": conversation,
        "native_scheduler": native_scheduler,
        "allowed_hosts": allowed_host,
        "schedules": schedules,
        "token": None if token_file is None else _token(token_file),
        "policies": None if policies is None else json_value("--policies", policies),
        "policies.approval_policy.requires_approval": requires_approval,
        "policies.budget.spending_limit_credits": spending_limit,
        "policies.budget.max_daily_runs": max_daily_runs,
    }
    return Writing("agent", _FLAGS, said)


@app.command("put")
@with_options(fields=agent_fields, remote=remote_options)
def put_command(
    remote: Remote,
    fields: Writing,
    agent_id: AgentId,
    file: File = None,
    if_version: IfVersion = None,
    replace: Replace = False,
) -> None:
    """Create or replace an agent. Without --token-file the stored token stays.

    Replacing resets fields that are not given. If that changes a field, the command lists it and exits with 2, unless
    --replace is given. A schedule cannot relax the policies of its agent.

    Example: horarium agent put writer --name "Writer" --url https://agents.example.com/writer --capacity 2
    """
    fields.put(remote, agent_id, file, if_version, replace)


@app.command("update")
@with_options(fields=agent_fields, remote=remote_options)
def update_command(
    remote: Remote,
    fields: Writing,
    agent_id: AgentId,
    file: File = None,
    clear: Clear = None,
    if_version: IfVersion = None,
) -> None:
    """Change the given fields of an agent.

    Example: horarium agent update writer --capacity 4 --clear parent_id
    """
    fields.update(remote, agent_id, file, if_version, clear)


def _token(file: str) -> str:
    if file == "-" and sys.stdin.isatty():
        return str(typer.prompt("Token", hide_input=True, err=True))
    raw = read_bytes("--token-file", file)
    try:
        text = raw[: _MAX_TOKEN + 3].decode("ascii").rstrip("\r\n")
    except UnicodeDecodeError:
        refuse("--token-file: is not ASCII text")
    return text


@app.command("list")
@with_remote
def list_command(
    remote: Remote,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
    tree: Annotated[bool, typer.Option("--tree", help="List all agents as a tree.")] = False,
) -> None:
    """List agents.

    Example: horarium agent list --tree
    """
    from horarium.features.agents.calls import AssigneeCalls

    most = None if everything or tree else limit
    listing = Listing(remote, AssigneeCalls.list_agents(next_page_token=page_token), Paging("agents"), most)
    if tree and remote.output is Format.TABLE:
        rows = [(name, each.name, each.url, each.capacity) for name, each in in_tree(list(listing))]
        show_columns(("Agent ID", "Name", "URL", "Capacity"), rows)
        return
    show_listing(
        listing,
        ("Agent ID", "Name", "URL", "Parent", "Capacity", "Has Token"),
        lambda each: (each.id, each.name, each.url, each.parent_id, each.capacity, each.has_token),
        empty="no agents in namespace {namespace}",
        hint="more agents: --all, or --page-token {cursor}",
    )


@app.command("show")
@with_remote
def show_command(remote: Remote, agent_id: AgentId) -> None:
    """Show an agent: its limits, its runs and its last agent card.

    Example: horarium agent show writer
    """
    found = remote.client.get_agent(agent_id)
    show_document(found.raw, remote.output, agent_lines(found.raw))


@app.command("check")
@with_remote
def check_command(remote: Remote, agent_id: AgentId) -> None:
    """Request the agent card from the server and show the interface for prompts. No prompt is sent.

    Exit code 0: the agent is reachable; 1: it is not.

    Example: horarium agent check writer
    """
    found = remote.client.check_agent(agent_id)
    show_document(found.raw, remote.output, check_lines(found))
    if not found.reachable:
        raise typer.Exit(ExitCode.NO)


@app.command("token")
@with_options(times=time_options, remote=remote_options)
def token_command(
    remote: Remote,
    times: Times,
    agent_id: AgentId,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", show_default="agent ID", help="Name of the token.")
    ] = None,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar=TIME, show_default="never", help="Expiry time; 90d means in 90 days."),
    ] = None,
) -> None:
    """Create an API token for an agent, which gives access only to its own work.

    The secret is printed only once. The token is valid until it expires, is revoked (horarium token revoke), or the
    agent is deleted.

    Example: horarium agent token writer --expires-at 90d
    """
    until = times.future("--expires-at", expires_at)
    with by_flags({"name": "--name", "expires_at": "--expires-at"}):
        token = remote.client.create_agent_token(agent_id, name=name, expires_at=until)
    show_issued(remote, token)


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    agent_id: AgentId,
    purge: Annotated[bool, typer.Option("--purge", help="Delete its schedules instead of pausing them.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Delete even if a team or an assignment uses it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete an agent. Its schedules and those of its child agents are paused.

    Example: horarium agent delete writer
    """
    deleted = 0
    if purge and not yes:
        deleted = len(remote.client.delete_agent(agent_id, purge=True, force=True, dry_run=True).deleted_schedules)
    what = f"with {deleted} schedule{'' if deleted == 1 else 's'}" if purge and not yes else "and pause its schedules"
    agree(f"Delete agent {agent_id} {what}?", yes, deleted=deleted)
    gone = remote.client.delete_agent(agent_id, purge=purge or None, force=force or None)
    show_deleted(remote, f"agent {agent_id}", gone)
    if remote.output is Format.TABLE:
        for outcome, schedules in (("paused", gone.paused_schedules), ("deleted", gone.deleted_schedules)):
            for schedule_id in schedules:
                talk(printable(f"schedule {schedule_id} {outcome}"))
