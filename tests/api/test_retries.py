"""Retries: one word sets them in every document, and every answer says which apply."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

CRON = {"cron_expressions": ["17 3 1 1 *"]}


def shown(http: httpx.Client, schedule_id: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/api/schedules/{schedule_id}").json()
    return found


@pytest.mark.parametrize(
    ("said", "retries"),
    [({}, 1), ({"retries": 0}, 0), ({"retries": 4}, 4), ({"retry_policy": {"max_retries": 2}}, 2)],
    ids=["default", "none", "short form", "in full"],
)
def test_a_write_and_a_description_tell_the_effective_retries(
    http: httpx.Client, said: dict[str, Any], retries: int
) -> None:
    made = http.post("/api/schedules", json={"schedule_id": "s", "spec": CRON, "workflow_type": "w", **said}).json()
    assert made["effective_retries"] == retries
    found = shown(http, "s")
    assert found["effective_retries"] == retries
    assert found.get("retry_policy", {}).get("max_retries") == (retries if said else None)
    assert "retries" not in found
    again = http.put("/api/schedules/s", json=found).json()
    assert (again["outcome"], "effective_retries" in again) == ("unchanged", False)


def test_one_word_switches_retries_off_and_on_again(http: httpx.Client) -> None:
    full = {"max_retries": 3, "backoff_ms": 50}
    http.post("/api/schedules", json={"schedule_id": "s", "spec": CRON, "workflow_type": "w", "retry_policy": full})
    for retries in (0, 2):
        assert http.patch("/api/schedules/s", json={"retries": retries}).json()["effective_retries"] == retries
        assert shown(http, "s")["retry_policy"]["backoff_ms"] == 50
    twice = http.patch("/api/schedules/s", json={"retries": 0, "retry_policy": {"max_retries": 1}})
    assert twice.status_code == 422
    wrong = http.patch("/api/schedules/s", json={"retries": -1})
    assert (wrong.status_code, list(wrong.json()["errors"])) == (422, ["retries"])


def test_the_retries_of_an_agent_are_those_of_a_schedule_that_says_nothing(http: httpx.Client) -> None:
    http.put("/api/agents/writer", json={"policies": {"retry_policy": {"max_retries": 5}}})
    for name, said, retries in (("a", {}, 5), ("b", {"retries": 0}, 0)):
        document = {"schedule_id": name, "spec": CRON, "prompt": "hi", "assignee_id": "writer", **said}
        assert http.post("/api/schedules", json=document).json()["effective_retries"] == retries
        assert shown(http, name)["effective_retries"] == retries
