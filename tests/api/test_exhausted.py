"""Whoever puts a definition in place again does not ask for its used-up runs again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from horarium import Horarium
from horarium.serve.service import put_templates
from horarium.testing import TestService, service

ONCE: dict[str, Any] = {"schedule_id": "once", "cron_expr": "0 2 * * *", "workflow_type": "w", "max_runs": 1}


@pytest.fixture
def service_url(sqlite_template: Path, tmp_path: Path) -> str:
    """One database will do: what is asked of it is asked elsewhere too."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'horarium.db')}"


@pytest.fixture
def used_up(http: httpx.Client) -> httpx.Client:
    assert http.post("/api/schedules/upsert", json=ONCE).status_code == 201
    assert http.post("/api/schedules/once/trigger").json()["outcome"] == "triggered"
    return http


@pytest.mark.parametrize("path", ["/api/schedules/upsert", "/schedules/upsert"])
def test_an_equal_definition_finds_the_schedule_whose_runs_are_used_up(used_up: httpx.Client, path: str) -> None:
    document = {**ONCE, "catchup_policy": "fire_once"}  # the registrar's paths have another default
    for said in ({}, {"note": "a word"}, {"paused": True}):
        answer = used_up.post(path, json={**document, **said})
        assert answer.status_code == 200
        assert (answer.json()["outcome"], answer.json()["exhausted"]) == ("unchanged", True)
    assert used_up.get("/api/schedules/once").status_code == 404
    rows = used_up.get("/api/schedules", params={"include_deleted": True}).json()["schedules"]
    assert [(row["schedule_id"], row["status"], row["remaining_actions"]) for row in rows] == [("once", "deleted", 0)]


def test_a_changed_definition_starts_anew(used_up: httpx.Client) -> None:
    answer = used_up.post("/api/schedules/upsert", json={**ONCE, "max_runs": 2})
    assert (answer.status_code, answer.json()["outcome"]) == (201, "created")


def test_an_explicit_create_starts_anew(used_up: httpx.Client) -> None:
    assert used_up.post("/api/schedules", json=ONCE).status_code == 201
    again = used_up.post("/api/schedules/upsert", json=ONCE).json()
    assert (again["outcome"], again.get("exhausted", False), again["status"]) == ("unchanged", False, "active")


def test_what_somebody_deleted_is_made_again(http: httpx.Client) -> None:
    http.post("/api/schedules/upsert", json=ONCE)
    http.delete("/api/schedules/once")
    assert http.post("/api/schedules/upsert", json=ONCE).json()["outcome"] == "created"


def test_one_that_is_over_by_time_too_is_found(horarium: TestService, http: httpx.Client) -> None:
    document = {"schedule_id": "o", "at": ["2026-03-01T01:00:00Z"], "workflow_type": "w", "max_runs": 1}
    http.post("/api/schedules/upsert", json=document)
    horarium.advance(hours=2)
    assert http.post("/api/schedules/upsert", json=document).json()["exhausted"] is True


def test_a_task_with_max_runs_does_not_run_again_at_each_start() -> None:
    app, ran = Horarium(), []

    @app.schedule("0 * * * *", max_runs=1)
    def once() -> None:
        ran.append(1)

    with service(app=app) as running:
        for _ in range(3):
            running.advance(hours=2)
            put_templates(running.parts)
        assert len(running.runs("once")) == 1
