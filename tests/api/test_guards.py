"""A schedule's calendars, condition and rotation over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService

PARTS: list[tuple[str, Any, Any]] = [
    ("calendars", {"calendars": ["weekends"]}, ["weekends"]),
    ("calendars", ["weekends", "holidays:TR"], ["weekends", "holidays:TR"]),
    ("condition", {"pre_dispatch_condition": {"/a": {"eq": 1}}}, {"/a": {"eq": 1}}),
    ("condition", {"/a": {"eq": 1}}, {"/a": {"eq": 1}}),
    ("rotation", {"inputs_rotation": [{"n": 1}, {"n": 2}]}, [{"n": 1}, {"n": 2}]),
    ("rotation", [{"n": 1}], [{"n": 1}]),
]
FIELDS = {"calendars": "calendars", "condition": "pre_dispatch_condition", "rotation": "inputs_rotation"}


@pytest.fixture(autouse=True)
def hourly(horarium: TestService) -> None:
    horarium.create(
        schedule_id="hourly", cron_expressions=["0 * * * *"], workflow_type="sweep", overlap_policy="allow_all"
    )


def shown(http: httpx.Client, part: str) -> Any:
    return http.get("/api/schedules/hourly").json().get(FIELDS[part])


@pytest.mark.parametrize(("part", "body", "expected"), PARTS, ids=lambda value: str(value)[:30])
def test_a_part_is_set_and_cleared(http: httpx.Client, part: str, body: Any, expected: Any) -> None:
    done = http.put(f"/api/schedules/hourly/{part}", json=body)
    assert (done.json()["outcome"], done.json()["changed_fields"]) == ("updated", [FIELDS[part]])
    assert (shown(http, part), done.headers["etag"]) == (expected, '"2"')
    cleared = http.delete(f"/api/schedules/hourly/{part}")
    assert (cleared.json()["outcome"], shown(http, part)) in (("updated", None), ("updated", []))
    assert http.delete(f"/api/schedules/hourly/{part}").json()["outcome"] == "unchanged"


@pytest.mark.parametrize("part", sorted(FIELDS))
def test_a_version_that_has_passed_changes_nothing(http: httpx.Client, part: str) -> None:
    body = next(body for each, body, _ in PARTS if each == part)
    for method, sent in (("PUT", body), ("DELETE", None)):
        answer = http.request(method, f"/api/schedules/hourly/{part}", json=sent, headers={"If-Match": '"7"'})
        assert answer.status_code == 412
    good = http.put(f"/api/schedules/hourly/{part}", json=body, headers={"If-Match": '"1"'})
    assert good.json()["version"] == 2


def test_a_condition_is_replaced_and_not_merged(http: httpx.Client) -> None:
    http.put("/api/schedules/hourly/condition", json={"/a": {"eq": 1}})
    http.put("/api/schedules/hourly/condition", json={"/b": {"eq": 2}})
    assert shown(http, "condition") == {"/b": {"eq": 2}}


@pytest.mark.both_databases
@pytest.mark.parametrize("same", [True, False], ids=["the same", "another"])
def test_setting_a_rotation_begins_with_its_first_inputs(http: httpx.Client, horarium: TestService, same: bool) -> None:
    first = [{"n": 0}, {"n": 1}, {"n": 2}]
    http.put("/api/schedules/hourly/rotation", json=first)
    horarium.advance(hours=2)
    http.put("/api/schedules/hourly/rotation", json=first if same else [{"n": 10}, {"n": 11}])
    assert http.get("/api/schedules/hourly").json()["rotation_index"] == 0
    horarium.advance(hours=1)
    runs = http.get("/api/schedules/hourly/runs").json()["runs"]
    inputs = [http.get(f"/api/runs/{run['run_id']}").json()["inputs"] for run in reversed(runs)]
    assert [each["n"] for each in inputs] == [0, 1, 0 if same else 10]
    assert [event.sequence for event in horarium.history("hourly")] == list(range(1, 7))
    assert horarium.verify() == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/rotation", None),
        ("PUT", "/rotation", []),
        ("PUT", "/rotation", {"inputs_rotation": []}),
        ("PUT", "", {"inputs_rotation": []}),
        ("PATCH", "", {"inputs_rotation": []}),
    ],
    ids=str,
)
def test_clearing_a_rotation_begins_anew(
    http: httpx.Client, horarium: TestService, method: str, path: str, body: Any
) -> None:
    http.put("/api/schedules/hourly/rotation", json=[{"n": 1}, {"n": 2}])
    horarium.advance(hours=1)
    cleared = http.request(method, f"/api/schedules/hourly{path}", json=body).json()
    assert (cleared["outcome"], cleared["changed_fields"]) == ("updated", ["inputs_rotation"])
    found = http.get("/api/schedules/hourly").json()
    assert (found["rotation_index"], "inputs_rotation" in found) == (0, False)
    assert http.request(method, f"/api/schedules/hourly{path}", json=body).json()["outcome"] == "unchanged"


def test_an_equal_rotation_that_stands_at_its_beginning_changes_nothing(http: httpx.Client) -> None:
    http.put("/api/schedules/hourly/rotation", json=[{"n": 1}, {"n": 2}])
    assert http.put("/api/schedules/hourly/rotation", json=[{"n": 1}, {"n": 2}]).json()["outcome"] == "unchanged"


WRONG = [
    ("calendars", {"calendars": ["ghost"]}, "calendars.0"),
    ("calendars", {"calendars": "weekends", "x": 1}, "x"),
    ("calendars", {}, "calendars"),
    ("calendars", None, "calendars"),
    ("condition", {}, "pre_dispatch_condition"),
    ("condition", {"/a": {"resembles": 1}}, "pre_dispatch_condition"),
    ("condition", {"pre_dispatch_condition": None}, "pre_dispatch_condition"),
    ("condition", [1], "pre_dispatch_condition"),
    ("rotation", {"inputs_rotation": 5}, "inputs_rotation"),
    ("rotation", {"inputs": [1], "inputs_rotation": [1]}, "inputs_rotation"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_wrong_is_refused_with_its_name(http: httpx.Client) -> None:
    for part, body, field in WRONG:
        answer = http.put(f"/api/schedules/hourly/{part}", json=body)
        assert answer.status_code == 422, (part, body, field, answer.text)
        assert any(name.startswith(field) for name in answer.json()["errors"]), (part, body, field, answer.text)
        assert http.get("/api/schedules/hourly").json()["version"] == 1, (part, body, field)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_unknown_schedule_is_not_found(http: httpx.Client) -> None:
    assert http.put("/api/schedules/ghost/calendars", json=["weekends"]).json()["reason"] == "schedule_not_found"


def test_a_pointer_that_can_never_be_there_is_a_warning_with_the_nearest_name(http: httpx.Client) -> None:
    misspelt = {"/last_24h_stats/faild": {"lt": 3}}
    said = ["pre_dispatch_condition: '/last_24h_stats/faild' never exists; did you mean /last_24h_stats/failed?"]
    made = http.post(
        "/api/schedules",
        json={"schedule_id": "s", "cron_expr": "0 2 * * *", "workflow_type": "w", "pre_dispatch_condition": misspelt},
    )
    assert (made.status_code, made.json()["warnings"]) == (201, said)
    assert "warnings" not in http.patch("/api/schedules/s", json={"name": "n"}).json(), "it was said before"
    changed = http.patch("/api/schedules/s", json={"pre_dispatch_condition": {"/last_24h_stats/faild": {"lt": 4}}})
    assert changed.json()["warnings"] == said
    assert http.put("/api/schedules/s/condition", json=misspelt).json()["warnings"] == said
    right = http.put("/api/schedules/s/condition", json={"/last_24h_stats/failed": {"lt": 3}})
    assert (right.status_code, right.json().get("warnings", [])) == (200, [])
