"""The description of the API is complete, true, and can be read without a network."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from api.worlds import SCHEDULE, STREAM, World, asked_run, new_run, routes, world
from fastapi import FastAPI

from horarium.platform.http.interface import UiFiles
from horarium.platform.http.openapi import HIDDEN
from horarium.platform.http.routing import OPEN, OPERATIONS
from horarium.testing.service import AppTransport

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

DELETES = [route for route in OPERATIONS if route[0] == "DELETE"]
# Made by the world itself: once more is refused.
_MADE = ("schedules", "calendars", "namespaces", "agents", "teams", "assignments")
MADE = {("POST", f"/api/{each}") for each in _MADE}
# Its example of a run is under way; a team and an assignment name it.
IN_USE = {("DELETE", "/api/workflows/{workflow_id}"), ("DELETE", "/api/agents/{agent_id}")}


@pytest.fixture
def here(database_url: str) -> Iterator[World]:
    with world(database_url) as found:
        yield found


@pytest.fixture
def described(here: World) -> dict[str, Any]:
    answer: dict[str, Any] = here.horarium.http(token=None).get("/openapi.json").json()
    return answer


def operations(described: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(verb.upper(), path): each for path, verbs in described["paths"].items() for verb, each in verbs.items()}


def test_every_route_is_described_with_an_example(described: dict[str, Any]) -> None:
    assert described["openapi"] == "3.1.0"
    shown = set(operations(described))
    hidden = {("GET", path) for path in HIDDEN}
    assert shown == set(routes()) - hidden == set(OPERATIONS) - hidden


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    references = set(re.findall(r'"\$ref": ?"#/components/schemas/(\w+)"', str(described).replace("'", '"')))
    assert references <= set(described["components"]["schemas"])
    assert {"Problem", "Schedule", "ScheduleDocument", "RunState"} <= references


def test_every_operation_says_who_may_call_it_and_what_may_go_wrong(described: dict[str, Any]) -> None:
    assert described["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert described["security"] == [{"bearer": []}]
    for route, operation in operations(described).items():
        if OPERATIONS[route].needs is OPEN:
            assert operation["security"] == []
            continue
        assert {"401", "403", "404", "429", "500", "503"} <= set(operation["responses"]), route
        assert "permission" in operation["description"], route


def test_bodies_and_preconditions_are_described(described: dict[str, Any]) -> None:
    found = operations(described)
    for route, operation in OPERATIONS.items():
        if operation.path not in HIDDEN:
            assert ("requestBody" in found[route]) == (operation.body is not None), route
    put = found["PUT", "/api/schedules/{schedule_id}"]
    assert {"If-Match", "Idempotency-Key", "X-Namespace", "confirm", "schedule_id", "whole"} == {
        each["name"] for each in put["parameters"]
    }
    assert "412" in put["responses"]


def test_every_example_is_accepted(here: World, described: dict[str, Any]) -> None:
    """And every status that comes is one that was declared."""
    http, found = here.horarium.http(), operations(described)
    for route in [*(route for route in OPERATIONS if route not in DELETES and route[1] not in HIDDEN), *DELETES]:
        answer = ask(here, http, route)
        assert str(answer.status_code) in found[route]["responses"], (route, answer.text)
        if route in MADE | IN_USE:
            assert answer.status_code == 409, route
        elif route != STREAM and OPERATIONS[route].needs is not OPEN and not route[1].startswith("/admin/liveness"):
            assert answer.is_success, (route, answer.text)


OF_HOLDERS = {("POST", f"/api/runs/{{run_id}}/{verb}") for verb in ("heartbeat", "logs")}


def ask(here: World, http: httpx.Client, route: tuple[str, str]) -> httpx.Response:
    if route[0] == "DELETE" and "{schedule_id}" in route[1]:
        http.post("/schedules/upsert", json=OPERATIONS["POST", "/schedules/upsert"].example.body)
    if route in OF_HOLDERS:
        new_run(here.horarium, http)
        [run] = http.post("/api/queues/reports/claim", json={"limit": 1}).json()["runs"]
        body = {**(OPERATIONS[route].example.body or {}), "lease_epoch": run["lease_epoch"]}
        return http.post(route[1].format(run_id=run["run_id"]), json=body)
    if route == ("POST", "/api/agents/{agent_id}/check"):  # the example of a write before took its address away
        http.put("/api/agents/writer", json={"url": "http://127.0.0.1:9/"})
    if route[1].endswith("/rerun"):
        anyhow = {"overlap_policy": "allow_all", "even_if_paused": True}
        run_id = http.post(f"/api/schedules/{SCHEDULE}/trigger", json=anyhow).json()["run_id"]
        http.post(f"/api/runs/{run_id}/terminate")
        return http.post(f"/api/runs/{run_id}/rerun", json={**(OPERATIONS[route].example.body or {}), **anyhow})
    if route[1] in ("/api/runs/{run_id}/approve", "/api/runs/{run_id}/reject"):
        return http.post(route[1].format(run_id=asked_run(http)), json=OPERATIONS[route].example.body)
    if route == ("POST", "/api/approvals/standing"):
        return here.ask(here.horarium.http(token=here.token("operator")), route)  # not by whoever wrote the schedule
    if route == ("DELETE", "/api/namespaces/{namespace}"):
        return http.delete("/api/namespaces/other")
    return here.ask(http, route)


def test_the_page_for_people_needs_nothing_from_elsewhere(here: World) -> None:
    answer = here.horarium.http(token=None).get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", answer.text)
    assert re.findall(r"<script[^>]*>", answer.text) == ["<script>"]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    for path in {path for _, path in routes()} - HIDDEN:
        assert f">{path}<" in answer.text
    assert SCHEDULE in answer.text


def test_the_page_for_people_lists_the_fields_of_a_body_and_has_a_form_to_try(here: World) -> None:
    shown = here.horarium.http(token=None).get("/docs").text
    assert "<td><code>spec.timezone</code></td>" in shown
    assert '<form data-method="POST" data-path="/api/schedules">' in shown
    assert '<input name="schedule_id" data-in="path" required>' in shown


def test_the_page_for_people_lists_the_fields_of_an_answer_and_the_words_that_a_field_takes(here: World) -> None:
    shown = unescape(here.horarium.http(token=None).get("/docs").text)
    assert "<td><code>schedules[].deleted_at</code></td>" in shown
    assert '<td><code>calendars[].kind</code></td><td>"only_dates" | "skip_dates"</td>' in shown
    assert '<td><code>kind</code></td><td>"only_dates" | "skip_dates" or null</td>' in shown  # of a body
    assert '<td><code>overlap_policy</code></td><td>"allow_all" | ' in shown


def test_the_kind_of_a_calendar_is_one_of_two_words(here: World) -> None:
    known = here.horarium.http(token=None).get("/openapi.json").json()["components"]["schemas"]
    assert known["CalendarKind"]["enum"] == ["only_dates", "skip_dates"]
    reference = {"$ref": "#/components/schemas/CalendarKind"}
    assert reference == known["Calendar"]["properties"]["kind"]
    assert reference in known["CalendarBody"]["properties"]["kind"]["anyOf"]


def test_every_list_of_resources_has_a_page_token(here: World) -> None:
    http = here.horarium.http()
    for name in ("agents", "teams", "assignments", "calendars"):
        assert http.get(f"/api/{name}").json()["next_page_token"] is None


def test_who_comes_by_is_told_what_this_is(here: World, tmp_path: Path) -> None:
    here.horarium.parts.api.state.ui_files = UiFiles(tmp_path)  # as on a machine where nobody has built it
    http = here.horarium.http(token=None)
    said = http.get("/").json()
    assert (said["name"], said["docs"]) == ("Horarium", "/docs")
    assert all(http.get(said[name]).status_code in (200, 503) for name in ("docs", "openapi", "health", "readiness"))
    page = http.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    assert '<a href="/docs">' in page.text
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", page.text)


def test_inside_another_application_all_links_stay_inside(here: World) -> None:
    outer = FastAPI()
    outer.mount("/jobs", here.horarium.parts.api)
    http = httpx.Client(transport=AppTransport(outer, asyncio.run), base_url="http://shop.test")
    assert http.get("/jobs/").json()["docs"] == "/jobs/docs"
    page = http.get("/jobs/docs").text
    assert '<a href="/jobs/openapi.json">' in page
    assert '<body data-base="/jobs">' in page
    assert http.get("/jobs/openapi.json").json()["servers"] == [{"url": "/jobs"}]


def test_no_other_page_of_the_framework_is_left(here: World) -> None:
    http = here.horarium.http(token=None)
    assert [http.get(path).status_code for path in ("/redoc", "/docs/oauth2-redirect")] == [404, 404]


def test_every_operation_has_a_readable_name_and_a_summary_of_its_own(described: dict[str, Any]) -> None:
    found = operations(described)
    names = [each["operationId"] for each in found.values()]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z][a-z_]{2,47}", name)] == []
    said = {route: each["summary"] for route, each in found.items()}
    assert {route: text for route, text in said.items() if len(text.split()) < 2 or text.endswith(".")} == {}


def test_every_body_and_every_answer_has_a_type(described: dict[str, Any]) -> None:
    """One of our own, by its name; a stream, a page and the metrics are text, and 204 has nothing to say."""
    for route, operation in operations(described).items():
        parts = [answer["content"] for status, answer in operation["responses"].items() if status != "204"]
        parts += [operation["requestBody"]["content"]] if "requestBody" in operation else []
        for content in parts:
            for media, each in content.items():
                schema = each["schema"].get("items", each["schema"])
                assert "$ref" in schema or not media.endswith("json"), (route, each)


@pytest.mark.parametrize("name", ["RunState", "Origin", "Status", "PublicStatus", "EventType", "Role", "OverlapPolicy"])
def test_closed_words_are_enumerations(described: dict[str, Any], name: str) -> None:
    schema = described["components"]["schemas"][name]
    assert (schema["type"], len(schema["enum"]) > 1) == ("string", True)
