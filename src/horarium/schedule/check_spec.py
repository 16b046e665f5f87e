"""Whether the *when* of a document compiles as a whole and ever fires, and when two of them mean the same."""

from __future__ import annotations

from horarium.errors import InvalidSpec
from horarium.instant import Instant
from horarium.recurrence.spec import Part, Spec, refuse_if_never
from horarium.recurrence.wall import CronSchedule
from horarium.schedule.checks import without_prefix
from horarium.schedule.definition import SpecText
from horarium.schedule.reading import Reader

_PARTS = ("spec.cron_expressions", "spec.intervals", "spec.at")


def check_spec(spec: SpecText, reader: Reader, *, key: str, after: Instant | None, may_be_over: bool = False) -> None:
    """Check the parts together; `after` None = a future is not required.

    `may_be_over`: past occurrences are enough. A spec with neither is an error.
    """
    if any(place.startswith("spec.") for place in reader.bad):
        return
    if not (spec.cron_expressions or spec.intervals or spec.at):
        reader.problems.add("spec", "give at least one cron expression, interval or one-off time")
        return
    try:
        compiled = spec.compile(key)
    except InvalidSpec as wrong:
        place = f"spec.{wrong.field}"
        path = reader.path(place) if place in reader.places else "spec"
        reader.problems.add(path, without_prefix(wrong, wrong.field or "spec"))
        return
    if after is not None and not (may_be_over and compiled.previous_before(after) is not None):
        _check_future(compiled, reader, after)


def spec_meaning(spec: Spec) -> tuple[object, ...]:
    """Equal for specs that act at the same moments, however they are spelled."""
    parts = frozenset(_part_meaning(part) for part in spec.parts)
    return parts, spec.zone.key, spec.start_at, spec.end_at, spec.jitter_ms


def _part_meaning(part: Part) -> object:
    if not isinstance(part, CronSchedule):
        return part
    cron = part.cron
    fields = (cron.second, cron.minute, cron.hour, cron.day_of_month, cron.month, cron.day_of_week)
    # A star matters besides the values that it covers: to clock changes, and to the rule of the two day fields.
    return (*((field.mask, field.rules, field.starred) for field in fields), part.dst_gap, part.dst_fold)


def _check_future(compiled: Spec, reader: Reader, after: Instant) -> None:
    try:
        refuse_if_never(compiled, after)
    except InvalidSpec as wrong:
        ended = compiled.end_at is not None and compiled.end_at <= after
        given = [place for place in _PARTS if place in reader.places]
        place = "spec.end_at" if ended else given[0] if len(given) == 1 else "spec"
        reader.problems.add(reader.path(place), without_prefix(wrong, "expression"))
