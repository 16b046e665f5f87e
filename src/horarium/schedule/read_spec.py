"""Reads the *when* of a document, part by part, and says whether the whole compiles and ever fires."""

from __future__ import annotations

from collections.abc import Callable

from horarium.errors import InvalidSpec
from horarium.instant import Instant
from horarium.policy.names import PolicyError, parse_name, read_object, shown
from horarium.recurrence.interval import parse_interval
from horarium.recurrence.spec import Part, Spec, compile_spec, refuse_if_never
from horarium.recurrence.wall import CronSchedule, DstFold, DstGap
from horarium.recurrence.zone import load_zone
from horarium.schedule.definition import IntervalText, SpecText
from horarium.schedule.reading import Reader, any_text, moment, without_prefix

MAX_JITTER_SECONDS = 86_400
# What `compile_spec` takes; a longer array is refused before its items are looked at.
MAX_PARTS = 100
MAX_ONE_OFFS = 10_000

_PARTS = ("spec.cron_expressions", "spec.intervals", "spec.at")
_text = any_text(1_024)


def read_spec(reader: Reader, *, key: str | None) -> SpecText:
    """With a key, which `H` hashes, every part is compiled by itself; without one only the types are read."""
    trusted = key is None
    return SpecText(
        cron_expressions=reader.array("spec.cron_expressions", _text if trusted else _cron(key), most=MAX_PARTS),
        intervals=reader.array("spec.intervals", _interval if trusted else _compiled_interval, most=MAX_PARTS),
        at=reader.array("spec.at", _text if trusted else _one_off, most=MAX_ONE_OFFS),
        timezone=reader.one("spec.timezone", _text if trusted else _zone, None),
        start_at=reader.one("spec.start_at", moment, None),
        end_at=reader.one("spec.end_at", moment, None),
        jitter_ms=reader.one("spec.jitter_seconds", jitter_ms, 0),
        dst_gap=reader.one("spec.dst_gap", _gap, DstGap.NEXT_VALID),
        dst_fold=reader.one("spec.dst_fold", _fold, DstFold.FIRST),
    )


def check_spec(spec: SpecText, reader: Reader, *, key: str, after: Instant | None) -> None:
    """What no part can know by itself; `after` None = nobody asks whether there is a future."""
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
    if after is not None:
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


def jitter_ms(field: str, value: object) -> int:
    """Seconds, with up to three digits after the point."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise PolicyError(field, f"must be a number of seconds, not {shown(value)}")
    if not 0 <= value <= MAX_JITTER_SECONDS:
        raise PolicyError(field, f"must be between 0 and {MAX_JITTER_SECONDS} seconds")
    whole = round(value * 1_000)
    # Both sides are the float nearest to the same decimal, so equal means: no digit was lost.
    if whole / 1_000 != value:
        raise PolicyError(field, "is finer than a millisecond")
    return whole


def _check_future(compiled: Spec, reader: Reader, after: Instant) -> None:
    try:
        refuse_if_never(compiled, after)
    except InvalidSpec as wrong:
        ended = compiled.end_at is not None and compiled.end_at <= after
        given = [place for place in _PARTS if place in reader.places]
        place = "spec.end_at" if ended else given[0] if len(given) == 1 else "spec"
        reader.problems.add(reader.path(place), without_prefix(wrong, "expression"))


def _cron(key: str | None) -> Callable[[str, object], str]:
    def check(field: str, value: object) -> str:
        text = _text(field, value)
        compile_spec(cron_expressions=[text], key=key)
        return text

    return check


def _interval(field: str, value: object) -> IntervalText:
    given = read_object(value, field, ("every", "offset"))
    if "every" not in given:
        raise PolicyError("every", "is required: an ISO-8601 duration such as PT30M")
    offset = given.get("offset")
    return IntervalText(_text("every", given["every"]), None if offset is None else _text("offset", offset))


def _compiled_interval(field: str, value: object) -> IntervalText:
    interval = _interval(field, value)
    try:
        parse_interval(interval.every, interval.offset)
    except InvalidSpec as wrong:
        raise PolicyError(wrong.field or field, without_prefix(wrong, wrong.field or "")) from None
    return interval


def _one_off(field: str, value: object) -> str:
    text = _text(field, value)
    compile_spec(at=[text])
    return text


def _zone(field: str, value: object) -> str:
    return load_zone(_text(field, value)).key


def _gap(field: str, value: object) -> DstGap:
    return parse_name(DstGap, {}, value, field)


def _fold(field: str, value: object) -> DstFold:
    return parse_name(DstFold, {}, value, field)
