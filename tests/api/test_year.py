"""The days of a year on which a schedule fires, in its own zone, with those that its calendars refuse."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService


def add(http: httpx.Client, **spec: Any) -> None:
    document = {"schedule_id": "s", "spec": spec, "action": {"workflow_type": "w"}, "calendars": ["mine"]}
    assert http.post("/api/schedules", json=document).status_code == 201


@pytest.fixture(autouse=True)
def calendar(http: httpx.Client) -> None:
    dates = ["2026-01-02", "2026-12-25"]
    http.post("/api/calendars", json={"name": "mine", "kind": "skip_dates", "dates": dates})


def test_a_year_is_that_of_the_schedules_zone(http: httpx.Client) -> None:
    add(http, cron_expressions=["30 23 * * *"], timezone="Pacific/Auckland")
    got = http.get("/api/schedules/s/year").json()
    assert (got["schedule_id"], got["timezone"], got["year"], got["bounded"]) == ("s", "Pacific/Auckland", 2026, False)
    # It was created on 1 March at 13:00 of Auckland.
    assert len(got["days"]) == 306
    assert got["days"][0] == {"date": "2026-03-01", "fires": 1, "skips": 0, "reasons": {}}
    assert got["days"][-7] == {
        "date": "2026-12-25",
        "fires": 0,
        "skips": 1,
        "reasons": {"calendar": 1},
        "detail": "mine skips 2026-12-25",
    }
    assert http.get("/api/schedules/s/year", params={"year": 2025}).json()["days"] == []
    leap = http.get("/api/schedules/s/year", params={"year": 2028}).json()
    assert (len(leap["days"]), leap["days"][-1]["date"]) == (366, "2028-12-31")
    assert all(day["fires"] == 1 for day in leap["days"])


def test_a_year_of_seconds_has_an_answer(http: httpx.Client) -> None:
    add(http, cron_expressions=["* * * * * *"])
    assert http.patch("/api/schedules/s", json={"overlap_policy": "allow_all"}).is_success
    days = http.get("/api/schedules/s/year", params={"year": 2026}).json()["days"]
    assert sum(day["fires"] for day in days) == 305 * 86_400 - 1  # that of its creation is not among them
    assert sum(day["skips"] for day in days) == 86_400


@pytest.mark.both_databases
def test_a_year_far_ahead_is_not_walked_to(http: httpx.Client) -> None:
    add(http, cron_expressions=["* * * * * *"])
    days = http.get("/api/schedules/s/year", params={"year": 9891}).json()["days"]
    assert sum(day["fires"] for day in days) == 365 * 86_400


@pytest.mark.parametrize("year", ["1900", "9892", "-1", "soon", "99999999999999999999"])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_years_that_are_none_are_refused(http: httpx.Client, year: str) -> None:
    add(http, cron_expressions=["0 0 * * *"])
    answer = http.get("/api/schedules/s/year", params={"year": year})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["year"])


def test_a_schedule_that_is_not_there_has_no_year(http: httpx.Client, horarium: TestService) -> None:
    add(http, cron_expressions=["0 0 * * *"])
    http.post("/api/namespaces", json={"namespace": "other"})
    assert horarium.http(namespace="other").get("/api/schedules/s/year").status_code == 404
    assert http.get("/api/schedules/nobody/year").json()["reason"] == "schedule_not_found"
