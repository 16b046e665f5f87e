"""`surfaces.py` finds each public surface, and says what differs between two."""

from __future__ import annotations

import pytest
from surfaces import ROOT, SURFACES, differences, in_a_process

# One entry of each surface: its path, and what it must say.
KNOWN = {
    "openapi": ("paths", "/api/schedules/{schedule_id}", "put", "operationId"),
    "routes": ("/api/schedules",),
    "commands": ("schedule list", "--status", "help"),
    "help": ("schedule list --help",),
    "exit-codes": ("a server answers 404",),
    "settings": ("Storage and address: `data_dir`",),
    "setting-types": ("data_dir",),
    "metrics": ("Metrics: `horarium_run_ends_total`",),
    "history-events": ("Schedule events: `ScheduleTriggered`",),
    "schedule-fields": ("Schedule: `assignee_id`",),
    "delivery": ("Delivery: `http`",),
    "log-events": ("launcher_load_failed",),
    "sqlite": ("table schedules",),
    "postgresql": ("table schedules",),
    "names": ("horarium", "Client", "pause_schedule"),
    "client-errors": ("404 run_not_found",),
    "entry-points": ("scripts",),
}


@pytest.mark.long
def test_every_surface_of_this_checkout_can_be_read() -> None:
    found = in_a_process(ROOT, list(SURFACES), set())
    assert set(found) == set(KNOWN)
    for surface, path in KNOWN.items():
        value = found[surface]
        for key in path:
            assert key in value, (surface, path, key)
            value = value[key]
        assert value
    assert found["exit-codes"]["a server answers 404"] == 5


@pytest.mark.parametrize(
    ("base", "here", "said"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": [{"c": 1, "d": 2}]}, {"a": [{"d": 2, "c": 1}]}, []),
        ({"a": 1}, {}, ["- a"]),
        ({}, {"a": 1}, ["+ a: 1"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["~ a › b\n    -1\n    +2"]),
        ({"a": ["x", "y"]}, {"a": ["x", "z"]}, ["~ a", "     x", "    -y", "    +z"]),
        ({"a": [1]}, {"a": "1"}, ["~ a\n    -[1]\n    +1"]),
        ({"a": None}, {"a": False}, ["~ a\n    -null\n    +false"]),
        ({"a": 1}, {"a": True}, ["~ a\n    -1\n    +true"]),
    ],
)
def test_a_difference_is_said_with_its_path(base: object, here: object, said: list[str]) -> None:
    assert list(differences(base, here)) == said
