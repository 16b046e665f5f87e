"""The commands of `horarium approval standing`."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.platform.cli import options
from horarium.platform.cli.lists import Listing, Paging, show_list
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import Remote, by_flags, remote_options, with_remote
from horarium.platform.cli.streams import Format, printable, refuse, show_document, talk
from horarium.platform.cli.times import TIME, Times, time_options

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage standing approvals, which approve matching requests automatically.",
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
            help="Schedule whose requests are approved.",
            autocompletion=options.schedule_ids,
        ),
    ] = None,
    workflow_id: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            metavar="ID",
            show_default=False,
            help="Workflow whose requests are approved.",
            autocompletion=options.workflow_ids,
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", metavar="GATE", show_default="approval of runs", help="Gate to approve; repeatable."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar=TIME, show_default="90 days; none with --max-uses", help="Expiry time."),
    ] = None,
    max_uses: Annotated[
        int | None, typer.Option("--max-uses", metavar="N", show_default="unlimited", help="Maximum number of uses.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Reason, recorded with each use.")
    ] = None,
) -> None:
    """Approve future requests of a schedule or workflow in advance.

    Without --gate it approves the runs of a schedule until the schedule changes.

    Each use is recorded as your decision, marked as standing.

    Example: horarium approval standing create --schedule morning-brief --gate external_message --until 7d
    """
    if (schedule_id is None) == (workflow_id is None):
        refuse("give either --schedule or --workflow")
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
    """List standing approvals, with the reason why each ended.

    Example: horarium approval standing list
    """
    from horarium.features.approvals.operations import ApprovalOperations

    show_list(
        remote,
        "standing",
        list(Listing(remote, ApprovalOperations.list_standing_approvals(), Paging("standing"), None)),
        ("Standing ID", "Schedule ID", "Workflow ID", "Gates", "Until", "Uses", "Max Uses", "Created By", "State"),
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
            metavar="STANDING_ID",
            show_default=False,
            help="Standing approval ID.",
            autocompletion=options.standing_ids,
        ),
    ],
) -> None:
    """Delete a standing approval. Later requests await a decision.

    Example: horarium approval standing delete 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    gone = remote.client.delete_standing_approval(standing_id)
    if remote.output is Format.TABLE:
        talk(printable(f"standing approval {standing_id} deleted"))
    else:
        show_document(gone.raw, remote.output, [])
