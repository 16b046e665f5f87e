"""The commands of `horarium assignment`."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli import completion
from horarium.cli.bulk import agree
from horarium.cli.definition import assignee_of
from horarium.cli.kept import Clear, File, IfVersion, Replace, Writing, described, show_deleted
from horarium.cli.options import with_options
from horarium.cli.pages import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.cli.present import show_document
from horarium.cli.reading import json_value
from horarium.cli.remote import Remote, remote_options, with_remote

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Assign workflows to agents or teams, with policies.",
    epilog="Example: horarium assignment list",
)

_POLICIES = ("approval_policy", "retry_policy", "failure_policy", "queue_policy")
_FLAGS = {
    "workflow_id": "--workflow", "assignee_type": "--assignee", "assignee_id": "--assignee",
    "approval_policy.requires_approval": "--requires-approval", "approval_policy.gates": "--gate",
    **{policy: f"--{policy.replace('_', '-')}" for policy in _POLICIES},
}  # fmt: skip

AssignmentId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Assignment ID.", autocompletion=completion.assignment_ids),
]


def assignment_fields(
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            metavar="ID",
            show_default=False,
            help="Workflow ID.",
            autocompletion=completion.workflow_ids,
        ),
    ] = None,
    assignee: Annotated[
        str | None,
        typer.Option(
            "--assignee",
            metavar="TYPE:ID",
            show_default=False,
            help="Assignee: agent:ID or team:ID.",
            autocompletion=completion.assignees,
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
    policies = {name: json_value(_FLAGS[name], text) for name, text in texts.items() if text is not None}
    asked = {"approval_policy.requires_approval": requires_approval, "approval_policy.gates": gate}
    return Writing("assignment", _FLAGS, {**said, **policies, **asked})


@app.command("put")
@with_options(fields=assignment_fields, remote=remote_options)
def put_command(
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


@app.command("update")
@with_options(fields=assignment_fields, remote=remote_options)
def update_command(
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


@app.command("list")
@with_remote
def list_command(remote: Remote, limit: Limit = 50, everything: All = False, page_token: PageToken = None) -> None:
    """List assignments.

    Example: horarium assignment list
    """
    from horarium.client.assignee_calls import AssigneeCalls

    show_listing(
        Listing(remote, AssigneeCalls.list_assignments(next_page_token=page_token), Paging("assignments"),
                None if everything else limit),
        ("Assignment ID", "Workflow ID", "Assignee"),
        lambda each: (each.assignment_id, each.workflow_id, f"{each.assignee_type}:{each.assignee_id}"),
        empty="no assignments in namespace {namespace}",
        hint="more assignments: --all, or --page-token {cursor}",
    )  # fmt: skip


@app.command("show")
@with_remote
def show_command(remote: Remote, assignment_id: AssignmentId) -> None:
    """Show an assignment.

    Example: horarium assignment show brief-by-writer
    """
    found = remote.client.get_assignment(assignment_id)
    show_document(found.raw, remote.output, described(found.raw, "assignment_id"))


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    assignment_id: AssignmentId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete an assignment that no live schedule uses.

    Example: horarium assignment delete brief-by-writer
    """
    agree(f"Delete assignment {assignment_id}?", yes)
    show_deleted(remote, f"assignment {assignment_id}", remote.client.delete_assignment(assignment_id))
