"""The commands of `horarium team`."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli import completion
from horarium.cli.bulk import agree
from horarium.cli.kept import Clear, File, IfVersion, Replace, Writing, described, show_deleted
from horarium.cli.options import with_options
from horarium.cli.pages import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.cli.present import show_document
from horarium.cli.remote import Remote, remote_options, with_remote

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage teams of agents.",
    epilog="Example: horarium team list",
)

_FLAGS = {
    "name": "--name", "members": "--member", "strategy": "--strategy", "lead": "--lead",
    "policies.budget.spending_limit_credits": "--spending-limit", "policies.budget.max_daily_runs": "--max-daily-runs",
}  # fmt: skip

TeamId = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="Team ID.", autocompletion=completion.team_ids)
]


def team_fields(
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", show_default=False, help="Display name.")
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(
            "--member",
            metavar="ID",
            show_default=False,
            help="Agent in the team; repeatable.",
            autocompletion=completion.agent_ids,
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="WORD",
            show_default="lead",
            help="Strategy: lead (one agent does all runs) or round_robin.",
        ),
    ] = None,
    lead: Annotated[
        str | None,
        typer.Option(
            "--lead",
            metavar="ID",
            show_default="the first member",
            help="Agent that does the runs with strategy lead.",
            autocompletion=completion.agent_ids,
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
) -> Writing:
    """The fields of a team, as options."""
    said = {
        "name": name,
        "members": member,
        "strategy": strategy,
        "lead": lead,
        "policies.budget.spending_limit_credits": spending_limit,
        "policies.budget.max_daily_runs": max_daily_runs,
    }
    return Writing("team", _FLAGS, said)


@app.command("put")
@with_options(fields=team_fields, remote=remote_options)
def put_command(
    remote: Remote,
    fields: Writing,
    team_id: TeamId,
    file: File = None,
    if_version: IfVersion = None,
    replace: Replace = False,
) -> None:
    """Create or replace a team.

    Replacing resets fields that are not given. If that changes a field, the command lists it and exits with 2, unless
    --replace is given.

    Example: horarium team put desk --member writer --member editor --strategy round_robin
    """
    fields.put(remote, team_id, file, if_version, replace)


@app.command("update")
@with_options(fields=team_fields, remote=remote_options)
def update_command(
    remote: Remote,
    fields: Writing,
    team_id: TeamId,
    file: File = None,
    clear: Clear = None,
    if_version: IfVersion = None,
) -> None:
    """Change the given fields of a team. --member replaces the list of members.

    Example: horarium team update desk --strategy lead --lead editor
    """
    fields.update(remote, team_id, file, if_version, clear)


@app.command("list")
@with_remote
def list_command(remote: Remote, limit: Limit = 50, everything: All = False, page_token: PageToken = None) -> None:
    """List teams.

    Example: horarium team list
    """
    from horarium.client.assignee_calls import AssigneeCalls

    show_listing(
        Listing(remote, AssigneeCalls.list_teams(next_page_token=page_token), Paging("teams"),
                None if everything else limit),
        ("Team ID", "Name", "Strategy", "Lead", "Members"),
        lambda each: (each.team_id, each.name, each.strategy, each.lead, ", ".join(each.members)),
        empty="no teams in namespace {namespace}",
        hint="more teams: --all, or --page-token {cursor}",
    )  # fmt: skip


@app.command("show")
@with_remote
def show_command(remote: Remote, team_id: TeamId) -> None:
    """Show a team.

    Example: horarium team show desk
    """
    found = remote.client.get_team(team_id)
    show_document(found.raw, remote.output, described(found.raw, "team_id"))


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    team_id: TeamId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete a team. Its agents remain.

    Example: horarium team delete desk
    """
    agree(f"Delete team {team_id}?", yes)
    show_deleted(remote, f"team {team_id}", remote.client.delete_team(team_id))
