"""`horarium agent`: who is given work, and what each of them may use."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from horarium.cli import completion
from horarium.cli.agent_view import agent_lines, check_lines, in_tree
from horarium.cli.bulk import agree
from horarium.cli.kept import Clear, File, IfVersion, Replace, Writing, show_deleted
from horarium.cli.naming import by_flags
from horarium.cli.options import with_options
from horarium.cli.pages import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.cli.present import printable, show_columns, show_document
from horarium.cli.reading import json_value, read_bytes, refuse
from horarium.cli.remote import ExitCode, Remote, remote_options, with_remote
from horarium.cli.render import Format, talk
from horarium.cli.times import TIME, Times, time_options
from horarium.cli.token import show_issued
from horarium.schedule.agent_words import AgentSchedules

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Agents: who is given work, and what each of them may use.",
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
    typer.Argument(metavar="ID", show_default=False, help="Which agent.", autocompletion=completion.agent_ids),
]


def agent_fields(
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", show_default=False, help="For people.")] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", show_default=False, help="Where it is spoken to.")
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option(
            "--parent", metavar="ID", show_default="none", help="Above it.", autocompletion=completion.agent_ids
        ),
    ] = None,
    capacity: Annotated[
        int | None, typer.Option("--capacity", metavar="N", show_default="1", help="Runs at the same time.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", metavar="WORD", show_default="auto", help="auto, 0.3 or 1.0.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation", metavar="WORD", show_default="fresh", help="fresh for each run, or one per schedule."
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option("--token-file", metavar="FILE", show_default=False, help="What it asks for; - is stdin."),
    ] = None,
    requires_approval: Annotated[
        bool | None,
        typer.Option("--requires-approval/--no-requires-approval", show_default=False, help="Whether its runs wait."),
    ] = None,
    spending_limit: Annotated[
        float | None,
        typer.Option("--spending-limit", metavar="CREDITS", show_default=False, help="What its runs of a day cost."),
    ] = None,
    max_daily_runs: Annotated[
        int | None, typer.Option("--max-daily-runs", metavar="N", show_default=False, help="How many runs a day.")
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option("--policies", metavar="JSON", show_default=False, help="What holds for its work; @FILE."),
    ] = None,
    native_scheduler: Annotated[
        bool | None,
        typer.Option(
            "--native-scheduler/--no-native-scheduler",
            show_default=False,
            help="Whether it has a scheduler of its own, which is left alone.",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host", metavar="HOST", show_default=False, help="Where its card may point too; repeatable."
        ),
    ] = None,
    schedules: Annotated[
        AgentSchedules | None,
        typer.Option(
            "--schedules", show_default="own", help="Schedules of its workspace that its token may change and delete."
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
    """Create an agent, or replace the one with this id. A token that is not given stays.

    Replacing resets each field that is not given. Where that would change a field the command lists it and refuses
    with exit code 2, unless --replace confirms it. A schedule cannot lower what its agent demands.

    Example: horarium agent put writer --name "The writer" --url https://agents.example.com/writer --capacity 2
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
    """Change single fields of an agent and leave the others.

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
        refuse("--token-file: holds no ASCII text")
    return text


@app.command("list")
@with_remote
def list_command(
    remote: Remote,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
    tree: Annotated[bool, typer.Option("--tree", help="All of them, each below its parent.")] = False,
) -> None:
    """The agents of the namespace.

    Example: horarium agent list --tree
    """
    from horarium.client.assignee_calls import AssigneeCalls

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
    """One agent: what it may use, how many runs it has, and what it said of itself when it was asked last.

    Example: horarium agent show writer
    """
    found = remote.client.get_agent(agent_id)
    show_document(found.raw, remote.output, agent_lines(found.raw))


@app.command("check")
@with_remote
def check_command(remote: Remote, agent_id: AgentId) -> None:
    """Let the server ask an agent for its card, and say where prompts would go. No prompt is sent.

    Exit code 0 means that the agent answered, 1 that it did not.

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
        str | None, typer.Option("--name", metavar="NAME", show_default="its id", help="What it is for.")
    ] = None,
    expires_at: Annotated[
        str | None,
        typer.Option(
            "--expires-at", metavar=TIME, show_default="never", help="Until when it is good; 90d is from now on."
        ),
    ] = None,
) -> None:
    """Give out a token with which the agent comes to the server, and sees its own work only.

    Its secret is printed this once. It is good until it expires, is revoked (horarium token revoke) or
    the agent is deleted.

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
    force: Annotated[bool, typer.Option("--force", help="Also while a team or an assignment names it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")] = False,
) -> None:
    """Delete an agent. Its schedules, and those of the agents below it, are paused.

    Example: horarium agent delete writer
    """
    deleted = 0
    if purge and not yes:
        deleted = len(remote.client.delete_agent(agent_id, purge=True, force=True, dry_run=True).deleted_schedules)
    what = f"with {deleted} schedule{'' if deleted == 1 else 's'}" if purge and not yes else "and pause its schedules"
    agree(f"delete agent {agent_id} {what}?", yes, deleted=deleted)
    gone = remote.client.delete_agent(agent_id, purge=purge or None, force=force or None)
    show_deleted(remote, f"agent {agent_id}", gone)
    if remote.output is Format.TABLE:
        for outcome, schedules in (("paused", gone.paused_schedules), ("deleted", gone.deleted_schedules)):
            for schedule_id in schedules:
                talk(printable(f"schedule {schedule_id} is {outcome}"))
