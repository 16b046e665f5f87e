"""The commands of `horarium approval`.

A decision shows the request first and names the hash of the inputs shown. If the inputs have changed meanwhile, the
server refuses the decision.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.core.document.states import RunState
from horarium.platform.cli import options
from horarium.platform.cli.bulk import agree
from horarium.platform.cli.lists import All, AllNamespaces, Limit, Listing, PageToken, Paging, scope_of, show_listing
from horarium.platform.cli.program import LaterModule, add_default_commands
from horarium.platform.cli.remote import ExitCode, Remote, by_flags, with_remote
from horarium.platform.cli.streams import (
    NOTHING,
    STDIN,
    Format,
    cell,
    json_value,
    labelled,
    named,
    printable,
    read_bytes,
    refuse,
    show_columns,
    show_document,
    show_json,
    talk,
    text_lines,
)

if TYPE_CHECKING:
    from horarium.features.approvals.model import Approval, DecidedOne


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Review approval requests.",
    epilog="Example: horarium approval list --mine",
)
app.add_typer(LaterModule("horarium.features.approvals.standing_commands").app, name="standing")

_MOST_AT_ONCE = 100
_COLUMNS = ("Approval ID", "Status", "Schedule ID", "Name", "Workflow ID", "Node", "Gates", "Requested", "Expires")
_FLAGS = {"status": "--status", "gate": "--gate", "schedule_id": "--schedule", "mine": "--mine", "reason": "--reason",
          "modifications": "--set", "modifications.reply": "TEXT",
          "page_size": "--limit", "next_page_token": "--page-token"}  # fmt: skip

ApprovalId = Annotated[
    str,
    typer.Argument(metavar="APPROVAL_ID", show_default=False, help="Approval ID.", autocompletion=options.approval_ids),
]
ApprovalIds = Annotated[
    list[str],
    typer.Argument(
        metavar="APPROVAL_ID...",
        show_default=False,
        help="One or more approval IDs.",
        autocompletion=options.approval_ids,
    ),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Reason, recorded with the decision.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]


@app.command("list")
@with_remote
def list_command(
    remote: Remote,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            show_default="pending",
            help="Filter by status: pending, approved, rejected, modified, expired or all.",
            autocompletion=options.approval_statuses,
        ),
    ] = None,
    schedule_id: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="ID",
            show_default="any",
            help="Filter by schedule.",
            autocompletion=options.schedule_ids,
        ),
    ] = None,
    gate: Annotated[
        str | None, typer.Option("--gate", metavar="GATE", show_default="any", help="Filter by gate, such as publish.")
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="List only requests that you may decide now.")] = False,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
    all_namespaces: AllNamespaces = False,
) -> None:
    """List approval requests, oldest first.

    Example: horarium approval list --mine
    """
    from horarium.features.approvals.operations import ApprovalOperations

    call = ApprovalOperations.list_approvals(
        status=status,
        schedule_id=schedule_id,
        gate=gate,
        mine=mine or None,
        namespace=scope_of(all_namespaces),
        next_page_token=page_token,
    )
    with by_flags(_FLAGS):
        show_listing(
            Listing(remote, call, Paging("approvals"), None if everything else limit),
            _COLUMNS,
            _row,
            empty="no approvals in namespace {namespace}",
            hint="more approvals: --all, or --page-token {cursor}",
        )


def _row(found: Approval) -> Sequence[object]:
    return (found.approval_id, found.status, found.schedule_id, found.schedule_name, found.workflow_id, found.node_id,
            ", ".join(found.gates), found.requested_at, found.expires_at)  # fmt: skip


@app.command("show")
@with_remote
def show_command(remote: Remote, approval_id: ApprovalId) -> None:
    """Show an approval request: action, inputs, votes and required approvals.

    Example: horarium approval show 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    found = remote.client.get_approval(approval_id)
    show_document(found.raw, remote.output, described(found))


@app.command("approve")
@with_remote
def approve_command(remote: Remote, approval_ids: ApprovalIds, reason: Reason = None, yes: Yes = False) -> None:
    """Approve requests. A single request is shown before the confirmation prompt.

    Several are decided in one API call; exit code 1: at least one could not be decided.

    Example: horarium approval approve 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --reason "read it, good"
    """
    _decide(remote, approval_ids, "approve", reason, yes)


@app.command("reject")
@with_remote
def reject_command(remote: Remote, approval_ids: ApprovalIds, reason: Reason = None, yes: Yes = False) -> None:
    """Reject requests. A single rejection ends the run or step as rejected.

    Example: horarium approval reject 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --reason "the numbers are last week's"
    """
    _decide(remote, approval_ids, "reject", reason, yes)


@app.command("modify")
@with_remote
def modify_command(
    remote: Remote,
    approval_id: ApprovalId,
    changes: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="JSON",
            show_default=False,
            help="JSON object merged into the inputs; null removes a field.",
        ),
    ],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Approve with changed inputs: your changes are merged into the proposed inputs (RFC 7396).

    Example: horarium approval modify 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --set '{"to": "team@example.com"}'
    """
    modifications = json_value("--set", changes)
    if not isinstance(modifications, dict):
        refuse("--set: must be a JSON object")
    found = _shown(remote, approval_id)
    talk(printable(f"changes: {cell(modifications)}"))
    agree("Approve with these changes?", yes)
    with by_flags(_FLAGS):
        done = remote.client.decide_approval(
            approval_id, "modify", reason=reason, modifications=modifications, input_hash=found.input_hash
        )
    _show_decided(remote, done)


@app.command("answer")
@with_remote
def answer_command(
    remote: Remote,
    approval_id: ApprovalId,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", show_default=False, help="Reply to the agent; - reads stdin, or prompts on a terminal."
        ),
    ],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Answer the question of an agent, which then continues its task.

    The question is shown first. Requests that are not a question of an agent are refused. To keep a secret answer out
    of the shell history, pass `-` and type the answer on standard input.

    Example: horarium approval answer 01JQ8Z6H4M8X2V0T1R3S5W7Y9B "in English, please"
    """
    found = _shown(remote, approval_id)
    if found.question is None:
        talk(f"{printable(approval_id)} is not a question of an agent; use approval approve, reject or modify")
        raise typer.Exit(ExitCode.NO)
    reply = _reply() if text == STDIN else text
    agree("Send this reply?", yes)
    with by_flags(_FLAGS):
        done = remote.client.decide_approval(
            approval_id, "modify", reason=reason, modifications={"reply": reply}, input_hash=found.input_hash
        )
    _show_decided(remote, done)


def _reply() -> str:
    """Read the reply from stdin; prompt without echo on a terminal."""
    if sys.stdin.isatty():
        return str(typer.prompt("Answer", hide_input=True, err=True))
    try:
        text = read_bytes("TEXT", STDIN).decode()
    except UnicodeDecodeError:
        refuse("TEXT: is not UTF-8")
    return text.removesuffix("\n").removesuffix("\r")


@with_remote
def approve_run_command(
    remote: Remote,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="ID of a run or of a step.")],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Approve the pending request of a run or step. The request is shown before the confirmation prompt.

    Example: horarium run approve 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    _decide(remote, [_question_of(remote, run_id)], "approve", reason, yes)


@with_remote
def reject_run_command(
    remote: Remote,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="ID of a run or of a step.")],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Reject the pending request of a run or step, which ends as rejected.

    Example: horarium run reject 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --reason "not today"
    """
    _decide(remote, [_question_of(remote, run_id)], "reject", reason, yes)


def _question_of(remote: Remote, run_id: str) -> str:
    """Return the pending approval of a run, or of its only step that awaits one."""
    run = remote.client.get_run(run_id)
    waiting = [
        each["approval"]["approval_id"]
        for each in (run.raw, *(run.raw.get("steps") or ()))
        if each.get("state") == RunState.AWAITING_APPROVAL and (each.get("approval") or {}).get("approval_id")
    ]
    if len(waiting) == 1:
        return str(waiting[0])
    if waiting:
        talk(
            f"{len(waiting)} steps of run {run_id} await approval: {', '.join(map(printable, waiting))}; "
            "use approval approve"
        )
    else:
        talk(f"run {run_id} does not await approval; its state is {run.state}")
    raise typer.Exit(ExitCode.NO)


def _shown(remote: Remote, approval_id: str) -> Approval:
    """Print the request on stderr; stdout has the result only."""
    found = remote.client.get_approval(approval_id)
    lines = list(described(found))
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        talk(f"{label:<{width}}  {printable(text)}".rstrip())
    return found


def _decide(remote: Remote, approval_ids: Sequence[str], decision: str, reason: str | None, yes: bool) -> None:
    if len(approval_ids) > _MOST_AT_ONCE:
        refuse(f"at most {_MOST_AT_ONCE} approval IDs are accepted")
    if len(approval_ids) == 1:
        found = _shown(remote, approval_ids[0])
        agree(f"{decision.capitalize()} this request?", yes)
        with by_flags(_FLAGS):
            done = remote.client.decide_approval(approval_ids[0], decision, reason=reason, input_hash=found.input_hash)
        _show_decided(remote, done)
        return
    agree(f"{decision.capitalize()} {len(approval_ids)} requests?", yes)
    with by_flags(_FLAGS):
        many = remote.client.decide_approvals(approval_ids, decision, reason=reason)
    _show_outcomes(remote, many.raw, many.outcomes)


def _show_decided(remote: Remote, done: Approval) -> None:
    if remote.output is not Format.TABLE:
        show_document(done.raw, remote.output, [])
        return
    left = done.approvals_required - sum(vote.decision != "reject" for vote in done.votes)
    more = f"; {left} more required" if done.status == "pending" and left > 0 else ""
    typer.echo(printable(f"{done.approval_id}: {done.status}{more}"))


def _show_outcomes(remote: Remote, whole: Mapping[str, Any], outcomes: Sequence[DecidedOne]) -> None:
    match remote.output:
        case Format.TABLE:
            rows = [(each.approval_id, each.outcome, each.message or each.reason) for each in outcomes]
            show_columns(("Approval ID", "Outcome", "Reason"), rows)
        case Format.JSONL:
            for each in outcomes:
                show_json(dict(each.raw))
        case Format.JSON | Format.YAML:
            show_document(whole, remote.output, [])
    if any(each.outcome == "failed" for each in outcomes):
        raise typer.Exit(ExitCode.NO)


def _caller(found: Approval) -> str | None:
    """Return whether the caller may decide; None from a server of an earlier release."""
    if found.status != "pending" or found.may_decide is None:
        return None
    return "allowed" if found.may_decide else f"not allowed: {found.refusal_message or found.broken}"


def _prompt(found: Approval) -> Iterator[tuple[str, str]]:
    """Yield the agent, its URL and the prompt."""
    if found.agent is None:
        return
    yield "agent", cell(named(found.agent.agent_id, found.agent.name))
    yield "url", cell(found.agent.url)
    yield from labelled("prompt", text_lines(str((found.action or {}).get("prompt") or NOTHING)))


def described(found: Approval) -> Iterator[tuple[str, str]]:
    yield "approval", found.approval_id
    yield "status", found.status
    yield (
        "run",
        found.run_id + (f" · step of {found.root_run_id}" if found.root_run_id not in (None, found.run_id) else ""),
    )
    for label, value in (
        ("schedule", named(found.schedule_id, found.schedule_name)),
        ("workflow", named(found.workflow_id, found.workflow_name)),
        ("step", found.node_id),
        ("scheduled for", found.nominal),
        ("gates", ", ".join(found.gates) or None),
        ("question", found.question),
        ("reply", found.reply),
        ("action", found.action),
        ("proposed inputs", found.proposed_inputs),
        ("inputs", found.inputs),
        ("input hash", found.input_hash),
        ("your decision", _caller(found)),
    ):
        if value is not None:
            yield label, cell(value)
    yield from _prompt(found)
    yield "approvers", ", ".join(found.approvers) or "all users with the permission approve"
    yield "requested", cell(found.requested_at)
    yield "expires", "never" if found.expires_at is None else cell(found.expires_at)
    different = "" if found.approvals_required == 1 else " by different approvers"
    yield "required", f"{found.approvals_required}{different}"
    for number, vote in enumerate(found.votes):
        why = f": {vote.reason}" if vote.reason else ""
        yield ("" if number else "votes"), f"{vote.decision} by {vote.by} at {cell(vote.at)}{why}"


add_default_commands(app, "approval", LaterModule("horarium.features.approvals.operations").ApprovalOperations)
