"""Bodies that nobody would write by hand, on every route that reads one."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from api.hostile import LENIENT
from api.worlds import OUR_PAGE, World, world

from horarium.platform.http.requests import MAX_DEPTH
from horarium.platform.http.routing import JSON, OPERATIONS

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

WITH_BODY = sorted(route for route, operation in OPERATIONS.items() if operation.body is not None)


def nested(depth: int, shape: str) -> bytes:
    opening, closing = (b'{"a":', b"}") if shape == "objects" else (b"[", b"]")
    return b'{"inputs":' + opening * (depth - 1) + b"1" + closing * (depth - 1) + b"}"


HOSTILE: dict[str, tuple[bytes, str]] = {
    "half": (b'{"a": ', "application/json"),
    "number": (b"5", "application/json"),
    "form": (b"a=b", "application/x-www-form-urlencoded"),
    "deep": (nested(900, "objects"), "application/json"),
    "deeper": (b"[" * 50_000, "application/json"),
    "wide": (b'{"x": [' + b"0," * 400_000 + b"0]}", "application/json"),
    "huge number": (b'{"limit": 1' + b"0" * 400 + b"}", "application/json"),
    "surrogate": (b'{"name": "\\ud800"}', "application/json"),
    "nul": (b'{"name": "a\\u0000b", "role": "viewer"}', "application/json"),
    "long": (b'{"name": "' + b"x" * 100_000 + b'"}', "application/json"),
    "wrong types": (b'{"name": [], "schedule_id": {}, "calendars": 5, "inputs": true}', "application/json"),
}


@pytest.fixture(scope="module")
def here(sqlite_template: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("bodies") / "horarium.db"
    path.write_bytes(sqlite_template.read_bytes())
    # All tests of the file are one token's, on a clock that stands still.
    with world(f"sqlite:///{path}", rate_limit_burst=1_000_000) as found:
        yield found


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_a_hostile_body_is_refused_and_quickly(here: World, kind: str, dialect: str) -> None:
    content, media = HOSTILE[kind]
    http = here.horarium.http()
    http.headers.update(OUR_PAGE)
    for method, path in WITH_BODY:
        for headers in ({}, {"Idempotency-Key": f"{kind} {method} {path}"}):
            begun = time.process_time()
            answer = send(http, method, path.format(**here.names), content, {"Content-Type": media, **headers})
            is_refused = 400 <= answer.status_code < 500
            assert is_refused or ((method, path) in LENIENT and answer.status_code == 200), (
                method,
                path,
                answer.status_code,
                answer.text[:300],
            )
            assert time.process_time() - begun < 5, (method, path)


def test_nobody_s_body_is_read_as_json(here: World, dialect: str) -> None:
    """Parsing is work, which strangers could make as they like: they are refused before."""
    http = here.horarium.http(token=None)
    for method, path in WITH_BODY:
        if path == "/api/session":  # its body is how one shows who one is: small ones are read
            continue
        for headers in ({}, {"Authorization": "Bearer guessed"}, {"Authorization": "Bearer hrt_0.guessed"}):
            content = b'{"report_token": "hrt_0.guessed", '
            answer = send(http, method, path.format(**here.names), content, {"Content-Type": JSON, **headers})
            assert answer.status_code in (401, 429), (method, path, headers, answer.text[:300])


def send(http: httpx.Client, method: str, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
    return http.request(method, path, content=content, headers=headers)


@pytest.mark.parametrize("shape", ["objects", "lists"])
def test_the_depth_that_is_taken_is_taken_everywhere(here: World, shape: str, dialect: str) -> None:
    """One level more is refused at the door; what is taken there the operation judges."""
    http, path = here.horarium.http(), f"/api/schedules/{here.names['schedule_id']}/trigger"
    at_door = http.post(path, content=nested(MAX_DEPTH + 1, shape))
    assert at_door.json()["errors"] == {"body": ["is nested deeper than 100 levels"]}
    for headers in ({}, {"Idempotency-Key": shape}):
        inside = http.post(path, content=nested(MAX_DEPTH, shape), headers=headers)
        assert inside.status_code in (200, 422)
        assert "body" not in inside.json().get("errors", {})
