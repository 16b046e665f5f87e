"""What is said and answered when many reports come in one request."""

from __future__ import annotations

from typing import ClassVar

from horarium.schedule.run import RunState
from horarium.wire.answer import Answer
from horarium.wire.bodies import Body, ReportBody
from horarium.wire.outcomes import ReportOutcome

MAX_REPORTS = 100
"""Reports of one request: somebody waits for the answer, and their runs are locked meanwhile."""


class ReportOfRun(ReportBody, frozen=True, kw_only=True):
    """A report, and the run that it is about."""

    OTHER_NAMES: ClassVar = ReportBody.OTHER_NAMES

    run_id: str


class ReportsBody(Body, frozen=True, kw_only=True):
    """At most 100. Those about one run are taken in the order in which they stand here."""

    reports: tuple[ReportOfRun, ...]


class RunReportOutcome(Answer, frozen=True, kw_only=True):
    """What came of one report, as if it had been sent alone: with `status`, or with `reason` and `message` why not."""

    run_id: str
    status: int
    outcome: ReportOutcome | None
    state: RunState | None
    reason: str | None = None
    message: str | None = None


class RunReports(Answer, frozen=True, kw_only=True):
    """In the order of the reports."""

    outcomes: tuple[RunReportOutcome, ...]
