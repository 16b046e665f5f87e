"""The text output of a schedule, of its revisions and of a dry run; the command for revisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.core.recurrence.zone import Zone, load_zone
from horarium.errors import HorariumError
from horarium.features.schedules.write_commands import ScheduleId
from horarium.instant import from_datetime, to_rfc3339
from horarium.platform.cli.lists import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.platform.cli.remote import ExitCode, Remote, renamed, with_remote
from horarium.platform.cli.streams import (
    NOTHING,
    Format,
    cell,
    compact,
    labelled,
    local_time,
    printable,
    show_document,
    talk,
    text_lines,
    warn,
)

if TYPE_CHECKING:
    from horarium.features.schedules.change_model import FireChanges, RevisionComparison, ScheduleDraft
    from horarium.features.schedules.model import Moved, PreviewRow, Schedule, WriteResult


Lines = Iterator[tuple[str, str]]

_MOST_PROMPT = 40
_TARGETS = ("workflow_type", "workflow_id", "workflow_class", "prompt", "url", "task", "command")


def outcome(done: WriteResult) -> str:
    """Return such as `nightly: updated spec, note; next fire 2026-03-02T02:00:00Z`."""
    what = " ".join([done.outcome, ", ".join(done.changed_fields)]).rstrip()
    fires = done.status == "active" and done.next_fire_at is not None
    following = f"; next fire {cell(done.next_fire_at)}" if fires else ""
    if fires and done.next_run_at != done.next_fire_at:
        following += f"; next run {next_run(done)}"
    if done.effective_retries is not None and (done.outcome == "created" or "retry_policy" in done.changed_fields):
        following += f"; retries: {_retries(done.effective_retries)}"
    if done.exhausted:
        following = "; max_runs reached"
    return f"{done.schedule_id}: {what}{following}"


def _retries(count: int) -> str:
    return f"up to {count}" if count else "none"


def decided(row: PreviewRow) -> str:
    return f"{row.decision} (buffered)" if row.held else str(row.decision)


def notes(row: PreviewRow) -> str:
    """Describe the changes to the instant of an occurrence."""
    return ", ".join(_note(each) for each in row.moved)


def given_to(row: PreviewRow) -> object:
    """Return the inputs of an occurrence, with the rendered prompt of a template."""
    return row.inputs if row.prompt is None else {"prompt": row.prompt, "inputs": row.inputs}


def _note(move: Moved) -> str:
    seconds = "" if move.seconds is None else f" {move.seconds:g} s"
    local = "" if move.local_time is None else f" {move.local_time}"
    return f"{move.kind}{seconds}{local}"


def next_run(known: Schedule | WriteResult) -> str:
    """Return the time of the next run, or the reason why there is none."""
    if known.next_run_at is None:
        return f"{NOTHING} ({cell(known.next_run_reason)})"
    return cell(known.next_run_at)


def described(schedule: Schedule) -> Lines:
    yield "schedule", schedule.schedule_id
    yield "namespace", schedule.namespace
    yield "status", _status(schedule)
    yield from _given(name=schedule.name, note=schedule.note)
    if schedule.error:
        yield from labelled("error", text_lines(schedule.error))
    yield from labelled("timing", _when(schedule))
    yield "action", _action(schedule)
    yield from _guards(schedule)
    yield from _who(schedule)
    yield "policies", f"overlap {_overlap(schedule)} · catch-up {cell(schedule.catchup_policy)}{_failure(schedule)}"
    if schedule.effective_retries is not None:
        yield "retries", _retries(schedule.effective_retries)
    yield from _policy_lines(schedule)
    yield "next run", next_run(schedule)
    yield from labelled("next fires", _fires(schedule))
    yield "last fire", cell(schedule.last_fired_at)
    yield "totals", _so_far(schedule)
    if schedule.consecutive_failures:
        failed = "last run failed" if schedule.consecutive_failures == 1 else "last {} runs failed"
        yield "failing", failed.format(schedule.consecutive_failures)
    if schedule.consecutive_empty_runs:
        yield "empty runs", f"last {schedule.consecutive_empty_runs} runs"
    if schedule.max_runs is not None:
        yield "max runs", f"{schedule.max_runs} ({cell(schedule.remaining_actions)} remaining)"
    if schedule.last_skip_reason is not None:
        yield "last skip", f"{schedule.last_skip_reason} at {cell(schedule.last_skipped_at)}"
    if schedule.last_error_message is not None:
        said = f"{schedule.last_error_message.rstrip()} at {cell(schedule.last_error_at)}"
        yield from labelled("last error", text_lines(said))
    yield from _given(labels=schedule.labels, memo=schedule.memo, search_attributes=schedule.search_attributes)
    yield "source", _source_line(schedule)


def zone_of(schedule: Schedule) -> Zone:
    """Return the zone of a schedule, UTC where the local tzdata lacks it."""
    try:
        return load_zone(schedule.spec.get("timezone") or "UTC")
    except HorariumError:
        return load_zone("UTC")


def _status(schedule: Schedule) -> str:
    if schedule.deleted_at is not None:
        return f"deleted at {cell(schedule.deleted_at)}"
    if not schedule.paused:
        return cell(schedule.status)
    why = "" if schedule.pause_reason is None else f": {schedule.pause_reason}"
    until = "" if schedule.paused_until is None else f" until {cell(schedule.paused_until)}"
    who = "" if schedule.paused_by is None else f" by {schedule.paused_by}"
    return f"paused since {cell(schedule.paused_at)}{until}{who}{why}"


def _when(schedule: Schedule) -> Iterator[str]:
    spec = schedule.spec
    for expr in spec.get("cron_expressions") or []:
        yield f"{expr}  ({_in_words(expr, schedule)})"
    for interval in spec.get("intervals") or []:
        offset = f", offset {interval['offset']}" if interval.get("offset") else ""
        yield f"every {interval.get('every')}{offset}"
    for moment in spec.get("at") or []:
        yield f"once at {moment}"
    window = [f"{word} {spec[name]}" for word, name in (("from", "start_at"), ("to", "end_at")) if spec.get(name)]
    if window:
        yield " ".join(window)
    if schedule.jitter_seconds:
        yield f"jitter up to {schedule.jitter_seconds:g} s"


def _in_words(expr: str, schedule: Schedule) -> str:
    from horarium.core.recurrence.words import describe  # imports the cron parser; not needed for a list

    try:
        return describe(expr, timezone=schedule.spec.get("timezone"), key=schedule.schedule_id)
    except HorariumError as wrong:
        return wrong.message


def target_of(schedule: Schedule) -> str:
    """Return the kind of the action and its target in one short line; names and URLs are never shortened."""
    kind, target = _target(schedule.action)
    if kind == "prompt":
        target = " ".join(target.split())
        target = target if len(target) <= _MOST_PROMPT else target[: _MOST_PROMPT - 1] + "…"
    return f"{kind} {target}".rstrip()


def _target(action: Mapping[str, Any]) -> tuple[str, str]:
    return cell(action.get("kind")), next((str(action[name]) for name in _TARGETS if action.get(name)), "")


def _action(schedule: Schedule) -> str:
    action = schedule.action
    kind, target = _target(action)
    queue = f" · queue {action['queue']}" if action.get("queue") else ""
    given = f" · input {compact(action['input'])}" if action.get("input") is not None else ""
    return f"{kind} {target}".rstrip() + f"{queue}{given}"


def _guards(schedule: Schedule) -> Lines:
    if schedule.calendars:
        yield "calendars", ", ".join(schedule.calendars)
    if schedule.pre_dispatch_condition is not None:
        yield "condition", compact(schedule.pre_dispatch_condition)
    turns = schedule.inputs_rotation
    if turns:
        upcoming = schedule.rotation_index % len(turns)
        yield "rotation", f"next is {upcoming + 1} of {len(turns)}: {compact(turns[upcoming])}"


def _who(schedule: Schedule) -> Lines:
    raw = schedule.raw
    if raw.get("assignee_id"):
        yield "assignee", f"{raw.get('assignee_type') or 'agent'}:{raw['assignee_id']}"
    yield from _given(assignment=raw.get("workflow_assignment_id"))


def _overlap(schedule: Schedule) -> str:
    effective = schedule.effective_overlap_policy
    if effective in (None, schedule.overlap_policy):
        return cell(schedule.overlap_policy)
    return f"{cell(effective)} (from the assignment)"


def _failure(schedule: Schedule) -> str:
    failure = schedule.failure_policy or {}
    fallback = failure.get("fallback_assignee_id")
    return f" · on failure {cell(failure.get('mode'))}{f' to {fallback}' if fallback else ''}" if failure else ""


def _policy_lines(schedule: Schedule) -> Lines:
    """Yield the other policies of the definition."""
    for part in ("approval_policy", "retry_policy", "limits", "budget"):
        if schedule.raw.get(part):
            yield part.removesuffix("_policy"), compact(schedule.raw[part])


def _fires(schedule: Schedule) -> Iterator[str]:
    zone = zone_of(schedule)
    for moment in schedule.next_fire_times:
        instant = from_datetime(moment)
        yield f"{local_time(instant, zone)} = {to_rfc3339(instant)}"


def _so_far(schedule: Schedule) -> str:
    return (
        f"{schedule.fires_count} fired, {schedule.failures_count} failed, {schedule.skipped_trigger_count} skipped; "
        f"now {schedule.active_runs} active, {schedule.held_runs} buffered"
    )


def _source_line(schedule: Schedule) -> str:
    who = "" if schedule.owner is None else f" by {schedule.owner}"
    bundle = "" if schedule.bundle is None else f" from bundle {schedule.bundle}"
    return (
        f"{cell(schedule.source)}{bundle}{who} · created {cell(schedule.created_at)}"
        f" · updated {cell(schedule.updated_at)} · version {schedule.version}"
    )


def _given(**fields: Any) -> Lines:
    for label, value in fields.items():
        if value:
            yield label.replace("_", " "), cell(value)


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
    from horarium.features.schedules.draft_calls import DraftCalls

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
