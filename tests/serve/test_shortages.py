"""A system that gives no more files or threads is told in one sentence, at the start and while the service runs."""

from __future__ import annotations

import errno
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import typer

from horarium.cli.service import failing_with_1
from horarium.platform.http.middleware import FILES, THREADS, Shortages, shortage_of
from horarium.serve.startup import needed_files, require_resources
from horarium.testing import FakeClock

_PATIENCE = 60.0
# A main program whose threads cannot start while a file is there.
_MAIN = """
import os, sys, threading
start = threading.Thread.start
def refuse(thread):
    if os.path.exists("no-threads"):
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = refuse
from horarium.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def _command() -> list[str]:
    return [sys.executable, "-c", _MAIN, "up", "--port", "0", "--data-dir", "data"]


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (OSError(errno.EMFILE, "Too many open files"), FILES),
        (OSError(errno.ENFILE, "Too many open files in system"), FILES),
        (RuntimeError("can't start new thread"), THREADS),
        (_caused(ValueError("x"), OSError(errno.EMFILE, "x")), FILES),
        (OSError(errno.ENOSPC, "No space left on device"), None),
        (RuntimeError("another"), None),
        (None, None),
    ],
)
def test_a_shortage_is_told_apart_from_other_errors(error: Exception | None, found: str | None) -> None:
    assert shortage_of(error) == found


def test_a_shortage_is_logged_once_a_minute_and_shown_for_half_of_one() -> None:
    logged: list[str] = []

    class Log:
        def error(self, _event: str, *, problem: str) -> None:
            logged.append(problem)

    clock = FakeClock()
    shortages = Shortages(clock, Log())  # type: ignore[arg-type]  # all that is used of it
    for _ in range(100):
        assert shortages.note(OSError(errno.EMFILE, "x")) == FILES
    assert shortages.note(ValueError("x")) is None
    assert (logged, shortages.current()) == ([FILES], FILES)
    clock.advance(30)
    assert shortages.current() is None
    clock.advance(30)
    shortages.note(RuntimeError("can't start new thread"))
    assert logged == [FILES, THREADS]


def test_a_process_takes_all_the_files_that_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = (64, 4_096)

    def set_limit(_kind: int, wanted: tuple[int, int]) -> None:
        nonlocal limits
        limits = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _kind: limits)
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    require_resources(10, serves=True)
    assert limits == (4_096, 4_096)
    assert needed_files(10, serves=True) > needed_files(10, serves=False) > needed_files(1, serves=False)


def test_a_shortage_while_a_command_runs_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, failing_with_1():
        raise OSError(errno.EMFILE, "Too many open files")
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == f"error: {FILES}\n"


def test_a_process_with_too_few_files_or_threads_says_so_and_ends(tmp_path: Path) -> None:
    few = subprocess.run(
        _command(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    assert (few.returncode, few.stdout) == (1, "")
    assert few.stderr.startswith("error: The open-file limit is 64, but at least ")
    assert few.stderr.count("\n") == 1
    (tmp_path / "no-threads").touch()
    none = subprocess.run(_command(), cwd=tmp_path, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert (none.returncode, none.stdout, none.stderr) == (1, "", f"error: Cannot start: {THREADS}\n")


@contextmanager
def _running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(_command(), cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            ready = re.search(r"http://[0-9.:]+", process.stdout.readline())
            assert ready is not None
            yield process, ready[0]
        finally:
            process.kill()


def test_a_service_goes_on_through_a_shortage(tmp_path: Path) -> None:
    """Those who are connected are answered, the log has a line, health says it; then all is as before."""
    with (
        _running(tmp_path) as (process, url),
        httpx.Client(base_url=url, timeout=_PATIENCE) as http,
        ExitStack() as lines,
    ):
        host, port = url.removeprefix("http://").split(":")
        _until(lambda: http.get("/readyz").status_code == 200)
        taken = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (taken + 3, before[1]))
        for _ in range(20):
            lines.enter_context(socket.create_connection((host, int(port)), timeout=_PATIENCE))
        _until(lambda: "resources_exhausted" in (tmp_path / "log").read_text())
        assert http.get("/livez").status_code == 200
        said = http.get("/readyz")
        assert (said.status_code, FILES in said.text) == (503, True)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
        lines.close()
        (tmp_path / "no-threads").touch()
        statuses = {http.get(path).status_code for path in ("/readyz", "/api/schedules", "/livez") for _ in range(5)}
        assert statuses <= {200, 401, 503}
        (tmp_path / "no-threads").unlink()
        _until(lambda: httpx.get(f"{url}/healthz", timeout=_PATIENCE).status_code == 200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_PATIENCE) == 0
        log = (tmp_path / "log").read_text()
        assert "Traceback" not in log
        assert log.count("resources_exhausted") <= 3


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(int(_PATIENCE * 20)):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to that")
