"""The commands of `horarium workflow`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.features.schedules.definition_flags import assignee_of, number_or_word
from horarium.features.workflows.graph_drawing import workflow_lines
from horarium.platform.cli import options
from horarium.platform.cli.bulk import agree
from horarium.platform.cli.lists import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.platform.cli.remote import ExitCode, Remote, by_flags, with_remote
from horarium.platform.cli.streams import (
    Format,
    cell,
    json_value,
    pairs,
    printable,
    read_object,
    refuse,
    show_document,
    show_lines,
    talk,
    warn,
)
from horarium.platform.cli.waiting import PollingLimit, Timeout, all_succeeded, ended_runs, span_of

if TYPE_CHECKING:
    from horarium.features.workflows.model import Workflow, WorkflowStarted


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage stored workflows and their versions.",
    epilog="Example: horarium workflow show daily-brief",
)

_MORE = "more workflows: --all, or --page-token {cursor}"
_FLAGS = {
    "version": "--version", "inputs": "--input", "labels": "--label", "assignee_type": "--assignee",
    "assignee_id": "--assignee", "workflow_assignment_id": "--assignment", "page_size": "--limit",
    "next_page_token": "--page-token",
}  # fmt: skip

WorkflowId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Workflow ID.", autocompletion=options.workflow_ids),
]
File = Annotated[
    str, typer.Argument(metavar="FILE", show_default=False, help="Workflow as JSON or YAML; - reads stdin.")
]
Version = Annotated[
    str | None,
    typer.Option("--version", metavar="N", show_default="latest", help="Version: a number or latest."),
]


@app.command("put")
@with_remote
def put_command(
    remote: Remote,
    workflow_id: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Workflow ID; created if new.")],
    file: File,
    if_version: Annotated[
        int | None,
        typer.Option("--if-version", metavar="N", show_default=False, help="Write only if this is the newest version."),
    ] = None,
) -> None:
    """Create a workflow or a new version of it. An equal document creates no version.

    Its triggers become schedules with IDs that begin with workflow:ID. Runs that have started keep their version.

    Example: horarium workflow put daily-brief brief.yaml
    """
    document = read_object("FILE", file)
    said = document.get("workflow_id", document.get("id"))
    if said not in (None, workflow_id):
        refuse(f"the file has the workflow_id {str(said)[:128]!r}, not {workflow_id!r}")
    done = remote.client.put_workflow(workflow_id, document, if_version=if_version)
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{done.workflow_id}: {done.outcome}; version {done.version}"))
        for each in done.schedules:
            typer.echo(printable(f"{each.schedule_id}: {each.outcome}"))
    else:
        show_document(done.raw, remote.output, [])
    warn(done.warnings)


@app.command("validate")
@with_remote
def validate_command(remote: Remote, file: File) -> None:
    """Validate a document without saving it: list all errors, or draw the graph.

    Example: horarium workflow validate brief.yaml
    """
    from horarium.platform.client.errors import ValidationFailed

    try:
        found = remote.client.validate_workflow(read_object("FILE", file))
    except ValidationFailed as wrong:
        problems = [(path, text) for path, texts in wrong.errors.items() for text in texts]
        for path, text in problems:
            talk(printable(f"{path}: {text}"))
        if not problems:
            raise
        talk(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}; nothing was saved")
        raise typer.Exit(ExitCode.BAD_QUESTION) from None
    show_document(found.raw, remote.output, (("", line) for line in workflow_lines(found.document)))
    warn(found.warnings)


@app.command("show")
@with_remote
def show_command(remote: Remote, workflow_id: WorkflowId, version: Version = None) -> None:
    """Show a workflow and draw the graph of its steps.

    A graph that is wider than the terminal or has too many steps is printed as a list.

    Example: horarium workflow show daily-brief --version 3
    """
    with by_flags(_FLAGS):
        found = remote.client.get_workflow(workflow_id, version=version)
    show_document(found.raw, remote.output, _described(found))
    if remote.output is Format.TABLE:
        show_lines([("", ""), *(("", line) for line in workflow_lines(found.document))])


@app.command("list")
@with_remote
def list_command(
    remote: Remote,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", show_default=False, help="Filter by a part of the ID or the name."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="WHO", show_default="any", help="Filter by owner.")
    ] = None,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
) -> None:
    """List workflows with their newest version.

    Example: horarium workflow list
    """
    from horarium.features.workflows.calls import WorkflowCalls

    call = WorkflowCalls.list_workflows(text=text, owner=owner, next_page_token=page_token)
    show_listing(
        Listing(remote, call, Paging("workflows"), None if everything else limit),
        ("Workflow ID", "Version", "Name", "Owner", "Nodes", "Created"),
        lambda each: (each.workflow_id, each.version, each.name, each.owner, each.nodes, each.created_at),
        empty="no workflows in namespace {namespace}",
        hint=_MORE,
    )


@app.command("versions")
@with_remote
def versions_command(
    remote: Remote, workflow_id: WorkflowId, limit: Limit = 50, everything: All = False, page_token: PageToken = None
) -> None:
    """List the versions of a workflow.

    Example: horarium workflow versions daily-brief
    """
    from horarium.features.workflows.calls import WorkflowCalls

    call = WorkflowCalls.workflow_versions(workflow_id, next_page_token=page_token)
    show_listing(
        Listing(remote, call, Paging("versions"), None if everything else limit),
        ("Version", "Nodes", "Created", "Created By"),
        lambda each: (each.version, each.nodes, each.created_at, each.created_by),
        empty=f"no versions of {workflow_id}",
        hint=_MORE.replace("workflows", "versions"),
    )


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    workflow_id: WorkflowId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
) -> None:
    """Delete a workflow that no live schedule or open run uses. Ended runs remain.

    Example: horarium workflow delete daily-brief
    """
    agree(f"Delete workflow {workflow_id} with all its versions?", yes)
    gone = remote.client.delete_workflow(workflow_id)
    if remote.output is Format.TABLE:
        talk(printable(f"workflow {workflow_id} deleted"))
    else:
        show_document(gone.raw, remote.output, [])


@app.command("run")
@with_remote
def run_command(
    remote: Remote,
    workflow_id: WorkflowId,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="JSON", show_default="none", help="Inputs of the run, as JSON; @FILE reads a file."
        ),
    ] = None,
    version: Version = None,
    assignee: Annotated[
        str | None,
        typer.Option(
            "--assignee",
            metavar="TYPE:ID",
            show_default="none",
            help="Assignee: agent:ID or team:ID.",
            autocompletion=options.assignees,
        ),
    ] = None,
    assignment: Annotated[
        str | None,
        typer.Option(
            "--assignment",
            metavar="ID",
            show_default="none",
            help="Assignment whose policies apply.",
            autocompletion=options.assignment_ids,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=VALUE", show_default=False, help="Label of the run; repeatable."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            show_default="generated",
            help="Idempotency key: a repeated request with the same key returns the same run.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run ends.")] = False,
    timeout: Timeout = None,
) -> None:
    """Run a workflow now, without a schedule.

    A run that requires approval waits for it: see approval list. Exit code 1 with --wait: the run did not succeed.

    Example: horarium workflow run daily-brief --input '{"day": "2026-11-16"}' --wait
    """
    if timeout is not None and not wait:
        refuse("--timeout requires --wait")
    patience = PollingLimit(span_of("--timeout", timeout))
    with by_flags(_FLAGS):
        done = remote.client.run_workflow(
            workflow_id,
            inputs=None if inputs is None else json_value("--input", inputs),
            version=None if version is None else number_or_word("--version", version),
            workflow_assignment_id=assignment,
            labels=pairs("--label", label) if label else None,
            idempotency_key=key,
            **({} if assignee is None else assignee_of("--assignee", assignee)),
        )
    if remote.output is Format.TABLE:
        show_lines(_started(done))
    elif not wait:
        show_document(done.raw, remote.output, [])
    if wait:
        _show_end(remote, done, patience)


def _started(done: WorkflowStarted) -> list[tuple[str, str]]:
    return [("outcome", done.outcome), ("run", done.run_id), ("state", done.state)]


def _show_end(remote: Remote, done: WorkflowStarted, patience: PollingLimit) -> None:
    """Print the run ID at once in table format; other formats are one document with the run."""
    from horarium.features.runs.output import described

    run = next(ended_runs(remote.client, [done.run_id], patience), None)
    if run is None:
        talk(f"run {done.run_id} has not ended after {patience.seconds:g} s; it continues")
    if remote.output is not Format.TABLE:
        show_document({**done.raw, "run": None if run is None else dict(run.raw)}, remote.output, [])
    elif run is not None:
        show_lines([("", ""), *described(run)])
    if run is None or not all_succeeded([done.run_id], {done.run_id: run}):
        raise typer.Exit(ExitCode.NO)


def _described(found: Workflow) -> Iterator[tuple[str, str]]:
    document = found.document
    yield "workflow", found.workflow_id
    yield "version", f"{found.version} · {cell(found.created_at)} by {cell(found.created_by)}"
    for name in ("name", "description", "owner", "queue", "connection", "approval_policy"):
        if document.get(name):
            yield name.replace("_", " "), cell(document[name])
    for number, trigger in enumerate(document.get("triggers") or ()):
        yield ("" if number else "triggers"), f"{trigger.get('key', number)}: {cell(trigger.get('schedule', trigger))}"
