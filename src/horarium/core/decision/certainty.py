"""Certainty of a predicted decision: the facts that it depends on, and whether they can change.

A decision is certain where it is the same however many of the runs before it have ended, and however many of the
uncertain occurrences before it were dispatched.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from horarium.core.decision.facts import Facts, RunTally
from horarium.core.decision.guards import DecisionGuard, guards_for
from horarium.core.decision.predicted_runs import CertaintyLevel, PredictedRuns
from horarium.core.document.planning import Planning, remembered
from horarium.core.document.states import Origin, Reason
from horarium.core.policy.limits import ROOM_WITHOUT_END, Budget, QuotaRoom
from horarium.core.policy.queue import OverlapPolicy, Refuse, decide_overlap
from horarium.core.recurrence.lint import shortest_gap
from horarium.instant import MILLISECOND, SECOND, Instant

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
