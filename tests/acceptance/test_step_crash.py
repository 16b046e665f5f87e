"""Killed at any step of a workflow, all of it ends, and a target that honours keys sees each step once."""

from __future__ import annotations

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from acceptance import steps_main
from acceptance.processes import finish, start
from acceptance.steps_main import answering
from acceptance.workflow_books import Books, open_books, problems, unfinished

from horarium.instant import MINUTE, Instant, from_rfc3339
from horarium.platform.ids import id_text
from horarium.testing import TestService, service

START = from_rfc3339("2026-03-02T00:00:00Z")
NODES = ("one", "two", "three", "four", "five")
# A fork, a crossing, and one that waits for it.
NEEDS = {"one": (), "two": ("one",), "three": ("one",), "four": ("two", "three"), "five": ("four",)}
# Longer than the lease of a process that is gone, and than the back-off after it.
PAUSE = 2 * MINUTE
# A walk through a workflow that was just started has about so many points.
POINTS, CHUNKS = 240, 40


def run_worker(url: str, now: Instant, home: Path, kill_at: str | int | None) -> int:
    (code,) = finish([start(steps_main.work, url, now, str(home), kill_at)], 60)
    assert code is not None, "the worker hangs"
    return code


@contextmanager
def awake(url: str, now: Instant, home: Path) -> Iterator[TestService]:
    with service(at=now, answer=answering(home / "deliveries"), database=url) as horarium:
        yield horarium


def populate(url: str, home: Path) -> None:
    nodes = [
        {"id": node, "needs": list(NEEDS[node]), "action": {"kind": "http", "url": f"http://target.test/{node}"}}
        for node in NODES
    ]
    with awake(url, START, home) as horarium:
        http = horarium.http()
        assert http.put("/api/workflows/five", json={"nodes": nodes}).status_code == 201
        every = {"intervals": [{"every": "PT2M"}], "overlap_policy": "allow_all"}
        action = {"kind": "workflow", "workflow_id": "five", "version": "latest"}
        body = {"schedule_id": "s", "catchup_policy": "fire_all", "action": action, **every}
        assert http.post("/api/schedules", json=body).status_code == 201


def recover(url: str, now: Instant, home: Path) -> tuple[Books, int]:
    """Another process takes over, after the leases of the dead one have run out."""
    with awake(url, now, home) as horarium:
        horarium.http().post("/api/schedules/s/pause").raise_for_status()
        for _ in range(100):
            horarium.settle()
            books = horarium.resources.database.read(open_books)
            if not unfinished(books):
                assert not horarium.verify()
                return books, sum(run.parent_run_id is None for run in books.runs.values())
            horarium.sleep(seconds=31)
            time.sleep(0.01)  # PostgreSQL may not have noticed yet that the dead one is gone
        raise AssertionError("\n".join(unfinished(books)))


def check(books: Books, home: Path, deaths: int) -> None:
    """Every workflow succeeded with all its steps; of each step one key was seen, one more time for a death at most."""
    assert problems(books) == []
    assert {run.state for run in books.runs.values()} == {"succeeded"}
    steps: dict[bytes, list[str]] = defaultdict(list)
    wanted: set[str] = set()
    for run in books.runs.values():
        if run.parent_run_id is not None:
            steps[run.parent_run_id].append(run.node_id)
            wanted.add(sha256(f"{id_text(run.root_run_id)}:{run.node_path}".encode()).hexdigest())
    roots = [run for run in books.runs.values() if run.parent_run_id is None]
    assert all(sorted(steps[root.run_id]) == sorted(NODES) for root in roots)
    assert all(root.tokens == len(NODES) for root in roots)
    delivered = Counter(line.split()[1] for line in _lines(home))
    assert delivered.keys() == wanted
    assert max(delivered.values()) <= 1 + deaths


def _lines(home: Path) -> Sequence[str]:
    return (home / "deliveries").read_text().splitlines()


def test_without_a_kill_every_step_is_delivered_once(database_url: str, tmp_path: Path) -> None:
    populate(database_url, tmp_path)
    assert run_worker(database_url, START + PAUSE, tmp_path, None) == 0
    passed = (tmp_path / "points").read_text().splitlines()
    assert {f"{steps_main.STAGE}: {when} {node}" for when in ("before", "after") for node in NODES} <= {*passed}
    books, roots = recover(database_url, START + PAUSE, tmp_path)
    assert roots == 1
    check(books, tmp_path, deaths=0)


def test_a_process_that_is_killed_at_each_step_loses_none_and_repeats_none(database_url: str, tmp_path: Path) -> None:
    """One database, many deaths: each new process finds what the ones before it left, and one more workflow."""
    populate(database_url, tmp_path)
    now, deaths = START, 0
    for node in NODES:
        now += PAUSE
        assert run_worker(database_url, now, tmp_path, f"{steps_main.STAGE}: after {node}") == -signal.SIGKILL
        deaths += 1
    books, roots = recover(database_url, now + PAUSE, tmp_path)
    assert roots >= len(NODES)
    check(books, tmp_path, deaths)


@pytest.mark.parametrize(
    "chunk", [17, *(pytest.param(chunk, marks=pytest.mark.long) for chunk in range(CHUNKS) if chunk != 17)]
)
def test_a_process_that_is_killed_after_any_statement_loses_none_and_repeats_none(
    database_url: str, tmp_path: Path, chunk: int
) -> None:
    populate(database_url, tmp_path)
    now, deaths = START, 0
    for kill_at in range(1 + chunk, POINTS + 1, CHUNKS):
        now += PAUSE
        deaths += run_worker(database_url, now, tmp_path, kill_at) == -signal.SIGKILL
    assert deaths >= 3
    books, _ = recover(database_url, now + PAUSE, tmp_path)
    check(books, tmp_path, deaths)
