"""The command for the revisions of a schedule, and the output of a dry run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli.naming import renamed
from horarium.cli.pages import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.cli.present import cell, compact, labelled, printable, show_document, warn
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, talk
from horarium.cli.schedule_write import ScheduleId

if TYPE_CHECKING:
    from horarium.features.schedules.change_model import FireChanges, RevisionComparison, ScheduleDraft

_MORE = "more revisions: --all, or --page-token {cursor}"
_SHOWN = 10


@with_remote
def revisions_command(
    remote: Remote,
    schedule_id: ScheduleId,
    compare: Annotated[
        tuple[int, int] | None,
        typer.Option("--compare", metavar="FROM TO", show_default=False, help="Compare two revisions and their fires."),
    ] = None,
    limit: Limit = 20,
    everything: All = False,
    page_token: PageToken = None,
) -> None:
    """List the definitions of a schedule over time, newest first; also of a deleted schedule.

    Example: horarium schedule revisions nightly --compare 1 2
    """
    from horarium.client.draft_calls import DraftCalls

    if compare is not None:
        found = remote.client.compare_schedule_revisions(schedule_id, *compare)
        show_document(found.raw, remote.output, _compared(found))
        return
    call = DraftCalls.list_schedule_revisions(schedule_id, next_page_token=page_token)
    show_listing(
        Listing(remote, call, Paging("revisions", most=100), None if everything else limit),
        ("Revision", "Recorded At", "Author", "Spec"),
        lambda each: (each.revision, each.recorded_at, each.principal, compact(each.document.get("spec"))),
        empty=f"no revisions of schedule {schedule_id} in namespace {{namespace}}",
        hint=_MORE,
    )


def show_draft(remote: Remote, found: ScheduleDraft, flags: Mapping[str, str]) -> None:
    """Show a draft; exit with 2 if the server would refuse it."""
    if remote.output is not Format.TABLE or found.valid:
        show_document(found.raw, remote.output, drafted(found))
    if remote.output is Format.TABLE:
        warn(found.warnings)
        if not found.may_write:
            talk("warning: your token may not write this schedule")
    if not found.valid:
        talk(f"error: {printable(renamed(found.raw.get('errors') or {}, flags))}")
        raise typer.Exit(ExitCode.BAD_QUESTION)
    if remote.output is Format.TABLE:
        talk("nothing was written")


def drafted(found: ScheduleDraft) -> Iterator[tuple[str, str]]:
    document: Mapping[str, Any] = found.document or {}
    yield "schedule", cell(document.get("schedule_id"))
    yield "description", cell(found.words)
    yield from labelled("next fires", [_row(row) for row in found.fires])
    if found.changes is not None:
        yield from _changed(found.changes)


def _row(row: Any) -> str:
    return cell(row.tick_at) if row.reason is None else f"{cell(row.tick_at)} {row.decision}: {cell(row.reason)}"


def _changed(changes: FireChanges) -> Iterator[tuple[str, str]]:
    """Yield the first fires of each kind; JSON output has all."""
    yield from labelled("fires added", _few([cell(each) for each in changes.added]))
    yield from labelled("fires removed", _few([cell(each) for each in changes.removed]))
    yield from labelled("fires moved", _few([f"{cell(each.before)} → {cell(each.after)}" for each in changes.moved]))
    yield "compared until", cell(changes.until)


def _few(texts: list[str]) -> list[str]:
    left = len(texts) - _SHOWN
    return [*texts[:_SHOWN], f"and {left} more"] if left > 0 else texts or ["none"]


def _compared(found: RevisionComparison) -> Iterator[tuple[str, str]]:
    yield "revisions", f"{found.before} → {found.after}"
    for each in found.fields:
        yield printable(each.path), f"{_value(each.before)} → {_value(each.after)}"
    if found.changes is not None:
        yield from _changed(found.changes)


def _value(value: object) -> str:
    return cell(value) if value is None or isinstance(value, str) else compact(value)
