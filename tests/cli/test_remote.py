"""Finding the server, and how a command ends that a server refuses or that finds none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cli.served import Server, set_environment

from horarium.cli.main import main
from horarium.platform.cli.remote import ExitCode, ending
from horarium.platform.client import errors
from horarium.platform.client.errors import ClientError
from horarium.testing.service import TOKEN


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return (main(arguments), *capsys.readouterr())


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """An address at which nobody listens, and nobody else can meanwhile."""
    monkeypatch.chdir(tmp_path)
    set_environment(monkeypatch)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Something that is no Horarium."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ServerUnavailable("x"), 3),
        (errors.UnexpectedAnswer("x"), 3),
        (errors.Unauthorized("x"), 4),
        (errors.Forbidden("x"), 4),
        (errors.ScheduleNotFound("x"), 5),
        (errors.NamespaceNotFound("x"), 5),
        (errors.NotFound("x"), 5),
        (errors.ScheduleAlreadyExists("x"), 1),
        (errors.CalendarInUse("x"), 1),
        (errors.PreconditionFailed("x"), 1),
        (errors.RateLimited("x"), 1),
        (errors.ServerError("x"), 1),
        (errors.ValidationFailed("x"), 2),
        (errors.KeyReused("x"), 2),
        (ClientError("x", status=400), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_refusal_has_its_exit_code(error: ClientError, code: int) -> None:
    assert ending(error)[0] == code


def test_every_exit_code_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "help", "options")
    told = " ".join(out.split())
    assert [code for code in ExitCode if f" {code.value} " not in told[told.index("Exit codes:") :]] == []


def test_a_server_that_is_not_there_is_3(nowhere: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "schedule", "list", "--server", nowhere)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert err.startswith(f"error: {nowhere} cannot be reached")
    assert "--server" in err


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>hello</html>"), (302, b""), (503, b"")], ids=["page", "redirect", "proxy"]
)
def test_what_is_no_horarium_is_3(nowhere: str, capsys: pytest.CaptureFixture[str], status: int, body: bytes) -> None:
    with answering(status, body) as url:
        code, out, err = run(capsys, "schedule", "list", "--server", url)
    assert (code, out, err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("address", ["nonsense", "ftp://x", "http://", "http://a?b=c", "\x00"], ids=ascii)
def test_an_address_that_is_none_is_2(nowhere: str, capsys: pytest.CaptureFixture[str], address: str) -> None:
    code, out, err = run(capsys, "run", "list", "--server", address)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_token_that_is_no_header_is_2(nowhere: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "run", "list", "--server", nowhere, "--token", "a\nb")[0] == 2


def test_a_wrong_token_is_4_and_is_not_shown(empty_server: Server) -> None:
    answer = empty_server.ask("schedule", "list", "--token", "hor_wrong")
    assert (answer.code, answer.out, answer.err.count("\n")) == (4, "", 1)
    assert "hor_wrong" not in answer.err
    assert "HORARIUM_TOKEN" in answer.err


def test_a_role_that_is_too_small_is_4(server: Server) -> None:
    viewer = server.told("token", "create", "eyes", "--role", "viewer").strip()
    assert server.ask("schedule", "list", "--token", viewer).code == 0
    answer = server.ask("token", "list", "--token", viewer)
    assert (answer.code, answer.err.count("\n")) == (4, 1)


def test_an_error_of_the_server_cannot_move_the_cursor(empty_server: Server) -> None:
    answer = empty_server.ask("schedule", "describe", "\x1b[2J")
    assert (answer.code, "\x1b" in answer.err, answer.err.count("\n")) == (5, False, 1)


@pytest.mark.parametrize("name", ["x" * 5_000, "..", "", "\udcff", "a/b", "%2e"], ids=lambda text: ascii(text[:8]))
def test_a_hostile_name_is_one_line(empty_server: Server, name: str) -> None:
    answer = empty_server.ask("schedule", "describe", name)
    assert (answer.code in (2, 5), answer.out, answer.err.count("\n")) == (True, "", 1)
    assert len(answer.err) < 2_200


# ── finding ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_flag_goes_before_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch, nowhere: str) -> None:
    set_environment(monkeypatch, nowhere, token="hor_wrong")
    assert server.ask("schedule", "list").code == 3
    assert server.ask("schedule", "list", "--server", server.url, "--token", TOKEN).code == 0


def test_the_environment_names_the_namespace(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.told("namespace", "create", "staging")
    monkeypatch.setenv("HORARIUM_NAMESPACE", "staging")
    assert json.loads(server.told("schedule", "list", "-o", "json"))["namespace"] == "staging"
    assert json.loads(server.told("schedule", "list", "-o", "json", "--namespace", "default"))["namespace"] == "default"


def test_a_local_up_is_found_by_its_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole walk: a real process, no flag and no variable, and an engine that is healthy."""
    monkeypatch.chdir(tmp_path)
    set_environment(monkeypatch, token=None)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    command = [sys.executable, "-m", "horarium", "up", "--port", "0"]
    with (tmp_path / "log.txt").open("w") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            written = json.loads((tmp_path / ".horarium" / "server.json").read_text())
            assert written["url"] in line
            created = run(capsys, "schedule", "create", "a", "--every", "PT1H", "--workflow-type", "w", "--queue", "q")
            assert (created[0], created[2][:8]) == (0, "warning:")  # nobody knows the work yet
            health = _healthy(capsys)
        finally:
            process.terminate()
            process.communicate(timeout=120)
    assert process.returncode == 0
    assert {line.partition(" (")[0] for line in health.splitlines()} == {
        f"{part}: ok"
        for part in ("server", "database", "ticker", "decisions", "feed", "subscriptions", "worker", "schedules")
    }
    assert not (tmp_path / ".horarium" / "server.json").exists()
    assert run(capsys, "schedule", "list")[0] == 3


def _healthy(capsys: pytest.CaptureFixture[str]) -> str:
    """The first beat comes a moment after the start."""
    for _ in range(100):
        code, out, err = run(capsys, "health")
        if code == 0:
            return out
        threading.Event().wait(0.1)
    raise AssertionError(out + err)


# ── health without an engine ─────────────────────────────────────────────────────────────────────────


def test_health_says_what_fails_and_what_to_do(empty_server: Server) -> None:
    answer = empty_server.ask("health")
    assert answer.code == 1
    failing = [line for line in answer.out.splitlines() if ": failing" in line]
    assert [line.partition(":")[0] for line in failing] == ["ticker", "worker"]
    assert all("start horarium" in line.replace("`", "") for line in failing)


def test_health_for_a_viewer_leaves_the_worker_open(server: Server) -> None:
    viewer = server.told("token", "create", "eyes", "--role", "viewer").strip()
    told = json.loads(server.ask("health", "-o", "json", "--token", viewer).out)
    assert {part["name"]: part["status"] for part in told["parts"]}["worker"] == "not known"
