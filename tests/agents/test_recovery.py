"""Whoever takes a prompt that another has sent looks for it: the agent executes it once, and its answer counts."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from agents.between import between
from agents.house import name
from agents.launching import launched, launcher, notes_of, request
from agents.running import Agent, running

from horarium.core.document.assignee import AgentContext
from horarium.core.lifecycle.outcome import Asked, Finished, Outcome, RunCancelled, Unknown
from horarium.launchers.launcher import AgentLine, LaunchRequest

# What is the same for both agents of 1.x is looked at with one of them.
pytestmark = pytest.mark.parametrize("agent", ["plain", "old"], indirect=True)
SENDS = ("SendMessage", "message/send")


def text_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Finished), outcome
    assert isinstance(outcome.result, dict)
    return str(outcome.result["text"])


async def begun(url: str, prompt: str, *, wants_stop: bool = False) -> tuple[LaunchRequest, Outcome]:
    """A launch that was stopped as soon as the agent had its task, and what came of it."""
    asked = request(url, prompt)
    notes = notes_of(asked)
    async with launcher() as made:
        task = asyncio.create_task(made.launch(asked))
        while not notes.references and not task.done():
            await asyncio.sleep(0.01)
        notes.wants_stop = wants_stop
        assert asked.cancelled is not None
        asked.cancelled.set()
        return asked, await asyncio.wait_for(task, 120)


def test_a_process_that_lets_go_leaves_the_task_to_whoever_follows(agent: Agent) -> None:
    asked, outcome = asyncio.run(begun(agent.url, "hold followed"))
    assert isinstance(outcome, RunCancelled)
    [reference] = notes_of(asked).references
    assert reference not in agent.executions()["cancelled"]
    agent.release("followed")
    followed = request(agent.url, "hold followed", key=asked.key, reference=reference, heard=True)
    assert text_of(launched(followed)) == "held: followed"
    assert agent.executions()["executions"][asked.key] == 1


def test_a_stop_is_handed_on_to_the_agent(agent: Agent) -> None:
    asked, outcome = asyncio.run(begun(agent.url, "hold stopped", wants_stop=True))
    assert isinstance(outcome, RunCancelled)
    assert notes_of(asked).references[0] in agent.executions()["cancelled"]


@pytest.mark.parametrize("once", [False, True])
def test_a_lost_reply_is_looked_for_where_the_protocol_can(agent: Agent, once: bool) -> None:
    """1.0 lists its tasks by context. 0.3 cannot: nobody knows what became of it."""
    with between(agent.url, loses=lambda method: method in SENDS) as middle:
        asked = request(middle.url, "task lost", once=once)
        outcome = launched(asked)
        sent = sum(method in SENDS for method in middle.methods)
    assert agent.executions()["executions"][asked.key] == 1
    assert sent == 1
    if agent.model.recovers:
        assert text_of(outcome) == "done: lost"
        assert len(notes_of(asked).references) == 1
    else:
        assert isinstance(outcome, Unknown)


def test_a_message_without_a_task_cannot_be_looked_for(agent: Agent) -> None:
    with between(agent.url, loses=lambda method: method in SENDS) as middle:
        asked = request(middle.url, "echo lost")
        assert isinstance(launched(asked), Unknown)
    assert agent.executions()["executions"][asked.key] == 1


def test_in_a_conversation_of_many_runs_a_lost_reply_is_that_of_its_own_task(agent: Agent) -> None:
    schedule_id = name("shared")
    recovers, sent = agent.model.recovers, itertools.count()
    with between(agent.url, loses=lambda method: recovers and method in SENDS and next(sent) > 0) as middle:
        line = AgentLine("someone", middle.url, context=AgentContext.SCHEDULE)
        texts, contexts = [], set()
        for number in range(3):
            asked = request(middle.url, f"task {number}", schedule_id=schedule_id, agent=line)
            texts.append(text_of(launched(asked)))
            contexts.add(agent.executions()["heard"][asked.key]["context_id"])
    assert texts == ["done: 0", "done: 1", "done: 2"]
    assert middle.lost.is_set() == recovers
    assert len(contexts) == 1


@pytest.mark.parametrize("wants_stop", [False, True])
def test_a_launch_whose_message_hangs_can_be_left(agent: Agent, wants_stop: bool) -> None:
    async def leave() -> Outcome:
        asked = request(agent.url, "nothing")
        async with launcher() as made:
            task = asyncio.create_task(made.launch(asked))
            while asked.key not in (await asyncio.to_thread(agent.executions))["executions"]:
                await asyncio.sleep(0.02)
            notes_of(asked).wants_stop = wants_stop
            assert asked.cancelled is not None
            asked.cancelled.set()
            return await asyncio.wait_for(task, 120)

    assert isinstance(asyncio.run(leave()), RunCancelled)


@pytest.mark.parametrize("once", [False, True])
def test_a_prompt_that_may_have_arrived_is_looked_for_before_it_is_sent(agent: Agent, once: bool) -> None:
    """It did arrive, and whoever sent it died before the answer came."""
    first = request(agent.url, "task heard")
    launched(first)
    asked = request(agent.url, "task heard", key=first.key, heard=True, once=once)
    outcome = launched(asked)
    times = agent.executions()["executions"][first.key]
    if agent.model.recovers:
        assert (text_of(outcome), times) == ("done: heard", 1)
    elif once:
        assert (type(outcome), times) == (Unknown, 1)
    else:
        assert (text_of(outcome), times) == ("done: heard", 2)


@pytest.mark.parametrize("once", [False, True])
def test_a_prompt_that_did_not_arrive_is_sent_unless_it_may_go_out_only_once(agent: Agent, once: bool) -> None:
    asked = request(agent.url, "task fresh", heard=True, once=once)
    outcome = launched(asked)
    assert isinstance(outcome, Unknown) if once else text_of(outcome) == "done: fresh"
    assert agent.executions()["executions"].get(asked.key, 0) == (0 if once else 1)


@pytest.mark.parametrize("verb", ["input", "auth"])
def test_an_answer_continues_the_task(agent: Agent, verb: str) -> None:
    first = request(agent.url, f"{verb} colour")
    question = launched(first)
    assert isinstance(question, Asked)
    key = f"{first.key}:gate1"
    more: dict[str, Any] = {"key": key, "reference": question.reference, "answer": "blue"}
    asked = request(agent.url, f"{verb} colour", **more)
    assert text_of(launched(asked)) == "answered: blue"
    told = agent.executions()
    assert told["executions"][key] == 1
    assert told["heard"][key]["context_id"] == told["heard"][first.key]["context_id"]
    # Whoever answers once more, because the first to do so died, finds that it was answered.
    again = request(agent.url, f"{verb} colour", heard=True, **more)
    assert text_of(launched(again)) == "answered: blue"
    assert agent.executions()["executions"][key] == 1


@pytest.mark.long
def test_a_task_that_died_with_its_agent_is_unknown(agent: Agent, tmp_path: Path) -> None:
    async def kill_and_follow() -> tuple[Outcome, str]:
        with running(agent.name, tmp_path) as (process, mortal):
            asked = request(mortal.url, "hold for ever")
            async with launcher() as made:
                task = asyncio.create_task(made.launch(asked))
                while not notes_of(asked).references:
                    await asyncio.sleep(0.01)
                process.kill()
                process.start()
                await asyncio.to_thread(process.ready)
                outcome = await asyncio.wait_for(task, 60)
            return outcome, str(mortal.executions()["executions"])

    outcome, executed = asyncio.run(kill_and_follow())
    assert isinstance(outcome, Unknown)
    assert executed == "{}"  # of the second life
