"""When a schedule runs next: at the first coming occurrence that nothing known now stands against.

The look ahead is bounded: a year, and so many questions; a refusal that lasts is asked about once. A condition
is not foreseen, because its context is that of another moment, and neither is overlap.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from horarium.decision.facts import Fact, Facts, Shared, Tally
from horarium.decision.forecast import NoRun
from horarium.decision.guards import Guard, Question, first_refusal, guards_for, refusal_until
from horarium.decision.plan import Detail
from horarium.instant import DAY, Instant
from horarium.schedule.planning import Planning, remembered
from horarium.schedule.position import Position, Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin

HORIZON: Final = 366 * DAY
MAX_QUESTIONS: Final = 400
FACTS: Final = frozenset({Fact.CALENDARS, Fact.SPENDING, Fact.DAILY_RUNS, Fact.POLICIES})
"""What has to be known for it."""

_FORESEEN = frozenset(each.value for each in NoRun)
_BY_THE_DAY = (Reason.BUDGET_EXCEEDED, Reason.DAILY_LIMIT_REACHED)
# They never refuse the next occurrence of a schedule that is active: its spec keeps to the window.
_SETTLED = (Reason.STATUS_NOT_TRIGGERABLE, Reason.OUTSIDE_WINDOW)


@dataclass(frozen=True, slots=True)
class NextRun:
    """`due` is when it acts, or None together with the reason."""

    due: Instant | None = None
    reason: NoRun | None = None


NOT_TRIGGERABLE: Final = NextRun(None, NoRun.STATUS_NOT_TRIGGERABLE)


class RefusedSpans:
    """Which stretches of time calendars are known to refuse.

    Schedules of one namespace that are looked at together share it, and many obey the same calendars: each day is
    then looked at once and not once for each of them.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], str], list[tuple[Instant, Instant]]] = {}

    def until(self, planning: Planning, nominal: Instant) -> Instant | None:
        spans = self._of(planning)
        place = bisect_right(spans, nominal, key=itemgetter(0)) - 1
        return spans[place][1] if place >= 0 and nominal <= spans[place][1] else None

    def add(self, planning: Planning, nominal: Instant, until: Instant) -> None:
        insort(self._of(planning), (nominal, until))

    def _of(self, planning: Planning) -> list[tuple[Instant, Instant]]:
        return self._known.setdefault((planning.calendars, planning.spec.zone.key), [])


class Ahead:
    """One walk over coming occurrences, in order. What counts per UTC day starts anew with each day."""

    __slots__ = ("_day", "_facts", "_guards", "_now", "_planning", "tally")

    def __init__(
        self,
        planning: Planning,
        position: Position,
        facts: Facts,
        shared: Shared | None,
        guards: tuple[Guard, ...],
        now: Instant,
    ) -> None:
        self.tally = Tally(planning, position, facts, Shared() if shared is None else shared.copy())
        self._planning, self._facts, self._guards, self._now = planning, facts, guards, now
        self._day = now // DAY

    def refusal(self, nominal: Instant) -> tuple[Reason, Detail] | None:
        day = max(nominal, self._now) // DAY  # what is overdue counts for the day on which it is decided
        if day != self._day:
            self._day = day
            self.tally.new_day()
        return first_refusal(self._guards, self._question(nominal))

    def refused_until(self, nominal: Instant, reason: Reason, last: Instant, spans: RefusedSpans) -> Instant:
        """Up to when the refusal of an occurrence is known to repeat itself; nothing after `last` is looked at."""
        if reason is Reason.CALENDAR:
            until = spans.until(self._planning, nominal)
            if until is None:
                until = self._unchanged(nominal, reason, last)
                spans.add(self._planning, nominal, until)
            return until
        if reason in _BY_THE_DAY:
            last = min(last, (self._day + 1) * DAY - 1)
        return self._unchanged(nominal, reason, last)

    def _unchanged(self, nominal: Instant, reason: Reason, last: Instant) -> Instant:
        return refusal_until(self._guards, reason, self._question(nominal), max(nominal, last))

    def _question(self, nominal: Instant) -> Question:
        return Question(self._planning, self._facts, self.tally, nominal)


@remembered
def is_guarded(planning: Planning) -> bool:
    """Whether anything could stand against the next occurrence while the schedule is active."""
    return any(guard.reason not in _SETTLED for guard in _guards(planning))


def next_run(
    planning: Planning,
    uid: bytes,
    position: Position,
    facts: Facts,
    *,
    now: Instant,
    shared: Shared | None = None,
    spans: RefusedSpans | None = None,
) -> NextRun:
    """What is due and not yet decided counts as coming."""
    if position.status is not Status.ACTIVE:
        return NextRun(None, NoRun.FINISHED) if position.status is Status.FINISHED else NOT_TRIGGERABLE
    if not is_guarded(planning):
        return NextRun(position.next_due, NoRun.FINISHED if position.next_due is None else None)
    spans = spans or RefusedSpans()
    spec, ahead = planning.spec, Ahead(planning, position, facts, shared, _guards(planning), now)
    last = max(position.decided_until, now) + HORIZON
    nominal, why = spec.next_after(position.decided_until), NoRun.FINISHED
    for _ in range(MAX_QUESTIONS):
        if nominal is None or (nominal > last and why is not NoRun.FINISHED):
            break  # the first one is asked about however far away it is
        refusal = ahead.refusal(nominal)
        if refusal is None:
            return NextRun(spec.due(uid, nominal))
        reason, _detail = refusal
        why, nominal = NoRun(reason.value), spec.next_after(ahead.refused_until(nominal, reason, last, spans))
    return NextRun(None, why)


def _guards(planning: Planning) -> tuple[Guard, ...]:
    return tuple(guard for guard in guards_for(planning, Origin.SCHEDULED) if guard.reason.value in _FORESEEN)
