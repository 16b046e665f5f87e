"""What somebody may not have meant with the *when* of a schedule: lint of each cron, and the clock changes it meets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from horarium.errors import InvalidSpec
from horarium.instant import Instant
from horarium.recurrence.clock_changes import met_changes
from horarium.recurrence.cron import has_hash
from horarium.recurrence.lint import FindingCode, lint
from horarium.recurrence.spec import split_zone
from horarium.recurrence.wall import CronSchedule
from horarium.schedule.definition import SpecText

MOST: Final = 50
# Told in other words, date by date, of all crons whose minute and hour are fixed.
_CLOCK_CHANGES: Final = frozenset({FindingCode.DST_MOVED, FindingCode.DST_ZERO_FIRES, FindingCode.DST_TWO_FIRES})


def spec_warnings(spec: SpecText, key: str | None, *, now: Instant) -> tuple[str, ...]:
    """With the path of what each is about, at most so many. `key` None = the schedule has no id of its own yet."""
    found = list(islice(_warnings(spec, key, now), MOST + 1))
    return (*found[:MOST], "spec: more warnings are not shown") if len(found) > MOST else tuple(found)


def _warnings(spec: SpecText, key: str | None, now: Instant) -> Iterator[str]:
    for index, text in enumerate(spec.cron_expressions):
        yield from (f"spec.cron_expressions.{index}: {said}" for said in _of_cron(spec, text, key, now))
    try:
        compiled = spec.compile(key or "?")
    except InvalidSpec:  # a zone that this tzdata does not know any more
        return
    yield from (f"spec: {said}" for said in met_changes(compiled, now))


def _of_cron(spec: SpecText, text: str, key: str | None, now: Instant) -> Iterator[str]:
    if key is None and has_hash(split_zone(text)[1]):
        yield "`H` depends on the schedule ID; the times change if the schedule is created with another ID"
    alone = SpecText((text,), timezone=spec.timezone, dst_gap=spec.dst_gap, dst_fold=spec.dst_fold)
    [part] = alone.compile(key or "?").parts
    told_by_date = isinstance(part, CronSchedule) and part.cron.fixed
    findings = lint(
        text, timezone=spec.timezone, after=now, key=key or "?", dst_gap=spec.dst_gap, dst_fold=spec.dst_fold
    )
    for finding in findings:
        if not (told_by_date and finding.code in _CLOCK_CHANGES):
            yield finding.message
