"""`horarium approval`: the questions that runs wait for, and how somebody answers them.

Whoever answers is shown what would be done first, and the answer names the hash of the inputs that were shown: if they
are others by then, the server refuses it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli import completion
from horarium.cli.bulk import agree
from horarium.cli.lazy import LaterModule
from horarium.cli.naming import by_flags
from horarium.cli.pages import All, AllNamespaces, Limit, Listing, PageToken, Paging, listed_namespace, show_listing
from horarium.cli.present import NOTHING, cell, labelled, named, printable, show_columns, show_document, text_lines
from horarium.cli.reading import STDIN, json_value, read_bytes, refuse
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, show_json, talk
from horarium.schedule.run import RunState

if TYPE_CHECKING:
    from horarium.wire.approvals import Approval, DecidedOne

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Approvals: what waits for a yes, and how to say it.",
    epilog="Example: horarium approval list --mine",
)
app.add_typer(LaterModule("standing").app, name="standing")

_MOST_AT_ONCE = 100
_COLUMNS = ("Approval ID", "Status", "Schedule ID", "Name", "Workflow ID", "Node", "Gates", "Requested", "Expires")
_FLAGS = {"status": "--status", "gate": "--gate", "schedule_id": "--schedule", "mine": "--mine", "reason": "--reason",
          "modifications": "--set", "modifications.reply": "TEXT",
          "page_size": "--limit", "next_page_token": "--page-token"}  # fmt: skip

ApprovalId = Annotated[
    str,
    typer.Argument(
        metavar="APPROVAL_ID", show_default=False, help="Which one.", autocompletion=completion.approval_ids
    ),
]
ApprovalIds = Annotated[
    list[str],
    typer.Argument(
        metavar="APPROVAL_ID...", show_default=False, help="One or more.", autocompletion=completion.approval_ids
    ),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why; it is kept with the answer.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]


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
            help="pending, approved, rejected, modified, expired or all.",
            autocompletion=completion.approval_statuses,
        ),
    ] = None,
    schedule_id: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="ID",
            show_default="any",
            help="Of one schedule.",
            autocompletion=completion.schedule_ids,
        ),
    ] = None,
    gate: Annotated[
        str | None, typer.Option("--gate", metavar="GATE", show_default="any", help="About one gate, as publish.")
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only what you may decide now.")] = False,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
    all_namespaces: AllNamespaces = False,
) -> None:
    """The inbox: what waits for a yes, the oldest first.

    Example: horarium approval list --mine
    """
    from horarium.client.approval_calls import ApprovalCalls

    call = ApprovalCalls.list_approvals(
        status=status,
        schedule_id=schedule_id,
        gate=gate,
        mine=mine or None,
        namespace=listed_namespace(all_namespaces),
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
    """One question: what would be done, with which inputs, who has answered, and how many must.

    Example: horarium approval show 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    found = remote.client.get_approval(approval_id)
    show_document(found.raw, remote.output, described(found))


@app.command("approve")
@with_remote
def approve_command(remote: Remote, approval_ids: ApprovalIds, reason: Reason = None, yes: Yes = False) -> None:
    """Say yes. What it would do is shown, and asked about, before.

    Several are answered in one request; exit code 1 means that one of them could not be.

    Example: horarium approval approve 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --reason "read it, good"
    """
    _decide(remote, approval_ids, "approve", reason, yes)


@app.command("reject")
@with_remote
def reject_command(remote: Remote, approval_ids: ApprovalIds, reason: Reason = None, yes: Yes = False) -> None:
    """Say no: the run, or the step, ends rejected. One no is enough.

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
        typer.Option("--set", metavar="JSON", show_default=False, help="Merged into the inputs; null takes away."),
    ],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Say yes to other inputs: those that were proposed, with your changes merged in (RFC 7396).

    Example: horarium approval modify 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --set '{"to": "team@example.com"}'
    """
    modifications = json_value("--set", changes)
    if not isinstance(modifications, dict):
        refuse("--set: must be an object")
    found = _shown(remote, approval_id)
    talk(printable(f"with the changes {cell(modifications)}"))
    agree("approve with these changes?", yes)
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
        str, typer.Argument(metavar="TEXT", show_default=False, help="What the agent is told; - is stdin, or a prompt.")
    ],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Tell an agent what it has stopped to ask; it goes on with the same task.

    What it wants to know is shown before. To a question that no agent asks there is nothing to tell. A password is
    better given as `-`: what stands on a command line is seen by others, and remembered.

    Example: horarium approval answer 01JQ8Z6H4M8X2V0T1R3S5W7Y9B "in English, please"
    """
    found = _shown(remote, approval_id)
    if found.question is None:
        talk(f"{printable(approval_id)} is no question of an agent; see approval approve, reject and modify")
        raise typer.Exit(ExitCode.NO)
    reply = _reply() if text == STDIN else text
    agree("tell the agent this?", yes)
    with by_flags(_FLAGS):
        done = remote.client.decide_approval(
            approval_id, "modify", reason=reason, modifications={"reply": reply}, input_hash=found.input_hash
        )
    _show_decided(remote, done)


def _reply() -> str:
    """Off stdin; whoever sits there is asked for it and does not see it."""
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
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="Which run, or step.")],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Say yes to what a run, or a step of one, waits for. What it would do is shown before.

    Example: horarium run approve 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    _decide(remote, [_question_of(remote, run_id)], "approve", reason, yes)


@with_remote
def reject_run_command(
    remote: Remote,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="Which run, or step.")],
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Say no to what a run, or a step of one, waits for: it ends rejected.

    Example: horarium run reject 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --reason "not today"
    """
    _decide(remote, [_question_of(remote, run_id)], "reject", reason, yes)


def _question_of(remote: Remote, run_id: str) -> str:
    """The approval that a run waits for; of a workflow's run it may be that of its only step that waits."""
    run = remote.client.get_run(run_id)
    waiting = [
        each["approval"]["approval_id"]
        for each in (run.raw, *(run.raw.get("steps") or ()))
        if each.get("state") == RunState.AWAITING_APPROVAL and (each.get("approval") or {}).get("approval_id")
    ]
    if len(waiting) == 1:
        return str(waiting[0])
    if waiting:
        talk(f"{len(waiting)} steps of run {run_id} wait: {', '.join(map(printable, waiting))}; see approval approve")
    else:
        talk(f"run {run_id} waits for no yes; its state is {run.state}")
    raise typer.Exit(ExitCode.NO)


def _shown(remote: Remote, approval_id: str) -> Approval:
    """What is asked goes to stderr: what stdout gets is the answer."""
    found = remote.client.get_approval(approval_id)
    lines = list(described(found))
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        talk(f"{label:<{width}}  {printable(text)}".rstrip())
    return found


def _decide(remote: Remote, approval_ids: Sequence[str], decision: str, reason: str | None, yes: bool) -> None:
    if len(approval_ids) > _MOST_AT_ONCE:
        refuse(f"at most {_MOST_AT_ONCE} approvals can be decided at once")
    if len(approval_ids) == 1:
        found = _shown(remote, approval_ids[0])
        agree(f"{decision} this?", yes)
        with by_flags(_FLAGS):
            done = remote.client.decide_approval(approval_ids[0], decision, reason=reason, input_hash=found.input_hash)
        _show_decided(remote, done)
        return
    agree(f"{decision} {len(approval_ids)} approvals?", yes)
    with by_flags(_FLAGS):
        many = remote.client.decide_approvals(approval_ids, decision, reason=reason)
    _show_outcomes(remote, many.raw, many.outcomes)


def _show_decided(remote: Remote, done: Approval) -> None:
    if remote.output is not Format.TABLE:
        show_document(done.raw, remote.output, [])
        return
    left = done.approvals_required - sum(vote.decision != "reject" for vote in done.votes)
    more = f"; {left} more must agree" if done.status == "pending" and left > 0 else ""
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
    return "may decide" if found.may_decide else f"may not decide: {found.refusal_message or found.broken}"


def _prompt(found: Approval) -> Iterator[tuple[str, str]]:
    """The agent that a prompt goes to, its URL, and the text that it would be sent."""
    if found.agent is None:
        return
    yield "agent", cell(named(found.agent.agent_id, found.agent.name))
    yield "url", cell(found.agent.url)
    yield from labelled("prompt", text_lines(str((found.action or {}).get("prompt") or NOTHING)))


def described(found: Approval) -> Iterator[tuple[str, str]]:
    yield "approval", found.approval_id
    yield "status", found.status
    yield "run", found.run_id + (f" · of {found.root_run_id}" if found.root_run_id not in (None, found.run_id) else "")
    for label, value in (
        ("schedule", named(found.schedule_id, found.schedule_name)),
        ("workflow", named(found.workflow_id, found.workflow_name)),
        ("step", found.node_id),
        ("nominal", found.nominal),
        ("gates", ", ".join(found.gates) or None),
        ("question", found.question),
        ("reply", found.reply),
        ("would do", found.action),
        ("proposed", found.proposed_inputs),
        ("inputs", found.inputs),
        ("hash", found.input_hash),
        ("you", _caller(found)),
    ):
        if value is not None:
            yield label, cell(value)
    yield from _prompt(found)
    yield "approvers", ", ".join(found.approvers) or "whoever may approve"
    yield "requested", cell(found.requested_at)
    yield "expires", "never" if found.expires_at is None else cell(found.expires_at)
    yield (
        "needs",
        f"{found.approvals_required} yes"
        if found.approvals_required == 1
        else (f"{found.approvals_required} different people who say yes"),
    )
    for number, vote in enumerate(found.votes):
        why = f": {vote.reason}" if vote.reason else ""
        yield ("" if number else "answers"), f"{vote.decision} by {vote.by} at {cell(vote.at)}{why}"
