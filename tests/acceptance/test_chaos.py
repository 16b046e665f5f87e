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
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

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
from acceptance.chaos_house import House
from acceptance.chaos_target import Target
from acceptance.hurt_postgres import hurt_postgres

from horarium.platform.database import Database, open_database
from horarium.platform.ids import id_text

_FIRST_ANSWER_SECONDS = 60.0
_DRAIN_SECONDS = 180.0
_SEED = 20_261_115
# What the log says when a count had to be mended: it should never have been wrong.
_MENDED = ('"event": "counts_repaired"', '"event": "schedule_replanned"')
_SHOWN_LINES = 40


def definitions(url: str) -> dict[str, dict[str, Any]]:
    """Every overlap policy, both deliveries, retries, shared keys, catching up, and all ways to deliver."""

    def http(path: str, **more: Any) -> dict[str, Any]:
        return {"kind": "http", "url": f"{url}/{path}", "timeout_seconds": 4, **more}

    pull = {"kind": "pull", "workflow_type": "chaos", "queue": QUEUE, "timeout_seconds": 6}
    shared = {"concurrency_key": "shared", "concurrency_limit": 2, "overlap_policy": "buffer_all"}
    quick = {"max_retries": 3, "backoff_ms": 200, "max_backoff_ms": 1_000}
    some: dict[str, dict[str, Any]] = {
        "parallel": {"action": http("parallel"), "overlap_policy": "allow_all", "max_concurrency": 5},
        "skipping": {"action": http("skipping"), "overlap_policy": "skip"},
        "one-waits": {"action": http("one-waits"), "overlap_policy": "buffer_one"},
        "all-wait": {"action": http("all-wait"), "overlap_policy": "buffer_all"},
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
    common = {"cron_expressions": [EVERY_SECOND], "max_buffered": 5}
    return {name: {"schedule_id": name, **common, **fields} for name, fields in some.items()}


@pytest.mark.parametrize("seconds", [14, pytest.param(600, marks=pytest.mark.long)])
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
    """Dealt like cards: first each kind once, so that a short run has all of them, then by how often they are."""
    began = time.monotonic()
    kinds: list[Disaster] = [_kill, _stop, _jump, _restart_database, _crash_database, _cut_connections]
    deck = [*[_kill] * 4, *[_stop] * 2, *[_jump] * 2, *kinds]
    hand = chance.sample(kinds, len(kinds))
    while time.monotonic() - began < seconds:
        time.sleep(chance.uniform(0.3, 1.5))
        hand = hand or chance.sample(deck, len(deck))
        print(f"{time.monotonic() - began:.1f} s: {hand.pop()(house, chance)}")
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0.0, 1.5))  # the others have to do without it for a while
        for each in house.programs:
            each.look_after()


Disaster: TypeAlias = Callable[[House, random.Random], str]
"""It tells what it has done."""


def _kill(house: House, chance: random.Random) -> str:
    program = chance.choice(house.programs)
    program.end(signal.SIGKILL)
    return f"{program.name} was killed"


def _stop(house: House, chance: random.Random) -> str:
    program = chance.choice(house.programs)
    program.end(signal.SIGTERM)
    return f"{program.name} was stopped"


def _jump(house: House, chance: random.Random) -> str:
    name, seconds = chance.choice(sorted(house.clocks)), chance.choice([-40, -40, 40, 40, 0])
    house.set_clock(name, seconds)
    return f"the clock of {name} is {seconds} s off"


def _restart_database(house: House, _chance: random.Random) -> str:
    house.postgres.restart_fast()
    return "the database was restarted"


def _crash_database(house: House, _chance: random.Random) -> str:
    house.postgres.crash()
    return "the database crashed"


def _cut_connections(house: House, _chance: random.Random) -> str:
    house.postgres.cut_connections()
    return "all connections to the database were cut"


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
    for schedule_id, definition in wanted.items():
        _quieten(door, schedule_id, definition)
    began, before = time.monotonic(), None
    with closing(open_database(house.postgres.url)) as database:
        while (left := chaos_books.open_runs(database)) and time.monotonic() - began < _DRAIN_SECONDS:
            if left != before:
                print(f"open {time.monotonic() - began:.0f} s after the last disaster: {left}")
            before = left
            time.sleep(0.5)
            for program in house.programs:
                program.look_after()


def _quieten(door: Door, schedule_id: str, definition: dict[str, Any]) -> None:
    """It is there, active, and due in a year; what it was fired by hand for shows that the house still works."""
    path, chance = f"/api/schedules/{schedule_id}", random.Random(0)
    asks = [
        ("/api/schedules/upsert", {**definition, "cron_expressions": [ONCE_A_YEAR]}),
        (f"{path}/resume", {}),
        *[(f"{path}/trigger", {"overlap_policy": "allow_all"})] * 3,
    ]
    for where, body in asks:
        status = door.insist(chance, "POST", where, body, seconds=_FIRST_ANSWER_SECONDS)
        assert status == 404 or 200 <= status < 300, f"{status} for {where}"  # its runs may be used up


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
    succeeded = {kind: chaos_books.succeeded(database, kind) for kind in did}
    invented = [
        f"{kind} run {id_text(run_id)} succeeded, and nobody did it"
        for kind, done in did.items()
        for run_id in succeeded[kind]
        if id_text(run_id) not in done
    ]
    idle = [f"no {kind} run succeeded at all" for kind in did if not succeeded[kind]]
    return [*idle, *invented, *(f"at_most_once: {line}" for line in target.known.more_than_once("/once"))]


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
