"""What the small agent of the demonstration makes of what it is told."""

from __future__ import annotations

import pytest

from horarium.demo.conversation import MOST_TASKS, Conversation, NoSuchTask, Said, State, TaskOver


def test_a_prompt_is_worked_on_and_answered() -> None:
    agent = Conversation(seconds=1)
    task = agent.send(Said("m1", "Sweep the floor.", "c1"), now=10)
    assert [task.state(now, 1) for now in (10, 10.9, 11)] == [State.WORKING, State.WORKING, State.COMPLETED]
    assert (task.answer, task.context_id) == ("Done: Sweep the floor.", "c1")
    assert list(agent.of("c1")) == [task]
    assert list(agent.of("c2")) == []


def test_the_same_message_again_is_the_same_task() -> None:
    agent = Conversation()
    assert agent.send(Said("m1", "a"), now=0) is agent.send(Said("m1", "a"), now=5)


def test_it_asks_and_goes_on_with_the_answer() -> None:
    agent = Conversation(seconds=1)
    task = agent.send(Said("m1", "Order flowers. Ask first: which colour?"), now=0)
    assert (task.state(1, 1), task.question) == (State.INPUT_REQUIRED, "which colour?")
    assert agent.send(Said("m2", "yellow", task_id=task.task_id), now=5) is task
    assert [task.state(now, 1) for now in (5.5, 6)] == [State.WORKING, State.COMPLETED]
    assert task.answer == "Done (yellow): Order flowers."
    assert agent.send(Said("m2", "yellow", task_id=task.task_id), now=7) is task
    with pytest.raises(TaskOver):
        agent.send(Said("m3", "red", task_id=task.task_id), now=7)


def test_what_is_canceled_stays_so() -> None:
    agent = Conversation(seconds=1)
    task = agent.send(Said("m1", "a"), now=0)
    assert agent.cancel(task.task_id, now=0.5).state(9, 1) is State.CANCELED
    with pytest.raises(TaskOver):
        agent.cancel(task.task_id, now=1)
    with pytest.raises(NoSuchTask):
        agent.cancel("another", now=1)


def test_the_oldest_are_forgotten() -> None:
    agent = Conversation()
    first = agent.send(Said("first", "a"), now=0)
    for number in range(MOST_TASKS):
        agent.send(Said(f"m{number}", "a"), now=0)
    with pytest.raises(NoSuchTask):
        agent.get(first.task_id)
