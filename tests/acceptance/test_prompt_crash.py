"""Killed between the claim of a prompt and its answer, no agent that can be asked is sent it twice."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from acceptance import prompts_main
from acceptance.processes import finish, start
from acceptance.prompts_main import STAGE, FileAgent, sent
from engine.agents import PROMPT, add_agent
from engine.builders import World
from world import FakeClock

from horarium.core.document.states import occurrence_key
from horarium.instant import SECOND, to_rfc3339
from horarium.launchers.registry import Registry
from horarium.platform.database import Database
from horarium.platform.ids import id_text
from horarium.serve.preparers import preparers_with

NAMED = [f"{STAGE}: {point}" for point in ("after commit", "before send", "after send", "after taken")]
# Statements and commits of one prompt, and a few more.
POINTS, CHUNKS = 60, 12


class House(World):
    """The processes that come after those that are killed."""

    def __init__(self, database: Database, home: Path, *, can_list: bool) -> None:
        super().__init__(database, FakeClock())
        self.home = home
        self.can_list = can_list
        self.registry = Registry([FileAgent(home / "agent", can_list)])
        self.dispatcher = type(self.dispatcher)(
            database, self.clock, self.registry, "after", preparers=preparers_with()
        )
        add_agent(self)

    def add_prompt(self, name: str, **action: Any) -> bytes:
        at = to_rfc3339(self.clock.now() // SECOND * SECOND + 60 * SECOND)
        given = {"assignee_type": "agent", "assignee_id": "writer", "approval_policy": {"requires_approval": False}}
        uid = self.add(name, at=[at], action={**PROMPT, **action}, **given)
        self.clock.move(61)
        self.tick()
        return uid

    def kill(self, url: str, kill_at: str | int) -> int:
        process = start(prompts_main.work, url, self.clock.now(), str(self.home), kill_at, self.can_list)
        (code,) = finish([process], 60)
        assert code is not None, "the worker hangs"
        return code

    def recover(self) -> None:
        for _ in range(20):
            self.dispatch()
            if all(run.finished_at is not None for run in self.runs()):
                return
            self.clock.move(31)
            self.tidy()
            self.clock.move(5)
        raise AssertionError(self.states())

    def sends(self, uid: bytes) -> int:
        """How often the prompt of this schedule has arrived."""
        (run,) = self.runs(uid)
        keys = Counter(key for key, _ in sent(self.home / "agent"))
        return keys[occurrence_key(id_text(uid), run.nominal)]


@pytest.mark.parametrize(
    ("dialect", "can_list"),
    [
        ("sqlite", False),
        ("postgresql", True),
        pytest.param("sqlite", True, marks=pytest.mark.long),
        pytest.param("postgresql", False, marks=pytest.mark.long),
    ],
)
def test_a_process_that_is_killed_at_any_stage_of_a_prompt_sends_it_once_where_that_can_be_known(
    database: Database, database_url: str, tmp_path: Path, can_list: bool
) -> None:
    house = House(database, tmp_path, can_list=can_list)
    for number, point in enumerate(NAMED):
        uid = house.add_prompt(f"p{number}")
        assert house.kill(database_url, point) == -signal.SIGKILL
        house.recover()
        (run,) = house.runs(uid)
        assert run.state == "succeeded"
        was_lost = point == f"{STAGE}: after send" and not can_list
        assert (point, house.sends(uid)) == (point, 2 if was_lost else 1)
    if not can_list:
        uid = house.add_prompt("once", delivery="at_most_once")
        assert house.kill(database_url, f"{STAGE}: after send") == -signal.SIGKILL
        house.recover()
        assert ([run.state for run in house.runs(uid)], house.sends(uid)) == (["unknown"], 1)
    house.account()


@pytest.mark.long
@pytest.mark.parametrize("can_list", [True, False])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_process_that_is_killed_after_any_statement_loses_no_prompt(
    database: Database, database_url: str, tmp_path: Path, chunk: int, can_list: bool
) -> None:
    house = House(database, tmp_path, can_list=can_list)
    for number in range(1 + chunk, POINTS + 1, CHUNKS):
        uid = house.add_prompt(f"p{number}")
        house.kill(database_url, number)
        house.recover()
        (run,) = house.runs(uid)
        assert run.state == "succeeded"
        assert house.sends(uid) <= (1 if can_list else 2)
    house.account()
