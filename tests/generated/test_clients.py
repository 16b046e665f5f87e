"""Clients that tools make out of /openapi.json import, and do the life of a schedule with typed answers."""

from __future__ import annotations

from generated.conftest import Generated

from horarium.features.schedules.model import Schedule, Triggered, WriteResult

ANSWERS = {
    "Schedule": Schedule,
    "WriteResult": WriteResult,
    "Triggered": Triggered,
}


def test_a_schedule_lives_its_life_in_types(generated: Generated) -> None:
    generated.make_package()
    created, listed, described, triggered, paused, deleted, gone = generated.drive("life")
    assert (created["status"], created["kind"], created["outcome"]) == (201, "WriteResult", "created")
    [row] = listed["schedules"]
    assert (listed["status"], row["kind"], row["schedule_id"]) == (200, "Schedule", "made-by-a-machine")
    assert (described["status"], described["kind"], described["state"]) == (200, "Schedule", "active")
    assert described["next_fire_at"] == "2026-03-01 03:00:00+00:00", "a time is a datetime"
    assert (triggered["status"], triggered["kind"], triggered["outcome"]) == (200, "Triggered", "triggered")
    assert len(triggered["run_id"]) == 26
    assert (paused["kind"], paused["outcome"], paused["state"]) == ("WriteResult", "paused", "paused")
    assert (deleted["status"], deleted["kind"], deleted["outcome"]) == (200, "WriteResult", "deleted")
    assert (gone["status"], gone["kind"]) == (404, "Problem")


def test_models_have_the_fields_that_our_own_client_reads(generated: Generated) -> None:
    generated.make_models()
    models = generated.drive("models")
    assert {name: sorted(set(ours.__struct_fields__) - set(models[name])) for name, ours in ANSWERS.items()} == {
        name: [] for name in ANSWERS
    }
