"""Zones are those of the pinned tzdata package: their names, their offsets, and the segments between changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from importlib.metadata import version
from itertools import pairwise

import pytest

from horarium.core.recurrence import zone as zone_module
from horarium.core.recurrence.zone import Segment, Zone, load_zone, tzdata_version, zone_names
from horarium.errors import InvalidSpec
from horarium.instant import SECOND, from_rfc3339


def seconds(text: str) -> int:
    return from_rfc3339(text) // SECOND


@pytest.mark.parametrize("name", ["UTC", "Europe/Istanbul", "US/Eastern", "Etc/GMT+5", "Antarctica/Troll", "EST"])
def test_a_zone_of_tzdata_is_found(name: str) -> None:
    assert name in zone_names()
    assert load_zone(name).key == name
    assert repr(load_zone(name)) == f"Zone({name!r})"


def test_a_zone_is_loaded_once() -> None:
    assert load_zone("Asia/Tokyo") is load_zone("Asia/Tokyo")


REFUSED = [
    ("", "empty"),
    ("Local", "not a time zone"),
    ("Factory", "not a time zone"),
    ("utc", "did you mean UTC"),
    ("europe/istanbul", "did you mean Europe/Istanbul"),
    ("Europe/Istambul", "did you mean Europe/Istanbul"),
    ("/etc/localtime", "not a time zone"),
    ("../../etc/passwd", "not a time zone"),
    ("Europe/../UTC", "not a time zone"),
    ("UTC ", "did you mean UTC"),
    ("UTC\0", "not a time zone"),
    ("\ud800", "not a time zone"),
    ("+03:00", "not a time zone"),
    ("x" * 10_000, "too long"),
]


@pytest.mark.parametrize(("name", "why"), REFUSED, ids=[repr(row[0][:20]) for row in REFUSED])
def test_what_is_no_zone_is_refused(name: str, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why) as refused:
        load_zone(name)
    assert refused.value.field == "timezone"
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("name", "at", "offset"),
    [
        ("UTC", "2026-05-04T12:00:00Z", 0),
        ("Europe/Istanbul", "2026-05-04T12:00:00Z", 3 * 3_600),
        ("Asia/Kolkata", "2026-05-04T12:00:00Z", 19_800),
        ("America/New_York", "2026-03-08T06:59:59Z", -5 * 3_600),
        ("America/New_York", "2026-03-08T07:00:00Z", -4 * 3_600),
        ("America/New_York", "2026-11-01T05:59:59Z", -4 * 3_600),
        ("America/New_York", "2026-11-01T06:00:00Z", -5 * 3_600),
        ("Australia/Lord_Howe", "2026-04-04T14:59:59Z", 39_600),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z", 37_800),
        ("America/New_York", "1883-11-18T16:00:00Z", -17_762),
    ],
)
def test_an_offset_changes_at_the_right_second(name: str, at: str, offset: int) -> None:
    assert load_zone(name).offset_at(seconds(at)) == offset


def test_a_segment_knows_its_ends_and_its_neighbours() -> None:
    winter = load_zone("America/New_York").segment_at(seconds("2026-01-01T00:00:00Z"))
    assert winter.start == seconds("2025-11-02T06:00:00Z")
    assert winter.stop == seconds("2026-03-08T07:00:00Z")
    assert (winter.before, winter.offset, winter.after) == (-14_400, -18_000, -14_400)


def test_segments_follow_each_other_without_a_hole() -> None:
    zone = load_zone("Europe/London")
    t, seen = seconds("2020-01-01T00:00:00Z"), []
    while t < seconds("2030-01-01T00:00:00Z"):
        segment = zone.segment_at(t)
        assert segment.start <= t < segment.stop
        seen.append(segment)
        t = segment.stop
    for one, two in pairwise(seen):
        assert isinstance(one, Segment)
        assert (one.stop, one.after, one.offset) == (two.start, two.offset, two.before)


def test_a_caller_who_asks_for_far_centuries_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_module, "_MAX_BLOCKS", 4)
    zone = load_zone.__wrapped__("Pacific/Apia")  # one that nobody has asked before
    expected = zone.offset_at(seconds("2026-05-04T12:00:00Z"))
    for year in range(2030, 2060):
        zone.offset_at(seconds(f"{year}-06-01T00:00:00Z"))
        assert len(zone._blocks) <= 4
    assert zone.offset_at(seconds("2026-05-04T12:00:00Z")) == expected


class Step(tzinfo):
    """A zone that goes from UTC to one hour ahead where a survey ends: at a multiple of 2**25 seconds."""

    EDGE = datetime.fromtimestamp(53 << 25, UTC)

    def fromutc(self, dt: datetime) -> datetime:
        return dt + (timedelta(hours=1) if dt.replace(tzinfo=UTC) >= self.EDGE else timedelta(0))

    def utcoffset(self, dt: datetime | None) -> timedelta:
        assert dt is not None
        return timedelta(hours=1) if dt.replace(tzinfo=UTC) >= self.EDGE + timedelta(hours=1) else timedelta(0)


def test_a_change_exactly_where_a_survey_ends_belongs_to_the_next_segment() -> None:
    zone, edge = Zone("Step", Step()), 53 << 25  # type: ignore[abstract,arg-type]  # as little of a zone as is asked for
    assert (zone.offset_at(edge - 1), zone.offset_at(edge)) == (0, 3_600)
    before, after = zone.segment_at(edge - 1), zone.segment_at(edge)
    assert (before.stop, before.after) == (after.start, after.offset) == (edge, 3_600)
    assert after.before == 0


def test_the_version_is_that_of_the_package() -> None:
    assert tzdata_version() == version("tzdata")
    assert tzdata_version()[:2] == "20"
