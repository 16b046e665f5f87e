"""The HTTP API asked as a reader of the source documents would ask it: JSON in, JSON out."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import Accepted, TestService

runs_stay_open = pytest.mark.parametrize("answer", [Accepted()], ids=["accepted"])
"""Targets accept and never finish: a test ends the runs itself."""


def begins(moment: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("start", [moment], ids=[moment[:10]])


class Door:
    """An answer that is not the expected one fails the test with its text."""

    def __init__(self, horarium: TestService, namespace: str | None = None) -> None:
        self._http = horarium.http(namespace=namespace)

    def get(self, path: str, *, status: int = 200, **query: Any) -> Any:
        return self._checked(self._http.get(path, params=query), {status})

    def post(self, path: str, body: Any = None, *, status: int | None = None) -> Any:
        return self._checked(self._http.post(path, json={} if body is None else body), _expected(status))

    def put(self, path: str, body: Any, *, status: int = 200) -> Any:
        return self._checked(self._http.put(path, json=body), {status})

    def patch(self, path: str, body: Any, *, status: int = 200) -> Any:
        return self._checked(self._http.patch(path, json=body), {status})

    def delete(self, path: str, *, status: int = 200) -> Any:
        return self._checked(self._http.delete(path), {status})

    def create(self, document: dict[str, Any] | None = None, /, **fields: Any) -> dict[str, Any]:
        return self.post("/api/schedules", {**(document or {}), **fields}, status=201)

    def describe(self, schedule_id: str) -> dict[str, Any]:
        return self.get(f"/api/schedules/{schedule_id}")

    def runs(self, schedule_id: str) -> list[dict[str, Any]]:
        """Oldest first."""
        return self.get(f"/api/schedules/{schedule_id}/runs", page_size=200)["runs"][::-1]

    def whole_runs(self, schedule_id: str) -> list[dict[str, Any]]:
        """The same, with the inputs and results that lists leave out."""
        return [self.get(f"/api/runs/{run['run_id']}") for run in self.runs(schedule_id)]

    def events(self, schedule_id: str, *kinds: str) -> list[dict[str, Any]]:
        """Oldest first; only those kinds, where some are named."""
        found = self.get(f"/api/schedules/{schedule_id}/history", limit=500)["events"]
        return [event for event in found if not kinds or event["event_type"] in kinds]

    def nominals(self, schedule_id: str) -> list[str]:
        return [run["nominal"] for run in self.runs(schedule_id)]

    @staticmethod
    def _checked(answer: httpx.Response, expected: set[int]) -> Any:
        assert answer.status_code in expected, f"{answer.request.method} {answer.request.url}: {answer.text}"
        return answer.json() if answer.content else None


def _expected(status: int | None) -> set[int]:
    return {200, 201} if status is None else {status}
