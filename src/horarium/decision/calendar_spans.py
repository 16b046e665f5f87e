"""Stretches of time on which calendars give one answer, remembered for schedules that share them."""

from __future__ import annotations

from bisect import bisect_right, insort
from operator import itemgetter

from horarium.decision.guards import Guard, Question
from horarium.instant import Instant


class CalendarSpans:
    """Schedules of one namespace that are looked at together share it, and many obey the same calendars: each day is
    then looked at once and not once for each schedule.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], str], list[tuple[Instant, Instant]]] = {}

    def unchanged(self, question: Question, guard: Guard, last: Instant, horizon: Instant) -> Instant:
        """Up to which instant, `last` at most, the calendars answer as they do for the question."""
        planning, nominal = question.planning, question.nominal
        if nominal > horizon:
            return guard.unchanged(question, last)
        spans = self._known.setdefault((planning.calendars, planning.spec.zone.key), [])
        place = bisect_right(spans, nominal, key=itemgetter(0)) - 1
        if place >= 0 and nominal <= spans[place][1]:
            return min(last, spans[place][1])
        until = guard.unchanged(question, horizon)
        insort(spans, (nominal, until))
        return min(last, until)
