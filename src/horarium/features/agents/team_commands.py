"""The commands of `horarium team` and `horarium assignment`."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.features.agents.document_commands import Clear, File, IfVersion, Replace, Writing, described, show_deleted
from horarium.features.schedules.definition_flags import assignee_of
from horarium.platform.cli import options
from horarium.platform.cli.bulk import agree
from horarium.platform.cli.lists import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import Remote, remote_options, with_remote
from horarium.platform.cli.streams import json_value, show_document

team_app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage teams of agents.",
    epilog="Example: horarium team list",
)

_TEAM_FLAGS = {
    "name": "--name", "members": "--member", "strategy": "--strategy", "lead": "--lead",
    "policies.budget.spending_limit_credits": "--spending-limit", "policies.budget.max_daily_runs": "--max-daily-runs",
}  # fmt: skip

TeamId = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="Team ID.", autocompletion=options.team_ids)
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
            autocompletion=options.agent_ids,
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
            autocompletion=options.agent_ids,
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
    return Writing("team", _TEAM_FLAGS, said)


@team_app.command("put")
@with_options(fields=team_fields, remote=remote_options)
def put_team_command(
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


@team_app.command("update")
@with_options(fields=team_fields, remote=remote_options)
def update_team_command(
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


@team_app.command("list")
@with_remote
def list_team_command(remote: Remote, limit: Limit = 50, everything: All = False, page_token: PageToken = None) -> None:
    """List teams.

    Example: horarium team list
    """
    from horarium.features.agents.calls import AssigneeCalls

    show_listing(
        Listing(remote, AssigneeCalls.list_teams(next_page_token=page_token), Paging("teams"),
                None if everything else limit),
        ("Team ID", "Name", "Strategy", "Lead", "Members"),
        lambda each: (each.team_id, each.name, each.strategy, each.lead, ", ".join(each.members)),
        empty="no teams in namespace {namespace}",
        hint="more teams: --all, or --page-token {cursor}",
    )  # fmt: skip


@team_app.command("show")
@with_remote
def show_team_command(remote: Remote, team_id: TeamId) -> None:
    """Show a team.

    Example: horarium team show desk
    """
    found = remote.client.get_team(team_id)
    show_document(found.raw, remote.output, described(found.raw, "team_id"))


@team_app.command("delete")
@with_remote
def delete_team_command(
    remote: Remote,
    team_id: TeamId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete a team. Its agents remain.

    Example: horarium team delete desk
    """
    agree(f"Delete team {team_id}?", yes)
    show_deleted(remote, f"team {team_id}", remote.client.delete_team(team_id))


assignment_app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Assign workflows to agents or teams, with policies.",
    epilog="Example: horarium assignment list",
)

_POLICIES = ("approval_policy", "retry_policy", "failure_policy", "queue_policy")
_ASSIGNMENT_FLAGS = {
    "workflow_id": "--workflow", "assignee_type": "--assignee", "assignee_id": "--assignee",
    "approval_policy.requires_approval": "--requires-approval", "approval_policy.gates": "--gate",
    **{policy: f"--{policy.replace('_', '-')}" for policy in _POLICIES},
}  # fmt: skip

AssignmentId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Assignment ID.", autocompletion=options.assignment_ids),
]


def assignment_fields(
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            metavar="ID",
            show_default=False,
            help="Workflow ID.",
            autocompletion=options.workflow_ids,
        ),
    ] = None,
    assignee: Annotated[
        str | None,
        typer.Option(
            "--assignee",
            metavar="TYPE:ID",
            show_default=False,
            help="Assignee: agent:ID or team:ID.",
            autocompletion=options.assignees,
        ),
    ] = None,
    requires_approval: Annotated[
        bool | None,
        typer.Option(
            "--requires-approval/--no-requires-approval", show_default=False, help="Require approval of its runs."
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", metavar="GATE", show_default=False, help="Gate that requires approval; repeatable."),
    ] = None,
    approval_policy: Annotated[
        str | None,
        typer.Option(
            "--approval-policy", metavar="JSON", show_default=False, help="Approval policy; @FILE reads a file."
        ),
    ] = None,
    retry_policy: Annotated[
        str | None,
        typer.Option("--retry-policy", metavar="JSON", show_default=False, help="Retry policy; @FILE reads a file."),
    ] = None,
    failure_policy: Annotated[
        str | None,
        typer.Option(
            "--failure-policy", metavar="JSON", show_default=False, help="Failure policy; @FILE reads a file."
        ),
    ] = None,
    queue_policy: Annotated[
        str | None,
        typer.Option("--queue-policy", metavar="JSON", show_default=False, help="Queue policy; @FILE reads a file."),
    ] = None,
) -> Writing:
    """The fields of an assignment, as options."""
    said = {"workflow_id": workflow, **({} if assignee is None else assignee_of("--assignee", assignee))}
    texts = dict(zip(_POLICIES, (approval_policy, retry_policy, failure_policy, queue_policy), strict=True))
    policies = {name: json_value(_ASSIGNMENT_FLAGS[name], text) for name, text in texts.items() if text is not None}
    asked = {"approval_policy.requires_approval": requires_approval, "approval_policy.gates": gate}
    return Writing("assignment", _ASSIGNMENT_FLAGS, {**said, **policies, **asked})


@assignment_app.command("put")
@with_options(fields=assignment_fields, remote=remote_options)
def put_assignment_command(
    remote: Remote,
    fields: Writing,
    assignment_id: AssignmentId,
    file: File = None,
    if_version: IfVersion = None,
    replace: Replace = False,
) -> None:
    """Create or replace an assignment. Schedules reference it with --assignment.

    Replacing resets fields that are not given. If that changes a field, the command lists it and exits with 2, unless
    --replace is given.

    Example: horarium assignment put brief-by-writer --workflow daily-brief --assignee agent:writer --gate publish
    """
    fields.put(remote, assignment_id, file, if_version, replace)


@assignment_app.command("update")
@with_options(fields=assignment_fields, remote=remote_options)
def update_assignment_command(
    remote: Remote,
    fields: Writing,
    assignment_id: AssignmentId,
    file: File = None,
    clear: Clear = None,
    if_version: IfVersion = None,
) -> None:
    """Change the given fields of an assignment.

    Example: horarium assignment update brief-by-writer --gate publish --gate spend --clear retry_policy
    """
    fields.update(remote, assignment_id, file, if_version, clear)


@assignment_app.command("list")
@with_remote
def list_assignment_command(
    remote: Remote, limit: Limit = 50, everything: All = False, page_token: PageToken = None
) -> None:
    """List assignments.

    Example: horarium assignment list
    """
    from horarium.features.agents.calls import AssigneeCalls

    show_listing(
        Listing(remote, AssigneeCalls.list_assignments(next_page_token=page_token), Paging("assignments"),
                None if everything else limit),
        ("Assignment ID", "Workflow ID", "Assignee"),
        lambda each: (each.assignment_id, each.workflow_id, f"{each.assignee_type}:{each.assignee_id}"),
        empty="no assignments in namespace {namespace}",
        hint="more assignments: --all, or --page-token {cursor}",
    )  # fmt: skip


@assignment_app.command("show")
@with_remote
def show_assignment_command(remote: Remote, assignment_id: AssignmentId) -> None:
    """Show an assignment.

    Example: horarium assignment show brief-by-writer
    """
    found = remote.client.get_assignment(assignment_id)
    show_document(found.raw, remote.output, described(found.raw, "assignment_id"))


@assignment_app.command("delete")
@with_remote
def delete_assignment_command(
    remote: Remote,
    assignment_id: AssignmentId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete an assignment that no live schedule uses.

    Example: horarium assignment delete brief-by-writer
    """
    agree(f"Delete assignment {assignment_id}?", yes)
    show_deleted(remote, f"assignment {assignment_id}", remote.client.delete_assignment(assignment_id))
