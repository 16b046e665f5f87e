"""Predicted runs of a schedule, and the certainty of predicted decisions.

A decision is certain if it is the same however many of the runs before it have ended, and however many of the
uncertain occurrences before it were dispatched. The end of an open run is an estimate: the median of the last
durations, the expiry of the approval that it awaits, or its timeout if the schedule has no history.
"""

from __future__ import annotations

import heapq
from datetime import timedelta
from enum import IntEnum
from typing import Final, NamedTuple

from horarium.core.decision.decide import ActiveRun, BufferedRun, plan_release
from horarium.core.decision.facts import Facts, Fire, Hold, OpenRunFacts, RunTally
from horarium.core.decision.guards import DecisionGuard, guards_for
from horarium.core.decision.run_policies import CreationPolicies
from horarium.core.decision.statuses import Certainty
from horarium.core.document.planning import Planning, remembered
from horarium.core.document.states import Origin, Reason
from horarium.core.policy.approval import DEFAULT_EXPIRES_AFTER_SECONDS, NEVER, NEVER_SECONDS, WhileWaiting
from horarium.core.policy.limits import ROOM_WITHOUT_END, Budget, QuotaRoom
from horarium.core.policy.queue import OverlapPolicy, Refuse, decide_overlap
from horarium.core.recurrence.lint import shortest_gap
from horarium.instant import DAY, MILLISECOND, SECOND, Instant

SOON: Final = SECOND
"""When a run ends that has taken longer than expected."""
_PATIENCE: Final = DAY
"""The assumed wait for an approval that never expires."""
# A release starts at most as many runs as there are places; more held runs need not be sorted for it.
_MOST_RELEASED: Final = 100


class CertaintyLevel(IntEnum):
    """`Certainty` in an order that can be compared."""

    CERTAIN = 0
    LIKELY = 1
    UNKNOWN = 2

    @property
    def certainty(self) -> Certainty:
        return _WORDS[self]


_WORDS: Final = (Certainty.CERTAIN, Certainty.LIKELY, Certainty.UNKNOWN)


_UNNAMED: Final = ("predicted", "unlisted")
_MOST_UNLISTED: Final = 2_000
"""The most runs that are assumed from a count alone: a count may be damaged, or large."""


class _Active(NamedTuple):
    """A run that is expected to end; in the order of that."""

    end: Instant
    run_id: str
    is_waiting: bool


class PredictedRuns:
    """Move the counts of a tally as predicted runs start and end.

    `level` is how well the ends are known of all runs that are open or were predicted, `run_level` how well that of one
    more is, and `possible` how many runs may have been created since now.
    """

    def __init__(self, planning: Planning, tally: RunTally, facts: Facts, now: Instant) -> None:
        self.level = CertaintyLevel.CERTAIN
        self.possible = 0
        self.opened = tally.active + tally.held
        self.waits, patience = _approval_of(planning, facts)
        self._patience = _PATIENCE if patience is None else patience
        self.duration = _expected_duration(planning, facts)
        is_known = facts.times.median is not None if not self.waits else patience is not None
        self.run_level = CertaintyLevel.LIKELY if is_known else CertaintyLevel.UNKNOWN
        self._planning, self._tally, self._now = planning, tally, now
        self._active: list[_Active] = []
        self._held: list[BufferedRun] = []
        self._wakes: list[Instant] = []
        self._named = 0
        for run in _open_runs(tally, facts, now):
            self._begin_with(run, known=facts.times.median is not None)
        heapq.heapify(self._active)
        key = planning.concurrency_key
        if key is not None and tally.shared.active_by_key.get(key, 0) > tally.active:
            self._wakes.append(now + self.duration)  # runs of other schedules are not known one by one
        heapq.heapify(self._wakes)

    @property
    def is_idle(self) -> bool:
        return not self._active and not self._held

    @property
    def active_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in sorted(self._active) if not run.run_id.startswith(_UNNAMED))

    def next_change(self) -> Instant | None:
        """When the next run ends, or is released, as far as it is predicted."""
        ends = self._active[0].end if self._active else None
        wakes = self._wakes[0] if self._wakes else None
        return min((each for each in (ends, wakes) if each is not None), default=None)

    def advance(self, until: Instant) -> None:
        """End and release what is expected to end and to be released up to an instant."""
        while (at := self.next_change()) is not None and at <= until:
            while self._wakes and self._wakes[0] <= at:
                heapq.heappop(self._wakes)
                self._forget_other_schedules()
            while self._active and self._active[0].end <= at:
                self._end(heapq.heappop(self._active))
            self._release(at)

    def wake_at(self, at: Instant) -> None:
        """Look for runs to release at an instant at which nothing ends: a pause is over."""
        heapq.heappush(self._wakes, at)

    def add(self, birth: Fire | Hold, at: Instant, level: CertaintyLevel) -> None:
        """Add the run of a predicted dispatch; the tally has counted it."""
        self.maybe_more(1, level)
        if isinstance(birth, Hold):
            if birth.cancel_active:
                self._ask_to_stop(at)
            self._held.append(BufferedRun(self._name(), birth.nominal, birth.release_at))
            self.level = max(self.level, self.run_level)
            if birth.release_at is not None:
                self.wake_at(birth.release_at)
            return
        if birth.terminate_active:
            self._active.clear()
        elif birth.superseded:
            self._drop_waiting()
        if self.waits and not self._planning.needs_approval:
            self._tally.waiting += 1
        self._start(self._name(), at)

    def add_row(self, count: int, last_due: Instant, level: CertaintyLevel) -> None:
        """Add the runs of many dispatches, each of which ends before the next begins."""
        tally = self._tally
        tally.runs_born += count
        tally.runs_today += count
        tally.rotation_index += count
        tally.active += 1
        self.maybe_more(count, level)
        self._start(self._name(), last_due)

    def maybe_more(self, count: int, level: CertaintyLevel) -> None:
        """Note that so many runs may have been created, whatever is predicted."""
        self.possible += count
        self.level = max(self.level, level)

    # ── small steps ──────────────────────────────────────────────────────────────────────────────

    def _begin_with(self, run: OpenRunFacts, *, known: bool) -> None:
        grace = self._planning.overlap.cancel_grace_seconds * SECOND
        level = CertaintyLevel.LIKELY if known else CertaintyLevel.UNKNOWN
        if run.is_held:
            self._held.append(BufferedRun(run.run_id, run.nominal, run.release_at, run.backfilled))
            self._wakes += [] if run.release_at is None else [run.release_at]
        else:
            end, expires = run.since + self.duration, run.expires_at
            if run.is_waiting or expires is not None:  # it, or one of its steps, awaits approval
                is_bounded = expires is not None and expires < NEVER
                level = CertaintyLevel.LIKELY if is_bounded else CertaintyLevel.UNKNOWN
                decided = expires if expires is not None and is_bounded else run.since + _PATIENCE
                end = decided if run.is_waiting else max(end, decided)
            if run.stop_at is not None and not run.is_waiting:
                end = min(end, run.stop_at + grace)
            self._active.append(_Active(max(end, self._now + SOON), run.run_id, run.is_waiting))
        self.level = max(self.level, level)

    def _start(self, name: str, at: Instant) -> None:
        end = at + (self._patience if self.waits else self.duration)
        heapq.heappush(self._active, _Active(end, name, self.waits))
        self.level = max(self.level, self.run_level)

    def _end(self, run: _Active) -> None:
        tally, key = self._tally, self._planning.concurrency_key
        # Those beyond the most that are predicted end with the last one.
        tally.active = max(0, tally.active - 1) if self._active else 0
        if run.is_waiting:
            tally.waiting = max(0, tally.waiting - 1) if self._active else 0
        if key is not None:
            tally.shared.active_by_key[key] = max(0, tally.shared.active_by_key.get(key, 0) - 1)

    def _forget_other_schedules(self) -> None:
        key = self._planning.concurrency_key
        if key is not None:
            self._tally.shared.active_by_key[key] = self._tally.active

    def _release(self, at: Instant) -> None:
        if not self._held:
            return
        tally, capacity = self._tally, self._planning.overlap.capacity
        aside = self._planning.while_waiting is not WhileWaiting.COUNT
        active = [ActiveRun(run.run_id) for run in self._active if not (aside and run.is_waiting)]
        spread = any(run.release_at is not None or run.backfilled for run in self._held)
        front = self._held if spread else self._held[: (capacity or 0) + _MOST_RELEASED]
        found = plan_release(self._planning, tally.status, front, active, tally.shared, at)
        if not found.release:
            return
        released = frozenset(found.release)
        backfilled = sum(run.backfilled for run in self._held if run.run_id in released)
        self._held = [run for run in self._held if run.run_id not in released]
        if self._planning.while_waiting is WhileWaiting.SUPERSEDE:
            tally.active = max(0, tally.active - sum(run.is_waiting for run in self._active))
            tally.waiting = 0
            self._drop_waiting()
        tally.held = max(0, tally.held - len(released)) if self._held else 0
        tally.backfilled = max(0, tally.backfilled - backfilled)
        tally.active += len(released)
        tally.waiting += len(released) if self.waits else 0
        for name in found.release:
            self._start(name, at)

    def _ask_to_stop(self, at: Instant) -> None:
        latest = at + self._planning.overlap.cancel_grace_seconds * SECOND
        self._active = [run._replace(end=min(run.end, latest)) for run in self._active]
        heapq.heapify(self._active)

    def _drop_waiting(self) -> None:
        """Forget those that a newer request for approval replaces; the tally has counted them out already."""
        self._active = [run for run in self._active if not run.is_waiting]
        heapq.heapify(self._active)

    def _name(self) -> str:
        self._named += 1
        return f"predicted-{self._named:09}"


def _open_runs(tally: RunTally, facts: Facts, now: Instant) -> list[OpenRunFacts]:
    """All that the counts speak of: those that were not listed are taken to have begun now."""
    if not (facts.times.open or tally.active or tally.held):
        return []
    listed = list(facts.times.open)
    active = sum(not run.is_held for run in listed)
    held = len(listed) - active
    waiting = sum(run.is_waiting for run in listed)
    unlisted = [
        OpenRunFacts(f"unlisted-{number:09}", now, is_waiting=waiting + number < tally.waiting)
        for number in range(min(tally.active - active, _MOST_UNLISTED))
    ]
    unlisted += [
        OpenRunFacts(f"unlisted-held-{number:09}", now, is_held=True, backfilled=number < tally.backfilled)
        for number in range(min(tally.held - held, _MOST_UNLISTED))
    ]
    return [*listed, *unlisted]


def _expected_duration(planning: Planning, facts: Facts) -> Instant:
    if facts.times.median is not None:
        return facts.times.median
    most = planning.timeout_seconds
    return SECOND * (most if planning.runtime_seconds is None else min(most, planning.runtime_seconds))


def _approval_of(planning: Planning, facts: Facts) -> tuple[bool, Instant | None]:
    """Return whether a run awaits approval first, and until when its request expires; None = it never does."""
    waits, said = planning.needs_approval, [] if planning.own_policies is None else [planning.own_policies]
    if isinstance(facts.policies, CreationPolicies):
        waits = waits or facts.policies.waits()
        said += [bundle.effective for bundle in facts.policies.bundles.values() if bundle.effective is not None]
    seconds = (said[-1].approval.expires_after_seconds if said else None) or DEFAULT_EXPIRES_AFTER_SECONDS
    return waits, None if seconds == NEVER_SECONDS else seconds * SECOND


_EARLIER: Final = "The decision depends on which earlier occurrences run."
_CONDITION: Final = "The decision depends on the condition at that time; the forecast uses its current value."
_BUDGET: Final = "The decision depends on the credits spent by then."
_DAILY: Final = "The decision depends on the number of runs on that day."
_KEY: Final = "The decision depends on other runs with the same concurrency key."
_SMALL_QUOTA: Final = 1_000
_COUNTLESS: Final = 2**62
_BEYOND: Final = "The occurrence is too far ahead to predict the runs before it."


# They never refuse the next occurrence of a schedule that is active: its spec keeps to the window.
_SETTLED: Final = (Reason.STATUS_NOT_TRIGGERABLE, Reason.OUTSIDE_WINDOW)


@remembered
def forecast_guards(planning: Planning) -> tuple[DecisionGuard, ...]:
    """The guards that a forecast asks: all but quotas, which are about this minute."""
    return tuple(guard for guard in guards_for(planning, Origin.SCHEDULED) if guard.reason is not Reason.QUOTA_EXCEEDED)


@remembered
def is_guarded(planning: Planning) -> bool:
    """Report whether a guard can refuse the next occurrence while the schedule is active."""
    return any(guard.reason not in _SETTLED for guard in forecast_guards(planning))


@remembered
def is_independent(planning: Planning) -> bool:
    """Report whether no earlier run can change what overlap decides."""
    overlap = planning.overlap
    if planning.concurrency_key is not None:
        return False
    unlimited = overlap.policy is OverlapPolicy.ALLOW_ALL and overlap.max_concurrency is None
    return unlimited or overlap.policy is OverlapPolicy.TERMINATE_OTHER


def keeps_apart(planning: Planning, duration: Instant) -> bool:
    """Report whether a run of that duration always ends before the next occurrence is due."""
    gap = _gap(planning)
    return gap is not None and duration + planning.spec.jitter_ms * MILLISECOND <= gap


@remembered
def _gap(planning: Planning) -> Instant | None:
    """The shortest gap between two occurrences; None where it is not known for all of them."""
    if len(planning.spec.parts) > 1:
        return None
    found = shortest_gap(planning.spec, after=0, enough=0)
    return None if found is None else found * SECOND


class Uncertainty:
    """Bounds on the runs that are created before an occurrence, and what they leave uncertain."""

    def __init__(self, tally: RunTally, runs: PredictedRuns, facts: Facts, quotas: QuotaRoom) -> None:
        self._planning, self._tally, self._runs = tally.planning, tally, runs
        planning = tally.planning
        self._quota = _of_quota(quotas)
        self._least = self._most = tally.runs_born
        self._least_today = self._most_today = facts.runs_today
        self._earlier = CertaintyLevel.CERTAIN
        self._waiting = any(run.is_waiting for run in facts.times.open)
        self._has_history = facts.times.median is not None
        self.is_unlimited = (
            planning.max_runs is None
            and planning.concurrency_key is None
            and planning.budget == Budget()
            and all(budget == Budget() for _, budget in tally.budgets())
        )

    @property
    def is_exhausted(self) -> bool:
        return self._planning.max_runs is not None and self._tally.runs_born >= self._planning.max_runs

    def add(self, least: int, most: int, level: CertaintyLevel) -> None:
        """Count runs that are created at least, and at most."""
        self._least += least
        self._most += most
        self._least_today += least
        self._most_today += most
        self._earlier = max(self._earlier, level)

    def new_day(self) -> None:
        self._least_today = self._most_today = 0

    def of(self, guards: tuple[DecisionGuard, ...], refused_by: Reason | None) -> tuple[CertaintyLevel, str | None]:
        """Return the certainty of a decision and its cause; `refused_by` None = it is dispatched."""
        level, doubt = _SURE
        for guard in guards:
            found, why = self._of_guard(guard.reason)
            if found > level:
                level, doubt = found, why
            if guard.reason is refused_by:
                return level, doubt
        for found, why in (self._quota, self._of_overlap()):
            if found > level:
                level, doubt = found, why
        return level, doubt

    def beyond(self, guards: tuple[DecisionGuard, ...], refused_by: Reason | None) -> tuple[CertaintyLevel, str | None]:
        """The same of what is not simulated: how many runs there are before it has no upper bound."""
        most = self._planning.max_runs
        if most is not None and self._least >= most:
            return _SURE
        self._least_today, self._most_today = 0, _COUNTLESS
        level, doubt = _SURE
        for guard in guards:
            is_counted = guard.reason is Reason.REMAINING_ACTIONS_EXHAUSTED
            found, why = (CertaintyLevel.UNKNOWN, _BEYOND) if is_counted else self._of_guard(guard.reason)
            if found > level:
                level, doubt = found, why
            if guard.reason is refused_by:
                return level, doubt
        overlap = _SURE if is_independent(self._planning) else (CertaintyLevel.UNKNOWN, _BEYOND)
        return max((level, doubt), self._quota, overlap, key=lambda each: each[0])

    def _of_guard(self, reason: Reason) -> tuple[CertaintyLevel, str | None]:
        planning = self._planning
        match reason:
            case Reason.REMAINING_ACTIONS_EXHAUSTED:
                most = planning.max_runs or 0
                return _within(most, self._least, self._most, self._earlier, _EARLIER)
            case Reason.CONDITION_FAILED:
                return CertaintyLevel.UNKNOWN, _CONDITION
            case Reason.BUDGET_EXCEEDED:
                limits = [planning.budget, *(budget for _, budget in self._tally.budgets())]
                said = [each.spending_limit_credits for each in limits if each.spending_limit_credits is not None]
                return (CertaintyLevel.UNKNOWN, _BUDGET) if said and 0 not in said else _SURE
            case Reason.DAILY_LIMIT_REACHED:
                own = planning.budget.max_daily_runs
                others = [budget.max_daily_runs for _, budget in self._tally.budgets()]
                if any(each is not None and each > 0 for each in others):
                    return CertaintyLevel.UNKNOWN, _DAILY
                if own is None:
                    return _SURE
                return _within(own, self._least_today, self._most_today, CertaintyLevel.UNKNOWN, _DAILY)
            case _:
                return _SURE

    def _of_overlap(self) -> tuple[CertaintyLevel, str | None]:
        planning, runs = self._planning, self._runs
        if planning.concurrency_key is not None:
            return CertaintyLevel.UNKNOWN, _KEY
        if not runs.level or is_independent(planning):
            return _SURE
        overlap, most = planning.overlap, runs.opened + runs.possible
        outcomes = {
            type(decide_overlap(overlap, active=active, held=held, backfilled=min(held, self._tally.backfilled)))
            for active, held in ((0, 0), (most, 0), (0, most))
        }
        if outcomes == {Refuse} or len(outcomes) == 1:
            return _SURE
        return runs.level, self._about_runs()

    def _about_runs(self) -> str:
        if self._waiting and self._runs.level is CertaintyLevel.LIKELY:
            return "The decision depends on when the run awaiting approval is approved, rejected or expires."
        if self._runs.waits:
            return "The decision depends on when earlier runs are approved."
        lasts = timedelta(seconds=max(1, round(self._runs.duration / SECOND)))
        if self._has_history:
            return (
                "The decision depends on when earlier runs end. "
                f"They take about {lasts} (h:mm:ss, median of recent runs)."
            )
        return (
            f"The decision depends on when earlier runs end. No run has finished yet; the timeout is {lasts} (h:mm:ss)."
        )


_SURE: Final[tuple[CertaintyLevel, str | None]] = (CertaintyLevel.CERTAIN, None)


def _of_quota(room: QuotaRoom) -> tuple[CertaintyLevel, str | None]:
    """A quota makes a difference where much of it is used, or where one burst of runs can use it up."""
    is_tight = room is not ROOM_WITHOUT_END and (2 * room.births <= room.limit or room.limit < _SMALL_QUOTA)
    return (CertaintyLevel.UNKNOWN, f"The decision depends on the namespace quota {room.quota}.") if is_tight else _SURE


def _within(limit: int, least: int, most: int, level: CertaintyLevel, doubt: str) -> tuple[CertaintyLevel, str | None]:
    """A count between two bounds that may not reach a limit."""
    return _SURE if most < limit or least >= limit else (max(level, CertaintyLevel.LIKELY), doubt)
