"""Many hands at one resources: edits, triggers and ticks at once leave a history without a gap or a double."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from operations.desks import ADMIN, NOON, Office, document, without_gaps

from horarium.engine.ticker import Ticker
from horarium.features.cluster.verification import verify
from horarium.features.runs.starts import start_run
from horarium.features.schedules import lifecycle, triggers
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.backfills import backfill
from horarium.features.schedules.triggers import trigger
from horarium.platform.errors import ScheduleAlreadyExists
from horarium.platform.wire import WriteOutcome

pytestmark = pytest.mark.both_databases

THREADS = 8


def _at_once(works: list[Callable[[], object]]) -> list[object]:
    with ThreadPoolExecutor(THREADS) as pool:
        return [done.result() for done in [pool.submit(work) for work in works]]


def test_history_has_no_gap_under_concurrent_edits_triggers_and_ticks(office: Office) -> None:
    office.create(overlap_policy="buffer_all")
    office.clock.move(1_000)

    def edit(number: int) -> None:
        schedule_service.update(office.resources, ADMIN, "nightly", {"note": f"note {number}"})

    def turn(number: int) -> None:
        change = lifecycle.pause if number % 2 else lifecycle.resume
        change(office.resources, ADMIN, "nightly")

    def tick(number: int) -> None:
        Ticker(office.resources.database, office.clock, f"ticker-{number}").step()

    works: list[Callable[[], object]] = []
    for number in range(12):
        works += [
            lambda n=number: edit(n),
            lambda n=number: tick(n),
            lambda: triggers.trigger(office.resources, ADMIN, "nightly", even_if_paused=True),
            lambda n=number: turn(n),
        ]
    _at_once(works)
    events = office.events()
    assert without_gaps(events)
    assert len([event for event in events if event.event_type == "ScheduleUpdated"]) == 12
    assert list(verify(office.resources, ADMIN)) == []


def test_one_of_many_creations_wins(office: Office) -> None:
    def create() -> str:
        try:
            return office.create().outcome.value
        except ScheduleAlreadyExists:
            return "refused"

    answers = _at_once([create] * THREADS)
    assert sorted(answers) == ["created", *["refused"] * (THREADS - 1)]  # type: ignore[type-var]  # all are texts


def test_many_upserts_of_the_same_make_one_schedule(office: Office) -> None:
    works: list[Callable[[], object]] = [
        lambda: schedule_service.upsert(office.resources, ADMIN, document()).outcome for _ in range(THREADS)
    ]
    answers = _at_once(works)
    assert answers.count(WriteOutcome.CREATED) == 1
    assert answers.count(WriteOutcome.UNCHANGED) == THREADS - 1
    assert office.kinds() == ["Created"]


def test_one_key_starts_one_run_whoever_is_first(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    triggered = _at_once([lambda: trigger(office.resources, ADMIN, "nightly", key="k").run_id] * THREADS)
    started = _at_once([lambda: start_run(office.resources, ADMIN, {"workflow_id": "w"}, key="s").run_id] * THREADS)
    assert (len(set(triggered)), len(set(started))) == (1, 1)
    assert len(office.runs()) == 1


def test_two_backfills_of_one_window_make_each_run_once(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    minutes = 60 * 1_000_000

    def fill() -> int:
        return backfill(office.resources, ADMIN, "nightly", start=NOON - 20 * minutes, end=NOON).started

    assert sum(_at_once([fill] * THREADS)) == 20  # type: ignore[arg-type]  # all are numbers
    assert without_gaps(office.events())
