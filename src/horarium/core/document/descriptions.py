"""Descriptions for people: a spec as one sentence, warnings about a spec, and the values that a condition saw.

A spec is described by its crons, intervals and single times, with the zone at the end. Its warnings are the findings
of each cron, and the clock changes that it meets. Values in the sentence about a clause are cut to a readable
length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from horarium.condition import ClauseResult, Operator
from horarium.core.document.definition import SpecText
from horarium.core.policy.queue import canonical_json
from horarium.core.recurrence.cron import has_hash
from horarium.core.recurrence.lint import FindingCode, lint, met_changes
from horarium.core.recurrence.parts import CronSchedule, parse_interval
from horarium.core.recurrence.spec import split_zone
from horarium.core.recurrence.words import describe, duration_words
from horarium.errors import InvalidSpec
from horarium.instant import Instant

# ── Specs ─────────────────────────────────────────────────────────────────────────────────────────────


MOST_PARTS: Final = 4
"""Maximum parts in the text; the others are counted."""

# A spec may have ten thousand single times: what is that long is put into words again.
_REMEMBERED: Final = 20
_EPOCH = ", counted from the Unix epoch in UTC"


def spec_words(spec: Mapping[str, Any], key: str) -> str | None:
    """Describe the spec of a stored document in words, or None if there are none. `key` is the schedule's id."""
    crons, at = tuple(spec.get("cron_expressions") or ()), tuple(spec.get("at") or ())
    intervals = tuple((each["every"], each.get("offset")) for each in spec.get("intervals") or ())
    # Only an expression with `H` depends on the schedule: all others share their words.
    words = _words_of if len(crons) + len(intervals) + len(at) <= _REMEMBERED else _words_of.__wrapped__
    return words(crons, intervals, at, spec.get("timezone"), key if any(map(has_hash, crons)) else "")


@lru_cache(maxsize=16_384)
def _words_of(
    crons: Sequence[str], intervals: Sequence[tuple[str, str | None]], at: Sequence[str], zone: str | None, key: str
) -> str | None:
    try:
        parts = [describe(_without_zone(each), key=key or None).removesuffix(_EPOCH) for each in crons[:MOST_PARTS]]
        parts += [_interval(*each) for each in intervals[: MOST_PARTS - len(parts)]]
        zones = [zone, *(split_zone(each)[0] for each in crons)]
    except InvalidSpec:
        return None
    if at and len(parts) < MOST_PARTS:
        parts.append(_single(at))
    more = len(crons) + len(intervals) + bool(at) - len(parts)
    if more:
        parts.append(f"{more} more")
    sentence = "; and ".join(filter(None, ["; ".join(parts[:-1]), *parts[-1:]]))
    if not crons:
        return sentence or None
    name = next((each for each in zones if each is not None), "UTC")
    return f"{sentence} ({name if name == 'UTC' else f'{name} time'})"


def _without_zone(expr: str) -> str:
    return split_zone(expr)[1]


def _interval(every: str, offset: str | None) -> str:
    grid = parse_interval(every, offset)
    length = duration_words(grid.every)
    words = f"every {length.removeprefix('1 ') if length.count(' ') == 1 else length}"
    return f"{words}, offset by {duration_words(grid.offset)}" if grid.offset else words


def _single(at: Sequence[str]) -> str:
    return f"once at {at[0]}" if len(at) == 1 else f"at {len(at):,} one-time runs, the first at {min(at)}"


# ── Warnings ──────────────────────────────────────────────────────────────────────────────────────────


MAX_WARNINGS: Final = 50
# Told in other words, date by date, of all crons whose minute and hour are fixed.
_CLOCK_CHANGES: Final = frozenset({FindingCode.DST_MOVED, FindingCode.DST_ZERO_FIRES, FindingCode.DST_TWO_FIRES})


def spec_warnings(spec: SpecText, key: str | None, *, now: Instant) -> tuple[str, ...]:
    """With the path of what each is about, at most so many. `key` None = the schedule has no id of its own yet."""
    found = list(islice(_warnings(spec, key, now), MAX_WARNINGS + 1))
    return (*found[:MAX_WARNINGS], "spec: more warnings are not shown") if len(found) > MAX_WARNINGS else tuple(found)


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


# ── Clauses of conditions ─────────────────────────────────────────────────────────────────────────────


MAX_SHOWN: Final = 1_000
_IN_WORDS: Final = {
    Operator.EQ: "equals",
    Operator.NEQ: "does not equal",
    Operator.GT: "is greater than",
    Operator.LT: "is less than",
    Operator.CONTAINS: "contains",
}


class ClauseDescription(NamedTuple):
    """`wanted` is the operand and `seen` what stands there; a long one is a text that was cut."""

    wanted: Any
    seen: Any
    sentence: str


def describe_clause(found: ClauseResult) -> ClauseDescription:
    wanted, seen = _text(found.operand), _text(found.value)
    clause = f"{found.pointer or 'the whole context'} {_IN_WORDS[found.operator]} {wanted}"
    there = f"the value is {seen}" if found.found else "the value is missing"
    sentence = f"true: {clause}; {there}" if found.holds else f"false: {clause}; {there}"
    return ClauseDescription(_value(found.operand, wanted), _value(found.value, seen), sentence)


def _text(value: object) -> str:
    text = canonical_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _value(value: object, text: str) -> object:
    return value if len(text) < MAX_SHOWN else text
