"""What the small agents of the demonstration make of what they are told, read as the launcher reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from horarium.demo.agent import DemoAgent
from horarium.launchers.a2a.card import read_card
from horarium.launchers.a2a.dialect import (
    Dialect,
    OutgoingMessage,
    Reply,
    RpcFailed,
    TaskSeen,
    TasksListed,
    TaskState,
    cancel_body,
    get_body,
    list_body,
    read_reply,
    send_body,
)

DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
OTHER = {Dialect.V1_0: Dialect.V0_3, Dialect.V0_3: Dialect.V1_0}


def an_agent(dialect: Dialect) -> DemoAgent:
    return DemoAgent("Ours", dialect.value, seconds=1)


def ask(agent: DemoAgent, body: Any, now: float) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_reply(agent.answer(raw, agent.generation, now))


def send(agent: DemoAgent, text: str, name: str = "m1", now: float = 0, task_id: str | None = None) -> TaskSeen:
    message = OutgoingMessage(name, text, "c1", task_id)
    seen = ask(agent, send_body(Dialect(agent.generation), message, "r1"), now)
    assert isinstance(seen, TaskSeen), seen
    return seen


def get(agent: DemoAgent, now: float, task_id: str = "task-m1") -> TaskSeen:
    seen = ask(agent, get_body(Dialect(agent.generation), task_id, "r1"), now)
    assert isinstance(seen, TaskSeen), seen
    return seen


@DIALECTS
def test_a_prompt_is_worked_on_and_answered(dialect: Dialect) -> None:
    agent = an_agent(dialect)
    sent = send(agent, "Sweep the floor.", now=10)
    assert (sent.task_id, sent.context_id, sent.state) == ("task-m1", "c1", TaskState.WORKING)
    assert get(agent, 10.9).state is TaskState.WORKING
    done = get(agent, 11)
    assert (done.state, done.text, done.message_ids) == (
        TaskState.COMPLETED,
        "Done: Sweep the floor.",
        frozenset({"m1"}),
    )


@DIALECTS
def test_the_same_message_again_is_the_same_task(dialect: Dialect) -> None:
    agent = an_agent(dialect)
    send(agent, "a")
    assert send(agent, "a", now=5).state is TaskState.COMPLETED


@DIALECTS
def test_it_asks_and_goes_on_with_the_answer(dialect: Dialect) -> None:
    agent = an_agent(dialect)
    send(agent, "Order flowers. Ask first: which colour?")
    asked = get(agent, 1)
    assert (asked.state, asked.text) == (TaskState.INPUT_REQUIRED, "which colour?")
    assert send(agent, "yellow", "m2", 5, "task-m1").state is TaskState.WORKING
    assert (get(agent, 6).state, get(agent, 6).text) == (TaskState.COMPLETED, "Done (yellow): Order flowers.")
    late = send_body(dialect, OutgoingMessage("m3", "red", "c1", "task-m1"), "r1")
    assert ask(agent, late, 7) == RpcFailed(-32004, "Task does not await input")


@DIALECTS
def test_what_is_canceled_stays_so(dialect: Dialect) -> None:
    agent = an_agent(dialect)
    send(agent, "a")
    cancel = cancel_body(dialect, "task-m1", "r1")
    ask(agent, cancel, 0.5)
    assert get(agent, 9).state is TaskState.CANCELED
    assert ask(agent, cancel, 9) == RpcFailed(-32002, "Task cannot be cancelled")


def test_its_tasks_are_found_by_their_context() -> None:
    agent = an_agent(Dialect.V1_0)
    sent = send(agent, "a")
    assert ask(agent, list_body("c1", "r1"), 0) == TasksListed((sent,))
    assert ask(agent, list_body("c2", "r1"), 0) == TasksListed(())


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.demo.agent.MOST_TASKS", 2)
    agent = an_agent(Dialect.V1_0)
    for name in ("m1", "m2", "m3"):
        send(agent, "a", name)
    assert ask(agent, get_body(Dialect.V1_0, "task-m1", "r1"), 0) == RpcFailed(-32001, "Task not found")
    assert get(agent, 9, "task-m2").state is TaskState.COMPLETED


@DIALECTS
def test_what_it_cannot_do_is_an_error_with_its_code(dialect: Dialect) -> None:
    agent = an_agent(dialect)
    message = OutgoingMessage("m1", "a", "c1")
    right = send_body(dialect, message, "r1")
    cases: list[tuple[Any, int]] = [
        (send_body(OTHER[dialect], message, "r1"), -32601),
        (get_body(dialect, "gone", "r1"), -32001),
        ({**right, "params": []}, -32602),
        ({**right, "params": {}}, -32602),
        ({**right, "params": {"message": {"parts": []}}}, -32602),
        ({**right, "method": 1}, -32600),
        (b"[]", -32600),
        (b"{", -32700),
        (b"[" * 100_000, -32700),
    ]
    for body, code in cases:
        failed = ask(agent, body, 0)
        assert isinstance(failed, RpcFailed)
        assert failed.code == code, body
    old = agent.answer(json.dumps(right).encode(), None, 0)
    assert ("error" in old) == (dialect is Dialect.V1_0)


@DIALECTS
def test_its_card_can_be_read(dialect: Dialect) -> None:
    card = read_card(an_agent(dialect).card("http://127.0.0.1:1"))
    assert [(each.url, each.dialect) for each in card.interfaces] == [("http://127.0.0.1:1", dialect)]
    assert (card.name, card.push) == ("Ours", False)
