"""What the contract tests write down."""

from __future__ import annotations

from typing import Any

NIGHTLY = {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"}
REPORT = {"workflow_type": "report", "task_queue": "reports"}


def nightly(schedule_id: str | None = "nightly", **more: Any) -> dict[str, Any]:
    """The arguments of `create_schedule`."""
    return {"schedule_id": schedule_id, "spec": NIGHTLY, "action": REPORT, **more}
