"""A worker that is killed while it has a run in its hands: another has it within half a minute."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from horarium.core.decision.presence import ProcessState
from horarium.features.cluster import service as cluster_service
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules import triggers
from horarium.platform.caller import internal
from horarium.platform.settings import Settings
from horarium.serve.service import open_service

KEY = "a key for this test alone, and long enough"
PATIENCE = 120
LIMIT_SECONDS = 30


class Target:
    """Never answers the first delivery, and every later one at once."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.arrived_at: list[float] = []
        self.over = threading.Event()

    @contextmanager
    def serving(self) -> Iterator[str]:
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                target.keys.append(self.headers["Idempotency-Key"])
                target.arrived_at.append(time.monotonic())
                if len(target.keys) == 1:
                    target.over.wait(PATIENCE)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/work"
        finally:
            self.over.set()
            server.shutdown()
            server.server_close()

    def wait_for(self, deliveries: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.keys) < deliveries:
            assert time.monotonic() < end, self.keys
            time.sleep(0.05)


@contextmanager
def worker(folder: Path, database: str) -> Iterator[subprocess.Popen[str]]:
    own = {"HORARIUM_DATABASE": database, "HORARIUM_SECRET_KEY": KEY, "HORARIUM_ALLOW_LOOPBACK_TARGETS": "true"}
    path = os.pathsep.join(path for path in sys.path if path)
    with (folder / "log.txt").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "horarium", "worker"],
            cwd=folder, env={**os.environ, "PYTHONPATH": path, **own}, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert "works on" in process.stdout.readline()
            yield process
        finally:
            process.kill()
            process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_another_has_its_run_within_half_a_minute(database_url: str, tmp_path: Path) -> None:
    caller, target = internal("test"), Target()
    settings = Settings(database=database_url, data_dir=tmp_path, secret_key=KEY, allow_loopback_targets=True)
    with ExitStack() as stack:
        service = stack.enter_context(open_service(settings))
        url = stack.enter_context(target.serving())
        workers = {each.pid: each for each in (stack.enter_context(worker(tmp_path, database_url)) for _ in range(2))}
        document = {"schedule_id": "s", "cron_expressions": ["0 0 1 1 *"], "action": {"kind": "http", "url": url}}
        schedule_service.create(service.resources, caller, document)
        triggers.trigger(service.resources, caller, "s")
        target.wait_for(1)
        [holder] = [each for each in cluster_service.cluster(service.resources, caller).processes if each.runs]
        pid = holder.row.process.about.pid
        assert pid in workers
        workers[pid].send_signal(signal.SIGKILL)
        killed_at = time.monotonic()
        target.wait_for(2)
        taken_after = target.arrived_at[1] - killed_at
        found = {
            each.seen.name: each.seen.state for each in cluster_service.cluster(service.resources, caller).processes
        }
        assert found.pop(holder.seen.name) in (ProcessState.SILENT, ProcessState.GONE)
        assert set(found.values()) == {ProcessState.ALIVE}
        assert len(set(target.keys)) == 1
        assert taken_after <= LIMIT_SECONDS
