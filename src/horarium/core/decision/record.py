"""Records of decisions, and words for the state of a schedule.

A record has the runs that a decision creates, its events and its counts. One function serves the tick, a manual
trigger and a backfill, so that none of them can forget a row.

The last status of a schedule is `success`, `error`, `skipped`, `stale`, or nothing yet. An agent that answers with an
empty text has done nothing: after three such answers in a row the word is `stale`, until the agent gives another
answer. A skip or a cancel between them does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, assert_never

from horarium.core.decision.facts import Birth, Covers, Decision, Fire, Hold, Missed, Skip
from horarium.core.decision.run_policies import CreationPolicies, RunColumns, settle
from horarium.core.document.planning import Planning
from horarium.core.document.states import (
    MAX_RUNS_EXHAUSTED,
    REASON_ALIASES,
    CommandContext,
    EventType,
    Origin,
    Position,
    Reason,
    RecordedOutcome,
    RunState,
    Status,
    checked_payload,
    dispatch_status,
    instance_id,
)
from horarium.instant import SECOND, Instant, to_rfc3339

# ── Health ────────────────────────────────────────────────────────────────────────────────────────────


class HealthStatus(StrEnum):
    """Health of a schedule. The first status that applies is reported."""

    BROKEN = "broken"
    PAUSED = "paused"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    FAILING = "failing"
    STALE = "stale"  # no decision for two gaps of its spec
    LATE = "late"  # an occurrence has waited for its decision beyond its grace
    NEVER_RUN = "never_run"
    OK = "ok"


class WatchedStatus(StrEnum):
    """Health of a schedule for a monitor with three values."""

    OK = "ok"
    STALE = "stale"
    NEVER_RUN = "never_run"


UNWELL = frozenset({HealthStatus.BROKEN, HealthStatus.FAILING, HealthStatus.STALE, HealthStatus.LATE})
"""Those that a command says by its exit code."""

NEEDS_SOMEBODY = UNWELL | {HealthStatus.WAITING_FOR_APPROVAL}
"""Statuses whose beginning and end create an event."""


# ── Last occurrence ───────────────────────────────────────────────────────────────────────────────────


EMPTY_RESPONSE = "empty_response"
"""The class of the error of a run whose agent answered without a text."""

STALE_AFTER = 3
"""Empty answers in a row."""


class LastStatus(StrEnum):
    NOTHING = ""
    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    STALE = "stale"


_STATES_OF_STATUS = frozenset(RunState)
# Somebody did not want it, or had no room: nobody did it wrong.
_NOT_DONE = frozenset({RunState.SKIPPED, RunState.REJECTED, RunState.EXPIRED})


def status_of_end(state: RunState) -> LastStatus:
    """Status for one run that has ended."""
    if state is RunState.SUCCEEDED:
        return LastStatus.SUCCESS
    return LastStatus.SKIPPED if state in _NOT_DONE else LastStatus.ERROR


def last_status(
    *,
    last_state: str | None,
    last_completed_at: Instant | None,
    last_skipped_at: Instant | None,
    failures_in_a_row: int,
    empty_in_a_row: int,
) -> LastStatus:
    """`last_state` is that of the run that ended last; None = none has, or it did before this was kept.

    A state that a newer program has written counts as none. A skip after empty answers, such as that of a busy agent,
    is the outcome of the last occurrence.
    """
    if last_skipped_at is not None and (last_completed_at is None or last_skipped_at > last_completed_at):
        return LastStatus.SKIPPED
    ended = status_of_end(RunState(last_state)) if last_state in _STATES_OF_STATUS else None
    if empty_in_a_row >= STALE_AFTER and ended is not LastStatus.SKIPPED:
        return LastStatus.STALE
    if ended is not None:
        return ended
    if last_completed_at is None:
        return LastStatus.NOTHING
    return LastStatus.ERROR if failures_in_a_row else LastStatus.SUCCESS


def empties_after(empty_in_a_row: int, state: RunState, error_class: str | None) -> int:
    """Empty answers in a row after an end. What the agent itself did not say neither breaks the row nor lengthens it.

    A failure without a class is our own word, that a cap was passed.
    """
    if error_class == EMPTY_RESPONSE and state is RunState.FAILED:
        return empty_in_a_row + 1
    said = state is RunState.SUCCEEDED or (state is RunState.FAILED and error_class is not None)
    return 0 if said else empty_in_a_row


# ── Recent occurrences ────────────────────────────────────────────────────────────────────────────────


MOST_RECENT: Final = 30


class Happened(StrEnum):
    """Decision about an occurrence."""

    FIRED = "fired"
    HELD = "held"
    SKIPPED = "skipped"
    MISSED = "missed"


HAPPENED: Final[Mapping[EventType, Happened]] = MappingProxyType(
    {
        EventType.TRIGGERED: Happened.FIRED,
        EventType.BUFFERED: Happened.HELD,
        EventType.TRIGGER_SKIPPED: Happened.SKIPPED,
        EventType.MISSED: Happened.MISSED,
    }
)
"""The events of history that are decisions."""


class Recent(NamedTuple):
    """One decision, with what became of its run; `at` is the time of its occurrence, or when it was made by hand.

    `state` None = it had no run, or retention has removed it. `covers`: of how many occurrences it was the decision.
    """

    at: Instant
    outcome: Happened
    reason: str | None = None
    run_id: bytes | None = None
    origin: Origin = Origin.SCHEDULED
    state: RunState | None = None
    due: Instant | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    covers: int = 1

    @property
    def duration_seconds(self) -> float | None:
        """None = it has not started, or not ended; a clock that was set back makes it none at all."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0, self.finished_at - self.started_at) / SECOND

    @property
    def late_seconds(self) -> float | None:
        """Start delay in seconds."""
        return None if self.started_at is None or self.due is None else max(0, self.started_at - self.due) / SECOND


def in_order(decisions: Iterable[Recent]) -> tuple[Recent, ...]:
    """Oldest first; at one instant, what was done by hand last. Of an occurrence that was skipped and then backfilled
    the run wins.
    """
    by_occurrence: dict[tuple[Instant, bool], Recent] = {}
    for each in decisions:
        key = (each.at, each.origin is Origin.MANUAL)
        if each.run_id is not None or key not in by_occurrence:
            by_occurrence[key] = each
    return tuple(by_occurrence[key] for key in sorted(by_occurrence))


# ── Forecast ──────────────────────────────────────────────────────────────────────────────────────────


class Forecast(StrEnum):
    DISPATCH = "dispatch"
    SKIP = "skip"


class Certainty(StrEnum):
    CERTAIN = "certain"  # only an edit, a pause, a freeze, an outage or a manual run can change the decision
    LIKELY = "likely"  # it depends on when runs end, estimated from the history of the schedule
    UNKNOWN = "unknown"  # it depends on a condition, a limit or a run whose end cannot be estimated


class MoveKind(StrEnum):
    DST_GAP = "dst_gap"  # the local time does not exist on that day; the occurrence is at the end of the gap
    DST_FOLD = "dst_fold"  # the local time exists twice on that day; one of the two was chosen
    JITTERED = "jittered"  # it acts some seconds after its nominal time
    DEDUPLICATED = "deduplicated"  # several parts of the spec name the instant; it is one occurrence


class NoRun(StrEnum):
    """Reason why no upcoming occurrence is dispatched: that of the last one, or `finished`."""

    STATUS_NOT_TRIGGERABLE = Reason.STATUS_NOT_TRIGGERABLE.value
    OUTSIDE_WINDOW = Reason.OUTSIDE_WINDOW.value
    REMAINING_ACTIONS_EXHAUSTED = Reason.REMAINING_ACTIONS_EXHAUSTED.value
    NATIVE_SCHEDULER = Reason.NATIVE_SCHEDULER.value
    CALENDAR = Reason.CALENDAR.value
    CONDITION_FAILED = Reason.CONDITION_FAILED.value
    BUDGET_EXCEEDED = Reason.BUDGET_EXCEEDED.value
    DAILY_LIMIT_REACHED = Reason.DAILY_LIMIT_REACHED.value
    CYCLE_DETECTED = Reason.CYCLE_DETECTED.value
    NOT_THE_OWNER = Reason.NOT_THE_OWNER.value
    OVERLAP_POLICY_SKIP = Reason.OVERLAP_POLICY_SKIP.value
    BUFFER_FULL = Reason.BUFFER_FULL.value
    MAX_CONCURRENT_REACHED = Reason.MAX_CONCURRENT_REACHED.value
    MISSED = Reason.MISSED.value
    CATCHUP_CAP = Reason.CATCHUP_CAP.value
    FINISHED = "finished"


# The first events of a run (why it exists, that it exists) are read off its row; stored ones follow.
FIRST_STORED_EVENT = 3


def first_stored_event(state: RunState) -> int:
    """Number of the first stored event of a run created in `state`.

    The event that it was created buffered is read from its row as well, and its number is left out.
    """
    return FIRST_STORED_EVENT + (1 if state is RunState.HELD else 0)


class NewId(NamedTuple):
    value: bytes
    text: str


class NewRun(NamedTuple):
    """The columns of `runs` that a birth fills; all others have their defaults.

    `settled` None = only the schedule itself says anything.
    """

    run_id: bytes
    state: RunState
    nominal: Instant
    due: Instant
    ready_at: Instant
    rotation_index: int | None
    trigger_number: int | None
    covers: Covers | None
    settled: RunColumns | None = None


class NewEvent(NamedTuple):
    sequence: int
    event_type: EventType
    nominal: Instant | None
    nominal_last: Instant | None
    run_id: bytes | None
    payload: Mapping[str, Any]


class Counts(NamedTuple):
    """Counters of the position's row in addition to those that planning needs."""

    next_sequence: int = 1
    active: int = 0
    held: int = 0
    fires_count: int = 0
    skipped_count: int = 0
    last_fired_at: Instant | None = None
    last_run_id: bytes | None = None
    last_skip_reason: str | None = None
    last_skipped_at: Instant | None = None
    last_dispatch_status: str | None = None


class ScheduleSubject(NamedTuple):
    """The schedule that is written about; `rerun_of` names the run that is repeated.

    `policies` are those for new runs, where the schedule's own are not the only ones.
    """

    schedule_id: str
    revision: int
    planning: Planning
    rerun_of: str | None = None
    policies: CreationPolicies | None = None
    is_deleted: bool = False


class ScheduleWrites(NamedTuple):
    """Everything that one transaction writes about one schedule.

    With `terminate_active`, runs born before the one at `kept_from` make room too: of several
    occurrences that each replace the one before, the last stays. So with `supersede_waiting`, for those that wait.
    """

    position: Position
    counts: Counts
    runs: tuple[NewRun, ...]
    events: tuple[NewEvent, ...]
    terminate_active: bool = False
    cancel_active: bool = False
    kept_from: int = 0
    supersede_waiting: bool = False
    deletes: bool = False


def record_decisions(
    named: ScheduleSubject,
    counts: Counts,
    decisions: Iterable[Decision],
    position: Position,
    *,
    now: Instant,
    origin: Origin,
    ids: Iterator[NewId],
    context: CommandContext | None = None,
) -> ScheduleWrites:
    """`position` is the one after the decisions."""
    deletes = position.status is Status.DELETED and not named.is_deleted
    pen = _Recorder(named, counts, now, origin, ids, context)
    for decision in decisions:
        match decision:
            case Fire() | Hold():
                pen.birth(decision)
            case Skip():
                pen.skip(decision)
            case Missed():
                pen.miss(decision)
            case _:
                assert_never(decision)
    if deletes:
        pen.event(EventType.DELETED, {"reason": MAX_RUNS_EXHAUSTED, "deleted_at": to_rfc3339(now)})
    return ScheduleWrites(
        position,
        pen.counts(),
        tuple(pen.runs),
        tuple(pen.events),
        pen.terminate_active,
        pen.cancel_active,
        pen.kept_from,
        pen.supersede_waiting,
        deletes,
    )


class _Recorder:
    """Collects rows; the counts move with each line."""

    __slots__ = (
        "active", "before", "cancel_active", "context", "events", "fires", "held", "ids", "kept_from", "last_run",
        "last_skip", "named", "now", "origin", "runs", "sequence", "skips", "status", "supersede_waiting",
        "terminate_active",
    )  # fmt: skip

    def __init__(
        self,
        named: ScheduleSubject,
        counts: Counts,
        now: Instant,
        origin: Origin,
        ids: Iterator[NewId],
        context: CommandContext | None,
    ) -> None:
        self.named, self.before, self.now, self.origin, self.ids, self.context = (
            named,
            counts,
            now,
            origin,
            ids,
            context,
        )
        self.sequence = counts.next_sequence
        self.active, self.held = counts.active, counts.held
        self.fires, self.skips = counts.fires_count, counts.skipped_count
        self.runs: list[NewRun] = []
        self.events: list[NewEvent] = []
        self.last_run: bytes | None = None
        self.last_skip: Reason | None = None
        self.status = counts.last_dispatch_status
        self.terminate_active = self.cancel_active = self.supersede_waiting = False
        self.kept_from = 0

    def birth(self, decision: Birth) -> None:
        run_id, text = next(self.ids)
        if isinstance(decision, Fire):
            event_type, said = EventType.TRIGGERED, self._fire(decision, run_id)
        else:
            event_type, said = EventType.BUFFERED, self._hold(decision, run_id)
        nominal, due, rotation, covers = decision[:4]
        said |= {
            "occurrence_time": to_rfc3339(nominal),
            "due": None if due == nominal else to_rfc3339(due),
            "origin": self.origin.value,
            "revision": self.named.revision,
            "rotation_index_used": rotation,
            "covers": None if covers is None else _covers(covers),
            "workflow_instance_id": instance_id(self.named.schedule_id, self.origin, nominal, text),
            "workflow_run_id": text,
            "effective_overlap_policy": self.named.planning.overlap.policy.value,
            "rerun_of": self.named.rerun_of,
        }
        last = nominal if covers is None else covers.last
        self.event(event_type, said, *self._range(nominal, last), run_id)
        self.status = _DISPATCHED

    def skip(self, decision: Skip) -> None:
        self._count_skips(decision.reason, 1)
        values: dict[str, object] = {
            "reason": decision.reason.value,
            "reason_alias": REASON_ALIASES.get(decision.reason),
            "occurrence_time": to_rfc3339(decision.nominal),
            "origin": self.origin.value,
            "detail": decision.detail,
            "skipped_trigger_count": self.skips,
            "last_skipped_at": to_rfc3339(self.now),
        }
        self.event(EventType.TRIGGER_SKIPPED, values, *self._range(decision.nominal, decision.nominal))

    def miss(self, decision: Missed) -> None:
        """A range that was refused counts as so many skips; one that was overtaken was never asked about."""
        if decision.reason not in _NOT_EVALUATED:
            self._count_skips(decision.reason, decision.count)
        self.event(EventType.MISSED, missed_values(decision), decision.first, decision.last)

    def event(
        self,
        event_type: EventType,
        values: Mapping[str, object],
        nominal: Instant | None = None,
        nominal_last: Instant | None = None,
        run_id: bytes | None = None,
    ) -> None:
        said = values if self.context is None else {**values, "command_context": self.context}
        payload = checked_payload(event_type, said)
        self.events.append(NewEvent(self.sequence, event_type, nominal, nominal_last, run_id, payload))
        self.sequence += 1

    def counts(self) -> Counts:
        before, skip = self.before, self.last_skip
        return Counts(
            self.sequence,
            self.active,
            self.held,
            self.fires,
            self.skips,
            last_fired_at=self.now if self.fires > before.fires_count else before.last_fired_at,
            last_run_id=self.last_run or before.last_run_id,
            last_skip_reason=before.last_skip_reason if skip is None else skip.value,
            last_skipped_at=before.last_skipped_at if skip is None else self.now,
            last_dispatch_status=self.status,
        )

    def _count_skips(self, reason: Reason, count: int) -> None:
        self.skips += count
        self.last_skip, self.status = reason, dispatch_status(reason)

    def _range(self, first: Instant, last: Instant) -> tuple[Instant | None, Instant | None]:
        """A trigger by hand is nobody's occurrence: an audit of the spec must not count it."""
        return (None, None) if self.origin is Origin.MANUAL else (first, last)

    def _fire(self, decision: Fire, run_id: bytes) -> dict[str, object]:
        self.fires += 1
        if decision.terminate_active:
            self.terminate_active, self.active = True, 0
            self.kept_from = len(self.runs)
        if decision.superseded:
            self.supersede_waiting, self.active = True, self.active - decision.superseded
            self.kept_from = len(self.runs)
        self.active += 1
        self.last_run = run_id
        settled = self._settled(decision)
        waits = self.named.planning.needs_approval if settled is None else settled.needs_approval
        state = RunState.AWAITING_APPROVAL if waits else RunState.READY
        self.runs.append(_run(run_id, state, decision, self.now, self.fires, settled))
        outcome = RecordedOutcome.BACKFILLED if self.origin is Origin.BACKFILL else RecordedOutcome.SCHEDULED
        return {"outcome": outcome.value, "trigger_number": self.fires}

    def _hold(self, decision: Hold, run_id: bytes) -> dict[str, object]:
        self.held += 1
        self.cancel_active = self.cancel_active or decision.cancel_active
        ready_at = decision.release_at or self.now
        self.runs.append(_run(run_id, RunState.HELD, decision, ready_at, None, self._settled(decision)))
        return {"buffer_depth": self.held}

    def _settled(self, decision: Birth) -> RunColumns | None:
        policies = self.named.policies
        return None if policies is None else settle(self.named.planning, policies, decision.member)


_DISPATCHED = dispatch_status(None)
_NOT_EVALUATED = (Reason.MISSED, Reason.CATCHUP_CAP, Reason.SUPERSEDED, Reason.REMAINING_ACTIONS_EXHAUSTED)


def _run(
    run_id: bytes,
    state: RunState,
    decision: Birth,
    ready_at: Instant,
    number: int | None,
    settled: RunColumns | None,
) -> NewRun:
    nominal, due, rotation, covers = decision[:4]
    return NewRun(run_id, state, nominal, due, ready_at, rotation, number, covers, settled)


def missed_values(missed: Missed) -> dict[str, object]:
    """Payload of every ScheduleMissed, whatever made the occurrences missed."""
    return {
        "first": to_rfc3339(missed.first),
        "last": to_rfc3339(missed.last),
        "count": missed.count,
        "reason": missed.reason.value,
        "detail": missed.detail,
    }


def _covers(covers: Covers) -> Mapping[str, Any]:
    return {"first": to_rfc3339(covers.first), "last": to_rfc3339(covers.last), "count": covers.count}
