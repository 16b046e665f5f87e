"""How the browser interface is served: its files, its page for every path of its own, and what is shown without it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from api.worlds import OUR_PAGE
from fastapi import FastAPI
from world import serving

from horarium.client.client import Client
from horarium.errors import InvalidDefinition
from horarium.platform.http.interface import UiFiles
from horarium.testing import TestService, service
from horarium.testing.service import AppTransport

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

PAGE = '<!doctype html><base href="/ui/" /><script type="module" src="./assets/main-1a2b.js"></script>'
SHOWN = PAGE.replace(" />", ">")
SCRIPT = b"export const answer = 42;"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def static(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "main-1a2b.js").write_bytes(SCRIPT)
    (folder / "assets" / "main-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / "secret.txt").write_text("outside")
    return folder


def with_app(running: TestService, folder: Path) -> TestService:
    running.parts.api.state.ui_files = UiFiles(folder)
    return running


@pytest.fixture
def visitor(horarium: TestService, static: Path) -> httpx.Client:
    return with_app(horarium, static).http(token=None)


def test_the_page_is_sent_for_every_path_of_the_application(visitor: httpx.Client) -> None:
    for path in ("/ui/", "/ui/schedules", "/ui/schedules/report.v2", "/ui/runs/01K/logs.js", "/ui/index.html"):
        answer = visitor.get(path)
        assert (answer.status_code, answer.text) == (200, SHOWN), path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers.get_list("cache-control") == ["no-cache"]
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    unchanged = visitor.get("/ui/", headers={"If-None-Match": f'"other", W/{answer.headers["etag"]}'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_what_is_named_by_its_content_is_kept_for_long(visitor: httpx.Client) -> None:
    plain = visitor.get("/ui/assets/main-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert (plain.content, plain.headers["vary"]) == (SCRIPT, "Accept-Encoding")
    assert plain.headers.get_list("cache-control") == ["public, max-age=31536000, immutable"]
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    packed = visitor.get("/ui/assets/main-1a2b.js", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert (packed.headers["content-encoding"], packed.content) == ("gzip", SCRIPT)
    assert packed.headers["etag"] != plain.headers["etag"]
    for accepted, coding in (("gzip;q=0", None), ("*, gzip;q=0", None), ("*;q=0, gzip", "gzip"), ("br, *", "gzip")):
        told = visitor.get("/ui/assets/main-1a2b.js", headers={"Accept-Encoding": accepted})
        assert told.headers.get("content-encoding") == coding, accepted
    assert visitor.get("/ui/favicon.svg").headers["content-type"] == "image/svg+xml"


def test_head_is_get_without_the_body(visitor: httpx.Client) -> None:
    for path in ("/ui/", "/ui/assets/main-1a2b.js", "/ui/schedules/a"):
        asked, told = visitor.get(path), visitor.head(path)
        assert (told.status_code, told.content) == (200, b"")
        assert told.headers["content-length"] == asked.headers["content-length"]
    assert visitor.post("/ui/").status_code == 405


def test_no_path_leads_out_of_the_folder_or_to_what_is_no_file(visitor: httpx.Client) -> None:
    for path in (
        "/ui/assets/gone-3c4d.js",
        "/ui/assets/",
        "/ui/assets/main-1a2b.js.gz",
        "/ui/robots.txt",
        "/ui/assets/../../secret.txt",
        "/ui/assets/..%2f..%2fsecret.txt",
        "/ui/%2e%2e%2fsecret.txt",
        "/ui/assets/%2e%2e/%2e%2e/secret.txt",
        "/ui/assets/\\..\\secret.txt",
        "/ui/assets/x%00.js",
    ):
        answer = visitor.get(path)
        assert "outside" not in answer.text
        assert (answer.status_code == 404 and answer.json()["reason"] == "not_found") or answer.text == SHOWN, path


def test_browsers_are_led_to_it_and_programs_get_json(visitor: httpx.Client) -> None:
    led = visitor.get("/", headers=HTML)
    assert (led.status_code, led.headers["location"], led.headers["vary"]) == (307, "/ui/", "Accept")
    assert visitor.get("/ui").headers["location"] == "/ui/"
    assert visitor.get("/").json()["ui"] == "/ui/"
    for accepted in ("text/html;q=0, application/json", "application/json, text/html;q=0.1", "text/htmlx", "*/*"):
        assert visitor.get("/", headers={"Accept": accepted}).json()["ui"] == "/ui/", accepted
    # Whatever a browser asks for elsewhere is no page.
    assert visitor.get("/schedules/s", headers=HTML).headers["content-type"] == "application/problem+json"
    assert visitor.get("/nothing", headers=HTML).status_code == 404


def test_without_it_a_page_says_what_is_missing(horarium: TestService, tmp_path: Path, static: Path) -> None:
    http = with_app(horarium, tmp_path / "empty").http(token=None)
    for path, status in (("/", 200), ("/ui/", 404), ("/ui/schedules", 404)):
        answer = http.get(path, headers=HTML)
        assert (answer.status_code, "make ui" in answer.text, '<a href="/docs">' in answer.text) == (status, True, True)
        assert "unsafe" not in answer.headers["content-security-policy"]
    assert http.get("/ui/assets/x.js").status_code == 404
    static.rename(tmp_path / "empty")  # built while we run
    assert http.get("/ui/").text == SHOWN


@pytest.fixture
def based(database_url: str, static: Path) -> Iterator[TestService]:
    with service(database=database_url, settings={"base_path": "/tools/jobs/"}) as running:
        yield with_app(running, static)


def test_under_a_base_path_everything_leads_back_under_it(based: TestService) -> None:
    """Whether a proxy takes it away or leaves it."""
    http = based.http()
    secret = http.post("/api/tokens", json={"name": "ada", "role": "viewer"}).json()["secret"]
    for prefix in ("", "/tools/jobs"):
        assert http.get(f"{prefix}/", headers=HTML).headers["location"] == "/tools/jobs/ui/"
        assert http.get(f"{prefix}/ui").headers["location"] == "/tools/jobs/ui/"
        assert '<base href="/tools/jobs/ui/">' in http.get(f"{prefix}/ui/schedules").text
        assert http.get(f"{prefix}/ui/assets/main-1a2b.js").content == SCRIPT
        assert http.get(f"{prefix}/").json()["docs"] == "/tools/jobs/docs"
        assert http.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": "/tools/jobs"}]
        assert http.head(f"{prefix}/healthz").status_code == 200
        assert "error" in http.get(f"{prefix}/workspaces/nobody/schedules").json()
        signed_in = http.post(f"{prefix}/api/session", json={"token": secret}, headers=OUR_PAGE)
        assert "; Path=/tools/jobs/; " in signed_in.headers["set-cookie"]
        gone = http.delete(f"{prefix}/api/session", headers=OUR_PAGE).headers.get_list("set-cookie")
        paths = ["/", "/tools/", "/tools/jobs/"]  # one that was set before there was a base path goes too
        assert [f"Path={path};" in each for path, each in zip(paths, gone, strict=True)] == [True] * 3
    assert '<body data-base="/tools/jobs">' in http.get("/docs").text
    assert http.get("/toolshed").status_code == 404


def test_mounted_in_another_application_it_stays_inside(horarium: TestService, static: Path) -> None:
    outer = FastAPI()
    outer.mount("/sched", with_app(horarium, static).parts.api)
    http = httpx.Client(transport=AppTransport(outer, asyncio.run), base_url="http://shop.test")
    assert http.get("/sched/", headers=HTML).headers["location"] == "/sched/ui/"
    assert '<base href="/sched/ui/">' in http.get("/sched/ui/agents").text
    assert http.head("/sched/ui/assets/main-1a2b.js").status_code == 200
    gone = http.delete("/sched/api/session", headers=OUR_PAGE)
    assert "; Path=/sched/; " in gone.headers["set-cookie"]
    refused = http.get("/sched/workspaces/nobody/schedules")
    assert refused.json()["error"] == refused.json()["message"]


def test_a_base_path_that_is_one_of_ours_is_refused_at_the_start(database_url: str) -> None:
    with (
        pytest.raises(InvalidDefinition, match="Choose another"),
        service(database=database_url, settings={"base_path": "/api"}),
    ):
        pass


def test_a_server_below_a_path_is_found_by_clients_and_by_those_who_watch(based: TestService) -> None:
    secret = based.http().post("/api/tokens", json={"name": "ada", "role": "owner"}).json()["secret"]
    with serving(based.parts) as url:
        with Client(f"{url}/tools/jobs", token=secret) as client:
            client.create_schedule(schedule_id="s", cron_expressions=["0 2 * * *"], workflow_type="x")
            assert [each.schedule_id for each in client.iter_schedules()] == ["s"]
        with httpx.Client(base_url=url, headers={"Host": "evil.example"}) as http:
            paths = ("/livez", "/tools/jobs/livez", "/tools/jobs/ui/")
            assert [http.get(path).status_code for path in paths] == [200, 200, 421]
