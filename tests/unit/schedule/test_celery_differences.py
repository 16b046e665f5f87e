"""Which fires differ between Celery beat and us: the expected ones are measured facts about Celery 5.7."""

from __future__ import annotations

from dataclasses import replace

import pytest
from beat_apps import NOW, translated
from celery.schedules import crontab, schedule

from horarium.compat.celery_beat.differences import BeatChange, compare
from horarium.compat.celery_beat.entries import BeatEntry, CeleryApp, ClockedSchedule, Every, FireSpan
from horarium.compat.celery_beat.translation import TranslationOptions, translate
from horarium.instant import SECOND, from_rfc3339, to_rfc3339

NEW_YORK = "America/New_York"
SPRING, AUTUMN = "2026-03-07T00:00:00Z", "2026-10-31T00:00:00Z"


def text(moment):
    return None if moment is None else to_rfc3339(moment * SECOND)


@pytest.mark.parametrize(
    ("when", "after", "expected"),
    [
        pytest.param(
            crontab(minute=30, hour=2),
            SPRING,
            [(BeatChange.MOVED, "2026-03-08T07:30:00Z", "2026-03-08T07:00:00Z")],
            id="beat is half an hour late in the gap",
        ),
        pytest.param(crontab(minute=30, hour=1), AUTUMN, [], id="a fixed time that comes twice is sent once"),
        pytest.param(
            crontab(minute=0), AUTUMN, [(BeatChange.ADDED, None, "2026-11-01T06:00:00Z")], id="beat loses an hour"
        ),
        pytest.param(
            crontab(minute="*/30", hour=1),
            AUTUMN,
            [(BeatChange.ADDED, None, "2026-11-01T06:00:00Z"), (BeatChange.ADDED, None, "2026-11-01T06:30:00Z")],
            id="beat loses the second pass",
        ),
        pytest.param(
            crontab(minute=0, hour="*/2"),
            SPRING,
            [(BeatChange.LOST, "2026-03-08T07:00:00Z", None)],
            id="beat makes up for two o'clock",
        ),
        pytest.param(schedule(86_400, relative=True), SPRING, [], id="midnight"),
    ],
)
def test_clock_changes(when, after, expected):
    found = compare(translated(when, timezone=NEW_YORK, now=from_rfc3339(after), days=4))

    assert found is not None
    assert [(each.change, text(each.before), text(each.after)) for each in found.differences] == expected
    assert found.count == len(expected)
    assert all(each.why.startswith("DST: the clock ") for each in found.differences)


def test_a_dense_schedule_is_looked_at_for_a_while_and_around_each_clock_change():
    found = compare(translated(crontab(), timezone=NEW_YORK, steps=300))

    assert found is not None
    assert len(found.spans) == 3
    # The second pass of the hour in November, minute by minute; of what lies in March nothing is lost.
    assert found.count == 60
    assert {each.change for each in found.differences} == {BeatChange.ADDED}


def test_what_has_no_grid_or_no_schedule_is_not_compared():
    app = CeleryApp(
        "proj", NOW, (BeatEntry("a", "t", Every(60), "UTC"), BeatEntry("b", "t", ClockedSchedule(NOW), "UTC"))
    )

    assert [compare(each) for each in translate(app, TranslationOptions())] == [None, None]


def test_of_what_is_sent_once_the_first_is_compared():
    once = replace(translated(crontab(minute=0, hour=0), days=30).entry, one_off=True)
    (found,) = translate(CeleryApp("proj", NOW, (once,)), TranslationOptions())
    compared = compare(found)

    assert compared is not None
    assert (compared.fires_before, compared.fires_after) == (1, 1)


def test_moments_that_no_clock_change_explains_are_told_all_the_same():
    day = NOW // SECOND + 86_400
    daily = translated(crontab(minute=0, hour=0), days=2).entry
    other = replace(daily, spans=(FireSpan(NOW // SECOND, day + 43_200, (day - 60, day + 43_200)),))
    (found,) = map(compare, translate(CeleryApp("proj", NOW, (other,)), TranslationOptions()))

    assert found is not None
    assert [(each.change, each.before, each.after, each.why) for each in found.differences] == [
        (BeatChange.MOVED, day - 60, day, "beat and Horarium compute this time differently"),
        (BeatChange.LOST, day + 43_200, None, "beat and Horarium compute this time differently"),
    ]
