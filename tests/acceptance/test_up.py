"""The whole service as a real process: started, asked over HTTP, stopped, started again."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from certificates import LOOPBACK, Authority

from horarium.platform.client.connection import discover

_FIRST_FIRE_SECONDS = 60
_STOP_SECONDS = 10


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "horarium", *arguments]


def environment() -> dict[str, str]:
    """Without the settings of whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=directory, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )


class Up:
    def __init__(self, process: subprocess.Popen[str], directory: Path, verify: ssl.SSLContext | bool) -> None:
        assert process.stdout is not None
        self.process = process
        self.line = process.stdout.readline()
        found = re.search(r"https?://\S+", self.line)
        assert found is not None, f"no address in {self.line!r}"
        token_file = re.search(r"admin token in (\S+)", self.line)
        assert token_file is not None, f"no token in {self.line!r}"
        token = (directory / token_file[1]).read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=found[0], headers=headers, trust_env=False, verify=verify)

    def runs(self, **query: Any) -> list[dict[str, Any]]:
        answer = self.http.get("/api/runs", params={"page_size": 200, **query})
        assert answer.status_code == 200, answer.text
        return answer.json()["runs"]

    def wait_for(self, what: str, condition: Any, seconds: float) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.1)
        raise AssertionError(f"no {what} within {seconds} seconds")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)


@contextmanager
def up(directory: Path, *arguments: str, verify: ssl.SSLContext | bool = True) -> Iterator[Up]:
    with (directory / "log.txt").open("a") as log:
        process = subprocess.Popen(
            command("up", "--port", "0", *arguments),
            cwd=directory, env=environment(), stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        try:
            running = Up(process, directory, verify)
            with running.http:
                yield running
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def test_the_demo_fires_at_once_stops_in_order_and_goes_on_afterwards(tmp_path: Path) -> None:
    with up(tmp_path, "--demo") as first:
        first.wait_for("finished run", lambda: first.runs(state="succeeded"), _FIRST_FIRE_SECONDS)
        first.wait_for("readiness", lambda: first.http.get("/readyz").status_code == 200, 60)
        described = first.http.get("/api/schedules/demo-catchup").json()
        assert described["fires_count"] >= 1
        often = "demo-every-five-seconds"
        first.wait_for("fire on the clock", lambda: any(run["schedule_id"] == often for run in first.runs()), 60)
        covering = [run for run in first.runs() if run["covers"] and run["schedule_id"] == "demo-catchup"]
        assert covering[0]["covers"]["count"] >= 8
        _speak_with_its_agents(first)
        written = _names(first)
        found = discover(tmp_path / ".horarium", environ={})
        assert httpx.URL(found.base_url) == first.http.base_url
        assert first.http.headers["Authorization"] == f"Bearer {found.token}"
        assert first.stop() == 0
    token = tmp_path / ".horarium" / "demo" / "admin.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert {stat.S_IMODE(directory.stat().st_mode) for directory in token.parents[:2]} == {0o700}
    # A later `up` without it begins with nothing.
    assert [each.name for each in (tmp_path / ".horarium").iterdir()] == ["demo"]

    secret = token.read_text()
    with up(tmp_path, "--demo") as second:
        assert token.read_text() == secret
        assert _names(second) == written
        history = second.http.get("/api/schedules/demo-every-five-seconds/history").json()["events"]
        assert [event["sequence"] for event in history] == list(range(1, len(history) + 1))
        assert history[0]["event_type"] == "ScheduleCreated"
        assert "ScheduleUpdated" not in {event["event_type"] for event in history}
        assert second.stop() == 0

    log = (tmp_path / "log.txt").read_text()
    assert re.search(r"fired  demo-every-five-seconds  nominal \d\d:\d\d:\d\dZ", log)
    assert "Traceback" not in log
    verified = run(tmp_path, "verify", "--data-dir", ".horarium/demo")
    assert (verified.returncode, verified.stdout) == (0, ""), verified.stdout + verified.stderr


def _speak_with_its_agents(service: Up) -> None:
    """One of each generation: the first one answers, the second one asks."""
    for name in ("demo-prompt", "demo-prompt-question"):
        assert service.http.post(f"/api/schedules/{name}/trigger", json={"overlap_policy": "allow_all"}).is_success
    done = service.wait_for("answer", lambda: _one_of(service, "demo-prompt", "succeeded"), 60)
    assert done["result"]["text"] == "Done: Say good morning to the team."
    asks = service.wait_for("question", lambda: _one_of(service, "demo-prompt-question", "awaiting_approval"), 60)
    assert asks["approval"]["question"] == "which colour?"


def _one_of(service: Up, schedule_id: str, state: str) -> Any:
    found = [run["run_id"] for run in service.runs(state=state) if run["schedule_id"] == schedule_id]
    return service.http.get(f"/api/runs/{found[0]}").json() if found else None


def _names(service: Up) -> tuple[list[str], list[str]]:
    """Of schedules but the one that is over after three runs, and of agents."""
    schedules = service.http.get("/api/schedules", params={"page_size": 200}).json()["schedules"]
    agents = service.http.get("/api/agents").json()["agents"]
    return sorted({each["schedule_id"] for each in schedules} - {"demo-max-runs"}), [each["id"] for each in agents]


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(
        "import time\nfrom horarium import Horarium\napp = Horarium()\n"
        "@app.schedule('@every PT1S')\ndef long() -> None:\n    time.sleep(30)\n"
    )
    with up(tmp_path, "--app", "jobs:app") as service:
        service.wait_for("running run", lambda: service.runs(state="running"), _FIRST_FIRE_SECONDS)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert service.process.poll() is None
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 1


def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run(tmp_path, "up", "--port", port)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert not (tmp_path / ".horarium" / "horarium.db").exists()


def test_a_second_up_on_a_data_directory_names_the_first_and_leaves_it_alone(tmp_path: Path) -> None:
    with up(tmp_path) as first:
        second = run(tmp_path, "up", "--port", "0")
        assert (second.returncode, second.stdout, second.stderr.count("\n")) == (1, "", 1)
        assert f"The data directory .horarium is in use by process {first.process.pid}." in second.stderr
        assert httpx.URL(discover(tmp_path / ".horarium", environ={}).base_url) == first.http.base_url
        first.process.kill()
        first.process.wait()
    with up(tmp_path) as third:
        assert httpx.URL(discover(tmp_path / ".horarium", environ={}).base_url) == third.http.base_url
        assert third.stop() == 0


@pytest.mark.parametrize("tls", [True, False], ids=["with TLS", "in the clear"])
def test_on_an_address_that_others_reach_it_speaks_tls_or_says_loudly_that_it_does_not(
    tmp_path: Path, tls: bool
) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server", LOOPBACK)
    flags = ["--tls-cert", str(files.cert), "--tls-key", str(files.key)] if tls else []
    scheme = "https" if tls else "http"
    verify = ssl.create_default_context(cafile=authority.ca)
    with up(tmp_path, "--host", "0.0.0.0", *flags, verify=verify) as service:
        assert service.http.base_url.scheme == scheme
        found = discover(tmp_path / ".horarium", environ={}).base_url
        assert found.startswith(f"{scheme}://127.0.0.1:")
        assert service.http.get(f"{found}/api/schedules").status_code == 200
        assert service.stop() == 0
    assert ("Tokens are sent unencrypted to 0.0.0.0" in (tmp_path / "log.txt").read_text()) is not tls
