"""Bodies and answers of bulk reports."""

from __future__ import annotations

from typing import ClassVar

from horarium.schedule.run import RunState
from horarium.wire.answer import Answer
from horarium.wire.bodies import Body, ReportBody
from horarium.wire.outcomes import ReportOutcome

MAX_REPORTS = 100
"""Maximum reports of one request. Their runs are locked while the client waits."""


class ReportOfRun(ReportBody, frozen=True, kw_only=True):
    """A report and its run."""

    OTHER_NAMES: ClassVar = ReportBody.OTHER_NAMES

    run_id: str


class ReportsBody(Body, frozen=True, kw_only=True):
    """At most 100 reports. Reports about the same run are processed in order."""

    reports: tuple[ReportOfRun, ...]


class RunReportOutcome(Answer, frozen=True, kw_only=True):
    """Outcome of one report: `status`, or `reason` and `message` if it was rejected."""

    run_id: str
    status: int
    outcome: ReportOutcome | None
    state: RunState | None
    reason: str | None = None
    message: str | None = None


class RunReports(Answer, frozen=True, kw_only=True):
    """Outcomes in the order of the reports."""

    outcomes: tuple[RunReportOutcome, ...]
