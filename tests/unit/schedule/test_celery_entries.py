"""A description may come from anybody's file: what is wrong with it is named, in bounded time."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from beat_apps import describe, described
from celery.schedules import crontab

from horarium.compat.celery_beat.entries import read_description
from horarium.errors import HorariumError


def entry():
    return {"schedule": crontab(minute=0, hour=4), "kwargs": {"a": [1]}}


def test_a_description_survives_a_file():
    document = describe({"one": entry()}, days=3)

    assert read_description(json.loads(json.dumps(document))) == described({"one": entry()}, days=3)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ((), [], "description: must be an object"),
        (("horarium_celery",), 2, "horarium_celery: must be 1"),
        (("app",), None, "app: is required"),
        (("now",), "yesterday", "now: 'yesterday' is not an RFC 3339 time"),
        (("now",), None, "now: is required"),
        (("entries",), {}, "entries: must be an array"),
        (("entries", 0), 7, "entries.0: must be an object"),
        (("entries", 0, "name"), "x" * 1_001, "entries.0.name: must be a string of at most 1000 characters"),
        (("entries", 0, "name"), "a\x00b", "entries.0.name: must be a string"),
        (("entries", 0, "enabled"), "yes", "entries.0.enabled: must be true or false"),
        (("entries", 0, "sent"), -1, "entries.0.sent: must be between"),
        (("entries", 0, "args"), "x", "entries.0.args: must be an array"),
        (("entries", 0, "schedule", "kind"), None, "entries.0.schedule.kind: is required"),
        (
            ("entries", 0, "schedule", "hour", "values"),
            [24],
            "entries.0.schedule.hour.values: must be between 0 and 23",
        ),
        (("entries", 0, "schedule", "hour", "values"), [], "entries.0.schedule.hour.values: must not be empty"),
        (
            ("entries", 0, "schedule"),
            {"kind": "interval", "seconds": -1},
            "entries.0.schedule.seconds: must be a number",
        ),
        (("entries", 0, "schedule"), {"kind": "clocked"}, "entries.0.schedule.at: is required"),
        (("entries", 0, "spans", 0, "fires"), [0], "entries.0.spans.fires: must be between"),
        (("entries", 0, "spans"), [{}] * 51, "entries.0.spans: must be an array of at most 50"),
    ],
)
def test_what_is_wrong_is_named(path, value, told):
    document = copy.deepcopy(describe({"one": entry()}, days=3))
    holder: list[Any] = [document]
    place: Any = holder
    for key in (0, *path)[:-1]:
        place = place[key]
    place[(0, *path)[-1]] = value

    with pytest.raises(HorariumError) as wrong:
        read_description(holder[0])
    assert wrong.value.message.startswith(told)


def test_a_name_that_is_there_twice_is_named():
    document = describe({"one": entry()}, days=3)
    document["entries"] *= 2

    with pytest.raises(HorariumError, match="'one' appears twice"):
        read_description(document)
