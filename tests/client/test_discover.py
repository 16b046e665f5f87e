"""Where the client finds its server and its token."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from horarium.client.client import AsyncClient, Client
from horarium.errors import InvalidDefinition
from horarium.platform.client.connection import discover
from horarium.platform.client.trust import on_this_machine, same_server


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


# ── a token and its server ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a", "http://a/", True),
        ("http://a", "HTTP://A:80", True),
        ("https://a", "https://a:443/", True),
        ("https://a/b/", "https://a/b", True),
        ("https://a", "http://a", False),
        ("https://a", "https://a:8443", False),
        ("https://a", "https://a.evil", False),
        ("https://a", "https://a@evil", False),
        ("https://a", "https://evil/a", False),
        ("https://a/b", "https://a/c", False),
        ("http://[::1]:80", "http://[::1]", True),
        ("nonsense", "nonsense", False),
        ("http://a:port", "http://a:port", False),
        ("http://[", "http://[", False),
    ],
)
def test_which_addresses_are_one_server(one: str, other: str, same: bool) -> None:
    assert same_server(one, other) is same_server(other, one) is same


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8765", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:1", True),
        ("http://localhost", True),
        ("http://0.0.0.0:8765", True),
        ("http://10.0.0.1", False),
        ("http://localhost.evil", False),
        ("http://127.0.0.1.evil", False),
        ("http://127.0.0.1@evil", False),
        ("nonsense", False),
    ],
)
def test_which_addresses_are_on_this_machine(url: str, here: bool) -> None:
    assert on_this_machine(url) is here


ENVIRON = {"HORARIUM_SERVER": "https://prod", "HORARIUM_TOKEN": "hor_prod"}


def test_a_variable_s_token_goes_to_the_variable_s_server(tmp_path: Path) -> None:
    assert discover(tmp_path, environ=ENVIRON).token == "hor_prod"
    assert discover(tmp_path, server="https://prod:443/", environ=ENVIRON).token == "hor_prod"
    assert discover(tmp_path, server="https://evil", token="hor_evil", environ=ENVIRON).token == "hor_evil"
    with pytest.raises(InvalidDefinition, match="HORARIUM_TOKEN is for https://prod and is not sent to https://evil"):
        discover(tmp_path, server="https://evil", environ=ENVIRON)


def test_the_token_of_the_directory_goes_to_its_server_by_whatever_name_it_is_asked(home: Path) -> None:
    assert discover(home, server="http://127.0.0.1:9000/", environ={}).token == "hor_file"


def test_a_directory_that_somebody_else_wrote_gets_no_token_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever works in a folder that came from elsewhere has not said which server is meant."""
    trap = tmp_path / ".horarium"
    trap.mkdir()
    (trap / "server.json").write_text(json.dumps({"url": "https://evil.example"}))
    monkeypatch.chdir(tmp_path)
    for said in ({"environ": {"HORARIUM_TOKEN": "hor_mine"}}, {"token": "hor_mine", "environ": {}}):
        with pytest.raises(InvalidDefinition, match=r"names https://evil.example, which is on another machine"):
            discover(**said)
    assert discover(environ={}).token is None
    named = {"HORARIUM_TOKEN": "hor_mine", "HORARIUM_DATA_DIR": str(trap)}
    assert discover(environ=named).token == "hor_mine"
