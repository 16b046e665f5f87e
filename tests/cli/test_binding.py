"""A token is sent to the server that it is for, and to nobody who would like to have it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cli.served import set_environment

from horarium.cli.main import main

SECRET = "hor_worth_stealing"


class Thief(HTTPServer):
    """Hears what it is sent, and may send its caller on to somebody else."""

    def __init__(self, location: str | None = None) -> None:
        heard: list[str | None] = []

        class Door(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(self.headers.get("authorization"))
                self.send_response(404 if location is None else 307)
                if location is not None:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_words: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Door)
        self.heard = heard
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def open_door(thief: Thief) -> Iterator[Thief]:
    thread = threading.Thread(target=thief.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield thief
    finally:
        thief.shutdown()
        thread.join()
        thief.server_close()


@pytest.fixture
def thief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Thief]:
    monkeypatch.chdir(tmp_path)
    set_environment(monkeypatch, token=None)
    with open_door(Thief()) as opened:
        yield opened


def run(capsys: pytest.CaptureFixture[str], *typed: str) -> tuple[int, str]:
    return main(list(typed)), capsys.readouterr().err


def test_the_token_of_a_context_is_not_sent_to_another_server(thief: Thief, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "context", "create", "prod", "--server", "http://127.0.0.1:9", "--token", SECRET)
    run(capsys, "context", "use", "prod")
    code, err = run(capsys, "schedule", "list", "--server", thief.url)
    assert (code, thief.heard, err.count("\n")) == (2, [], 1)
    assert "the token of context prod is only sent to http://127.0.0.1:9" in err
    assert "--token" in err
    assert SECRET not in err
    run(capsys, "schedule", "list", "--server", thief.url, "--token", "hor_other")
    assert set(thief.heard) == {"Bearer hor_other"}


def test_the_token_of_the_environment_is_not_sent_to_another_server(
    thief: Thief, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "context", "create", "bare", "--server", thief.url)
    monkeypatch.setenv("HORARIUM_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("HORARIUM_TOKEN", SECRET)
    for where in (("--server", thief.url), ("--context", "bare")):
        code, err = run(capsys, "schedule", "list", *where)
        assert (code, thief.heard, err.count("\n")) == (2, [], 1)
        assert "HORARIUM_TOKEN is for http://127.0.0.1:9" in err


def test_a_folder_that_came_from_elsewhere_gets_no_token(
    thief: Thief, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".horarium").mkdir()
    (tmp_path / ".horarium" / "server.json").write_text(json.dumps({"url": "http://evil.invalid"}))
    monkeypatch.setenv("HORARIUM_TOKEN", SECRET)
    code, err = run(capsys, "schedule", "list")
    assert (code, err.count("\n")) == (2, 1)
    assert "evil.invalid" in err


def test_a_link_in_such_a_folder_leads_to_no_token(
    thief: Thief, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whoever writes a repository can put a link into it: to the token of another server, or of another service."""
    (tmp_path / "elsewhere").write_text(SECRET)
    folder = tmp_path / ".horarium"
    folder.mkdir()
    (folder / "server.json").write_text(json.dumps({"url": thief.url}))
    (folder / "admin.token").symlink_to(tmp_path / "elsewhere")
    run(capsys, "schedule", "list")
    assert set(thief.heard) == {None}
    # Inside the folder, as it is where a secret is mounted, it is the folder's own.
    (tmp_path / "elsewhere").rename(folder / "inside")
    (folder / "admin.token").unlink()
    (folder / "admin.token").symlink_to("inside")
    run(capsys, "schedule", "list")
    assert set(thief.heard) == {None, f"Bearer {SECRET}"}


def test_a_redirect_carries_no_token(thief: Thief, capsys: pytest.CaptureFixture[str]) -> None:
    with open_door(Thief(location=f"{thief.url}/api/schedules")) as sends_on:
        run(capsys, "context", "create", "prod", "--server", sends_on.url, "--token", SECRET)
        code, _ = run(capsys, "schedule", "list", "--context", "prod")
    assert (code, set(sends_on.heard), thief.heard) == (3, {f"Bearer {SECRET}"}, [])
