"""Backfills: which occurrences, in which order, and that asking twice is harmless."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, NOON, Office, without_gaps

from horarium.core.decision.decide import occurrences_to_fill
from horarium.core.document.states import EventType, Origin, RunState, Status
from horarium.core.policy.queue import OverlapPolicy
from horarium.errors import BackfillTooLarge, InvalidSpec
from horarium.features.calendars import service as calendar_service
from horarium.features.cluster.verification import verify
from horarium.features.runs import occurrences
from horarium.features.runs.rows import RunFilter
from horarium.features.schedules import backfills as module
from horarium.features.schedules import lists
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.backfills import BackfillResult, backfill
from horarium.instant import DAY, HOUR, MINUTE
from horarium.platform.database import Database
from horarium.platform.database.tables import runs
from horarium.platform.errors import ScheduleNotFound
from horarium.platform.wire import FillOutcome


def _fill(office: Office, minutes: int = 5, **options: Any) -> BackfillResult:
    return backfill(office.resources, ADMIN, "nightly", start=NOON - minutes * MINUTE, end=NOON, **options)


def test_each_occurrence_of_the_window_gets_a_run_oldest_first(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    done = _fill(office)
    assert [row.nominal for row in done.rows] == [NOON - n * MINUTE for n in (5, 4, 3, 2, 1)]
    assert {row.outcome for row in done.rows} == {FillOutcome.STARTED}
    assert [run.run_id for run in office.runs()] == [row.run_id for row in done.rows]
    assert office.kinds() == ["Created", *["Triggered"] * 5]
    assert office.events()[-1].payload["outcome"] == "backfilled"
    assert without_gaps(office.events())


def test_reverse_begins_with_the_newest(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    assert [row.nominal for row in _fill(office, 3, reverse=True).rows] == [NOON - n * MINUTE for n in (1, 2, 3)]


def test_a_repeated_request_is_harmless(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    _fill(office, 3)
    again = _fill(office, 5)
    assert [row.outcome.value for row in again.rows] == ["started", "started", "skipped", "skipped", "skipped"]
    assert {row.reason for row in again.rows[2:]} == {"already_exists"}
    assert again.started == 2
    assert len(office.runs()) == 5


@pytest.mark.archived
def test_what_the_ticker_ran_is_not_run_again(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    office.tick(120)
    done = backfill(office.resources, ADMIN, "nightly", start=NOON, end=NOON + HOUR)
    assert [(row.nominal, row.reason) for row in done.rows] == [
        (NOON, None),
        (NOON + MINUTE, "already_exists"),
        (NOON + 2 * MINUTE, "already_exists"),
    ]


def test_a_dry_run_says_the_same_and_leaves_nothing(office: Office) -> None:
    office.create(overlap_policy="allow_all", budget={"max_daily_runs": 3})
    dry = _fill(office, dry_run=True)
    assert office.kinds() == ["Created"]
    assert office.runs() == []
    real = _fill(office)
    assert dry.dry_run
    assert [(row.nominal, row.outcome, row.reason) for row in dry.rows] == [
        (row.nominal, row.outcome, row.reason) for row in real.rows
    ]
    assert [row.reason for row in real.rows] == [None, None, None, "daily_limit_reached", "daily_limit_reached"]


def test_buffers_count_as_allow_all_and_the_caller_may_choose(office: Office) -> None:
    office.create(overlap_policy="buffer_one")
    assert {row.outcome.value for row in _fill(office, 3).rows} == {"started"}
    chosen = _fill(office, 5, overlap_policy=OverlapPolicy.SKIP).rows
    assert [row.outcome.value for row in chosen] == ["buffered", "buffered", "skipped", "skipped", "skipped"]


def test_with_terminate_other_only_the_last_stays(office: Office) -> None:
    office.create(overlap_policy="terminate_other")
    _fill(office, 3)
    assert office.states() == ["cancelled", "cancelled", "ready"]
    assert lists.describe(office.resources, ADMIN, "nightly").row.active == 1


def test_max_runs_ends_the_list_and_the_schedule(office: Office) -> None:
    office.create(overlap_policy="allow_all", max_runs=2)
    done = _fill(office)
    assert (len(done.rows), done.stopped) == (2, True)
    assert office.kinds()[-1] == "Deleted"


def test_a_paused_span_can_be_filled_while_paused(office: Office) -> None:
    office.create(overlap_policy="allow_all", paused=True)
    office.clock.move(180)
    done = backfill(office.resources, ADMIN, "nightly", start=NOON, end=NOON + HOUR)
    assert done.started == 4
    assert lists.describe(office.resources, ADMIN, "nightly").row.status is Status.PAUSED


def test_the_future_is_left_to_the_clock(office: Office) -> None:
    office.create()
    office.clock.move(30)
    assert backfill(office.resources, ADMIN, "nightly", start=NOON + 1, end=NOON + DAY).rows == ()


def test_too_many_are_refused_with_their_number(office: Office) -> None:
    office.create()
    with pytest.raises(BackfillTooLarge) as refused:
        _fill(office, 1_001)
    assert (refused.value.count, refused.value.limit) == (1_001, 1_000)


def test_a_thousand_fit_in_one_transaction(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    assert _fill(office, 1_000).started == 1_000
    assert lists.describe(office.resources, ADMIN, "nightly").row.fires_count == 1_000


def test_a_window_that_ends_before_it_starts_is_refused(office: Office) -> None:
    office.create()
    with pytest.raises(InvalidSpec):
        backfill(office.resources, ADMIN, "nightly", start=NOON, end=NOON)


def test_approval_is_asked_for_backfilled_runs_too(office: Office) -> None:
    office.create_for("agent-7", overlap_policy="allow_all")
    _fill(office, 2)
    assert office.states() == ["awaiting_approval", "awaiting_approval"]


# ── skips are history ────────────────────────────────────────────────────────────────────────────────


def _skips(office: Office) -> list[dict[str, Any]]:
    return [event.payload for event in office.events() if event.event_type is EventType.TRIGGER_SKIPPED]


def test_every_skip_leaves_an_event_that_says_who_asked(office: Office) -> None:
    calendar_service.create(
        office.resources, ADMIN, {"name": "ides", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-03-14"]}
    )
    office.create(
        overlap_policy="allow_all",
        spec={"cron_expressions": ["0 */6 * * *"]},
        calendars=["ides"],
        budget={"max_daily_runs": 2},
    )
    fill: dict[str, Any] = {"start": NOON - DAY - 6 * HOUR, "end": NOON + 1}
    done = backfill(office.resources, ADMIN, "nightly", **fill)
    told = [None if row.reason is None else row.reason.value for row in done.rows]
    assert told == ["calendar"] * 3 + [None, None, "daily_limit_reached"]
    assert [(each["occurrence_time"], each["reason"], each["origin"]) for each in _skips(office)] == [
        ("2026-03-14T06:00:00Z", "calendar", "backfill"),
        ("2026-03-14T12:00:00Z", "calendar", "backfill"),
        ("2026-03-14T18:00:00Z", "calendar", "backfill"),
        ("2026-03-15T12:00:00Z", "daily_limit_reached", "backfill"),
    ]
    assert _skips(office)[0]["detail"]["calendar"] == "ides"
    assert _skips(office)[0]["command_context"] == {"principal": "root", "request_id": "r-1", "source": "test"}
    assert without_gaps(office.events())
    assert list(verify(office.resources, ADMIN)) == []
    row = lists.describe(office.resources, ADMIN, "nightly").row
    assert (row.skipped_count, row.last_skip_reason) == (4, "daily_limit_reached")
    assert row.last_skipped_at == office.clock.now()
    assert [each["skipped_trigger_count"] for each in _skips(office)] == [1, 2, 3, 4]


def test_a_repeated_request_is_history_too(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    _fill(office, 2)
    _fill(office, 2)
    assert office.kinds() == ["Created", "Triggered", "Triggered", "TriggerSkipped", "TriggerSkipped"]
    assert {each["reason"] for each in _skips(office)} == {"already_exists"}
    assert lists.describe(office.resources, ADMIN, "nightly").row.skipped_count == 2
    assert list(verify(office.resources, ADMIN)) == []


@pytest.mark.both_databases
def test_the_ledger_tells_skips_of_a_backfill_from_those_of_the_clock(office: Office) -> None:
    office.create(overlap_policy="skip")
    office.tick(120)
    _fill(office, 2)
    _fill(office, 2)

    def rows(*origins: Origin) -> list[str]:
        wanted = RunFilter(states=frozenset({RunState.SKIPPED}), origins=frozenset(origins) or None)
        page = occurrences.list_occurrences(office.resources, ADMIN, "nightly", wanted)
        return [row.event.payload["origin"] for row in page.rows if isinstance(row, occurrences.Skipped)]

    assert sorted(rows()) == ["backfill", "backfill", "scheduled"]
    assert rows(Origin.BACKFILL) == ["backfill", "backfill"]
    assert rows(Origin.SCHEDULED) == ["scheduled"]
    assert rows(Origin.MANUAL) == []


# ── the writer ───────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_and_a_refusal_open_no_write_transaction(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.create(overlap_policy="allow_all", budget={"max_daily_runs": 3, "spending_limit_credits": 5})

    def no_writer(self: Database, work: object) -> None:
        raise AssertionError("the writer was taken")

    monkeypatch.setattr(Database, "write", no_writer)
    assert _fill(office, dry_run=True).started == 3
    with pytest.raises(BackfillTooLarge):
        _fill(office, 1_001)
    with pytest.raises(ScheduleNotFound):
        backfill(office.resources, ADMIN, "gone", start=NOON - HOUR, end=NOON)
    assert backfill(office.resources, ADMIN, "nightly", start=NOON + HOUR, end=NOON + DAY).rows == ()


def test_occurrences_are_listed_before_the_writer_is_taken(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.create(overlap_policy="allow_all")
    inside: list[bool] = []
    real_list, real_write = occurrences_to_fill, Database.write

    def write(self: Database, work: Any) -> Any:
        inside.append(True)
        try:
            return real_write(self, work)
        finally:
            inside.pop()

    def listed(*arguments: Any) -> list[int]:
        assert not inside, "the writer waits"
        return real_list(*arguments)

    monkeypatch.setattr(Database, "write", write)
    monkeypatch.setattr(module, "occurrences_to_fill", listed)
    assert _fill(office).started == 5


def test_an_edit_in_between_is_obeyed(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.create(overlap_policy="allow_all")
    real = Database.read

    def read_then_edit(self: Database, work: Any) -> Any:
        found = real(self, work)
        monkeypatch.setattr(Database, "read", real)
        schedule_service.update(office.resources, ADMIN, "nightly", {"spec": {"cron_expressions": ["*/2 * * * *"]}})
        return found

    monkeypatch.setattr(Database, "read", read_then_edit)
    done = _fill(office, 5)
    assert [row.nominal for row in done.rows] == [NOON - 4 * MINUTE, NOON - 2 * MINUTE]
    assert list(verify(office.resources, ADMIN)) == []


@pytest.mark.both_databases
def test_a_run_born_in_between_is_seen(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.create(overlap_policy="allow_all")
    real = Database.read

    def read_then_fill(self: Database, work: Any) -> Any:
        found = real(self, work)
        monkeypatch.setattr(Database, "read", real)
        _fill(office, 2)
        # As if retention had been at work meanwhile: only history knows the two.
        office.resources.database.write(lambda c: c.execute(sa.delete(runs)))
        return found

    monkeypatch.setattr(Database, "read", read_then_fill)
    done = _fill(office, 4)
    assert [row.reason for row in done.rows] == [None, None, "already_exists", "already_exists"]
