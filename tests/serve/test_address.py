"""The file by which command lines of the same machine find a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from api.worlds import OUR_PAGE

from horarium.platform.client.connection import discover
from horarium.platform.settings import Settings
from horarium.serve.data_dir import address_file, addressed, browser_address, reachable, seed_admin_token
from horarium.serve.startup import greet
from horarium.testing import TestService

URL = "http://127.0.0.1:8123"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def test_the_client_finds_a_server_while_it_runs(settings: Settings) -> None:
    with addressed(settings, URL):
        assert discover(settings.data_dir, environ={}).base_url == URL
    assert not address_file(settings).exists()
    assert list(settings.data_dir.iterdir()) == []


def test_the_address_of_a_later_server_is_left_alone(settings: Settings) -> None:
    with addressed(settings, URL):
        address_file(settings).write_text('{"url": "http://127.0.0.1:9"}')
    assert json.loads(address_file(settings).read_text())["url"] == "http://127.0.0.1:9"


def test_a_server_leaves_the_address_of_another_with_the_same_url_and_pid(settings: Settings) -> None:
    """Each container has a process 1."""
    with addressed(settings, URL), addressed(settings, URL):
        pass
    assert not address_file(settings).exists()
    first = addressed(settings, URL)
    first.__enter__()
    with addressed(settings, URL):
        first.__exit__(None, None, None)
        assert address_file(settings).exists()


def test_a_server_that_can_write_nothing_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with addressed(Settings(data_dir=tmp_path / "file"), URL):
        pass
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    ("url", "reached"),
    [
        ("http://0.0.0.0:8765", "http://127.0.0.1:8765"),
        ("http://[::]:8765", "http://[::1]:8765"),
        ("https://0.0.0.0:8765", "https://127.0.0.1:8765"),
        ("http://10.1.2.3:80", "http://10.1.2.3:80"),
        ("http://[fe80::1]:80", "http://[fe80::1]:80"),
        ("http://horarium.internal:80", "http://horarium.internal:80"),
    ],
)
def test_who_listens_everywhere_is_reached_by_loopback(url: str, reached: str) -> None:
    assert reachable(url) == reached


@pytest.mark.parametrize(
    ("url", "base", "secret", "address"),
    [
        ("http://127.0.0.1:8765", "", "hor_x", "http://127.0.0.1:8765/ui/#token=hor_x"),
        ("http://0.0.0.0:8765", "/jobs", "a b&c", "http://127.0.0.1:8765/jobs/ui/#token=a%20b%26c"),
        ("https://[::]:1", "", None, "https://[::1]:1/ui/"),
    ],
)
def test_a_browser_is_signed_in_by_what_it_never_sends(url: str, base: str, secret: str | None, address: str) -> None:
    assert browser_address(url, base, secret) == address


def test_a_code_is_shown_to_a_person_at_a_terminal_alone(horarium: TestService, tmp_path: Path) -> None:
    """And the token to nobody: a terminal, and what logs it, keeps what it shows."""
    kept, url = tmp_path / "admin.token", "http://127.0.0.1:8765"
    secret = seed_admin_token(Settings(data_dir=tmp_path), horarium.parts.database, horarium.clock)
    assert secret == kept
    said: list[str] = []
    greet(said.append, horarium.parts, url, kept, to_terminal=False)
    assert said == [f"Horarium is ready at {url} · admin token in {kept}"]
    greet(said.append, horarium.parts, url, kept, to_terminal=True)
    address, _, hint = said[2].removeprefix("Browser: ").partition(" ")
    assert hint == "(one-time sign-in link, valid for 15 minutes; for a new one run `horarium ui`)"
    assert kept.read_text().strip() not in said[2]
    code = address.removeprefix(f"{url}/ui/#token=")
    assert code.startswith("hsc_")
    http = horarium.http(token=None)
    answers = [http.post("/api/session", json={"token": code}, headers=OUR_PAGE) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 401]
    assert answers[0].json()["role"] == "admin"
    greet(said.append, horarium.parts, url, None, to_terminal=True)
    assert said[4:] == [f"Browser: {url}/ui/"]
