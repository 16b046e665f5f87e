"""Open runs of a schedule as they are expected to be at a coming instant.

A run does not say beforehand how long it will take, so its end is an estimate: the median of the last durations, the
expiry of the approval that it awaits, or its timeout where the schedule has no history.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import Final, NamedTuple

from horarium.core.decision.changes import ActiveRun, BufferedRun, plan_release
from horarium.core.decision.facts import Facts, Fire, Hold, OpenRunFacts, RunTally
from horarium.core.decision.run_policies import CreationPolicies
from horarium.core.decision.statuses import Certainty
from horarium.core.document.planning import Planning
from horarium.core.policy.approval import DEFAULT_EXPIRES_AFTER_SECONDS, NEVER, NEVER_SECONDS, WhileWaiting
from horarium.instant import DAY, SECOND, Instant

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
