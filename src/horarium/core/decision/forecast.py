"""Rows of a forecast, the moves of their instants, and the recorded decision of an occurrence that is past.

Clock changes, jitter and parts of the spec that coincide move the instant of an occurrence.

A recorded refusal names the guard that refused, so those before it had allowed the occurrence and those after it
were not evaluated. A run means that all evaluated guards had allowed it. An occurrence that an edit or the clock
overtook was not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, assert_never

from horarium.core.decision.facts import Detail
from horarium.core.decision.guards import GUARDS, guards_for
from horarium.core.decision.statuses import Certainty, Forecast, MoveKind, NoRun
from horarium.core.document.planning import Planning
from horarium.core.document.states import EventType, Origin, Reason
from horarium.core.recurrence.parts import CronSchedule, Interval
from horarium.core.recurrence.spec import Part, Spec
from horarium.core.recurrence.zone import format_duration
from horarium.instant import SECOND, Instant, to_rfc3339

# ── Moves of an instant ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class InstantMove:
    """`kind` is a word of `MoveKind`. `local_time` is the wall time that the expression names, `seconds` the delay of
    jitter, and `parts` are the expressions that name one instant.
    """

    kind: str
    local_time: str | None = None
    seconds: float | None = None
    parts: tuple[str, ...] = ()


def can_move(spec: Spec) -> bool:
    """Report whether any instant of a spec can be moved."""
    fixed = any(isinstance(part, CronSchedule) and part.cron.fixed for part in spec.parts)
    return bool(spec.jitter_ms) or len(spec.parts) > 1 or (fixed and spec.zone.key != "UTC")


def moves_of(spec: Spec, nominal: Instant, due: Instant) -> tuple[InstantMove, ...]:
    """Return what moved an occurrence of the spec; empty for most."""
    t = nominal // SECOND
    naming = [part for part in spec.parts if part.contains(t)] if len(spec.parts) > 1 else list(spec.parts)
    found = [move for part in naming if isinstance(part, CronSchedule) and (move := _clock_change(part, t))]
    if len(naming) > 1:
        found.append(InstantMove("deduplicated", parts=tuple(_text_of_time(part) for part in naming)))
    if due != nominal:
        found.append(InstantMove("jittered", seconds=(due - nominal) / SECOND))
    return tuple(dict.fromkeys(found))


def _clock_change(part: CronSchedule, t: int) -> InstantMove | None:
    segment = part.zone.segment_at(t)
    if segment.before == segment.offset == segment.after or not part.cron.fixed:
        return None
    if t == segment.start and part.fires_at_start(segment):
        wall = part.cron.next_local(segment.start + segment.before)
        return None if wall is None else InstantMove("dst_gap", _wall(wall))
    wall = t + segment.offset
    second_pass = segment.before > segment.offset and wall < segment.start + segment.before
    first_pass = segment.after < segment.offset and wall >= segment.stop + segment.after
    return InstantMove("dst_fold", _wall(wall)) if first_pass or second_pass else None


def _wall(local: int) -> str:
    return to_rfc3339(local * SECOND).removesuffix("Z")


def _text_of_time(part: Part) -> str:
    if isinstance(part, CronSchedule):
        return part.cron.text
    return f"every {format_duration(part.every)}" if isinstance(part, Interval) else "at"


# ── Rows ──────────────────────────────────────────────────────────────────────────────────────────────


class Stretch(NamedTuple):
    """All occurrences from `first` to `last`, with one decision; `rotation_index` belongs to the first."""

    first: Instant
    last: Instant
    decision: Forecast
    reason: Reason | None = None
    detail: Detail | None = None
    held: bool = False
    certainty: Certainty = Certainty.CERTAIN
    doubt: str | None = None
    rotation_index: int | None = None


class ForecastRow(NamedTuple):
    """One occurrence. `rotation_index` selects the inputs of a dispatch; None = the schedule's own inputs.

    `doubt` is the sentence about what an uncertain decision depends on; `moved` lists the moves of the instant.
    """

    tick_at: Instant
    due: Instant
    decision: Forecast
    reason: Reason | None = None
    detail: Detail | None = None
    rotation_index: int | None = None
    held: bool = False
    certainty: Certainty = Certainty.CERTAIN
    doubt: str | None = None
    moved: tuple[InstantMove, ...] = ()

    def unjittered(self) -> ForecastRow:
        """Return the row without jitter, which is unknown until the schedule exists."""
        return self._replace(due=self.tick_at, moved=tuple(each for each in self.moved if each.kind != "jittered"))

    @property
    def sentence(self) -> str:
        return sentence(self.decision, self.reason, self.held, self.doubt, self.moved)


class NextRun(NamedTuple):
    """The due time of the next run, or None with the reason."""

    due: Instant | None = None
    reason: NoRun | None = None


NOT_TRIGGERABLE: Final = NextRun(None, NoRun.STATUS_NOT_TRIGGERABLE)

SKIPPED: Final = MappingProxyType(
    {
        Reason.STATUS_NOT_TRIGGERABLE: "schedule not active",
        Reason.OUTSIDE_WINDOW: "outside the start and end of the schedule",
        Reason.REMAINING_ACTIONS_EXHAUSTED: "max runs reached",
        Reason.NATIVE_SCHEDULER: "agent is self-scheduled",
        Reason.CALENDAR: "excluded by a calendar",
        Reason.CONDITION_FAILED: "condition not met",
        Reason.BUDGET_EXCEEDED: "budget exceeded",
        Reason.DAILY_LIMIT_REACHED: "daily limit reached",
        Reason.CYCLE_DETECTED: "workflow contains a cycle",
        Reason.NOT_THE_OWNER: "workflow has another owner",
        Reason.QUOTA_EXCEEDED: "namespace quota exceeded",
        Reason.OVERLAP_POLICY_SKIP: "previous run still active",
        Reason.BUFFER_FULL: "buffer full",
        Reason.MAX_CONCURRENT_REACHED: "concurrency limit reached",
        Reason.SUPERSEDED: "superseded by an edit, pause or deletion",
        Reason.MISSED: "scheduler was down",
        Reason.CATCHUP_CAP: "catch-up limit reached",
        Reason.ALREADY_EXISTS: "run already exists",
        Reason.TARGET_BUSY: "target busy",
    }
)


def sentence(
    decision: Forecast, reason: Reason | None, held: bool, doubt: str | None, moved: Sequence[InstantMove] = ()
) -> str:
    """Return the sentences about the decision, its uncertainty and the moves of the instant."""
    plain = _unmoved(decision, reason, held, doubt)
    return " ".join([plain, *map(_move, moved)]) if moved else plain


@lru_cache(maxsize=256)
def _unmoved(decision: Forecast, reason: Reason | None, held: bool, doubt: str | None) -> str:
    """Cache the sentence, because a long list repeats few of them."""
    plain = outcome(decision, reason, held=held, is_certain=doubt is None)
    return " ".join([f"The occurrence {plain}.", *notes(doubt, ())])


def notes(doubt: str | None, moved: Sequence[InstantMove]) -> list[str]:
    """Return the sentences about the uncertainty of a decision and the moves of the instant."""
    return [*([doubt] if doubt else []), *map(_move, moved)]


def outcome(decision: Forecast, reason: Reason | None = None, *, held: bool, is_certain: bool) -> str:
    """Return the predicate of a sentence about an occurrence, such as `will run`."""
    will = "will" if is_certain else "is expected to"
    if decision is Forecast.SKIP:
        return f"{will} be skipped" + ("" if reason is None else f": {SKIPPED[reason]}")
    return f"{will} be buffered until an earlier run ends" if held else f"{will} run"


def _move(move: InstantMove) -> str:
    match MoveKind(move.kind):
        case MoveKind.DST_GAP:
            gap = f"The local time {move.local_time} does not exist on that day (DST)."
            return f"{gap} The occurrence moves to the end of the gap."
        case MoveKind.DST_FOLD:
            return f"The local time {move.local_time} occurs twice on that day (DST)."
        case MoveKind.JITTERED:
            return f"Jitter delays the occurrence by {move.seconds:g} seconds."
        case MoveKind.DEDUPLICATED:
            return f"{len(move.parts)} parts of the spec have this occurrence; it runs once."
        case unknown:
            assert_never(unknown)


# ── Recorded decisions ────────────────────────────────────────────────────────────────────────────────


OVERLAP = "overlap"
OF_OVERLAP = (Reason.OVERLAP_POLICY_SKIP, Reason.BUFFER_FULL, Reason.MAX_CONCURRENT_REACHED)
_BIRTHS = {EventType.TRIGGERED.value: "fire", EventType.BUFFERED.value: "hold"}


@dataclass(frozen=True, slots=True)
class GuardFinding:
    """One question and its answer. `holds` None = it is not asked of this schedule, or was not asked then."""

    question: str
    holds: bool | None
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """Event of history about the occurrence: its type, payload and time."""

    event_type: str
    payload: Mapping[str, Any]
    recorded_at: Instant

    @property
    def is_birth(self) -> bool:
        return self.event_type in _BIRTHS

    @property
    def reason(self) -> Reason | None:
        """None also for a word that another release wrote."""
        said = self.payload.get("reason")
        return Reason(said) if said in frozenset(Reason) else None

    def is_about(self, planning: Planning, at: Instant) -> bool:
        """Tell whether the event decided this moment: a range of missed occurrences spans moments that are none."""
        said = self.payload
        named = (said.get("occurrence_time"), said.get("first"), said.get("last"))
        return to_rfc3339(at) in named or planning.spec.contains(at)


def findings_then(planning: Planning, recorded: RecordedDecision) -> list[GuardFinding]:
    """The answers of the guards and of overlap; `planning` is the one that was in force then."""
    refused = None if recorded.is_birth else recorded.reason
    detail = recorded.payload.get("detail")
    asked = _asked(planning, recorded)
    findings = []
    for guard in GUARDS:
        if guard.reason is refused:
            findings.append(GuardFinding(guard.reason, False, detail))
            asked = frozenset()
        else:
            findings.append(GuardFinding(guard.reason, True if guard.reason in asked else None))
    return [*findings, _overlap_then(planning, recorded)]


def _asked(planning: Planning, recorded: RecordedDecision) -> frozenset[Reason]:
    """Nobody asks about what was overtaken, or has had its run."""
    if not recorded.is_birth and recorded.reason not in (*(guard.reason for guard in GUARDS), *OF_OVERLAP):
        return frozenset()
    origin = recorded.payload.get("origin", Origin.SCHEDULED.value)
    known = Origin(origin) if origin in frozenset(Origin) else Origin.SCHEDULED
    return frozenset(guard.reason for guard in guards_for(planning, known))


def _overlap_then(planning: Planning, recorded: RecordedDecision) -> GuardFinding:
    said = recorded.payload
    if recorded.is_birth:
        policy = said.get("effective_overlap_policy", planning.overlap.policy.value)
        seen = {"policy": policy, "outcome": _BIRTHS[recorded.event_type], "buffer_depth": said.get("buffer_depth")}
        return GuardFinding(OVERLAP, True, {key: value for key, value in seen.items() if value is not None})
    if recorded.reason in OF_OVERLAP:
        counts = said.get("detail") or {}
        return GuardFinding(
            OVERLAP, False, {"policy": planning.overlap.policy.value, **counts, "reason": recorded.reason}
        )
    return GuardFinding(OVERLAP, None)
