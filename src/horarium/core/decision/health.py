"""Health of a schedule: the first status that applies, with a sentence that explains it.

A working schedule is never stale. While each occurrence is decided before the next one, the last decision is at most
as old as the two gaps around the newest occurrence, which is at most twice the longer gap. A schedule for weekdays is
therefore healthy on a Sunday and on a Monday morning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.core.decision.statuses import NEEDS_SOMEBODY, STALE_AFTER, HealthStatus, WatchedStatus
from horarium.core.document.planning import Planning
from horarium.core.document.states import RunState, Status
from horarium.core.recurrence.spec import Spec
from horarium.errors import HorariumError
from horarium.instant import SECOND, Instant, to_rfc3339

MAX_FAILED_SHOWN = 3
"""Failed runs that the sentence of a failing schedule names."""

_MAX_ERROR = 200


def must_be_told(was: HealthStatus | None, status: HealthStatus) -> bool:
    """Report whether a change of health from `was` (None = not reported before) needs a notification."""
    if was is None:
        return status in NEEDS_SOMEBODY
    return was is not status


@dataclass(frozen=True, slots=True)
class FailedRun:
    run_id: str
    state: RunState
    finished_at: Instant
    error: str | None


@dataclass(frozen=True, slots=True)
class AwaitingApprovals:
    """Runs and steps that await approval; `since` is when the oldest request began."""

    count: int
    since: Instant
    steps: int = 0


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """The facts that health is judged by.

    `planning` None = it cannot be compiled, `error` says why. `failed` is newest first. `failing_after` is the setting,
    which the schedule may override; cancelled and rejected runs neither break a row of failures nor lengthen it.
    `last_failure` is the error of the newest failure.
    """

    uid: bytes
    status: Status
    planning: Planning | None
    decided_until: Instant
    failing_after: int
    runs_born: int = 0
    failures_in_a_row: int = 0
    empty_in_a_row: int = 0
    last_completed_at: Instant | None = None
    error: str | None = None
    paused_at: Instant | None = None
    pause_reason: str | None = None
    waiting: AwaitingApprovals | None = None
    failed: Sequence[FailedRun] = ()
    last_failure: str | None = None

    @property
    def threshold(self) -> int:
        """Return the number of unsuccessful runs in a row that make this schedule failing."""
        own = None if self.planning is None else self.planning.failing_after
        return self.failing_after if own is None else own


@dataclass(frozen=True, slots=True)
class HealthReport:
    """`expected_next`: when the next occurrence is due, or was. `stale_after_seconds` None = its spec has no gap.

    `is_stale`: nothing is decided though it should be, whatever else holds of it.
    """

    status: HealthStatus
    sentence: str
    expected_next: Instant | None = None
    late_seconds: float = 0.0
    stale_after_seconds: float | None = None
    is_stale: bool = False


def watched_status(health: HealthReport, *, has_run: bool) -> WatchedStatus:
    """Return the status for a monitor: a broken schedule is stale, a paused one is healthy."""
    if not has_run:
        return WatchedStatus.NEVER_RUN
    return WatchedStatus.STALE if health.is_stale else WatchedStatus.OK


def judge(vitals: HealthFacts, now: Instant) -> HealthReport:
    """Judge a schedule. A schedule with unreadable stored values is broken and does not affect others."""
    try:
        return _judge(vitals, now)
    except (HorariumError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as wrong:
        why = f"The stored values of the schedule cannot be read: {_cut(str(wrong)) or type(wrong).__name__}."
        return HealthReport(HealthStatus.BROKEN, why, is_stale=True)


def _judge(vitals: HealthFacts, now: Instant) -> HealthReport:
    planning = vitals.planning
    if planning is None:
        why = f"The schedule definition cannot be compiled: {_cut(vitals.error) or 'unknown error'}."
        return HealthReport(HealthStatus.BROKEN, why, is_stale=True)
    active = vitals.status is Status.ACTIVE
    after = vitals.decided_until if active else max(vitals.decided_until, now)
    nominal = planning.spec.next_after(after)
    expected = None if nominal is None else planning.spec.due(vitals.uid, nominal)
    gap = gap_around(planning.spec, now)
    late = max(0, now - expected) if active and expected is not None else 0
    times = _Times(now, nominal, late, gap)
    status, sentence = _judged(vitals, planning, times)
    stale_after = None if gap is None else 2 * gap / SECOND
    is_stale = status is HealthStatus.BROKEN or _is_stale(vitals, times)
    return HealthReport(status, sentence, expected, late / SECOND, stale_after, is_stale)


def gap_around(spec: Spec, now: Instant) -> Instant | None:
    """The longer of the two gaps beside the newest occurrence that is not in the future; None = it has neither."""
    newest = spec.previous_before(now + 1)
    if newest is None:
        return None
    before, following = spec.previous_before(newest), spec.next_after(now)
    gaps = [
        *([] if before is None else [newest - before]),
        *([] if following is None else [following - newest]),
    ]
    return max(gaps, default=None)


@dataclass(frozen=True, slots=True)
class _Times:
    """`nominal` is the first occurrence without a decision; `late` how long it has been due."""

    now: Instant
    nominal: Instant | None
    late: Instant
    gap: Instant | None


def _judged(vitals: HealthFacts, planning: Planning, times: _Times) -> tuple[HealthStatus, str]:
    if vitals.status is Status.BROKEN:
        why = f"An error stopped the schedule; its occurrences are not decided: {_cut(vitals.error)}."
        return HealthStatus.BROKEN, why
    if vitals.status is Status.PAUSED:
        return HealthStatus.PAUSED, _paused(vitals)
    if vitals.waiting is not None:
        return HealthStatus.WAITING_FOR_APPROVAL, waiting_sentence(vitals.waiting)
    if vitals.failures_in_a_row >= vitals.threshold:
        return HealthStatus.FAILING, _failing(vitals)
    if times.late and times.nominal is not None:
        if times.gap is not None and _is_stale(vitals, times):
            return HealthStatus.STALE, _stale(vitals, planning, times, times.gap)
        grace = planning.catchup.misfire_grace_seconds
        if times.late > grace * SECOND:
            overdue = f"is {_seconds(times.late)} overdue; the misfire grace is {grace} s"
            return HealthStatus.LATE, f"The occurrence at {to_rfc3339(times.nominal)} {overdue}."
    if vitals.runs_born == 0:
        return HealthStatus.NEVER_RUN, f"No run yet. {_coming(times.nominal)}"
    return HealthStatus.OK, _well(vitals, times.nominal)


def _is_stale(vitals: HealthFacts, times: _Times) -> bool:
    return times.late > 0 and times.gap is not None and times.now - vitals.decided_until > 2 * times.gap


# ── sentences ────────────────────────────────────────────────────────────────────────────────────────


def _paused(vitals: HealthFacts) -> str:
    since = "" if vitals.paused_at is None else f" since {to_rfc3339(vitals.paused_at)}"
    return f"Paused{since}{f': {_cut(vitals.pause_reason)}' if vitals.pause_reason else ''}."


def waiting_sentence(waiting: AwaitingApprovals) -> str:
    since = to_rfc3339(waiting.since)
    if waiting.count + waiting.steps == 1:
        return f"A {'run' if waiting.count else 'step of a run'} has been awaiting approval since {since}."
    parts = [_some(waiting.count, "run"), _some(waiting.steps, "step")]
    return f"{' and '.join(part for part in parts if part)} await approval, the oldest since {since}."


def _some(count: int, word: str) -> str:
    return "" if not count else f"{count} {word}{'' if count == 1 else 's'}"


def _failing(vitals: HealthFacts) -> str:
    count = vitals.failures_in_a_row
    last = "last run" if count == 1 else f"last {count} runs"
    told = f"The {last} failed{_empties(vitals.empty_in_a_row)}"
    if not vitals.failed:
        return f"{told}."
    named = vitals.failed[:MAX_FAILED_SHOWN]
    order = ", newest first" if len(named) > 1 else ""
    ends = ", ".join(f"{run.run_id} {run.state} at {to_rfc3339(run.finished_at)}" for run in named)
    error = _cut(next((run.error for run in vitals.failed if run.error), None))
    return f"{told}{order}: {ends}.{f' Last error: {error}.' if error else ''}"


def _empties(count: int) -> str:
    """Return the number of empty answers once it makes the schedule stale."""
    return f" ({count} consecutive empty responses)" if count >= STALE_AFTER else ""


def _stale(vitals: HealthFacts, planning: Planning, times: _Times, gap: Instant) -> str:
    since = vitals.decided_until
    missed = planning.spec.count(since, times.now)
    were = "1 occurrence was" if missed == 1 else f"{missed} occurrences were"
    quiet = f"No occurrence was decided since {to_rfc3339(since)} ({_seconds(times.now - since)} ago)"
    return f"{quiet}, although {were} due. The limit is {_seconds(2 * gap)}, two intervals of the schedule."


def _coming(nominal: Instant | None) -> str:
    return "No further occurrences." if nominal is None else f"Next occurrence: {to_rfc3339(nominal)}."


def _well(vitals: HealthFacts, nominal: Instant | None) -> str:
    failures = vitals.failures_in_a_row
    if failures:
        told = "The last run failed" if failures == 1 else f"The last {failures} runs failed"
        error = f" ({_cut(vitals.last_failure)})" if vitals.last_failure else ""
        limit = f"The status becomes failing after {vitals.threshold} failures in a row."
        return f"{told}{error}. {limit} {_coming(nominal)}"
    if vitals.last_completed_at is None:
        return f"No run has ended yet. {_coming(nominal)}"
    return f"The last run ended at {to_rfc3339(vitals.last_completed_at)}. {_coming(nominal)}"


def _seconds(span: Instant) -> str:
    return f"{span // SECOND} s"


def _cut(text: str | None) -> str:
    """Shorten a text to one line of limited length."""
    line = " ".join((text or "").split()).rstrip(".")
    return line if len(line) <= _MAX_ERROR else f"{line[:_MAX_ERROR]}…"
