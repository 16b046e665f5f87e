"""Why a schedule did, did not, will or will not fire at an instant, whatever the instant.

Every question is answered, not only the first that says no: whoever asks wants to know all that must
change. What history recorded wins over what we would decide today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from horarium.decision.decide import key_is_free
from horarium.decision.facts import Facts, Shared, Tally
from horarium.decision.guards import GUARDS, Question
from horarium.decision.plan import Detail
from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.policy.overlap import Buffer, Refuse, Start, decide_overlap
from horarium.recurrence.duration import format_duration
from horarium.recurrence.interval import Interval
from horarium.recurrence.spec import OneOffs, Part
from horarium.recurrence.wall import CronSchedule
from horarium.recurrence.zone import EARLIEST, LATEST
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position
from horarium.schedule.reason import Reason


@dataclass(frozen=True, slots=True)
class Finding:
    """One question and its answer. `holds` None = it is not asked of this schedule."""

    question: str
    holds: bool | None
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What history says about the occurrence: the event's type and payload."""

    event_type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Explanation:
    at: Instant
    on_spec: bool
    due: Instant | None
    fires: bool
    reason: Reason | None
    findings: tuple[Finding, ...]
    recorded: Recorded | None
    previous: Instant | None
    following: Instant | None
    sentence: str


def explain(
    planning: Planning,
    uid: bytes,
    position: Position,
    facts: Facts,
    *,
    at: Instant,
    now: Instant,
    recorded: Recorded | None = None,
    shared: Shared | None = None,
) -> Explanation:
    """Facts are those of now; for a past occurrence `recorded` says what was really decided."""
    spec = planning.spec
    if not EARLIEST * SECOND < at < LATEST * SECOND:
        return _beyond_time(at, recorded)
    on_spec = spec.contains(at)
    tally = Tally(planning, position, facts, Shared() if shared is None else shared.copy())
    findings = [Finding("spec", on_spec, None if on_spec else {"parts": [_why_not(part, at) for part in spec.parts]})]
    findings += _guard_findings(Question(planning, facts, tally, at))
    findings.append(_overlap_finding(tally, facts))
    reason = next((Reason(f.question) for f in findings[1:-1] if f.holds is False), None)
    if reason is None and findings[-1].holds is False and findings[-1].detail is not None:
        reason = Reason(findings[-1].detail["reason"])
    explanation = Explanation(
        at=at,
        on_spec=on_spec,
        due=spec.due(uid, at) if on_spec else None,
        fires=on_spec and reason is None,
        reason=reason,
        findings=tuple(findings),
        recorded=recorded,
        previous=spec.previous_before(at),
        following=spec.next_after(at),
        sentence="",
    )
    return _with_sentence(explanation, position, now)


def _beyond_time(at: Instant, recorded: Recorded | None) -> Explanation:
    sentence = "Nothing is scheduled before the year 1900 or after 9892."
    finding = Finding("spec", False, {"parts": []})
    return Explanation(at, False, None, False, None, (finding,), recorded, None, None, sentence)


def _guard_findings(question: Question) -> list[Finding]:
    findings = []
    for guard in GUARDS:
        if not guard.applies(question.planning):
            findings.append(Finding(guard.reason, None))
            continue
        detail = guard.ask(question)
        findings.append(Finding(guard.reason, detail is None, detail))
    return findings


def _overlap_finding(tally: Tally, facts: Facts) -> Finding:
    seen: dict[str, Any] = {
        "policy": tally.planning.overlap.policy.value,
        "active": tally.active,
        "held": tally.held,
        "active_run_ids": list(facts.active_run_ids),
    }
    outcome = decide_overlap(tally.planning.overlap, active=tally.active, held=tally.held, backfilled=tally.backfilled)
    match outcome:
        case Refuse(reason):
            return Finding("overlap", False, {**seen, "reason": reason})
        case Buffer():
            return Finding("overlap", True, {**seen, "outcome": "hold"})
        case Start():
            return Finding("overlap", True, {**seen, "outcome": "fire" if key_is_free(tally) else "hold"})
        case _:
            assert_never(outcome)


def _why_not(part: Part, at: Instant) -> Detail:
    """Which field of a cron failed, or how far an interval or a one-off is away."""
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
    """Every field matches the wall clock, and yet it is no occurrence."""
    if fraction:
        return "fraction of a second"
    return "outside the window" if part.contains(t) else "the other pass of a repeated hour was chosen"


def _with_sentence(found: Explanation, position: Position, now: Instant) -> Explanation:
    when = to_rfc3339(found.at)
    if found.recorded is not None:
        why = found.recorded.payload.get("reason")
        said = f"{when}: history has {found.recorded.event_type}" + (f" ({why})." if why else ".")
    elif not found.on_spec:
        said = f"{when} is not an occurrence of this schedule."
        if found.following is not None:
            said += f" The next one after it is {to_rfc3339(found.following)}."
    elif found.at <= position.decided_until:
        said = f"{when} is on the spec, but history keeps no decision about it under the present generation."
    elif found.reason is not None:
        tense = "would be skipped" if found.at > now else "is being decided and would be skipped"
        said = f"{when} is on the spec and {tense}: {found.reason}."
    else:
        said = f"{when} is on the spec and nothing known now stands against it."
    return replace(found, sentence=said)
