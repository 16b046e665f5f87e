"""`horarium approval standing`: a yes that is given beforehand, for a while and for named gates."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli import completion
from horarium.cli.lists import show_list
from horarium.cli.naming import by_flags
from horarium.cli.options import with_options
from horarium.cli.pages import Listing, Paging
from horarium.cli.present import printable, show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import Remote, remote_options, with_remote
from horarium.cli.render import Format, talk
from horarium.cli.times import TIME, Times, time_options

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Standing approvals: a yes that is given beforehand, for a while.",
    epilog="Example: horarium approval standing list",
)

_FLAGS = {"schedule_id": "--schedule", "workflow_id": "--workflow", "gates": "--gate", "until": "--until",
          "max_uses": "--max-uses", "reason": "--reason"}  # fmt: skip


@app.command("create")
@with_options(times=time_options, remote=remote_options)
def create_command(
    remote: Remote,
    times: Times,
    schedule_id: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="ID",
            show_default=False,
            help="Of this schedule.",
            autocompletion=completion.schedule_ids,
        ),
    ] = None,
    workflow_id: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            metavar="ID",
            show_default=False,
            help="Or of this workflow.",
            autocompletion=completion.workflow_ids,
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate", metavar="GATE", show_default="the runs as they are now", help="For what; may be repeated."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar=TIME, show_default="in 90 days, without --max-uses", help="When it ends."),
    ] = None,
    max_uses: Annotated[
        int | None, typer.Option("--max-uses", metavar="N", show_default="any number", help="How often it answers.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why; it stands at each use.")
    ] = None,
) -> None:
    """Say yes beforehand to what a schedule or a workflow will ask about these gates.

    Without a gate it is a yes to the runs of a schedule, as long as nobody changes it.

    Each use is recorded as a decision of yours that says standing.

    Example: horarium approval standing create --schedule morning-brief --gate external_message --until 7d
    """
    if (schedule_id is None) == (workflow_id is None):
        refuse("say --schedule or --workflow, one of them")
    with by_flags(_FLAGS):
        made = remote.client.create_standing_approval(
            schedule_id=schedule_id,
            workflow_id=workflow_id,
            gates=gate or (),
            until=times.future("--until", until),
            max_uses=max_uses,
            reason=reason,
        )
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{made.standing_id}: created"))
    else:
        show_document(made.raw, remote.output, [])


@app.command("list")
@with_remote
def list_command(remote: Remote) -> None:
    """List standing approvals, and the reason for which each has ended.

    Example: horarium approval standing list
    """
    from horarium.client.approval_calls import ApprovalCalls

    show_list(
        remote,
        "standing",
        list(Listing(remote, ApprovalCalls.list_standing_approvals(), Paging("standing"), None)),
        ("Standing ID", "Schedule ID", "Workflow ID", "Gates", "Until", "Uses", "Of", "By", "State"),
        lambda s: (s.standing_id, s.schedule_id, s.workflow_id, ", ".join(s.gates), s.until, s.uses, s.max_uses,
                   s.made_by, "active" if s.active else f"ended: {s.ended_reason}"),
    )  # fmt: skip


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    standing_id: Annotated[
        str,
        typer.Argument(
            metavar="STANDING_ID", show_default=False, help="Which one.", autocompletion=completion.standing_ids
        ),
    ],
) -> None:
    """Take a standing approval back: what is asked from now on waits for somebody.

    Example: horarium approval standing delete 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    gone = remote.client.delete_standing_approval(standing_id)
    if remote.output is Format.TABLE:
        talk(printable(f"standing approval {standing_id} is deleted"))
    else:
        show_document(gone.raw, remote.output, [])
