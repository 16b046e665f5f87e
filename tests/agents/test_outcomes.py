"""Each thing that an agent may do with a prompt is the outcome that it should be, for agents of all three kinds."""

from __future__ import annotations

import socket

import pytest
from agents.launching import launched, notes_of, request
from agents.running import Agent

from horarium.core.lifecycle.outcome import Asked, Finished, Outcome, RunFailed, RunTimedOut, Unreachable


def told(outcome: Outcome) -> tuple[str, str, str]:
    """What it is, of which class, and in which words."""
    match outcome:
        case Finished(result):
            assert isinstance(result, dict)
            return "finished", "", str(result["text"])
        case RunFailed(error, error_class):
            return "failed", error_class or "", error
        case Asked(gate, question):
            return "asked", gate, question
        case _:
            return type(outcome).__name__, "", ""


ROWS = {
    "a message": ("echo good morning", "finished", "", "good morning"),
    "a task": ("task x", "finished", "", "done: x"),
    "a task that takes its time": ("slow 0.4", "finished", "", "slow: 0.4"),
    "text in the status only": ("status x", "finished", "", "status: x"),
    "a failure": ("fail x", "failed", "agent_failed", "failed: x"),
    "a rejection": ("reject x", "failed", "agent_rejected", "rejected: x"),
    "a question": ("input colour", "asked", "agent_input", "which colour?"),
    "a login": ("auth shop", "asked", "agent_auth", "log in to shop"),
    "an exception": ("raise x", "failed", "agent_error", "raised: x"),
    "no words": ("empty", "failed", "empty_response", ""),
    "an unknown verb": ("dance", "failed", "agent_rejected", "no such verb: dance"),
}


@pytest.mark.parametrize(("prompt", "what", "word", "text"), ROWS.values(), ids=ROWS)
def test_an_outcome_says_what_the_agent_did(agent: Agent, prompt: str, what: str, word: str, text: str) -> None:
    asked = request(agent.url, prompt)
    outcome = launched(asked)
    found = told(outcome)
    assert found[:2] == (what, word)
    assert text in found[2]
    assert agent.executions()["executions"][asked.key] == 1
    match outcome:
        case Finished({"task_id": str() as task_id}) | Asked(reference=task_id):
            assert notes_of(asked).references == [task_id]
        case Finished(result):
            assert prompt.startswith("echo ")
            assert result == {"text": text, "task_id": None, "context_id": asked.key}


def test_an_exception_after_the_task_was_begun_is_a_failure(agent: Agent) -> None:
    """An agent of 0.3 says nothing of it, and its task stays as it was: the deadline ends the run."""
    silent = not agent.model.recovers
    outcome = launched(request(agent.url, "taskraise x", seconds=2 if silent else 30))
    assert isinstance(outcome, RunTimedOut) if silent else told(outcome)[:2] == ("failed", "agent_failed")


def test_at_the_deadline_the_task_is_cancelled(agent: Agent) -> None:
    asked = request(agent.url, "hold for ever", seconds=3)
    assert isinstance(launched(asked), RunTimedOut)
    [reference] = notes_of(asked).references
    assert reference in agent.executions()["cancelled"]


def test_an_agent_that_never_answers_is_left_at_the_deadline(agent: Agent) -> None:
    asked = request(agent.url, "nothing", seconds=3)
    assert isinstance(launched(asked), RunTimedOut)
    assert agent.executions()["executions"][asked.key] == 1


def test_nobody_at_the_address_is_unreachable() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    outcome = launched(request(f"http://127.0.0.1:{port}/", "echo x"))
    assert isinstance(outcome, Unreachable), outcome


def test_what_an_agent_is_told_beside_the_prompt(agent: Agent) -> None:
    asked = request(agent.url, "echo with everything", traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01")
    launched(asked)
    heard = agent.executions()["heard"][asked.key]
    assert heard["context_id"] == asked.key
    told = {"caller": "system:scheduler", "schedule_id": "nightly", "run_id": asked.run_id, "attempt": 0}
    assert told.items() <= heard["metadata"].items()
    assert heard["metadata"]["traceparent"] == asked.traceparent
    sent = [each for each in agent.requests() if each.get("traceparent") == asked.traceparent]
    assert {each["x-workspace-id"] for each in sent} == {"system:scheduler"}


def test_the_input_of_an_action_is_a_part_of_its_own(agent: Agent) -> None:
    asked = request(agent.url, "echo with input", inputs={"rows": 3, "of": ["a"]})
    launched(asked)
    assert agent.executions()["heard"][asked.key]["data"] == [{"rows": 3, "of": ["a"]}]


def test_the_card_and_the_dialect_are_told(agent: Agent) -> None:
    asked = request(agent.url, "echo x")
    launched(asked)
    card = notes_of(asked).cards[-1]
    assert card.card is not None
    assert (card.card["name"], card.dialect) == (agent.name, agent.model.dialect)
