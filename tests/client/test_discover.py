"""Where the client finds its server and its token."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from horarium.client.aio import AsyncClient
from horarium.client.client import Client
from horarium.client.discover import discover


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "admin.token").write_text("hor_file\n")
    (tmp_path / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:9000", "pid": 7}))
    return tmp_path


def test_the_directory_of_a_local_server_is_enough(home: Path) -> None:
    found = discover(home, environ={})
    assert (found.base_url, found.token, found.namespace) == ("http://127.0.0.1:9000", "hor_file", None)


def test_without_anything_it_is_the_usual_port_and_no_token(tmp_path: Path) -> None:
    found = discover(tmp_path, environ={})
    assert (found.base_url, found.token) == ("http://127.0.0.1:8765", None)


def test_a_demonstration_is_found_in_the_directory_while_it_runs(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    demo.mkdir()
    (tmp_path / "admin.token").write_text("hor_own")
    (demo / "admin.token").write_text("hor_demo")
    assert discover(tmp_path, environ={}).token == "hor_own"
    (demo / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:9001"}))
    found = discover(tmp_path, environ={})
    assert (found.base_url, found.token) == ("http://127.0.0.1:9001", "hor_demo")


@pytest.mark.parametrize(("own", "demos", "url"), [(2, 1, "http://own"), (1, 2, "http://demo"), (1, 1, "http://own")])
def test_of_two_servers_the_one_that_started_last_is_found(tmp_path: Path, own: int, demos: int, url: str) -> None:
    (tmp_path / "demo").mkdir()
    for file, at, said in ((tmp_path, own, "http://own"), (tmp_path / "demo", demos, "http://demo")):
        (file / "server.json").write_text(json.dumps({"url": said}))
        os.utime(file / "server.json", (at, at))
    assert discover(tmp_path, environ={}).base_url == url


def test_the_environment_wins_over_files(home: Path) -> None:
    environ = {"HORARIUM_DATA_DIR": str(home), "HORARIUM_TOKEN": "hor_env", "HORARIUM_NAMESPACE": "acme"}
    found = discover(environ=environ)
    assert (found.base_url, found.token, found.namespace) == ("http://127.0.0.1:9000", "hor_env", "acme")


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({"HORARIUM_URL": "http://url"}, "http://url"),
        ({"HORARIUM_URL": "http://url", "HORARIUM_SERVER": "http://server"}, "http://server"),
        ({"HORARIUM_URL": "http://url", "HORARIUM_SERVER": ""}, "http://url"),
    ],
    ids=["other-name", "both", "empty"],
)
def test_the_address_has_two_names(tmp_path: Path, environ: dict[str, str], url: str) -> None:
    assert discover(tmp_path, environ=environ).base_url == url


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_that_is_told_nothing_reads_the_environment(
    monkeypatch: pytest.MonkeyPatch, kind: type[Client | AsyncClient]
) -> None:
    for name, value in (("SERVER", "http://env"), ("TOKEN", "hor_env"), ("NAMESPACE", "acme")):
        monkeypatch.setenv(f"HORARIUM_{name}", value)
    found, said = kind().connection, kind("http://said", token="hor_said", namespace="mine").connection
    assert (found.base_url, found.token, found.namespace) == ("http://env", "hor_env", "acme")
    assert (said.base_url, said.token, said.namespace) == ("http://said", "hor_said", "mine")


def test_what_was_said_wins_over_the_environment(home: Path) -> None:
    environ = {"HORARIUM_SERVER": "http://env", "HORARIUM_TOKEN": "hor_env", "HORARIUM_NAMESPACE": "acme"}
    found = discover(home, server="http://said", token="hor_said", namespace="mine", environ=environ)
    assert (found.base_url, found.token, found.namespace) == ("http://said", "hor_said", "mine")


@pytest.mark.parametrize("how", ["said", "environment"])
def test_the_token_of_the_directory_goes_to_no_other_server(home: Path, how: str) -> None:
    if how == "said":
        found = discover(home, server="https://elsewhere", environ={})
    else:
        found = discover(home, environ={"HORARIUM_SERVER": "https://elsewhere"})
    assert (found.base_url, found.token) == ("https://elsewhere", None)


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"url": 7}', '{"url": ""}', "[" * 60_000], ids=range(7))
def test_a_file_that_says_nothing_useful_is_passed_over(home: Path, content: str) -> None:
    (home / "server.json").write_text(content)
    (home / "admin.token").write_bytes(b"\xff\xfe")
    found = discover(home, environ={"HORARIUM_PORT": "9001"})
    assert (found.base_url, found.token) == ("http://127.0.0.1:9001", None)


@pytest.mark.parametrize("port", ["", "many", "-1"])
def test_a_port_that_is_none_is_passed_over(tmp_path: Path, port: str) -> None:
    assert discover(tmp_path, environ={"HORARIUM_PORT": port}).base_url == "http://127.0.0.1:8765"
