"""Explanation why a schedule did, did not, will or will not fire at an instant.

The explanation of an undecided instant is its forecast. All guards are evaluated, not only the first that refuses,
because a user needs to know everything that must change. The explanation of a decided instant is the recorded decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, assert_never

from horarium.core.decision.decide import key_is_free
from horarium.core.decision.evaluator import Forecaster
from horarium.core.decision.facts import Detail, Facts, RunTally, SharedFacts
from horarium.core.decision.forecast import (
    OF_OVERLAP,
    OVERLAP,
    SKIPPED,
    ForecastRow,
    GuardFinding,
    RecordedDecision,
    findings_then,
    notes,
    outcome,
)
from horarium.core.decision.guards import GUARDS, GuardQuestion
from horarium.core.decision.health import AwaitingApprovals, waiting_sentence
from horarium.core.decision.run_policies import CreationPolicies
from horarium.core.decision.statuses import Forecast
from horarium.core.document.planning import Planning
from horarium.core.document.states import FINAL, EventType, Position, Reason, RunState, status_at
from horarium.core.policy.limits import ROOM_WITHOUT_END, QuotaRoom
from horarium.core.policy.queue import Buffer, Refuse, Start, decide_overlap
from horarium.core.recurrence.parts import CronSchedule, Interval
from horarium.core.recurrence.spec import OneOffs, Part, Spec
from horarium.core.recurrence.zone import EARLIEST, LATEST, format_duration
from horarium.instant import SECOND, Instant, to_rfc3339


@dataclass(frozen=True, slots=True)
class OccurrenceExplanation:
    """The answer about one instant; `as_of` is when the findings were true: at the recorded decision, or now.

    `forecast` belongs to an undecided occurrence. `existed` reports whether the schedule existed at that time.
    """

    at: Instant
    as_of: Instant
    on_spec: bool
    due: Instant | None
    fires: bool
    reason: Reason | None
    findings: tuple[GuardFinding, ...]
    recorded: RecordedDecision | None
    previous: Instant | None
    following: Instant | None
    sentence: str
    forecast: ForecastRow | None = None
    existed: bool = True


@dataclass(frozen=True, slots=True)
class RunNow:
    """The current state of the run of an occurrence; `waiting` counts the run and its steps that await approval."""

    run_id: str
    state: RunState
    waiting: AwaitingApprovals | None = None
    gates: tuple[str, ...] = ()


def explain(
    planning: Planning,
    uid: bytes,
    position: Position,
    facts: Facts,
    *,
    at: Instant,
    now: Instant,
    recorded: RecordedDecision | None = None,
    shared: SharedFacts | None = None,
    run: RunNow | None = None,
    waiting: AwaitingApprovals | None = None,
    paused_until: Instant | None = None,
    created_at: Instant | None = None,
) -> OccurrenceExplanation:
    """Explain the instant `at` with current facts. With `recorded`, `planning` is the one in force at that decision.

    `run` is the run of the occurrence, if it is still stored. `waiting` counts the schedule's runs that await approval.
    `paused_until` is the automatic end of a pause, `created_at` the creation of the schedule.
    """
    spec = planning.spec
    if not EARLIEST * SECOND < at < LATEST * SECOND:
        return _beyond_time(at, now)
    on_spec = recorded is not None or spec.contains(at)
    first = GuardFinding("spec", on_spec, None if on_spec else {"parts": [_why_not(part, at) for part in spec.parts]})
    if recorded is None and created_at is not None and at < created_at:
        return _before_creation(spec, at, created_at, now, first)
    row = None
    if recorded is None:
        forecaster = Forecaster(planning, uid, position, facts, now=now, shared=shared, paused_until=paused_until)
        planning = forecaster.planning
        row = forecaster.at(at) if on_spec and at > position.decided_until else None
        room = ROOM_WITHOUT_END if shared is None else shared.room
        findings = [first, *_findings(forecaster, facts, at, row, paused_until, room)]
        reason = _first_reason(findings) if row is None else row.reason
    else:
        findings, reason = [first, *findings_then(planning, recorded)], recorded.reason
    explanation = OccurrenceExplanation(
        at=at,
        as_of=now if recorded is None else recorded.recorded_at,
        on_spec=on_spec,
        due=spec.due(uid, at) if on_spec else None,
        fires=on_spec and reason is None if recorded is None else recorded.is_birth,
        reason=reason,
        findings=tuple(findings),
        recorded=recorded,
        previous=spec.previous_before(at),
        following=spec.next_after(at),
        sentence="",
        forecast=row,
    )
    said = _sentence(explanation, position, now)
    waits = planning.needs_approval or _others_ask(facts)
    return replace(explanation, sentence=" ".join([said, *_more(explanation, waits, run, waiting, now)]))


def nominal_of(planning: Planning, uid: bytes, at: Instant) -> Instant:
    """Return the occurrence that jitter moves to an instant, else the instant itself."""
    spec = planning.spec
    if not spec.jitter_ms or spec.contains(at):
        return at
    before = spec.previous_before(at)
    return before if before is not None and spec.due(uid, before) == at else at


def _before_creation(
    spec: Spec, at: Instant, created_at: Instant, now: Instant, first: GuardFinding
) -> OccurrenceExplanation:
    sentence = f"This schedule was created on {to_rfc3339(created_at)}. It did not exist at this time."
    unasked = [GuardFinding(each.reason, None) for each in GUARDS]
    return OccurrenceExplanation(
        at=at,
        as_of=now,
        on_spec=first.holds is True,
        due=None,
        fires=False,
        reason=None,
        findings=(first, *unasked, GuardFinding(OVERLAP, None)),
        recorded=None,
        previous=None,
        following=spec.next_after(created_at),
        sentence=sentence,
        existed=False,
    )


def _findings(
    forecaster: Forecaster,
    facts: Facts,
    at: Instant,
    row: ForecastRow | None,
    paused_until: Instant | None,
    room: QuotaRoom,
) -> list[GuardFinding]:
    """Evaluate the checks for a forecast occurrence, or as of now for any other instant."""
    if row is not None:
        tally = forecaster.tally_at(at)
        ended = {run.run_id for run in facts.times.open}.difference(forecaster.runs.active_ids)
        facts = facts._replace(active_run_ids=tuple(each for each in facts.active_run_ids if each not in ended))
    else:
        tally = forecaster.tally
        tally.status = status_at(tally.status, paused_until, at)
    tally.shared.room = room
    return [*_guard_findings(GuardQuestion(forecaster.planning, facts, tally, at)), _overlap_finding(tally, facts)]


def _more(
    found: OccurrenceExplanation, waits: bool, run: RunNow | None, waiting: AwaitingApprovals | None, now: Instant
) -> Iterator[str]:
    """Yield the sentences about runs that await approval."""
    if run is not None:
        yield _become(run)
    elif found.recorded is None and found.on_spec and found.at > now:
        if found.reason is None and waits:
            yield "The run will await approval."
        if found.reason in OF_OVERLAP and waiting is not None:
            yield waiting_sentence(waiting)


def _others_ask(facts: Facts) -> bool:
    """Report whether an agent, an assignment or a workflow requires approval, even if the schedule does not."""
    return isinstance(facts.policies, CreationPolicies) and facts.policies.waits()


def _become(run: RunNow) -> str:
    if run.state in FINAL:
        return f"Its run {run.run_id} ended in state {run.state}."
    if run.waiting is None:
        return f"Its run {run.run_id} is in state {run.state}."
    gates = f" Approval is required for {', '.join(run.gates)}." if run.gates else ""
    if run.state is RunState.AWAITING_APPROVAL:
        return f"Its run {run.run_id} has been awaiting approval since {to_rfc3339(run.waiting.since)}.{gates}"
    return f"Its run {run.run_id} is in state {run.state}. {waiting_sentence(run.waiting)}{gates}"


def _first_reason(findings: list[GuardFinding]) -> Reason | None:
    overlap = findings[-1]
    reason = next((Reason(each.question) for each in findings[1:-1] if each.holds is False), None)
    if reason is None and overlap.holds is False and overlap.detail is not None:
        return Reason(overlap.detail["reason"])
    return reason


def _beyond_time(at: Instant, now: Instant) -> OccurrenceExplanation:
    sentence = "Schedules have occurrences from the year 1900 to 9892 only."
    finding = GuardFinding("spec", False, {"parts": []})
    return OccurrenceExplanation(at, now, False, None, False, None, (finding,), None, None, None, sentence)


def _guard_findings(question: GuardQuestion) -> list[GuardFinding]:
    findings = []
    for guard in GUARDS:
        if not guard.applies(question.planning):
            findings.append(GuardFinding(guard.reason, None))
            continue
        detail = guard.ask(question)
        findings.append(GuardFinding(guard.reason, detail is None, detail))
    return findings


def _overlap_finding(tally: RunTally, facts: Facts) -> GuardFinding:
    seen: dict[str, Any] = {
        "policy": tally.planning.overlap.policy.value,
        "active": tally.active,
        "held": tally.held,
        "active_run_ids": list(facts.active_run_ids),
    }
    outcome = decide_overlap(tally.planning.overlap, active=tally.busy, held=tally.held, backfilled=tally.backfilled)
    match outcome:
        case Refuse(reason):
            return GuardFinding(OVERLAP, False, {**seen, "reason": reason})
        case Buffer():
            return GuardFinding(OVERLAP, True, {**seen, "outcome": "hold"})
        case Start():
            return GuardFinding(OVERLAP, True, {**seen, "outcome": "fire" if key_is_free(tally) else "hold"})
        case _:
            assert_never(outcome)


def _why_not(part: Part, at: Instant) -> Detail:
    """Return the cron fields that do not match, or the distance to an interval or a one-off."""
    t, fraction = divmod(at, SECOND)
    match part:
        case CronSchedule():
            segment = part.zone.segment_at(t)
            local = t + segment.offset
            failed = [f"{field.kind.name} {field.text}" for field in part.cron.mismatches(local)]
            if not failed:
                failed = [_why_not_now(part, t, fraction)]
            wall = to_rfc3339(local * SECOND).removesuffix("Z")
            return {"cron": part.cron.text, "timezone": part.zone.key, "local_time": wall, "failed": failed}
        case Interval(every, offset):
            away = (t - offset) % every
            return {"every": format_duration(every), "offset": format_duration(offset), "seconds_past": away}
        case OneOffs():
            following = part.next_after(t)
            return {"at": "one-off", "next": None if following is None else to_rfc3339(following * SECOND)}
        case _:
            assert_never(part)


def _why_not_now(part: CronSchedule, t: int, fraction: int) -> str:
    """Explain why an instant that matches every cron field is not an occurrence."""
    if fraction:
        return "fraction of a second"
    return "outside start_at and end_at" if part.contains(t) else "not the time that dst_fold selects"


def _sentence(found: OccurrenceExplanation, position: Position, now: Instant) -> str:
    when = to_rfc3339(found.at)
    if found.recorded is not None:
        said = f"The occurrence at {when} {_decision_then(found)}."
    elif not found.on_spec:
        said = f"{when} is not an occurrence of this schedule."
        if found.following is not None:
            said += f" The next occurrence is {to_rfc3339(found.following)}."
    elif found.at <= position.decided_until:
        said = f"The occurrence at {when} has no recorded decision. The checks use the current definition."
    elif found.reason is not None:
        said = f"The occurrence at {when} {_expected_skip(found, now)}: {_reason_text(found)}."
    else:
        row = found.forecast
        held, is_certain = (False, False) if row is None else (row.held, row.doubt is None)
        said = f"The occurrence at {when} {outcome(Forecast.DISPATCH, held=held, is_certain=is_certain)}."
    if found.forecast is None:
        return said
    return " ".join([said, *notes(found.forecast.doubt, found.forecast.moved)])


def _decision_then(found: OccurrenceExplanation) -> str:
    recorded = found.recorded
    assert recorded is not None
    own = recorded.payload.get("occurrence_time")
    if recorded.is_birth and own is not None and own != to_rfc3339(found.at):
        return f"is covered by the run of the occurrence at {own}"
    match recorded.event_type:
        case EventType.TRIGGERED.value:
            return "created a run"
        case EventType.BUFFERED.value:
            return "was buffered behind an earlier run"
        case EventType.TRIGGER_SKIPPED.value | EventType.MISSED.value:
            why = _reason_text(found)
            return f"was skipped: {why}" if why else "was skipped"
        case other:
            return f"has the event {other}"


def _expected_skip(found: OccurrenceExplanation, now: Instant) -> str:
    # A schedule that is paused, deleted or broken may be active again at that time.
    if found.reason is Reason.STATUS_NOT_TRIGGERABLE:
        return "would be skipped"
    certain = found.forecast is None or found.forecast.doubt is None
    expected = "will be skipped" if certain else "is expected to be skipped"
    return f"is due now and {expected}" if found.at <= now else expected


def _reason_text(found: OccurrenceExplanation) -> str:
    """Return the words of the reason; a reason that another release wrote stands for itself."""
    if found.reason is None:
        return str((found.recorded.payload if found.recorded else {}).get("reason", ""))
    if found.reason is Reason.CALENDAR:
        detail = next((each.detail for each in found.findings if each.question == Reason.CALENDAR), None)
        if detail is not None and "calendar" in detail:
            return f'excluded by calendar "{detail["calendar"]}"'
    return SKIPPED[found.reason]
