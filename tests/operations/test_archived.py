"""Whoever has a word to say about a run while it moves to the archive: nothing is lost, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from archiving import move_all
from operations.desks import ADMIN, AGENT, VIEWER, Office
from sqlalchemy import Connection

from horarium.core.document.states import RunState
from horarium.features.runs import events as runs_events
from horarium.features.runs import occurrences, reports
from horarium.features.runs import service as run_service
from horarium.features.runs.reports import parse_report
from horarium.features.schedules import lists
from horarium.features.schedules.backfills import backfill
from horarium.features.schedules.health_rows import failed_runs
from horarium.platform.database import Database
from horarium.platform.ids import id_text
from horarium.platform.wire import ReportOutcome, StopOutcome

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
_PATIENCE = 60


def ended(office: Office) -> str:
    """Of two runs that have ended the older one, which may move."""
    office.create()
    office.tick(60)
    office.end(office.runs()[0])
    office.tick(60)
    office.end(office.runs()[1], RunState.FAILED, error="no")
    return id_text(office.runs()[0].run_id)


def report(office: Office, run_id: str) -> ReportOutcome:
    token = office.resources.tokens.make(office.runs()[0].run_id, 0)
    said = parse_report({"state": "failed", "report_token": token})
    return reports.report(office.resources, AGENT, run_id, said).outcome


def cancel(office: Office, run_id: str) -> StopOutcome:
    return run_service.cancel(office.resources, ADMIN, run_id).outcome


def rerun(office: Office, run_id: str) -> RunState:
    occurrences.rerun(office.resources, ADMIN, run_id)
    return office.runs()[-1].state


@pytest.mark.parametrize(
    ("say", "answer"),
    [(report, ReportOutcome.LATE), (cancel, StopOutcome.UNCHANGED), (rerun, RunState.READY)],
    ids=["report", "cancel", "rerun"],
)
def test_what_is_said_while_a_run_moves_is_answered_as_before(
    office: Office, say: Callable[[Office, str], object], answer: object
) -> None:
    run_id = ended(office)
    heard: list[object] = []
    speaker = threading.Thread(target=lambda: heard.append(say(office, run_id)), daemon=True)

    def move(connection: Connection) -> int:
        moved = move_all(connection)
        speaker.start()
        _until_it_waits(office.resources.database, speaker)
        return moved

    assert office.resources.database.write(move) == 1
    speaker.join(_PATIENCE)
    assert heard == [answer]
    assert run_service.get(office.resources, VIEWER, run_id).row.state is RunState.SUCCEEDED
    events = [event.event_type for event in runs_events.events(office.resources, VIEWER, run_id).events]
    assert events.count("run.late_report") == (say is report)


def _until_it_waits(database: Database, speaker: threading.Thread) -> None:
    """For a lock, or has nothing to wait for."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    deadline = time.monotonic() + _PATIENCE
    with database.engine.connect() as connection:
        while speaker.is_alive() and not connection.execute(waiting).scalar_one():
            connection.rollback()
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_schedule_is_described_and_filled_as_before(office: Office) -> None:
    """Also where the archive has the runs that make it unwell, and those of the occurrences that are asked for."""
    office.create()
    for _ in range(5):
        office.tick(60)
        office.end(office.runs()[-1], RunState.FAILED, error="no")
    nominals = [run.nominal for run in office.runs()]

    def seen() -> tuple[object, ...]:
        described = lists.describe(office.resources, VIEWER, "nightly")
        filled = backfill(office.resources, ADMIN, "nightly", start=nominals[0], end=nominals[-1], dry_run=True)
        return described, filled, office.resources.database.read(lambda c: failed_runs(c, [described.row.schedule_uid]))

    before = seen()
    assert office.resources.database.write(move_all) == 4
    assert seen() == before
