"""What tasks of a whole service say can be read while they work and after they have ended."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from horarium import Horarium, Job
from horarium.engine import dispatcher
from horarium.engine.dispatcher import UnsavedLines
from horarium.platform.database import Connection
from horarium.platform.run_log import Batch, RunLog
from horarium.testing import service


def test_what_a_task_printed_is_there_when_it_has_ended() -> None:
    app = Horarium()

    @app.schedule("@every PT1H", schedule_id="talks", retry_policy={"max_retries": 1, "backoff_ms": 1_000})
    def talks(context: Job) -> None:
        print(f"attempt {context.attempt} for {context.nominal:%H:%M}")
        if context.attempt == 0:
            raise RuntimeError("not yet")

    @app.schedule("@every PT1H", schedule_id="silent")
    def silent() -> None: ...

    with service(app=app, at="2026-03-01T00:00:00Z") as fake:
        fake.advance(hours=1, seconds=10)
        said = {
            run.schedule_id: [(line.number, line.attempt, line.text) for line in app.client.get_run_logs(run.run_id)]
            for run in app.client.list_runs()
        }
    assert said == {"talks": [(1, 0, "attempt 0 for 01:00"), (2, 1, "attempt 1 for 01:00")], "silent": []}


def test_whoever_follows_a_run_hears_it_while_it_works(tmp_path: Path) -> None:
    app = Horarium(data_dir=tmp_path, log_level="error", host="127.0.0.1")
    heard = asyncio.Event()

    @app.schedule("0 0 1 1 *", schedule_id="talks")
    async def talks() -> None:
        print("begun")
        await asyncio.wait_for(heard.wait(), 60)
        print("done")

    async def follow() -> list[str]:
        texts: list[str] = []
        async with app:
            fired = await app.async_client.trigger_schedule("talks")
            async for line in app.async_client.follow_run_logs(fired.run_id or "", poll_seconds=0.05):
                texts.append(line.text)
                heard.set()
        return texts

    assert asyncio.run(follow()) == ["begun", "done"]


def test_a_line_that_is_being_written_when_its_task_ends_is_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Horarium(data_dir=tmp_path, log_level="error", host="127.0.0.1")
    writing, ending = threading.Event(), threading.Event()
    append, peek = UnsavedLines.append, RunLog.peek

    def slowly(said: UnsavedLines, connection: Connection, most: int) -> set[bytes]:
        writing.set()
        ending.wait(0.2)  # who takes the last lines now would take these once more
        return append(said, connection, most)

    def told(log: RunLog, *, last: bool = False) -> Batch:
        batch = peek(log, last=last)
        if last:
            ending.set()
        return batch

    @app.schedule("0 0 1 1 *", schedule_id="talks")
    async def talks() -> None:
        print("once")
        while not writing.is_set():
            await asyncio.sleep(0.005)

    async def read() -> list[str]:
        async with app:
            fired = await app.async_client.trigger_schedule("talks")
            return [line.text async for line in app.async_client.follow_run_logs(fired.run_id or "", poll_seconds=0.05)]

    monkeypatch.setattr(dispatcher, "_LINES_SECONDS", 0.01)
    monkeypatch.setattr(UnsavedLines, "append", slowly)
    monkeypatch.setattr(RunLog, "peek", told)
    assert asyncio.run(read()) == ["once"]
