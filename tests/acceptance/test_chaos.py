"""Whatever happens to the processes, the database, the clocks and the targets: the books are right in the end.

Two servers and two workers are killed, stopped and started again, their PostgreSQL restarts and crashes, two of
them have clocks that jump, the target fails in every way, and people edit, fire and delete meanwhile. Then all is
left to come to rest, and everything that must hold is asked for. Nothing is measured in time; waits have bounds.

`HORARIUM_CHAOS_SEED` repeats what was drawn; how the processes meet is up to the machine.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from acceptance import chaos_books
from acceptance.chaos_callers import (
    EVERY_SECOND,
    ONCE_A_YEAR,
    PULLED_ONCE,
    QUEUE,
    Door,
    People,
    QueueWorker,
    Reporter,
    busy,
)
from acceptance.chaos_house import House, Program
from acceptance.chaos_target import Target
from acceptance.hurt_postgres import hurt_postgres

from horarium.ids import id_text
from horarium.store.database import Database, open_database

_FIRST_ANSWER_SECONDS = 60.0
_DRAIN_SECONDS = 180.0
_SEED = 20_261_115
# What the log says when a count had to be mended: it should never have been wrong.
_MENDED = ('"event": "recounted"', '"event": "planned again"')
_SHOWN_LINES = 40


def definitions(url: str) -> dict[str, dict[str, Any]]:
    """Every overlap policy, both deliveries, retries, shared keys, catching up, and all ways to deliver."""

    def http(path: str, **more: Any) -> dict[str, Any]:
        return {"kind": "http", "url": f"{url}/{path}", "timeout_seconds": 4, **more}

    pull = {"kind": "pull", "workflow_type": "chaos", "queue": QUEUE, "timeout_seconds": 6}
    shared = {"concurrency_key": "shared", "concurrency_limit": 2, "overlap_policy": "buffer_all", "max_buffered": 3}
    quick = {"max_retries": 3, "backoff_ms": 200, "max_backoff_ms": 1_000}
    some: dict[str, dict[str, Any]] = {
        "parallel": {"action": http("parallel"), "overlap_policy": "allow_all", "max_concurrency": 5},
        "skipping": {"action": http("skipping"), "overlap_policy": "skip"},
        "one-waits": {"action": http("one-waits"), "overlap_policy": "buffer_one"},
        "all-wait": {"action": http("all-wait"), "overlap_policy": "buffer_all", "max_buffered": 5},
        "replacing": {"action": http("replacing"), "overlap_policy": "cancel_other", "cancel_grace_seconds": 2},
        "ending": {"action": http("ending"), "overlap_policy": "terminate_other"},
        "once": {"action": http("once", delivery="at_most_once"), "overlap_policy": "allow_all"},
        "retried": {"action": http("retried"), "overlap_policy": "allow_all", "retry_policy": quick},
        "later": {"action": http("later"), "overlap_policy": "allow_all", "max_concurrency": 10},
        "caught-up": {
            "action": http("caught-up"), "catchup_policy": "fire_all", "max_catchup": 5, "misfire_grace_seconds": 1,
            "jitter_seconds": 1, "cron_expressions": ["*/3 * * * * *"],
        },
        "shared-1": {"action": http("shared"), **shared},
        "shared-2": {"action": http("shared"), **shared, "cron_expressions": ["*/2 * * * * *"]},
        "few": {"action": http("few"), "max_runs": 15},
        "pulled": {"action": pull, "overlap_policy": "allow_all", "retry_policy": quick},
        PULLED_ONCE: {"action": {**pull, "delivery": "at_most_once"}, "overlap_policy": "skip"},
        "task": {"action": {"kind": "python", "task": "note", "timeout_seconds": 4}, "overlap_policy": "allow_all"},
    }  # fmt: skip
    return {name: {"schedule_id": name, "cron_expressions": [EVERY_SECOND], **fields} for name, fields in some.items()}


@pytest.mark.parametrize("seconds", [30, pytest.param(600, marks=pytest.mark.long)])
def test_the_books_are_right_whatever_happens(tmp_path: Path, seconds: int) -> None:
    # The ordinary run repeats what it drew; the long one draws anew.
    drawn = _SEED if seconds < 60 else secrets.randbelow(2**32)
    seed = int(os.environ.get("HORARIUM_CHAOS_SEED", drawn))
    print(f"HORARIUM_CHAOS_SEED={seed}")
    target = Target(seed)
    with target.open(), hurt_postgres() as postgres, House(tmp_path, postgres).open() as house, told(house):
        wanted = definitions(target.url)
        with closing(Door(house.urls)) as door:
            people, worker = People(door, seed, wanted), QueueWorker(door, seed, target.calm)
            reporter = Reporter(door, seed, target)
            _create(door, wanted)
            with busy(worker.act, reporter.act):
                with busy(people.act):
                    _hurt(house, random.Random(seed), seconds)
                _rest(house, door, target, wanted)
        with closing(open_database(postgres.url)) as database:
            print(chaos_books.summary(database))
            found = [
                *_about_the_target(database, house, target, worker),
                *chaos_books.problems(database),
            ]
        print(dict(target.known.fates), f"came while under way: {target.known.overlapping}")
        print(dict(door.statuses), f"not reached: {door.unreachable}")
        found += [*_about_the_callers(door, people, worker, reporter), *_about_the_programs(house)]
        assert not found, "\n".join(found)


@contextmanager
def told(house: House) -> Iterator[None]:
    """Whoever reads of a failure sees what the processes said last."""
    try:
        yield
    except BaseException:
        for program in house.programs:
            print(program.tail(_SHOWN_LINES))
        raise


def _create(door: Door, wanted: dict[str, dict[str, Any]]) -> None:
    for schedule_id, definition in wanted.items():
        status = door.insist(random.Random(0), "POST", "/api/schedules", definition, seconds=_FIRST_ANSWER_SECONDS)
        assert status == 201, f"{schedule_id} could not be created: {status}"


# ── what happens ─────────────────────────────────────────────────────────────────────────────────────


def _hurt(house: House, chance: random.Random, seconds: float) -> None:
    until = time.monotonic() + seconds

    def kill(program: Program) -> None:
        program.end(signal.SIGKILL)

    def stop(program: Program) -> None:
        program.end(signal.SIGTERM)

    def jump(_program: Program) -> None:
        house.set_clock(chance.choice(sorted(house.clocks)), chance.choice([-40, -40, 40, 40, 0]))

    hurts = [
        *[kill] * 5, *[stop] * 3, *[jump] * 3, lambda _: house.postgres.restart_fast(),
        lambda _: house.postgres.crash(), lambda _: house.postgres.cut_connections(),
    ]  # fmt: skip
    while time.monotonic() < until:
        time.sleep(chance.uniform(0.3, 2.5))
        chance.choice(hurts)(chance.choice(house.programs))
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0.0, 1.5))  # the others have to do without it for a while
        for program in house.programs:
            program.look_after()


def _rest(house: House, door: Door, target: Target, wanted: dict[str, dict[str, Any]]) -> None:
    """Clocks are right again, the target answers, nothing new is due; what waits is let go, and all ends."""
    for name in house.clocks:
        house.set_clock(name, 0)
    for program in house.programs:
        # Afresh: a clock that was corrected is measured anew only every minute.
        if program.name in house.clocks:
            program.end(signal.SIGTERM)
        program.look_after()
    target.calm.set()
    chance = random.Random(0)
    for schedule_id in wanted:
        quiet, path = {"cron_expressions": [ONCE_A_YEAR]}, f"/api/schedules/{schedule_id}"
        door.insist(chance, "PATCH", path, quiet, seconds=_FIRST_ANSWER_SECONDS)
        door.insist(chance, "POST", f"{path}/resume", {}, seconds=_FIRST_ANSWER_SECONDS)
    began, before = time.monotonic(), None
    with closing(open_database(house.postgres.url)) as database:
        while (left := chaos_books.open_runs(database)) and time.monotonic() - began < _DRAIN_SECONDS:
            if left != before:
                print(f"open {time.monotonic() - began:.0f} s after the last disaster: {left}")
            before = left
            time.sleep(0.5)
            for program in house.programs:
                program.look_after()


# ── what must hold ───────────────────────────────────────────────────────────────────────────────────


def _about_the_callers(door: Door, people: People, worker: QueueWorker, reporter: Reporter) -> list[str]:
    """No server error; a trigger with a key starts one run; a run is ended, and handed out once at most, once."""
    several = {key: runs for key, runs in people.runs_by_key.items() if len(runs) > 1}
    ended = worker.reports.recorded + reporter.reports.recorded
    return [
        *door.bad,
        *(f"the trigger {key} started several runs: {sorted(runs)}" for key, runs in several.items()),
        *(f"run {run} was ended {count} times by reports" for run, count in ended.items() if count > 1),
        *(
            f"at_most_once: {what} was handed out {count} times"
            for what, count in worker.taken_once.items()
            if count > 1
        ),
    ]


def _about_the_target(database: Database, house: House, target: Target, worker: QueueWorker) -> list[str]:
    """A success is no invention, and what may come once at most came once at most."""
    noted = {line.split()[0] for line in house.notes.read_text().splitlines()}
    did = {"http": target.known.runs_with_effect, "python": noted, "pull": worker.done}
    invented = [
        f"{kind} run {id_text(run_id)} succeeded, and nobody did it"
        for kind, done in did.items()
        for run_id in chaos_books.succeeded(database, kind)
        if id_text(run_id) not in done
    ]
    return [*invented, *(f"at_most_once: {line}" for line in target.known.more_than_once("/once"))]


def _about_the_programs(house: House) -> list[str]:
    """None ended by itself, none found a count that was wrong, and the audit finds nothing."""
    verified = house.run("verify")
    audit = [f"verify: {verified.stdout[-2_000:]}{verified.stderr[-500:]}"] if verified.returncode else []
    return [*audit, *(line for program in house.programs for line in program.died_by_itself), *_mended(house)]


def _mended(house: House) -> list[str]:
    """By the words alone: the line that was being written when its process was killed is no JSON."""
    return [
        f"{program.name} had to mend a count: {line}"
        for program in house.programs
        for line in program.log.read_text("utf-8", "replace").splitlines()
        if any(words in line for words in _MENDED)
    ]
