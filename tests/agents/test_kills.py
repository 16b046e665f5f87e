"""Our server is killed while an agent works: started again, it finds the task, and the agent worked once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents.between import between
from agents.house import TOKEN, House, asking, name, until
from agents.running import Agent

SENDS = ("SendMessage", "message/send")
# Whoever comes after a killed process need not wait half a minute for its leases.
QUICK = {"HORARIUM_LEASE_SECONDS": "2", "HORARIUM_JANITOR_SECONDS": "0.2"}


@contextmanager
def up(folder: Path, database: str) -> Iterator[House]:
    """`horarium up` as a process of its own, killed when the block is left."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("HORARIUM_")}
    own |= QUICK | {"HORARIUM_TOKEN": TOKEN, "HORARIUM_LOG_LEVEL": "error", "HORARIUM_DATABASE": database}
    process = subprocess.Popen(
        [sys.executable, "-m", "horarium", "up", "--data-dir", str(folder), "--port", "0"],
        env=own,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"https?://\S+", line)
        assert found is not None, f"the server did not start: {line!r}"
        with asking(found[0]) as house:
            yield house
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize(
    ("dialect", "kind"),
    [("sqlite", "plain"), ("postgresql", "plain"), pytest.param("sqlite", "old", marks=pytest.mark.long)],
    indirect=["dialect"],
)
def test_a_server_that_is_killed_while_an_agent_works(
    agents: dict[str, Agent], database_url: str, tmp_path: Path, kind: str
) -> None:
    agent, hold = agents[kind], name("killed")
    with up(tmp_path, database_url) as house:
        run_id = house.prompt(house.agent(agent.url), f"hold {hold}")
        house.until(run_id, "running")
    agent.release(hold)
    with up(tmp_path, database_url) as house:
        run = house.ended(run_id)
    assert (run["state"], run["result"]["text"]) == ("succeeded", f"held: {hold}")
    assert agent.times(f"hold {hold}") == 1


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("delivery", [pytest.param("at_least_once", marks=pytest.mark.long), "at_most_once"])
def test_a_server_that_is_killed_before_the_reply_to_its_message_came(
    agents: dict[str, Agent], database_url: str, tmp_path: Path, delivery: str
) -> None:
    """The agent works, and nobody knows its name for the task: it is found by the ids of the message."""
    agent, prompt = agents["plain"], f"task {name('unheard')}"
    arrived, killed = threading.Event(), threading.Event()

    def loses(method: str) -> bool:
        if method not in SENDS:
            return False
        arrived.set()
        return killed.wait(60)

    with between(agent.url, loses=loses) as middle:
        with up(tmp_path, database_url) as house:
            run_id = house.prompt(house.agent(middle.url), prompt, action={"delivery": delivery})
            assert arrived.wait(60)
        killed.set()
        with up(tmp_path, database_url) as house:
            run = house.ended(run_id)
        assert "ListTasks" in middle.methods
    assert (run["state"], run["result"]["text"]) == ("succeeded", prompt.replace("task ", "done: "))
    assert until(lambda: agent.times(prompt)) == 1
