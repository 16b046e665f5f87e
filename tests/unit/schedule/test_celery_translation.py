"""What an entry of Celery beat becomes, what is said about it, and under which id."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from beat_apps import NOW, described, translated
from celery.schedules import crontab, schedule

from horarium.compat.celery_beat.entries import BeatEntry, CeleryApp, ClockedSchedule, Every, Foreign, Weight
from horarium.compat.celery_beat.translation import TranslationOptions, bundle_of, schedule_ids, translate
from horarium.core.policy.queue import MAX_ID
from horarium.features.bundles.document import read_bundle
from horarium.instant import DAY, to_rfc3339


def daily():
    """A new one each time: it remembers the app that it was for."""
    return crontab(minute=0, hour=4)


def said(translation):
    return {(remark.weight.value, remark.about) for remark in translation.remarks}


def test_an_entry_becomes_a_schedule_that_does_as_beat_does():
    entry = {"args": ("nightly", {"deep": [1]}), "kwargs": {"to": "all"}, "options": {"queue": "reports"}}
    only = translated(daily(), entry=entry, timezone="Europe/Istanbul")

    assert only.document == {
        "schedule_id": "one",
        "name": "one",
        "labels": {"imported": "celery:proj"},
        "spec": {"timezone": "Europe/Istanbul", "cron_expressions": ["0 4 * * *"]},
        "action": {
            "kind": "celery",
            "task": "send",
            "args": ["nightly", {"deep": [1]}],
            "kwargs": {"to": "all"},
            "queue": "reports",
            "timeout_seconds": 86_400,
        },
        "overlap_policy": "allow_all",
        "catchup_policy": "fire_once",
        "retry_policy": {"max_retries": 0},
    }
    assert only.weight is Weight.NOTE


def test_what_the_importer_wishes_holds_for_all():
    wishes = TranslationOptions(
        prefix="old.", connection="jobs", timezone="Asia/Tokyo", timeout_seconds=60, paused=True
    )
    only = translated(daily(), wishes)

    assert only.document is not None
    assert only.document["schedule_id"] == "old.one"
    assert only.document["spec"]["timezone"] == "Asia/Tokyo"
    assert only.document["action"]["connection"] == "jobs"
    assert only.document["action"]["timeout_seconds"] == 60
    assert only.document["paused"] is True


@pytest.mark.parametrize(
    ("conf", "zone"),
    [
        ({}, "UTC"),
        ({"timezone": "Europe/Istanbul"}, "Europe/Istanbul"),
        ({"timezone": "Europe/Istanbul", "enable_utc": False}, "Europe/Istanbul"),
    ],
)
def test_the_zone_is_that_of_the_app(conf, zone):
    only = translated(daily(), **conf)

    assert only.document is not None
    assert only.document["spec"]["timezone"] == zone


def test_the_zone_of_a_machine_is_the_one_that_it_names(monkeypatch):
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    only = translated(daily(), days=3, enable_utc=False)

    assert only.document is not None
    assert only.document["spec"]["timezone"] == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("when", "spec", "remarks"),
    [
        pytest.param(1800, {"intervals": [{"every": "PT30M"}]}, {("note", "anchor")}, id="a number"),
        pytest.param(timedelta(days=2), {"intervals": [{"every": "P2D"}]}, {("note", "anchor")}, id="a timedelta"),
        pytest.param(0.5, {"intervals": [{"every": "PT1S"}]}, {("approximate", "interval")}, id="half a second"),
        pytest.param(90.5, {"intervals": [{"every": "PT1M30S"}]}, {("approximate", "interval")}, id="a fraction"),
        pytest.param(schedule(3600, relative=True), {"cron_expressions": ["0 * * * *"]}, set(), id="full hours"),
        pytest.param(schedule(86400, relative=True), {"cron_expressions": ["0 0 * * *"]}, set(), id="midnight"),
        pytest.param(
            schedule(7 * 86400, relative=True),
            {"intervals": [{"every": "P7D", "offset": "P6DT21H"}]},
            {("approximate", "relative"), ("note", "anchor")},
            id="a midnight every seven days",
        ),
        pytest.param(
            schedule(600, relative=True), {"intervals": [{"every": "PT10M"}]}, {("note", "anchor")}, id="10 m"
        ),
    ],
)
def test_intervals(when, spec, remarks):
    only = translated(when, timezone="Europe/Istanbul", days=30)

    assert only.document is not None
    assert only.document["spec"] == {"timezone": "Europe/Istanbul", **spec}
    assert remarks <= said(only)


@pytest.mark.parametrize(
    ("options", "document", "remark"),
    [
        pytest.param({"expires": 90}, {"misfire_grace_seconds": 90}, ("note", "expires"), id="expires in seconds"),
        pytest.param(
            {"expires": timedelta(hours=1)}, {"misfire_grace_seconds": 3600}, ("note", "expires"), id="in an hour"
        ),
        pytest.param({"expires": "soon"}, {}, ("approximate", "expires"), id="expires in no time"),
        pytest.param({"priority": 7}, {"priority": 7}, ("note", "priority"), id="priority"),
        pytest.param({"priority": 255}, {"priority": 9}, ("note", "priority"), id="priority of AMQP"),
        pytest.param({"countdown": 10}, {}, ("approximate", "countdown"), id="countdown"),
        pytest.param({"headers": {"a": 1}}, {}, ("approximate", "headers"), id="headers"),
        pytest.param({"link": object()}, {}, ("approximate", "link"), id="link"),
        pytest.param({"compression": "zlib", "soft_time_limit": 3}, {}, ("note", "options"), id="others"),
    ],
)
def test_options(options, document, remark):
    only = translated(daily(), entry={"options": options}, days=3)

    assert only.document is not None
    assert document.items() <= only.document.items()
    assert remark in said(only)


def test_messages_that_expire_at_a_moment_end_the_schedule():
    ends = datetime(2026, 6, 1, 4, tzinfo=UTC)
    only = translated(daily(), entry={"options": {"expires": ends}}, days=3)
    over = translated(daily(), entry={"options": {"expires": datetime(2025, 6, 1, tzinfo=UTC)}}, days=3)

    assert only.document is not None
    assert only.document["spec"]["end_at"] == "2026-06-01T03:59:59.999999Z"
    assert over.document is None
    assert ("refused", "expires") in said(over)


def test_a_time_limit_is_the_time_of_a_run():
    by_option = translated(daily(), entry={"options": {"time_limit": 30}}, days=3, task_time_limit=99)
    by_app = translated(daily(), days=3, task_time_limit=99)

    assert by_option.document is not None
    assert by_app.document is not None
    assert by_option.document["action"]["timeout_seconds"] == 30
    assert by_app.document["action"]["timeout_seconds"] == 99


def test_what_beat_does_not_make_up_for_is_not_caught_up_with():
    by_crontab = translated(daily(), days=3, beat_cron_starting_deadline=900)
    by_interval = translated(60, days=3, beat_cron_starting_deadline=900)

    assert by_crontab.document is not None
    assert by_interval.document is not None
    assert by_crontab.document["catchup_window_seconds"] == 900
    assert "catchup_window_seconds" not in by_interval.document


def test_redis_counts_priorities_the_other_way_round():
    entry = BeatEntry("one", "send", Every(60), "UTC", options={"priority": 0})
    (only,) = translate(CeleryApp("proj", NOW, (entry,), transport="redis"), TranslationOptions())

    assert only.document is not None
    assert only.document["priority"] == 9


@pytest.mark.parametrize(
    ("conf", "options", "queue", "is_exact"),
    [
        pytest.param({}, {}, None, True, id="the default queue"),
        pytest.param({"task_default_queue": "jobs"}, {}, "jobs", True, id="the app's own default"),
        pytest.param({"task_routes": {"se*": {"queue": "slow"}}}, {}, "slow", True, id="by the app's routes"),
        pytest.param({"task_routes": {"se*": {"queue": "slow"}}}, {"queue": "fast"}, "fast", True, id="by option"),
        pytest.param(
            {"task_queues": {"media": {"exchange": "m", "routing_key": "media.video"}, "celery": {}}},
            {"exchange": "m", "routing_key": "media.video"},
            "media",
            True,
            id="by exchange and key",
        ),
        pytest.param({}, {"exchange": "m", "routing_key": "nowhere"}, None, False, id="to no queue"),
        pytest.param(
            {"task_create_missing_queues": False, "task_queues": {"celery": {}}},
            {"queue": "gone"},
            "gone",
            False,
            id="to a queue that is not there",
        ),
    ],
)
def test_the_queue_is_where_the_app_routes_it(conf, options, queue, is_exact):
    only = translated(daily(), entry={"options": options}, days=3, **conf)

    assert only.document is not None
    assert only.document["action"].get("queue") == queue
    assert (only.weight is Weight.NOTE) is is_exact


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"args": (date(2026, 1, 1),)}, "args.0 is datetime.date(2026, 1, 1) (date)"),
        ({"kwargs": {"a": {"b": float("nan")}}}, "kwargs.a.b is nan"),
        ({"args": "abc"}, "args must be a list"),
        ({"args": (10**400,)}, "args.0 is a number that is too large"),
        ({"args": ("\udcff",)}, "args.0 is '\\udcff', which contains an unpaired surrogate"),
        ({"args": ("\x00",)}, "is not a valid schedule: action.args.0: contains the character U+0000"),
        ({"options": {"queue": " q"}}, "is not a valid schedule: action.queue: must be printable"),
        ({"kwargs": {"a": {1: 2}}}, "kwargs.a is {1: 2} (dict)"),
    ],
)
def test_arguments_that_are_no_json_are_refused(arguments, told):
    only = translated(daily(), entry=arguments, days=3)

    assert only.document is None
    (remark,) = [each for each in only.remarks if each.weight is Weight.REFUSED]
    assert remark.text.startswith(told)


class Workdays(crontab):
    pass


@pytest.mark.parametrize(
    ("when", "remark"),
    [
        pytest.param(Workdays(minute=0, hour=1), ("approximate", "schedule"), id="a subclass"),
        pytest.param(
            crontab(minute=0, hour=1, nowfun=lambda: datetime(2001, 1, 1, tzinfo=UTC)),
            ("approximate", "nowfun"),
            id="a custom clock",
        ),
    ],
)
def test_what_is_somebody_s_own_is_only_alike(when, remark):
    only = translated(when, days=3)

    assert only.document is not None
    assert remark in said(only)


def test_an_interval_that_is_meant_never_to_end_is_that_entry_s_trouble():
    only = translated(timedelta(days=36_500), days=3)

    assert only.document is None
    assert ("refused", "schedule") in said(only)


def test_a_clock_that_only_has_a_zone_is_no_other_clock():
    only = translated(crontab(minute=0, hour=1, nowfun=lambda: datetime.now(UTC)), days=3)

    assert only.weight is Weight.NOTE


@pytest.mark.parametrize(
    ("entry", "remark"),
    [
        pytest.param(BeatEntry("a", "t", Foreign("solar", "<solar: sunrise>"), "UTC"), "schedule", id="the sun"),
        pytest.param(BeatEntry("a", "t", Foreign("unknown", "<mine>"), "UTC"), "schedule", id="an unknown class"),
        pytest.param(BeatEntry("a", "t", ClockedSchedule(NOW), "UTC"), "clocked", id="a moment that is over"),
        pytest.param(BeatEntry("a", "t", Every(0), "UTC"), "interval", id="must be greater than 0"),
        pytest.param(BeatEntry("a", "", Every(60), "UTC"), "task", id="no task"),
        pytest.param(BeatEntry("a", "t", Every(60), None), "timezone", id="a zone without a name"),
        pytest.param(BeatEntry("a", "t", Every(60), "Mars/Olympus"), "timezone", id="no zone"),
        pytest.param(BeatEntry("a", "t", Every(60), "UTC", one_off=True, sent=1), "one_off", id="sent already"),
        pytest.param(BeatEntry("a", "t", Every(60), "UTC", end_at=NOW), "expires", id="ended"),
    ],
)
def test_what_has_no_equal_is_refused(entry, remark):
    (only,) = translate(CeleryApp("proj", NOW, (entry,)), TranslationOptions())

    assert only.document is None
    assert ("refused", remark) in said(only)
    assert bundle_of(CeleryApp("proj", NOW, (entry,)), [only], approximate=True)["schedules"] == []


def test_rows_of_a_table_say_more():
    row = BeatEntry(
        "a", "t", ClockedSchedule(NOW + DAY + 1), "UTC", enabled=False, one_off=True, start_at=NOW + 1, note="by hand",
        known_task=False, not_stepped="ValueError: no",
    )  # fmt: skip
    (only,) = translate(CeleryApp("proj", NOW, (row,)), TranslationOptions())

    assert only.document is not None
    assert only.document["spec"] == {
        "timezone": "UTC",
        "at": ["2026-01-02T00:00:01Z"],
        "start_at": to_rfc3339(NOW + 1),
    }
    assert {"paused": True, "max_runs": 1, "note": "by hand"}.items() <= only.document.items()
    assert {("note", about) for about in ("enabled", "one_off", "task", "schedule")} <= said(only)


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["nightly-report"], ["nightly-report"]),
        (["add every 10"], ["add-every-10"]),
        (["  päivä/1 "], ["p-iv-1"]),
        (["a b", "a-b"], ["a-b-c8687a08", "a-b"]),
        (["日報"], ["entry-aabb91da"]),
        (["x" * 200, "x" * 201], None),
    ],
)
def test_ids_are_made_of_names(names, ids):
    found = schedule_ids(names)

    assert ids is None or list(found.values()) == ids
    assert len(set(found.values())) == len(names)
    assert all(len(each) <= MAX_ID for each in found.values())


def test_the_bundle_has_what_is_the_same_and_what_is_alike_if_asked():
    both = [crontab(minute=0, hour=0, day_of_month=13, day_of_week="fri"), 0.5]
    app = described({f"e{number}": {"schedule": when} for number, when in enumerate(both)}, days=3)
    translations = translate(app, TranslationOptions())
    same = bundle_of(app, translations, approximate=False)
    alike = bundle_of(app, translations, approximate=True)

    assert same["bundle"] == "celery:proj"
    assert [each["name"] for each in same["calendars"]] == ["celery:13:fri"]
    assert [each["schedule_id"] for each in same["schedules"]] == ["e0"]
    assert [each["schedule_id"] for each in alike["schedules"]] == ["e0", "e1"]
    read_bundle(alike["bundle"], {"schedules": alike["schedules"], "calendars": alike["calendars"]})
