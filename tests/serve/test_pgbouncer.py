"""A whole service behind a pgbouncer that hands each transaction another connection: it fires, reports and tells."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from agents.house import PATIENCE, House, living
from pgbouncers import PROGRAM, pooled
from sqlalchemy import event

from horarium.cli.main import main
from horarium.platform.database import open_database
from horarium.platform.database.errors import StoreUnavailable
from horarium.testing import Accepted, TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
with_program = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")

SWEEP = {"schedule_id": "sweep", "intervals": [{"every": "PT1S"}], "overlap_policy": "allow_all",
         "action": {"workflow_type": "sweep", "task_queue": "brooms"}}  # fmt: skip


# ── with the program ─────────────────────────────────────────────────────────────────────────────────


@with_program
def test_a_service_lives_behind_it(empty_url: str, tmp_path: Path) -> None:
    with pooled(empty_url) as url:
        assert main(["migrate", "--database", url, "--data-dir", str(tmp_path)]) == 0
        with living(tmp_path, url, pool_size=6, statement_timeout_seconds=30) as house:
            heard = _listen(house)
            house.ask("POST", "/api/schedules", SWEEP)
            done = [_sweep_one(house) for _ in range(3)]
            assert len(set(done)) == 3
            house.ask("POST", "/api/schedules/sweep/pause")
            assert heard.enough.wait(PATIENCE), heard.kinds
            assert house.ask("GET", "/api/cluster/processes")["processes"][0]["state"] == "alive"
        assert main(["verify", "--database", url, "--data-dir", str(tmp_path)]) == 0
        assert main(["migrate", "--database", url, "--data-dir", str(tmp_path)]) == 0


@with_program
def test_without_the_word_in_the_address_it_refuses_us_and_we_say_what_to_do(empty_url: str) -> None:
    """Start-up options are what it cannot carry: better refused at once than lost now and then."""
    with pooled(empty_url) as url:
        for seconds in (30, 0, None):
            with pytest.raises(StoreUnavailable, match=r"add \?pgbouncer=true .* unsupported startup parameter"):
                open_database(url.partition("?")[0], statement_timeout_seconds=seconds)


class _Heard:
    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.enough = threading.Event()


def _listen(house: House) -> _Heard:
    """What the stream tells, until three runs have ended."""
    heard = _Heard()

    def listen() -> None:
        headers = {"Last-Event-ID": "0-0"}
        with house.http.stream("GET", "/api/events", headers=headers) as stream:
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    heard.kinds.append(line.removeprefix("event: "))
                if heard.kinds.count("run_finished") >= 3:
                    heard.enough.set()
                    return

    threading.Thread(target=listen, daemon=True).start()
    return heard


def _sweep_one(house: House) -> str:
    """Claimed, renewed and reported, as a worker outside would."""
    end = time.monotonic() + PATIENCE
    while not (claimed := house.ask("POST", "/api/queues/brooms/claim", {"worker": "w"})["runs"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    (run,) = claimed
    run_id, epoch = str(run["run_id"]), run["lease_epoch"]
    house.ask("POST", f"/api/runs/{run_id}/heartbeat", {"lease_epoch": epoch})
    house.ask("POST", f"/api/runs/{run_id}/report", {"state": "succeeded", "lease_epoch": epoch, "result": {"n": 1}})
    house.until(run_id, "succeeded")
    return run_id


# ── without it ───────────────────────────────────────────────────────────────────────────────────────

_LEFT = """
SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       (SELECT count(*) FROM pg_cursors WHERE is_holdable), pg_my_temp_schema()::bigint,
       (SELECT count(*) FROM pg_settings WHERE source = 'session'
        AND name NOT IN ('application_name', 'client_encoding'))
"""


def _watch(running: TestService, left: list[Any]) -> None:
    """Each transaction gets a connection of its own, and what it leaves behind there is kept."""

    @event.listens_for(running.resources.database.engine, "checkin")
    def on_return(raw: Any, record: Any) -> None:
        if raw is not None:
            raw.rollback()
            raw.autocommit = True
            left.append((raw.prepare_threshold, *raw.execute(_LEFT, prepare=False).fetchone()))
            record.invalidate()


def test_nothing_is_left_on_a_connection_that_the_next_transaction_could_need(database_url: str) -> None:
    left: list[Any] = []
    url = f"{database_url}{'&' if '?' in database_url else '?'}pgbouncer=true"
    queued = Accepted(reference="brooms", queued=True)
    with service(database=url, answer=queued) as running:
        _watch(running, left)
        http = running.http()
        http.post("/api/schedules", json=SWEEP, headers={"Idempotency-Key": "k"}).raise_for_status()
        running.advance(5)
        runs = http.post("/api/queues/brooms/claim", json={"limit": 3}).json()["runs"]
        report = {"state": "succeeded", "lease_epoch": runs[0]["lease_epoch"]}
        http.post(f"/api/runs/{runs[0]['run_id']}/report", json=report).raise_for_status()
        for path in ("/api/feed", "/api/schedules/sweep/history", "/api/agenda", "/readyz", "/api/cluster/processes"):
            http.get(path)
        for chore in (running.parts.engine.retention, running.parts.engine.usage, running.parts.engine.health):
            chore.step()
        running.clock.advance(3_600)
        running.settle()
    assert len(left) > 50
    assert set(left) == {(None, 0, 0, 0, 0, 0, 0)}
