"""A time may be an instant, a length of time from now, or what a clock on the wall shows: the service reads it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.testing import TestService

# What a database does with an instant is no business of these.
pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

# The clock stands at midnight of 1 March in UTC; the clocks of Berlin leap on the 29th, from two to three.
BERLIN = {
    "schedule_id": "berlin",
    "spec": {"cron_expressions": ["0 * * * *"], "timezone": "Europe/Berlin"},
    "action": {"workflow_type": "report"},
}


@pytest.fixture(autouse=True)
def _berlin(http: httpx.Client) -> None:
    assert http.post("/api/schedules", json=BERLIN).status_code == 201


ENDS = [
    ({"until": "4h"}, "2026-03-01T04:00:00Z"),
    ({"until": "P1D"}, "2026-03-02T00:00:00Z"),
    ({"until": "2026-03-02T09:00"}, "2026-03-02T08:00:00Z"),
    ({"until": "2026-03-02T09:00", "timezone": "Asia/Tokyo"}, "2026-03-02T00:00:00Z"),
    ({"until": "2026-03-29T02:30"}, "2026-03-29T01:00:00Z"),
    ({"until": "2026-10-25T02:30"}, "2026-10-25T00:30:00Z"),
    ({"until": "2026-03-03"}, "2026-03-02T23:00:00Z"),
]


@pytest.mark.parametrize("path", ["/api/schedules/berlin/pause", "/schedules/pause"])
def test_a_pause_ends_when_it_was_written_and_says_when_that_is(http: httpx.Client, path: str) -> None:
    of_registrar = {"schedule_id": "berlin", "paused": True} if path == "/schedules/pause" else {}
    for said, until in ENDS:
        for outcome in ("paused", "unchanged"):
            done = http.post(path, json={**of_registrar, **said}).json()
            assert (done["outcome"], done["paused_until"]) == (outcome, until)
        assert http.get("/api/schedules/berlin").json()["paused_until"] == until


REFUSED = [
    ({"until": "2026-02-28T09:00", "timezone": "UTC"}, "until"),
    ({"until": "0s"}, "until"),
    ({"until": "soon"}, "until"),
    ({"until": "P99999D"}, "until"),
    ({"until": "4h", "timezone": "Europe/Nowhere"}, "timezone"),
    ({"timezone": "Europe/Berlin"}, "timezone"),
]


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/api/schedules/berlin/pause", {}),
        ("/schedules/pause", {"schedule_id": "berlin", "paused": True}),
        ("/api/schedules/bulk", {"action": "pause", "all": True, "dry_run": True}),
        ("/api/approvals/standing", {"schedule_id": "berlin"}),
    ],
    ids=["pause", "registrar", "bulk", "standing"],
)
def test_an_end_that_cannot_be_meant_is_refused(http: httpx.Client, path: str, rest: dict[str, Any]) -> None:
    for said, field in REFUSED:
        answer = http.post(path, json={**rest, **said})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), said
    assert http.get("/api/schedules/berlin").json()["status"] == "active"


def test_a_local_time_for_many_needs_a_zone_and_is_one_instant(http: httpx.Client) -> None:
    wish: dict[str, Any] = {"action": "pause", "all": True, "until": "2026-03-02T09:00"}
    refused = http.post("/api/schedules/bulk", json=wish)
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["until"])
    wish["timezone"] = "Europe/Istanbul"
    tried = http.post("/api/schedules/bulk", json={**wish, "dry_run": True}).json()
    done = http.post("/api/schedules/bulk", json=wish).json()
    assert tried["until"] == done["until"] == "2026-03-02T06:00:00Z"
    assert http.get("/api/schedules/berlin").json()["paused_until"] == "2026-03-02T06:00:00Z"


def test_a_standing_approval_ends_when_it_was_written(http: httpx.Client, horarium: TestService) -> None:
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="ada", role="operator", subject="ada")
    ada = horarium.http(token=issued.secret)
    body = {"schedule_id": "berlin", "gates": ["publish"], "until": "2026-03-02T09:00"}
    refused = ada.post("/api/approvals/standing", json=body)
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["until"])
    for said, until in (
        ({"until": "7d"}, "2026-03-08T00:00:00Z"),
        ({"timezone": "Europe/Istanbul"}, "2026-03-02T06:00:00Z"),
    ):
        assert ada.post("/api/approvals/standing", json={**body, **said}).json()["until"] == until


def test_a_preview_begins_with_a_day_of_the_schedule(http: httpx.Client) -> None:
    for said, first in (
        ({"from": "2026-03-02"}, "2026-03-01T23:00:00Z"),
        ({"from": "2026-03-02", "timezone": "Asia/Tokyo"}, "2026-03-01T15:00:00Z"),
        ({"from": "2026-03-02 09:00"}, "2026-03-02T08:00:00Z"),
        ({"from": "7 days"}, "2026-03-08T00:00:00Z"),
    ):
        rows = http.get("/api/schedules/berlin/preview", params={"n": "1", **said}).json()["rows"]
        assert [row["tick_at"] for row in rows] == [first], said


def test_a_moment_is_explained_where_the_schedule_is(http: httpx.Client) -> None:
    ask = {"at": "2026-03-02T09:00"}
    assert http.get("/api/schedules/berlin/explain", params=ask).json()["at"] == "2026-03-02T08:00:00Z"
    ask["timezone"] = "Asia/Tokyo"
    assert http.get("/api/schedules/berlin/explain", params=ask).json()["at"] == "2026-03-02T00:00:00Z"
    ask["timezone"] = "Europe/Nowhere"
    refused = http.get("/api/schedules/berlin/explain", params=ask)
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["timezone"])


def test_an_agenda_is_of_the_days_of_a_zone(http: httpx.Client) -> None:
    ask = {"from": "2026-03-29", "to": "2026-03-30"}
    refused = http.get("/api/agenda", params=ask)
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["from"])
    found = http.get("/api/agenda", params={**ask, "timezone": "Europe/Berlin"}).json()
    assert (found["start"], found["end"]) == ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
    assert len(found["rows"]) == 23, "the day on which the clock leaps is an hour shorter"
