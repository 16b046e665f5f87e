"""The route for many reports at once: of Celery workers, and of whoever finishes more runs than requests are cheap."""

from __future__ import annotations

from typing import Any

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.problems import status_of
from horarium.api.requests import CarrierOf, Document, ResourcesOf
from horarium.api.routing import WORK, Routes
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.operations import report_batches
from horarium.operations.report_batches import Outcome
from horarium.operations.reports import Answered
from horarium.schedule.run import RunState
from horarium.store.errors import shown
from horarium.wire.outcomes import ReportOutcome
from horarium.wire.run_reports import ReportsBody, RunReportOutcome, RunReports

routes = Routes("/api", tag="runs")

_EXAMPLE = RunReportOutcome(
    run_id=examples.RUN_ID, status=200, outcome=ReportOutcome.RECORDED, state=RunState.SUCCEEDED
)
_LONGEST_MESSAGE = 1_000


@routes(
    "POST",
    "/runs/reports",
    needs=WORK,
    summary="Report the outcomes of many runs",
    body=ReportsBody,
    sends={"reports": [{"run_id": examples.RUN_ID, "state": "succeeded", "report_token": "hrt_0.MTIz"}]},
    answer=RunReports,
    example=RunReports(outcomes=(_EXAMPLE,)),
    repeatable=False,  # each report by itself is: made again it changes nothing
)
def report_runs(resources: ResourcesOf, carrier: CarrierOf, body: Document) -> Reply:
    """At most 100 reports, each with the `lease_epoch` or `report_token` of its run. Each has its own outcome.

    Callers without a token authenticate with the report tokens; these runs may belong to any namespace. Repeated
    reports change nothing.
    """
    given = body.get("reports")
    unknown = sorted(name for name in body if name != "reports")
    if unknown:
        raise InvalidDefinition({name[:100]: ["unknown field"] for name in unknown[:20]})
    if not isinstance(given, list):
        raise InvalidDefinition({"reports": ["must be a list"]})
    outcomes = report_batches.report_many(resources, carrier, given)
    return Reply(RunReports(outcomes=tuple(map(_outcome, given, outcomes))))


def _outcome(document: Any, outcome: Outcome) -> RunReportOutcome:
    if isinstance(outcome, Answered):
        run_id = id_text(outcome.run_id)
        return RunReportOutcome(run_id=run_id, status=200, outcome=outcome.outcome, state=outcome.state)
    named = document.get("run_id") if isinstance(document, dict) else None
    return RunReportOutcome(
        run_id=named[:64] if isinstance(named, str) else "",
        status=status_of(outcome),
        outcome=None,
        state=None,
        reason=outcome.reason,
        message=shown(outcome)[:_LONGEST_MESSAGE],
    )
