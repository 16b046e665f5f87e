"""Two schedules of the Durable Workflow contract, spelled as its documents and its clients spell them."""

from __future__ import annotations

from horarium.instant import from_rfc3339

INVOICES = {
    "scheduleId": "daily-invoice-sync",
    "workflowClass": "InvoiceSyncWorkflow",
    "cronExpression": "0 2 * * *",
    "arguments": ["nightly"],
    "timezone": "America/New_York",
    "overlapPolicy": "Skip",
    "labels": {"team": "billing"},
    "memo": {"origin": "scheduled"},
    "searchAttributes": {"tenant_id": "42"},
    "notes": "Runs every night at 2 AM ET.",
}
HOURLY = {"schedule_id": "hourly", "cron_expressions": ["0 * * * *"], "workflow_type": "sync"}


def epoch(moment: str) -> int:
    return from_rfc3339(moment) // 1_000_000
