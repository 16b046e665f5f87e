"""Prompts to real agents, over HTTP: from the schedule to the answer, with all that may happen between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents.house import House, name, until
from agents.running import Agent, running

# What is the same for both agents of 1.x is looked at with one of them.
both = pytest.mark.parametrize("agent", ["plain", "old"], indirect=True)


def told(house: House, run_id: str) -> list[str]:
    return [each["event_type"] for each in house.events(run_id)]


def test_a_prompt_is_scheduled_sent_answered_and_kept(house: House, agent: Agent) -> None:
    prompt = name("task")
    run = house.ended(run_id := house.prompt(house.agent(agent.url), f"task {prompt}"))
    assert (run["state"], run["error"]) == ("succeeded", None)
    assert run["result"]["text"] == f"done: {prompt}"
    heard = agent.heard(f"task {prompt}")
    assert (heard["message_id"], heard["context_id"]) == (run["key"], run["result"]["context_id"])
    expected = {"run_id": run_id, "schedule_id": run["schedule_id"], "caller": "system:scheduler"}
    assert expected.items() <= heard["metadata"].items()
    assert agent.times(f"task {prompt}") == 1
    assert told(house, run_id)[-1] == "run.completed"


@both
def test_the_agent_shows_its_card_once_it_was_spoken_to(house: House, agent: Agent) -> None:
    agent_id = house.agent(agent.url)
    house.ended(house.prompt(agent_id, "echo hello"))
    shown = until(lambda: (it := house.ask("GET", f"/api/agents/{agent_id}"))["card"] and it)
    assert shown["card"]["name"] == agent.name
    assert shown["active_runs"] == 0


def test_a_token_goes_to_its_agent_and_is_shown_nowhere(house: House, agents: dict[str, Agent]) -> None:
    token = name("token")
    agent_id = house.agent(agents["plain"].url, token=token)
    run_id = house.prompt(agent_id, "task with a token")
    assert house.ended(run_id)["state"] == "succeeded"
    assert f"Bearer {token}" in {each.get("authorization") for each in agents["plain"].requests()}
    pages = (f"/api/agents/{agent_id}", f"/api/runs/{run_id}", f"/api/runs/{run_id}/events", "/api/agents")
    assert not any(token in house.http.get(page).text for page in pages)


@both
@pytest.mark.parametrize("verb", ["input", "auth"])
def test_a_question_is_answered_and_the_task_goes_on(house: House, agent: Agent, verb: str) -> None:
    subject = name("subject")
    policy = {"requires_approval": False, "allow_requester": True}
    run_id = house.prompt(house.agent(agent.url), f"{verb} {subject}", approval_policy=policy)
    question = house.question(run_id)
    asked = f"which {subject}?" if verb == "input" else f"log in to {subject}"
    assert (question["gates"], question["question"]) == ([f"agent_{verb}"], asked)
    path = f"/api/approvals/{question['approval_id']}/decision"
    if verb == "input":
        assert house.http.post(path, json={"decision": "approve"}).status_code == 422
        house.ask("POST", path, {"decision": "modify", "modifications": {"reply": "blue"}})
    else:
        house.ask("POST", path, {"decision": "approve"})
    run = house.ended(run_id)
    said = "blue" if verb == "input" else "approved"
    assert (run["state"], run["result"]["text"]) == ("succeeded", f"answered: {said}")
    assert agent.times(f"{verb} {subject}") == 1


@both
def test_an_agent_may_ask_again(house: House, agent: Agent) -> None:
    subject = name("subject")
    run_id = house.prompt(house.agent(agent.url), f"input {subject}")
    first = house.question(run_id)
    answer = f"/api/approvals/{first['approval_id']}/decision"
    house.ask("POST", answer, {"decision": "modify", "modifications": {"reply": "ask again"}})
    second = until(lambda: (it := asked_now(house, run_id)) and it["approval_id"] != first["approval_id"] and it)
    assert second["question"] == "which else?"
    answer = f"/api/approvals/{second['approval_id']}/decision"
    house.ask("POST", answer, {"decision": "modify", "modifications": {"reply": "blue"}})
    assert house.ended(run_id)["result"]["text"] == "answered: blue"


def asked_now(house: House, run_id: str) -> dict[str, Any] | None:
    run = house.run(run_id)
    if run["state"] != "awaiting_approval":
        return None
    return house.ask("GET", f"/api/approvals/{run['approval']['approval_id']}")


@pytest.mark.parametrize("way", ["reject", "cancel", "terminate"])
def test_a_question_that_nobody_answers_any_more_cancels_the_task(
    house: House, agents: dict[str, Agent], way: str
) -> None:
    agent, subject = agents["old" if way == "cancel" else "plain"], name("subject")
    run_id = house.prompt(house.agent(agent.url), f"input {subject}")
    approval_id = house.question(run_id)["approval_id"]
    if way == "reject":
        house.ask("POST", f"/api/approvals/{approval_id}/decision", {"decision": "reject", "reason": "no"})
    else:
        house.ask("POST", f"/api/runs/{run_id}/{way}", {})
    assert house.ended(run_id)["state"] in ("rejected", "cancelled", "terminated")
    until(lambda: cancelled(agent, f"input {subject}"))


def cancelled(agent: Agent, prompt: str) -> bool:
    """The agent was told that nobody wants the task of this prompt."""
    told = agent.executions()
    tasks = {each["text"]: each["task_id"] for each in told["heard"].values()}
    return tasks[prompt] in told["cancelled"]


@both
@pytest.mark.parametrize("verb", ["cancel", "terminate"])
def test_a_stop_reaches_the_agent(house: House, agent: Agent, verb: str) -> None:
    prompt = f"hold {name('stopped')}"
    run_id = house.prompt(house.agent(agent.url), prompt)
    until(lambda: agent.times(prompt))
    house.ask("POST", f"/api/runs/{run_id}/{verb}", {})
    assert house.ended(run_id)["state"] == ("cancelled" if verb == "cancel" else "terminated")
    until(lambda: cancelled(agent, prompt))


@both
def test_at_its_deadline_a_prompt_is_timed_out_and_its_task_cancelled(house: House, agent: Agent) -> None:
    prompt = f"hold {name('late')}"
    more = {"action": {"timeout_seconds": 3}, "retry_policy": {"max_retries": 0}}
    run = house.ended(house.prompt(house.agent(agent.url), prompt, **more))
    assert run["state"] == "timed_out"
    until(lambda: cancelled(agent, prompt))


ENDS = {
    "fail": ("failed", "agent_failed", 2),
    "reject": ("failed", "agent_rejected", 1),
    "raise": ("failed", "agent_error", 2),
    "empty": ("failed", "empty_response", 1),
}


@pytest.mark.parametrize(("verb", "ends"), ENDS.items(), ids=ENDS)
def test_a_failure_is_tried_again_and_an_answer_is_not(
    house: House, agents: dict[str, Agent], verb: str, ends: tuple[str, str, int]
) -> None:
    state, error_class, times = ends
    prompt = f"{verb} {name('x')}"
    every = ["timeout", "provider_error", "rate_limit", "contract_violated"]
    retry = {"max_retries": 1, "backoff_ms": 1, "retry_on": every}
    run = house.ended(house.prompt(house.agent(agents["plain"].url), prompt, retry_policy=retry))
    assert (run["state"], run["error_class"]) == (state, error_class)
    assert agents["plain"].times(prompt) == times


def test_an_agent_is_given_no_more_than_it_has_room_for(house: House, agents: dict[str, Agent]) -> None:
    agent, hold = agents["plain"], name("room")
    agent_id = house.agent(agent.url, capacity=1)
    schedule_id = house.schedule(agent_id, f"hold {hold}")
    first, second = house.trigger(schedule_id), house.trigger(schedule_id)
    until(lambda: agent.times(f"hold {hold}"))
    # Another agent is served meanwhile, so whoever hands out has been round.
    assert house.ended(house.prompt(house.agent(agent.url), "echo meanwhile"))["state"] == "succeeded"
    assert agent.times(f"hold {hold}") == 1
    assert "ready" in {house.run(first)["state"], house.run(second)["state"]}
    agent.release(hold)
    assert {house.ended(each)["state"] for each in (first, second)} == {"succeeded"}
    assert agent.times(f"hold {hold}") == 2


def test_a_team_takes_turns(house: House, agents: dict[str, Agent]) -> None:
    members = {house.agent(agents[kind].url): agents[kind] for kind in ("plain", "old")}
    team, prompt = name("team"), f"task {name('turn')}"
    house.ask("PUT", f"/api/teams/{team}", {"members": list(members), "strategy": "round_robin"})
    schedule_id = house.schedule(team, prompt, assignee_type="team")
    ends = [house.ended(house.trigger(schedule_id)) for _ in range(4)]
    assert {each["state"] for each in ends} == {"succeeded"}
    assert [agent.times(prompt) for agent in members.values()] == [2, 2]


@both
def test_a_step_of_a_workflow_may_be_a_prompt(house: House, agent: Agent) -> None:
    prompt, workflow_id = f"task {name('step')}", name("workflow")
    by = {"assignee_type": "agent", "assignee_id": house.agent(agent.url)}
    node = {"id": "write", "action": {"kind": "prompt", "prompt": prompt}, "input": {"day": "monday"}, **by}
    house.ask("PUT", f"/api/workflows/{workflow_id}", {"nodes": [node]})
    started = house.ask("POST", f"/api/workflows/{workflow_id}/runs", {})
    run = house.ended(started["run_id"])
    assert run["state"] == "succeeded", run
    heard = agent.heard(prompt)
    assert heard["data"] == [{"day": "monday"}]
    assert heard["metadata"]["node_id"] == "write"
    assert run["result"]["write"]["text"] == prompt.replace("task ", "done: ")


@pytest.mark.parametrize(("kind", "delivery"), [("plain", "at_least_once"), ("old", "at_most_once")])
def test_a_task_that_died_with_its_agent(house: House, tmp_path: Path, kind: str, delivery: str) -> None:
    """Sent again, with the same ids, unless it may go out only once."""
    with running(kind, tmp_path) as (process, agent):
        hold = name("dead")
        run_id = house.prompt(house.agent(agent.url), f"hold {hold}", action={"delivery": delivery})
        until(lambda: agent.times(f"hold {hold}"))
        house.until(run_id, "running")
        process.kill()
        process.start()
        agent = process.ready()
        if delivery == "at_most_once":
            assert house.ended(run_id)["state"] == "unknown"
            assert agent.times(f"hold {hold}") == 0
            return
        agent.release(hold)
        run: dict[str, Any] = house.ended(run_id)
        assert (run["state"], run["result"]["text"]) == ("succeeded", f"held: {hold}")
        assert agent.heard(f"hold {hold}")["message_id"] == run["key"]
        assert agent.times(f"hold {hold}") == 1
