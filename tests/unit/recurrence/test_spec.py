"""A spec unites crons, intervals and one-offs inside a window; equal instants coincide into one occurrence."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.recurrence.parts import CronSchedule, DstFold, DstGap, Interval
from horarium.core.recurrence.spec import OneOffs, Spec, compile_spec, refuse_if_never, split_zone
from horarium.errors import InvalidSpec
from horarium.instant import DAY, HOUR, MINUTE, SECOND, from_rfc3339, to_rfc3339

NOON = from_rfc3339("2026-05-04T12:00:00Z")


def clock(text: str) -> int:
    return from_rfc3339(f"2026-05-04T{text}Z")


def first(spec: Spec, count: int, after: int = NOON) -> list[str]:
    return [to_rfc3339(each)[11:19] for each in islice(spec.occurrences(after), count)]


UNITED = compile_spec(
    cron_expressions=["0 * * * *", "*/30 * * * *"],
    intervals=[{"every": "PT45M", "offset": None}],
    at=["2026-05-04T13:00:00Z", "2026-05-04T13:10:00Z", "2026-05-04T13:10:00+00:00"],
)


def test_parts_unite_and_equal_instants_coincide() -> None:
    expected = ["12:30:00", "12:45:00", "13:00:00", "13:10:00", "13:30:00", "14:00:00", "14:15:00", "14:30:00"]
    assert first(UNITED, 8) == expected
    assert UNITED.count(NOON, clock("14:30:00")) == 8


SPECS: dict[str, Spec] = {
    "united": UNITED,
    "one cron": compile_spec(cron_expressions=["*/7 9-17 * * MON"]),
    "an interval": compile_spec(intervals=[{"every": "PT97S"}]),
    "one-offs": compile_spec(at=["2026-05-04T13:00:00Z", "2026-05-04T12:00:01Z"]),
    "a window": compile_spec(cron_expressions=["*/5 * * * *"], start_at=NOON + 1, end_at=NOON + 2 * HOUR),
    "a window on occurrences": compile_spec(cron_expressions=["*/5 * * * *"], start_at=NOON, end_at=NOON + HOUR),
    "new york": compile_spec(cron_expressions=["30 * * * *", "15 2 * * *"], timezone="America/New_York"),
}


@pytest.mark.parametrize("name", SPECS)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(offset=st.integers(-3 * HOUR, 5 * HOUR), span=st.integers(0, 4 * HOUR))
def test_next_previous_contains_and_count_tell_the_same_story(name: str, offset: int, span: int) -> None:
    spec, after, until = SPECS[name], NOON + offset, NOON + offset + span
    walked = [each for each in islice(spec.occurrences(after), 1_000) if each <= until]
    assert spec.count(after, until) == len(walked)
    assert all(after < each <= until and spec.contains(each) for each in walked)
    if walked:
        assert spec.previous_before(until + 1) == walked[-1]
        assert spec.previous_before(walked[0] + 1) == walked[0]
    for one, two in pairwise(walked):
        assert spec.previous_before(two) == one
        assert not spec.contains(one + 1)


# ── the window ────────────────────────────────────────────────────────────────────────────────────


def windowed(**window: Any) -> Spec:
    return compile_spec(cron_expressions=["0 * * * *"], **window)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("14:00:00", "14:00:00"),
        ("14:00:00.000001", "15:00:00"),
        ("13:59:59.999999", "14:00:00"),
        ("09:00:00", "13:00:00"),
    ],
)
def test_the_start_is_included(start: str, expected: str) -> None:
    assert first(windowed(start_at=clock(start)), 1) == [expected]


@pytest.mark.parametrize(
    ("end", "expected"),
    [("14:00:00", ["13:00:00", "14:00:00"]), ("13:59:59.999999", ["13:00:00"]), ("12:00:00", []), ("09:00:00", [])],
)
def test_the_end_is_included(end: str, expected: list[str]) -> None:
    spec = windowed(end_at=clock(end))
    assert first(spec, 9) == expected
    assert spec.count(NOON, NOON + DAY) == len(expected)


def test_backwards_the_window_holds_too() -> None:
    spec = windowed(start_at=clock("10:00:00"), end_at=clock("14:00:00"))
    assert spec.previous_before(NOON + DAY) == clock("14:00:00")
    assert spec.previous_before(clock("10:00:01")) == clock("10:00:00")
    assert spec.previous_before(clock("10:00:00")) is None
    assert spec.previous_before(clock("14:00:00")) == clock("13:00:00")
    assert spec.count(0, NOON + 9_000 * DAY) == 5


def test_a_fraction_of_a_second_is_no_occurrence() -> None:
    spec = windowed()
    assert spec.contains(NOON)
    assert not spec.contains(NOON + 1)
    assert spec.next_after(NOON - 1) == NOON
    assert spec.previous_before(NOON + 1) == NOON


def test_before_the_first_one_off_there_is_nothing() -> None:
    assert SPECS["one-offs"].previous_before(NOON) is None
    assert SPECS["one-offs"].next_after(clock("13:00:00")) is None


def test_one_offs_count_and_contain() -> None:
    offs = OneOffs((3, 5, 9))
    assert [offs.contains(t) for t in (2, 3, 9, 10)] == [False, True, True, False]
    assert (offs.count(3, 9), offs.count(2, 9), offs.count(9, 3)) == (2, 3, 0)


# ── counting ──────────────────────────────────────────────────────────────────────────────────────


def test_a_month_of_seconds_beside_an_hourly_one_is_counted() -> None:
    spec = compile_spec(cron_expressions=["0 * * * *", "* * * * * *"])
    assert spec.count(NOON, NOON + 30 * DAY) == 30 * 86_400


def test_an_empty_span_counts_nothing() -> None:
    for spec in SPECS.values():
        assert spec.count(NOON, NOON) == 0
        assert spec.count(NOON, NOON - HOUR) == 0


# ── compiling ─────────────────────────────────────────────────────────────────────────────────────

REFUSED: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "nothing": ({}, None, "at least one"),
    "too many crons": ({"cron_expressions": ["* * * * *"] * 101}, None, "at most"),
    "too many intervals": ({"intervals": [{"every": "PT1S"}] * 101}, None, "at most"),
    "too many one-offs": ({"at": ["2026-05-04T12:00:00Z"] * 10_001}, None, "at most"),
    "a window that ends first": (
        {"cron_expressions": ["* * * * *"], "start_at": 5, "end_at": 4},
        "end_at",
        "must not be before start_at",
    ),
    "a bad cron": ({"cron_expressions": ["* * * * *", "61 * * * *"]}, "minute", "outside"),
    "a bad interval": ({"intervals": [{"every": "P1M"}]}, "every", "months"),
    "a bad offset": ({"intervals": [{"every": "PT1M", "offset": "x"}]}, "offset", "not an ISO"),
    "a bad one-off": ({"at": ["tomorrow"]}, "at", "RFC 3339"),
    "a one-off with a fraction": ({"at": ["2026-05-04T12:00:00.5Z"]}, "at", "fraction"),
    "a bad zone": ({"cron_expressions": ["* * * * *"], "timezone": "Mars"}, "timezone", "not a time zone"),
    "a bad zone in a prefix": ({"cron_expressions": ["TZ=Mars * * * * *"]}, "timezone", "not a time zone"),
    "two zones": (
        {"cron_expressions": ["CRON_TZ=Asia/Tokyo * * * * *"], "timezone": "UTC"},
        "timezone",
        "UTC and Asia/Tokyo differ",
    ),
    "two zones in prefixes": (
        {"cron_expressions": ["TZ=Asia/Tokyo * * * * *", "TZ=Asia/Seoul * * * * *"]},
        "timezone",
        "differ",
    ),
    "an unknown gap rule": ({"cron_expressions": ["* * * * *"], "dst_gap": "x" * 999}, "dst_gap", "next_valid, skip"),
    "an unknown fold rule": (
        {"cron_expressions": ["* * * * *"], "dst_fold": "third"},
        "dst_fold",
        "first, second, both",
    ),
    "a recurrence rule": ({"cron_expressions": ["RRULE:FREQ=DAILY"]}, "expression", "RRULE"),
    "a hash without a key": ({"cron_expressions": ["H * * * *"]}, "minute", "key"),
    "an empty every": ({"cron_expressions": ["@every"]}, "every", "empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_spec_is_refused_with_its_field(name: str) -> None:
    given_spec, field, why = REFUSED[name]
    with pytest.raises(InvalidSpec, match=why) as refused:
        compile_spec(**given_spec)
    assert refused.value.field == field
    assert len(refused.value.message) < 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 9 * * *", (None, "0 9 * * *")),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", ("Asia/Tokyo", "0 9 * * *")),
        ("  TZ=UTC 0 9 * * *", ("UTC", "0 9 * * *")),
        ("TZ=UTC @every PT5M", ("UTC", "@every PT5M")),
        ("TZ=UTC", ("UTC", "")),
    ],
)
def test_a_zone_before_an_expression_is_split_off(text: str, expected: tuple[str | None, str]) -> None:
    assert split_zone(text) == expected


def test_the_zone_may_be_given_before_or_in_the_expression() -> None:
    one = compile_spec(cron_expressions=["CRON_TZ=Asia/Tokyo 0 9 * * *"])
    two = compile_spec(cron_expressions=["0 9 * * *"], timezone="Asia/Tokyo")
    both = compile_spec(cron_expressions=["TZ=Asia/Tokyo 0 9 * * *", "0 9 * * *"], timezone="Asia/Tokyo")
    assert one == two == both
    assert first(one, 1) == ["00:00:00"]
    assert compile_spec(cron_expressions=["0 9 * * *"]).zone.key == "UTC"


def test_every_kind_of_part_is_made() -> None:
    kinds = [type(part) for part in UNITED.parts]
    assert kinds == [CronSchedule, CronSchedule, Interval, OneOffs]
    every = compile_spec(cron_expressions=["@EVERY PT5M"])
    assert every.parts == (Interval(300),)


def test_equal_parts_are_kept_once() -> None:
    spec = compile_spec(cron_expressions=["0 * * * *", "0 * * * *"], intervals=[{"every": "PT1H"}, {"every": "PT60M"}])
    assert len(spec.parts) == 2


def test_one_offs_are_sorted_and_without_doubles() -> None:
    assert SPECS["one-offs"].parts == (OneOffs((clock("12:00:01") // SECOND, clock("13:00:00") // SECOND)),)


def test_the_choices_for_clock_changes_reach_every_cron() -> None:
    spec = compile_spec(cron_expressions=["0 2 * * *", "30 2 * * *"], dst_gap="skip", dst_fold=DstFold.SECOND)
    for part in spec.parts:
        assert isinstance(part, CronSchedule)
        assert (part.dst_gap, part.dst_fold) == (DstGap.SKIP, DstFold.SECOND)


def test_schedules_that_read_alike_share_a_compiled_cron() -> None:
    one, two = (compile_spec(cron_expressions=["0 9 * * *"], key=key).parts[0] for key in ("a", "b"))
    hashed = {compile_spec(cron_expressions=["H H * * *"], key=key).next_after(NOON) for key in "abc"}
    assert isinstance(one, CronSchedule)
    assert isinstance(two, CronSchedule)
    assert one.cron is two.cron
    assert len(hashed) == 3


# ── never ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (compile_spec(cron_expressions=["0 0 30 2 *"]), "eight years"),
        (compile_spec(at=["2026-05-04T11:00:00Z"]), "in the past"),
        (compile_spec(cron_expressions=["* * * * *"], end_at=NOON), "end_at is in the past"),
        (compile_spec(cron_expressions=["0 * * * *"], end_at=NOON + MINUTE), "eight years"),
    ],
    ids=["an impossible date", "a past moment", "a past window", "a window without an occurrence"],
)
def test_a_schedule_without_a_future_is_refused(spec: Spec, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why) as refused:
        refuse_if_never(spec, NOON)
    assert refused.value.field == "expression"


def test_a_schedule_with_a_future_says_when_it_begins() -> None:
    assert refuse_if_never(windowed(), NOON) == NOON + HOUR
    leap = compile_spec(cron_expressions=["0 0 29 2 *"])
    assert to_rfc3339(refuse_if_never(leap, from_rfc3339("2096-03-01T00:00:00Z"))) == "2104-02-29T00:00:00Z"
