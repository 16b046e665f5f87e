"""What a browser is told, and what others may do with a browser."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest
from world import serving

from horarium.features.schedules import due_rows
from horarium.platform.database import Connection
from horarium.testing import TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def test_a_name_that_was_let_point_to_us_is_refused(horarium: TestService) -> None:
    """DNS rebinding: the browser of somebody inside asks us under the name of a page from outside."""
    with serving(horarium.parts) as url, httpx.Client(base_url=url) as http:
        rebound = {"Host": "evil.example:8765"}
        for path in ("/", "/docs", "/openapi.json", "/api/schedules", "/metrics"):
            refused = http.get(path, headers=rebound)
            assert (refused.status_code, refused.json()["reason"]) == (421, "unknown_host")
        assert http.get("/livez", headers=rebound).status_code == 200
        assert http.get("/healthz", headers=rebound).status_code == 200
        assert http.get("/", headers={"Host": "localhost"}).status_code == 200
        assert http.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_runs_its_own_script_and_nothing_else(horarium: TestService, path: str) -> None:
    answer = horarium.http(token=None).get(path, headers={"Accept": "text/html"})
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for kind in ("style", "script"):
        for text in re.findall(rf"<{kind}>(.*?)</{kind}>", answer.text, re.DOTALL):
            assert f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert not re.search(r"<[^>]+ (?:style|on\w+)=", answer.text)


@pytest.mark.parametrize("path", ["/", "/docs", "/api/schedules", "/nothing", "/livez"])
def test_every_answer_tells_browsers_to_be_careful(horarium: TestService, path: str) -> None:
    headers = horarium.http().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert len(headers.get_list("content-security-policy")) == 1


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz"])
def test_head_is_get_without_the_body(horarium: TestService, path: str) -> None:
    http = horarium.http(token=None)
    asked, told = http.get(path), http.head(path)
    assert (told.status_code, told.content) == (asked.status_code, b"")
    assert told.headers["content-length"] == asked.headers["content-length"]
    assert http.head("/api/schedules").status_code == 405


def test_a_long_address_is_refused(horarium: TestService) -> None:
    refused = horarium.http().get("/api/schedules", params={"text": "x" * 9_000})
    assert (refused.status_code, refused.json()["reason"]) == (414, "uri_too_long")


def test_many_probes_cost_one_look_a_second(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = list[int](), due_rows.earliest_due

    def counted(connection: Connection) -> int | None:
        looks.append(1)
        return look(connection)

    monkeypatch.setattr(due_rows, "earliest_due", counted)
    http = horarium.http(token=None)
    for _ in range(20):
        assert http.get("/healthz").status_code == 200
        assert http.get("/readyz").status_code == 503
    assert len(looks) == 1
    horarium.clock.advance(1)
    http.get("/healthz")
    assert len(looks) == 2
