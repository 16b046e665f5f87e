"""How tests apply bundles over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

HOURLY: dict[str, Any] = {"schedule_id": "hourly", "cron_expr": "0 * * * *", "workflow_type": "w"}
DAYS: dict[str, Any] = {"name": "days", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-01-01"]}


def apply(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = http.post("/api/apply", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def changes(http: httpx.Client, **body: Any) -> dict[str, str]:
    return {row["name"]: row["change"] for row in apply(http, **body)["changes"]}


def refused(http: httpx.Client, **body: Any) -> dict[str, Any]:
    """The same words with and without a dry run."""
    real, dry = http.post("/api/apply", json=body), http.post("/api/apply", json={**body, "dry_run": True})
    assert real.status_code >= 400
    assert (real.status_code, real.json()) == (dry.status_code, dry.json())
    told: dict[str, Any] = real.json()
    return told


def ids(http: httpx.Client, **query: Any) -> list[str]:
    return sorted(row["schedule_id"] for row in http.get("/api/schedules", params=query).json()["schedules"])
