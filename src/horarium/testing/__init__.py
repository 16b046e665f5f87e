"""Test schedules with a whole service in one process, on a clock that the test moves.

from horarium.testing import service

def test_the_report_runs_every_night() -> None:
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create({"schedule_id": "report", "cron_expressions": ["0 2 * * *"], "workflow_type": "report"})
        horarium.advance(days=3)
        assert [run.state for run in horarium.runs("report")] == ["succeeded"] * 3

Its answers are those of the client: `horarium.runs()` are `Run`s, `horarium.history()` are `HistoryEvent`s, and
`horarium.client()` is a whole `Client`.
"""

from horarium.core.lifecycle.outcome import Accepted, Busy, Finished, Refused, RunFailed, Unknown, Unreachable
from horarium.features.runs.model import Run
from horarium.features.schedules.model import HistoryEvent
from horarium.testing.doubles import FakeClock
from horarium.testing.service import TestService, service

__all__ = [
    "Accepted",
    "Busy",
    "FakeClock",
    "Finished",
    "HistoryEvent",
    "Refused",
    "Run",
    "RunFailed",
    "TestService",
    "Unknown",
    "Unreachable",
    "service",
]
