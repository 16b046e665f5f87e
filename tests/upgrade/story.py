"""A dense story through every door: what is written before a migration goes on after it."""

from __future__ import annotations

import json
from typing import Any

import httpx
from api.fed import fed
from api.worlds import GUARDED, STREAM, World

from horarium.testing import TestService

_CALL = {"kind": "http", "url": "https://example.com/"}
_WORKFLOW = {
    "nodes": [
        {"id": "fetch", "action": _CALL},
        {"id": "send", "needs": ["fetch"], "gates": ["publish"], "action": _CALL},
    ]
}


class Chapter:
    """Its schedules live on: the next chapter ends what this one has begun."""

    def __init__(self, world: World, name: str) -> None:
        self.horarium: TestService = world.horarium
        self.http: httpx.Client = world.horarium.http()
        self.name = name
        self.root = ""
        self.open_run = ""
        self.nominal = ""

    def begin(self) -> None:
        """Schedules, ticks, a retry, a report, a pause, a trigger, a backfill, and a workflow that asks."""
        hourly, flow = f"hourly-{self.name}", f"flow-{self.name}"
        retried = {"max_retries": 2, "backoff_ms": 60_000}
        self._create(hourly, action=_CALL, retry_policy=retried, overlap_policy="allow_all")
        self._send("PUT", f"/api/workflows/{flow}", _WORKFLOW)
        asks = {"gates": ["publish"], "allow_requester": True}
        self._create(flow, action={"workflow_id": flow}, approval_policy=asks)
        self.horarium.advance(hours=1)
        [born] = self.horarium.runs(hourly)
        self.horarium.fail(born, error_class="provider_error")
        self.horarium.advance(minutes=2)
        [again] = self.horarium.runs(hourly)
        assert again.attempt == 1
        self.nominal = str(again.nominal)
        self.horarium.finish(again, {"rows": 7})
        self._send("POST", f"/api/schedules/{hourly}/pause", {"reason": "a rest"})
        self._send("POST", f"/api/schedules/{hourly}/resume", {})
        self.open_run = self._send("POST", f"/api/schedules/{hourly}/trigger", {})["run_id"]
        window = {"start_time": "2026-02-01T00:00:00Z", "end_time": "2026-02-01T03:00:00Z"}
        self._send("POST", f"/api/schedules/{hourly}/backfill", {**window, "overlap_policy": "allow_all"})
        self.horarium.settle()
        self.root = self.horarium.runs(flow)[0].run_id
        self._end_step("fetch")

    def end(self) -> None:
        """The question is answered, what was open ends, time goes on, and the books are right."""
        [asked] = self._get("/api/approvals", schedule_id=f"flow-{self.name}")["approvals"]
        self._send("POST", f"/api/approvals/{asked['approval_id']}/decision", {"decision": "approve"})
        self.horarium.settle()
        self._end_step("send")
        assert self._get(f"/api/runs/{self.root}")["state"] == "succeeded"
        born = self._finish_all()
        assert self._get(f"/api/runs/{self.open_run}")["state"] == "succeeded"
        events = self._get(f"/api/runs/{self.open_run}/events")["events"]
        assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
        past = self._get(f"/api/schedules/hourly-{self.name}/history", page_size=200)["events"]
        assert [each["sequence"] for each in past] == list(range(1, len(past) + 1))
        explained = self._get(f"/api/schedules/hourly-{self.name}/explain", at=self.nominal)
        assert (explained["source"], explained["fires"]) == ("history", True)
        self.horarium.advance(hours=1)
        assert self._finish_all() == born + 1
        assert fed(self.http, "run_finished", 2)
        for schedule in ("hourly", "flow"):
            self._send("POST", f"/api/schedules/{schedule}-{self.name}/pause", {})
        assert self.horarium.verify() == []

    def _finish_all(self) -> int:
        found = self.horarium.runs(f"hourly-{self.name}")
        for run in (run for run in found if run.state in ("queued", "running")):
            self.horarium.finish(run)
        return len(found)

    def _end_step(self, node: str) -> None:
        steps = self._get(f"/api/runs/{self.root}")["steps"]
        [mine] = [each["run_id"] for each in steps if each["node_id"] == node]
        [delivery] = [each for each in self.horarium.launcher.deliveries if each.run_id == mine]
        said = {"state": "succeeded", "result": {"rows": 3}, "report_token": delivery.report_token}
        self._send("POST", f"/api/runs/{mine}/report", said)
        self.horarium.settle()

    def _create(self, schedule_id: str, **fields: Any) -> None:
        self.horarium.create(schedule_id=schedule_id, cron_expressions=["0 * * * *"], **fields)

    def _send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        answer = self.http.get(path, params=query)
        assert answer.is_success, answer.text
        return dict(answer.json())


def told_everywhere(world: World) -> dict[str, str]:
    """What every route that only reads answers, as text."""
    http = world.horarium.http()
    asked = [route for route in GUARDED if route[0] == "GET" and route != STREAM and route[1] not in _OF_THE_MOMENT]
    answers = {path: world.ask(http, (method, path)) for method, path in asked}
    assert {path: each.text for path, each in answers.items() if each.status_code >= 500} == {}
    return {path: f"{each.status_code} {_in_order(each)}" for path, each in answers.items()}


# What was counted so far, what other transactions on the server hold back, and what tells of the migration itself.
_OF_THE_MOMENT = frozenset({"/metrics", "/admin/liveness", "/api/feed", "/api/audit", "/api/cluster/processes"})


def _in_order(answer: httpx.Response) -> str:
    try:
        return json.dumps(answer.json(), sort_keys=True)
    except ValueError:
        return answer.text
