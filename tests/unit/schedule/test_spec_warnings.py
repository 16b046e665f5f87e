"""Each change of the clock that a spec meets has its sentence, and a spec that meets none has no warning."""

from __future__ import annotations

import pytest

from horarium.core.document.definition import SpecText
from horarium.core.document.descriptions import MAX_WARNINGS, spec_warnings
from horarium.core.recurrence.parts import DstFold, DstGap
from horarium.instant import from_rfc3339

SUMMER_2026 = from_rfc3339("2026-06-01T00:00:00Z")
NEW_YORK = "America/New_York"
SPRING, AUTUMN = "spec: DST on 2027-03-14:", "spec: DST on 2026-11-01:"
FORWARD = "because the clock in America/New_York moves forward from 02:00 to 03:00"
BACK = "because the clock in America/New_York moves back from 02:00 to 01:00"

# Clock changes are those of the pinned tz database.
ROWS: dict[str, tuple[SpecText, tuple[str, ...]]] = {
    "a time that does not exist": (
        SpecText(("30 2 * * *",), timezone=NEW_YORK),
        (f"{SPRING} 02:30 does not exist, {FORWARD}; the schedule fires at 03:00 (dst_gap next_valid)",),
    ),
    "left out": (
        SpecText(("30 2,4 * * *",), timezone=NEW_YORK, dst_gap=DstGap.SKIP),
        (f"{SPRING} 02:30 does not exist, {FORWARD}; the schedule does not fire (dst_gap skip)",),
    ),
    "many of them": (
        SpecText(("0,30 2 * * *",), timezone=NEW_YORK),
        (f"{SPRING} 2 local times from 02:00 do not exist, {FORWARD}; "
         "the schedule fires once at 03:00 (dst_gap next_valid)",),
    ),
    "a time that comes twice": (
        SpecText(("30 1 * * *",), timezone=NEW_YORK),
        (f"{AUTUMN} 01:30 occurs twice, {BACK}; the schedule fires at the first (dst_fold first)",),
    ),
    "the second one": (
        SpecText(("30 1 * * *",), timezone=NEW_YORK, dst_fold=DstFold.SECOND),
        (f"{AUTUMN} 01:30 occurs twice, {BACK}; the schedule fires at the second (dst_fold second)",),
    ),
    "both": (
        SpecText(("15,45 1 * * *",), timezone=NEW_YORK, dst_fold=DstFold.BOTH),
        (f"{AUTUMN} 2 local times from 01:15 occur twice, {BACK}; the schedule fires at both (dst_fold both)",),
    ),
    "two crons that lose the same time": (
        SpecText(("30 2 * * *", "30 2 14 3 *"), timezone=NEW_YORK),
        (f"{SPRING} 02:30 does not exist, {FORWARD}; the schedule fires at 03:00 (dst_gap next_valid)",),
    ),
    "not on that weekday": (SpecText(("30 2 * * 1",), timezone=NEW_YORK), ()),
    "before it begins": (
        SpecText(("30 1 * * *",), timezone=NEW_YORK, start_at=from_rfc3339("2026-12-01T00:00:00Z")), (),
    ),
    "after it ends": (
        SpecText(("30 2 * * *",), timezone=NEW_YORK, end_at=from_rfc3339("2026-12-01T00:00:00Z")), (),
    ),
    "real time": (SpecText(("*/5 * * * *",), timezone=NEW_YORK), ()),
    "real time that loses a day": (
        SpecText(("*/15 2 * * *",), timezone=NEW_YORK),
        ("spec.cron_expressions.0: DST on 2027-03-14: no occurrence, because "
         "the clock moves forward past all 4 times of that day",),
    ),
    "the second of two": (
        SpecText(("5 4 * * *", "5 0 31 * *")),
        ("spec.cron_expressions.1: day 31 does not exist in February, April, June, September and November; "
         "use `L` for the last day of the month",),
    ),
    "one-offs": (SpecText(at=("2026-11-01T05:30:00Z",), timezone=NEW_YORK), ()),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "warnings"), ROWS.values(), ids=ROWS)
def test_what_a_spec_meets_is_told(spec: SpecText, warnings: tuple[str, ...]) -> None:
    assert spec_warnings(spec, "nightly", now=SUMMER_2026) == warnings


def test_a_hash_without_an_id_is_told() -> None:
    spec = SpecText(("H 4 * * *",))
    assert spec_warnings(spec, "nightly", now=SUMMER_2026) == ()
    [said] = spec_warnings(spec, None, now=SUMMER_2026)
    assert said.startswith("spec.cron_expressions.0: `H` depends on the schedule ID")


def test_what_is_told_is_bounded() -> None:
    spec = SpecText(tuple(f"0 {hour} 31 {month} *" for hour in range(20) for month in (2, 4, 6, 9, 11))[:100])
    assert len(spec_warnings(spec, "nightly", now=SUMMER_2026)) == MAX_WARNINGS + 1
