"""The real program in its own process: how it starts, ends and meets a closed pipe."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from threading import Thread

import pytest

from horarium.cli.main import main

AFTER = ["--after", "2026-03-07T12:00:00Z"]


def horarium(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "horarium", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)


def test_it_answers_on_stdout_and_is_silent_on_stderr() -> None:
    done = horarium("next", "30 2 * * *", "--tz", "America/New_York", *AFTER)
    assert (done.returncode, done.stdout, done.stderr) == (0, '["2026-03-08T07:00:00Z"]\n', "")


def test_it_refuses_with_exit_code_2_and_no_traceback() -> None:
    done = horarium("next", "0 25 * * *")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: hour: '25' is outside 0-23\n")


def test_it_reads_a_context_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "filter.json").write_text('{"/a": {"gt": 1}}', "utf-8")
    done = horarium("condition", "test", "--filter", str(tmp_path / "filter.json"), "--context", "-", stdin='{"a": 2}')
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"result": true, "error": null}\n', "")


def test_a_terminal_without_utf8_gets_escapes_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    assert main(["next", "0 9 * * *", "--tz", "Europe/Istanbul", "-o", "table"]) == 0
    assert main(["help", "options"]) == 0
    assert main(["run", "list", "--help"]) == 0
    assert b"Exit codes: 0 success \\xb7 1" in written.getvalue()


def test_a_reader_who_leaves_early_is_no_error() -> None:
    command = [sys.executable, "-m", "horarium", "next", "* * * * *", *AFTER, "-n", "50000", "-o", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline() == '"2026-03-07T12:01:00Z"\n'
        program.stdout.close()
        assert program.stderr.read() == ""
        assert program.wait(timeout=120) in (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_disk_that_is_full_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w", buffering=1, encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["next", "30 2 * * *", *AFTER]) == 1
        with suppress(OSError):  # what could not be written is still there
            full.close()
    assert capfd.readouterr().err == "error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (
            ["next", "0 9 * * *"],
            [
                "holidays",
                "rich.table",
                "horarium.core.recurrence.lint",
                "httpx",
                "horarium.features.schedules.commands",
            ],
        ),
        (["explain-cron", "0 9 * * *"], ["holidays", "rich.table"]),
    ],
    ids=["next", "explain-cron"],
)
def test_it_starts_without_what_it_does_not_need(arguments: list[str], unwanted: list[str]) -> None:
    script = (
        "import sys; from horarium.cli.main import main; "
        f"code = main({arguments!r}); "
        f"print([name for name in {unwanted!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


class _OneSchedule(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"schedules": [{"schedule_id": "nightly"}]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        pass


def test_a_command_that_asks_a_server_imports_nothing_of_the_server() -> None:
    unwanted = [
        *("sqlalchemy", "alembic", "psycopg", "fastapi", "starlette", "uvicorn", "holidays", "icalendar", "yaml"),
        *("pydantic_settings", "prometheus_client", "structlog"),
        *("horarium.platform.database", "horarium.platform.http", "horarium.engine", "horarium.serve"),
        *("horarium.features.resources", "horarium.features.schedules.service", "horarium.features.schedules.routes"),
        *("horarium.core.document.places", "horarium.core.recurrence.spec", "horarium.core.decision.guards"),
    ]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _OneSchedule)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        script = (
            "import sys; from horarium.cli.main import main; "
            f"code = main(['schedule', 'list', '-o', 'jsonl', '--server', {address!r}, '--token', 't']); "
            f"print([name for name in {unwanted!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    finally:
        server.shutdown()
        server.server_close()
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"schedule_id": "nightly"}\n', "[]\n")


def test_the_version_names_the_tz_database_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(
        r"horarium \d+\.\d+\.\d+ \(tzdata \d{4}\.\d+, Python \d+\.\d+\.\d+\)\n", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "completed"),
    [("horarium sch", "schedule"), ("horarium schedule hist", "history"), ("horarium run list --sk", "--skips")],
)
def test_the_shell_completes_nouns_verbs_and_options(words: str, completed: str) -> None:
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_HORARIUM_COMPLETE": "complete_bash"}
    script = str(Path(sys.executable).with_name("horarium"))
    done = subprocess.run(
        [script], env={**os.environ, **typed}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout.split(), done.stderr) == ([completed], "")


def test_the_installed_script_is_this_program() -> None:
    [script] = [entry for entry in entry_points(group="console_scripts") if entry.name == "horarium"]
    assert script.load() is main
