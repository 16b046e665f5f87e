"""Evaluator of forecasts: the one that preview, agenda, explain, next runs, years and drafts use.

It decides the coming occurrences in order, with the functions of the engine, on counts of predicted runs. Its result
never depends on the caller. After `MAX_STEPS` steps, or a year, guards alone decide, without counts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Final

from horarium.core.decision import decide as decision_decide
from horarium.core.decision.decide import decide
from horarium.core.decision.facts import Birth, Fact, Facts, Fire, Hold, Missed, RunTally, SharedFacts, Skip
from horarium.core.decision.forecast import (
    NOT_TRIGGERABLE,
    OF_OVERLAP,
    ForecastRow,
    NextRun,
    Stretch,
    can_move,
    moves_of,
)
from horarium.core.decision.guards import CalendarSpans, GuardQuestion, first_refusal
from horarium.core.decision.predicted_runs import (
    CertaintyLevel,
    PredictedRuns,
    Uncertainty,
    forecast_guards,
    is_independent,
    keeps_apart,
)
from horarium.core.decision.run_policies import CreationPolicies, under_policies
from horarium.core.decision.statuses import Certainty, Forecast, NoRun
from horarium.core.decision.tick import Due, PlanTime, plan_tick
from horarium.core.document.calendar import CalendarDefinition
from horarium.core.document.planning import Planning, remembered
from horarium.core.document.states import Position, Reason, Status
from horarium.core.policy.limits import ROOM_WITHOUT_END
from horarium.core.recurrence.zone import LATEST
from horarium.instant import DAY, MILLISECOND, SECOND, Instant

MAX_STEPS: Final = 1_000
"""Decisions that are simulated; one may stand for all that are skipped until a run ends or a day is over."""
HORIZON: Final = 366 * DAY
FACTS: Final = frozenset(Fact) - {Fact.QUOTA}
_END: Final = LATEST * SECOND
_OF_A_DAY: Final = (Reason.BUDGET_EXCEEDED, Reason.DAILY_LIMIT_REACHED)


class Forecaster:
    """The forecast of one schedule at one moment. Raises PoliciesUnreadable."""

    def __init__(
        self,
        planning: Planning,
        uid: bytes,
        position: Position,
        facts: Facts,
        *,
        now: Instant,
        shared: SharedFacts | None = None,
        paused_until: Instant | None = None,
        spans: CalendarSpans | None = None,
    ) -> None:
        if isinstance(facts.policies, CreationPolicies):
            planning = under_policies(planning, facts.policies)
        self.planning, self.spec, self._uid = planning, planning.spec, uid
        self._position, self._facts, self._shared = position, facts, shared
        self._now, self._paused_until = now, paused_until
        self._spans = CalendarSpans() if spans is None else spans
        self._guards = forecast_guards(planning)
        self._counts_days = any(guard.reason in _OF_A_DAY for guard in self._guards)
        self._last = now + HORIZON
        self._reset()
        self._is_fresh = True

    def _reset(self) -> None:
        shared = SharedFacts() if self._shared is None else self._shared.copy()
        quotas, shared.room = shared.room, ROOM_WITHOUT_END
        self.tally = RunTally(self.planning, self._position, self._facts, shared)
        self.runs = PredictedRuns(self.planning, self.tally, self._facts, self._now)
        self._doubts = Uncertainty(self.tally, self.runs, self._facts, quotas)
        self._day = self._now // DAY
        self._decided_until = self._position.decided_until
        self._next = self.spec.next_after(self._decided_until)

    @property
    def calendars(self) -> Mapping[str, CalendarDefinition]:
        return self._facts.calendars

    # ── what is asked ────────────────────────────────────────────────────────────────────────────

    def rows(self, after: Instant) -> Iterator[ForecastRow]:
        """Yield the undecided occurrences after an instant, one by one."""
        spec, uid, moving = self.spec, self._uid, _moves(self.planning)
        for stretch in self.stretches(after):
            first = stretch.first
            if stretch.last <= after:
                continue
            nominals: Iterable[Instant] = (first,)
            if first != stretch.last:
                nominals = _up_to(stretch.last, spec.occurrences(max(after, first - 1)))
            index = stretch.rotation_index
            if index is not None and after >= first:
                index += spec.count(first - 1, after)
            for nominal in nominals:
                due = spec.due(uid, nominal)
                yield ForecastRow(
                    nominal,
                    due,
                    stretch.decision,
                    stretch.reason,
                    stretch.detail,
                    None if index is None else index % self.planning.rotation,
                    stretch.held,
                    stretch.certainty,
                    stretch.doubt,
                    moves_of(spec, nominal, due) if moving else (),
                )
                index = None if index is None else index + 1

    def at(self, nominal: Instant) -> ForecastRow | None:
        """The row of one occurrence; None where the spec has none, or it is decided already."""
        found = next(self.rows(nominal - 1), None)
        return found if found is not None and found.tick_at == nominal else None

    def tally_at(self, nominal: Instant) -> RunTally:
        """The counts that the decision about an occurrence sees, as they are predicted."""
        found = next((each for each in self.stretches(nominal - 1) if each.last >= nominal), None)
        if found is None:
            return self.tally
        self._reset()
        stretches = self._stretches(found.first - 1, until=found.first)
        while next(stretches, None) is not None:
            pass
        return self.tally

    def next_run(self) -> NextRun:
        """The first coming occurrence that is dispatched; what is due and not yet decided counts as coming."""
        status = self._position.status
        if status is not Status.ACTIVE and (status is not Status.PAUSED or self._paused_until is None):
            return NextRun(None, NoRun.FINISHED) if status is Status.FINISHED else NOT_TRIGGERABLE
        why = NoRun.FINISHED
        for stretch in self.stretches(self._position.decided_until):
            if stretch.first > self._last and why is not NoRun.FINISHED:
                break  # the first one is asked about however far away it is
            if stretch.decision is Forecast.DISPATCH:
                return NextRun(self.spec.due(self._uid, stretch.first))
            assert stretch.reason is not None  # a skip has one
            why = NoRun(stretch.reason.value)
        return NextRun(None, why)

    def stretches(self, after: Instant) -> Iterator[Stretch]:
        """Yield the undecided occurrences in order, those decided alike as one; what ends before `after` may be left
        out.
        """
        if not self._is_fresh:
            self._reset()
        self._is_fresh = False
        return self._stretches(after)

    # ── the walk ─────────────────────────────────────────────────────────────────────────────────

    def _stretches(self, after: Instant, until: Instant | None = None) -> Iterator[Stretch]:
        """With `until` the walk ends before that occurrence is decided, with the counts that it would see."""
        position, paused_until = self._position, self._paused_until
        if position.status is Status.DELETED:
            return
        if position.status is Status.PAUSED and paused_until is not None:
            yield from self._at_rest(paused_until - 1)
            if until is not None and until < paused_until:
                return
            position = decision_decide.end_pause(self.planning, self._uid, position, until=paused_until)
            self._go_on(position)
            self.runs.wake_at(paused_until)
        if position.status not in (Status.ACTIVE, Status.FINISHED):
            yield from self._at_rest(_END)
            return
        if (yield from self._overdue(position, until)):
            return
        steps = 0
        while self._next is not None and (until is None or self._next < until):
            if steps == MAX_STEPS or self._next > self._last:
                if until is not None:
                    self.tally.new_day()
                    return
                yield from self._without_counts(self._next, after)
                return
            steps += 1
            yield self._decide(self._next)
        if self._next is not None:
            self._move_to(max(self.spec.due(self._uid, self._next), self._now))

    def _at_rest(self, last: Instant) -> Iterator[Stretch]:
        """Nothing is decided while the clock of the schedule stands still."""
        last_nominal = self.spec.previous_before(last + 1)
        if self._next is None or self._next > last or last_nominal is None or last_nominal < self._next:
            return
        refusal = first_refusal(self._guards, self._question(self._next))
        reason, detail = refusal or (Reason.STATUS_NOT_TRIGGERABLE, None)
        yield Stretch(self._next, last_nominal, Forecast.SKIP, reason, detail)

    def _go_on(self, position: Position) -> None:
        self.tally.status = position.status
        self._decided_until = position.decided_until
        self._next = self.spec.next_after(position.decided_until)

    def _overdue(self, position: Position, until: Instant | None) -> Generator[Stretch, None, bool]:
        """Apply the catch-up policy to missed occurrences, as the next tick will; True = `until` is one of them."""
        first, grace = self._next, self.planning.catchup.misfire_grace_seconds * SECOND
        if first is None or self.spec.due(self._uid, first) >= self._now - grace:
            return False
        due = Due(self._uid, self.planning, position._replace(decided_until=self._decided_until))
        shared = self.tally.shared.copy()
        plan = plan_tick(due, self._facts, shared, PlanTime(self._now, limit=MAX_STEPS))
        doubt = "The occurrence is overdue. The decision depends on whether the scheduler was down."
        for decision in plan.decisions:
            if until is not None and until <= _last_of(decision):
                return True
            self._decided_until = max(self._decided_until, _last_of(decision))
            count = _count_of(decision)  # a scheduler that was late but alive decides them one by one
            self._doubts.add(0, count, CertaintyLevel.UNKNOWN)
            if isinstance(decision, Skip | Missed):
                self.runs.maybe_more(count, CertaintyLevel.UNKNOWN)
                detail = decision.detail
                first = decision.first if isinstance(decision, Missed) else decision.nominal
                yield Stretch(
                    first, _last_of(decision), Forecast.SKIP, decision.reason, detail, False, Certainty.UNKNOWN, doubt
                )
                continue
            index = self._bear(decision)
            self.runs.maybe_more(count - 1, CertaintyLevel.UNKNOWN)
            self.runs.add(decision, self._now, CertaintyLevel.UNKNOWN)
            yield self._creation(decision, CertaintyLevel.UNKNOWN, doubt, index)
            covers = decision.covers
            if covers is not None and covers.last > decision.nominal:
                begin = self.spec.next_after(decision.nominal)
                assert begin is not None  # the last one that it covers is later
                yield Stretch(
                    begin, covers.last, Forecast.SKIP, Reason.MISSED, None, False, Certainty.UNKNOWN,
                    "The run of an earlier occurrence covers it.",
                )  # fmt: skip
        self._go_on(plan.position)
        if plan.position.status is Status.DELETED:
            self.tally.status = Status.ACTIVE  # its runs are used up, which is the reason of all that follow
        return False

    def _bear(self, birth: Birth) -> int | None:
        """Count a run that was decided on other counts."""
        if isinstance(birth, Hold):
            return self.tally.bear(held=True)
        return self.tally.bear(held=False, terminated=birth.terminate_active, superseded=birth.superseded)

    def _decide(self, nominal: Instant) -> Stretch:
        """Decide the next occurrence, and as many after it as are decided alike."""
        due = self.spec.due(self._uid, nominal)
        at = self._move_to(max(due, self._now))
        question = self._question(nominal)
        alike = self._dispatched_alike(question, at)
        if alike is not None:
            return alike
        decision = decide(self._guards, question, due=due, overlap=self.planning.overlap)
        level, doubt = self._doubts.of(self._guards, decision.reason if isinstance(decision, Skip) else None)
        if isinstance(decision, Skip):
            last = self._skipped_until(decision, question, at)
            count = 1 if last == nominal else self.spec.count(nominal - 1, last)
            if level:
                self.runs.maybe_more(count, level)
                self._doubts.add(0, count, level)
            self._next = self.spec.next_after(last)
            return Stretch(
                nominal, last, Forecast.SKIP, decision.reason, decision.detail, False, level.certainty, doubt
            )
        self.runs.add(decision, at, level)
        self._doubts.add(0 if level else 1, 1, level)
        self._next = self.spec.next_after(nominal)
        return self._creation(decision, level, doubt, decision.rotation_index)

    def _creation(self, birth: Birth, level: CertaintyLevel, doubt: str | None, index: int | None) -> Stretch:
        is_held = not isinstance(birth, Fire)
        return Stretch(
            birth.nominal, birth.nominal, Forecast.DISPATCH, None, None, is_held, level.certainty, doubt, index
        )

    def _skipped_until(self, refusal: Skip, question: GuardQuestion, at: Instant) -> Instant:
        """The last occurrence up to which a refusal is known to repeat itself."""
        nominal, last = refusal.nominal, self._last
        if self._counts_days:
            last = min(last, (at // DAY + 1) * DAY - 1 - self._jitter)
        stops_at: Reason | None = refusal.reason
        if refusal.reason in OF_OVERLAP:  # until a run ends
            stops_at, change = None, self.runs.next_change()
            last = last if change is None else min(last, change - 1 - self._jitter)
        if last <= nominal:
            return nominal
        return self._last_within(self._unchanged(question, last, stops_at))

    def _dispatched_alike(self, question: GuardQuestion, at: Instant) -> Stretch | None:
        """A stretch of dispatches, where no run stands in the way of a later one; None = decide one by one."""
        planning, nominal = self.planning, question.nominal
        if not self._doubts.is_unlimited:
            return None
        apart = False
        if not is_independent(planning):
            runs = self.runs
            if not runs.is_idle or runs.waits or not CertaintyLevel.CERTAIN < runs.run_level <= runs.level:
                return None
            apart = keeps_apart(planning, self.runs.duration)
            if not apart:
                return None
        if first_refusal(self._guards, question) is not None:
            return None
        level, doubt = self._doubts.of(self._guards, None)
        if apart and level is CertaintyLevel.CERTAIN:
            return None  # those that follow are less certain
        last = self._last_within(self._unchanged(question, max(nominal, self._last), None))
        count = self.spec.count(nominal - 1, last)
        index = self.tally.rotation_index if planning.rotation else None
        if apart:
            self.runs.add_row(count, max(self.spec.due(self._uid, last), at), level)
        else:
            self.tally.rotation_index += count
            self.runs.maybe_more(count, level)
        self._next = self.spec.next_after(last)
        return Stretch(nominal, last, Forecast.DISPATCH, None, None, False, level.certainty, doubt, index)

    def _without_counts(self, nominal: Instant, after: Instant) -> Iterator[Stretch]:
        """Beyond the simulation guards alone decide, on a day on which nothing has run yet."""
        self.tally.new_day()
        guards = self._guards
        if not self._doubts.is_exhausted:
            guards = tuple(guard for guard in guards if guard.reason is not Reason.REMAINING_ACTIONS_EXHAUSTED)
        index = self.tally.rotation_index if self.planning.rotation else None
        place = self.spec.next_after(after) if after >= nominal else nominal
        while place is not None:
            question = self._question(place)
            refusal = first_refusal(guards, question)
            last = self._last_within(
                self._unchanged(question, place + HORIZON, None if refusal is None else refusal[0])
            )
            level, doubt = self._doubts.beyond(self._guards, None if refusal is None else refusal[0])
            if refusal is None:
                begun = None if index is None else index + self.spec.count(nominal - 1, place - 1)
                yield Stretch(place, last, Forecast.DISPATCH, None, None, False, level.certainty, doubt, begun)
            else:
                yield Stretch(place, last, Forecast.SKIP, *refusal, False, level.certainty, doubt)
            place = self.spec.next_after(last)

    # ── small steps ──────────────────────────────────────────────────────────────────────────────

    def _question(self, nominal: Instant) -> GuardQuestion:
        return GuardQuestion(self.planning, self._facts, self.tally, nominal)

    def _move_to(self, at: Instant) -> Instant:
        """Let the runs end and the days begin that lie before an instant."""
        if at // DAY != self._day:
            self._day = at // DAY
            self.tally.new_day()
            self._doubts.new_day()
        self.runs.advance(at)
        return at

    @property
    def _jitter(self) -> Instant:
        return self.spec.jitter_ms * MILLISECOND

    def _unchanged(self, question: GuardQuestion, last: Instant, reason: Reason | None) -> Instant:
        """Up to which instant the guards answer alike, those after `reason` left out."""
        for guard in self._guards:
            if guard.reason is Reason.CALENDAR:
                last = self._spans.unchanged(question, guard, last, self._last)
            else:
                last = guard.unchanged(question, last)
            if guard.reason is reason:
                break
        return last

    def _last_within(self, until: Instant) -> Instant:
        last = self.spec.previous_before(until + 1)
        assert last is not None  # the occurrence that was asked about is one
        return last


def _up_to(last: Instant, nominals: Iterator[Instant]) -> Iterator[Instant]:
    return takewhile(lambda each: each <= last, nominals)


def _last_of(decision: Birth | Skip | Missed) -> Instant:
    if isinstance(decision, Missed):
        return decision.last
    if isinstance(decision, Skip) or decision.covers is None:
        return decision.nominal
    return decision.covers.last


def _count_of(decision: Birth | Skip | Missed) -> int:
    if isinstance(decision, Missed):
        return decision.count
    return 1 if isinstance(decision, Skip) or decision.covers is None else decision.covers.count


@remembered
def _moves(planning: Planning) -> bool:
    return can_move(planning.spec)
