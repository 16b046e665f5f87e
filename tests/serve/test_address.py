"""The file by which command lines of the same machine find a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from horarium.client.discover import discover
from horarium.serve.address import address_file, addressed, reachable
from horarium.settings import Settings

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
