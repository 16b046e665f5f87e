"""A prompt at an agent: sent once, followed, stopped, answered and found again, in both dialects."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from launchers.agents import Agent, KeptHolder, Task
from launchers.far_ends import FOR_EVER, KEY, STEP, FixedClock, request_for

from horarium.core.document.assignee import AgentContext, AgentProtocol
from horarium.core.lifecycle.outcome import (
    Asked,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unknown,
    Unreachable,
)
from horarium.launchers.a2a.dialect import Dialect, TaskState
from horarium.launchers.a2a.launcher import A2ALauncher
from horarium.launchers.launcher import AgentLine, LaunchRequest
from horarium.launchers.ssrf import AddressGuard, AddressPolicy

V1, V0 = (Dialect.V1_0,), (Dialect.V0_3,)
both = pytest.mark.parametrize("speaks", [V1, V0], ids=["1.0", "0.3"])


# What it costs to read the certificates is paid once.
TLS = ssl.create_default_context()


def launcher() -> A2ALauncher:
    open_guard = AddressGuard(AddressPolicy(allow_loopback=True))
    return A2ALauncher(FixedClock(), guard=open_guard, tls=TLS, settling_seconds=0.2, late_reply_seconds=FOR_EVER)


def prompt(at: Agent, text: str, **changes: Any) -> LaunchRequest:
    return request_for("prompt", {"prompt": text}, **{"agent": at.line(), "seconds": FOR_EVER, **changes})


def with_agent(run: Callable[[Agent], Awaitable[Any]], **given: Any) -> Any:
    async def main() -> Any:
        async with Agent(**given) as agent:
            return await run(agent)

    return asyncio.run(main())


def launched(text: str, *, speaks: tuple[Dialect, ...] = V1, **changes: Any) -> tuple[Agent, Outcome]:
    async def run(agent: Agent) -> tuple[Agent, Outcome]:
        return agent, await launcher().launch(prompt(agent, text, **changes))

    found: tuple[Agent, Outcome] = with_agent(run, speaks=speaks)
    return found


@both
def test_a_task_is_sent_once_and_followed_to_its_end(speaks: tuple[Dialect, ...]) -> None:
    holder = KeptHolder()
    agent, outcome = launched("task it", speaks=speaks, holder=holder, inputs={"rows": 3}, traceparent="00-1-2-01")
    assert outcome == Finished({"text": "task it", "task_id": "task-1", "context_id": KEY})
    assert holder.references == ["task-1"]
    assert [seen.dialect for seen in holder.cards] == [speaks[0].value]
    assert len(agent.sent) == 1
    (message,) = agent.sent
    assert (message["messageId"], message["contextId"]) == (KEY, KEY)
    assert message["parts"][1]["data"] == {"rows": 3}
    assert agent.heads[-1]["x-workspace-id"] == "system:scheduler"
    assert agent.heads[-1]["traceparent"] == "00-1-2-01"


def test_a_message_says_of_its_run_what_an_agent_may_know() -> None:
    agent, _ = launched("echo", attempt=2, report_token="tt", report_url="http://h/", traceparent="00-1-2-01", **STEP)
    assert agent.sent[0]["metadata"] == {
        "caller": "system:scheduler",
        "schedule_id": "nightly",
        "nominal_time": "2026-03-08T07:00:00Z",
        "run_id": "run-1",
        "instance_id": "schedule:nightly:1772953200",
        "attempt": 2,
        "origin": "scheduled",
        "workflow_id": "brief",
        "workflow_version": 2,
        "node_id": "send",
        "traceparent": "00-1-2-01",
    }


def test_the_runs_of_a_schedule_can_share_a_conversation() -> None:
    async def run(agent: Agent) -> list[str]:
        shared, them = agent.line(context=AgentContext.SCHEDULE), launcher()
        for key, schedule_id in (("k1", "a"), ("k2", "a"), ("k3", "b"), ("k4", None)):
            await them.launch(prompt(agent, "echo", agent=shared, key=key, schedule_id=schedule_id))
        return [message["contextId"] for message in agent.sent]

    first, second, other, alone = with_agent(run)
    assert first == second
    assert len({first, other, alone}) == 3
    assert alone == "k4"


OUTCOMES: dict[str, tuple[str, Outcome]] = {
    "failed": ("failed no disk", RunFailed("the agent failed: no disk", "agent_failed")),
    "rejected": ("rejected not mine", RunFailed("the agent rejected the prompt: not mine", "agent_rejected")),
    "empty": ("completed", RunFailed("the agent returned an empty answer", "empty_response")),
    "canceled": ("canceled", RunCancelled("the agent cancelled the task")),
    "asks": ("input which city?", Asked("agent_input", "which city?", "task-1")),
    "asks for access": ("auth a key, please", Asked("agent_auth", "a key, please", "task-1")),
    "breaks down": ("-32603", RunFailed("the agent answered with error -32603: it says None", "agent_error")),
    "refuses": ("-32602", Refused("the agent answered with error -32602: it says None")),
    "has no time": ("http 503", Busy(7.0, sent=True)),
    "redirects": ("http 302", Refused("HTTP 302: redirects are not followed; set the final URL")),
    "says too much": ("big", RunFailed("the agent's reply is too large to store", "reply_too_large")),
}


@pytest.mark.parametrize(("text", "outcome"), OUTCOMES.values(), ids=OUTCOMES)
def test_what_an_agent_answers_is_what_becomes_of_the_run(text: str, outcome: Outcome) -> None:
    _, found = launched(text)
    if isinstance(found, RunFailed) and isinstance(outcome, RunFailed):
        assert (found.error, found.error_class) == (outcome.error, outcome.error_class)
    else:
        assert found == outcome


# ── recovery ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_reply_that_was_lost_is_looked_for_and_nothing_is_sent_twice() -> None:
    holder = KeptHolder()
    agent, outcome = launched("lose it", holder=holder)
    assert isinstance(outcome, Finished)
    assert (len(agent.sent), holder.references) == (1, ["task-1"])


def test_in_the_old_dialect_nobody_knows_what_became_of_a_lost_reply() -> None:
    agent, outcome = launched("lose it", speaks=V0)
    assert isinstance(outcome, Unknown)
    assert len(agent.sent) == 1


@both
def test_what_was_begun_is_followed_by_whoever_comes_next_and_nothing_is_sent(speaks: tuple[Dialect, ...]) -> None:
    async def run(agent: Agent) -> None:
        cancelled, holder = asyncio.Event(), KeptHolder()
        first = prompt(agent, "slow", holder=holder, cancelled=cancelled)
        launch = asyncio.ensure_future(launcher().launch(first))
        await agent.until("get")
        cancelled.set()
        assert isinstance(await launch, RunCancelled)
        assert agent.stopped == []  # this process only lets go
        agent.tasks["task-1"].state = TaskState.COMPLETED
        agent.away = 2  # it restarts in the meantime
        after = prompt(agent, "slow", holder=holder, reference=holder.references[0], heard=True, once=True)
        outcome = await launcher().launch(after)
        assert outcome == Finished({"text": "slow", "task_id": "task-1", "context_id": KEY})
        assert len(agent.sent) == 1

    with_agent(run, speaks=speaks)


@both
def test_whoever_lets_go_while_the_message_is_being_sent_still_learns_its_name(speaks: tuple[Dialect, ...]) -> None:
    async def run(agent: Agent) -> None:
        cancelled, holder = asyncio.Event(), KeptHolder()
        line = agent.line(protocol=AgentProtocol(speaks[0].value))
        launch = asyncio.ensure_future(
            launcher().launch(prompt(agent, "late", agent=line, holder=holder, cancelled=cancelled))
        )
        await agent.until("send")
        cancelled.set()
        agent.waits.set()
        assert isinstance(await launch, RunCancelled)
        assert holder.references == ["task-1"]
        assert agent.stopped == []

    with_agent(run, speaks=speaks)


def test_what_may_have_arrived_is_looked_for_before_it_is_sent_again() -> None:
    async def run(agent: Agent) -> None:
        await launcher().launch(prompt(agent, "task it"))
        assert isinstance(await launcher().launch(prompt(agent, "task it", heard=True)), Finished)
        assert len(agent.sent) == 1
        agent.tasks.clear()
        outcome = await launcher().launch(prompt(agent, "task it", heard=True, once=True))
        assert outcome == Unknown("the agent has no task for the message")
        assert isinstance(await launcher().launch(prompt(agent, "task it", heard=True)), Finished)
        assert len(agent.sent) == 2

    with_agent(run)


def test_a_task_of_another_conversation_is_not_taken_for_ours_whatever_the_agent_lists() -> None:
    async def run(agent: Agent) -> None:
        await launcher().launch(prompt(agent, "task it", key="another"))
        outcome = await launcher().launch(prompt(agent, "task it", heard=True, once=True))
        assert outcome == Unknown("the agent has no task for the message")
        agent.tasks.clear()
        holder = KeptHolder(stops=True)
        cancelled = asyncio.Event()
        cancelled.set()
        agent.tasks["others"] = Task("others", "another", TaskState.WORKING, "slow", [])
        stopped = prompt(agent, "slow", heard=True, holder=holder, cancelled=cancelled)
        assert isinstance(await launcher().launch(stopped), RunCancelled)
        assert agent.stopped == []

    with_agent(run, careless=True)


@both
def test_a_task_that_its_agent_has_lost_is_unknown(speaks: tuple[Dialect, ...]) -> None:
    _, outcome = launched("task", speaks=speaks, reference="task-9", heard=True)
    assert isinstance(outcome, Unknown)


# ── questions ────────────────────────────────────────────────────────────────────────────────────────


@both
def test_an_answer_goes_on_with_the_task_that_asked(speaks: tuple[Dialect, ...]) -> None:
    async def run(agent: Agent) -> None:
        asked = await launcher().launch(prompt(agent, "input which city?"))
        assert isinstance(asked, Asked)
        agent.tasks["task-1"].context = "its-own"  # not every agent takes our name
        later = prompt(agent, "input", key=f"{KEY}:gate1", reference=asked.reference, answer="Ankara")
        assert await launcher().launch(later) == Finished(
            {"text": "heard: Ankara", "task_id": "task-1", "context_id": "its-own"}
        )
        assert (agent.sent[1]["taskId"], agent.sent[1]["messageId"]) == ("task-1", f"{KEY}:gate1")
        # Whoever died right after it finds that it was said.
        assert isinstance(await launcher().launch(prompt(agent, "input", **_again(later))), Finished)
        assert len(agent.sent) == 2

    with_agent(run, speaks=speaks)


def _again(request: LaunchRequest) -> dict[str, Any]:
    return {"key": request.key, "reference": request.reference, "answer": request.answer, "heard": True}


def test_an_agent_may_ask_again() -> None:
    async def run(agent: Agent) -> Outcome:
        await launcher().launch(prompt(agent, "again which city?"))
        later = prompt(agent, "again", key=f"{KEY}:gate1", reference="task-1", answer="Ankara")
        return await launcher().launch(later)

    assert with_agent(run) == Asked("agent_input", "and which street?", "task-1")


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────


@both
def test_at_the_deadline_the_agent_is_told_to_stop(speaks: tuple[Dialect, ...]) -> None:
    agent, outcome = launched("slow", speaks=speaks, seconds=3)
    assert isinstance(outcome, RunTimedOut)
    assert agent.stopped == ["task-1"]


def test_an_agent_that_never_answers_is_told_to_stop_what_it_began() -> None:
    agent, outcome = launched("hang", seconds=3)
    assert isinstance(outcome, RunTimedOut)
    assert agent.stopped == ["task-1"]


def test_a_stop_reaches_the_agent() -> None:
    async def run(agent: Agent) -> Outcome:
        cancelled = asyncio.Event()
        request = prompt(agent, "slow", cancelled=cancelled, holder=KeptHolder(stops=True))
        launch = asyncio.ensure_future(launcher().launch(request))
        await agent.until("get")
        cancelled.set()
        outcome = await launch
        assert agent.stopped == ["task-1"]
        return outcome

    assert isinstance(with_agent(run), RunCancelled)


def test_what_had_ended_before_it_was_stopped_has_ended() -> None:
    """The deadline passed while nobody held the run, and the agent was done before."""

    async def run(agent: Agent) -> Outcome:
        await launcher().launch(prompt(agent, "task it"))
        return await launcher().launch(prompt(agent, "task it", seconds=-60, reference="task-1", heard=True))

    assert isinstance(with_agent(run), Finished)


@both
def test_a_task_that_nobody_waits_for_is_stopped(speaks: tuple[Dialect, ...]) -> None:
    async def run(agent: Agent) -> None:
        await launcher().launch(prompt(agent, "input which city?"))
        them = launcher()
        assert await them.cancel_task("default", agent.line(), "task-1")
        assert agent.tasks["task-1"].state is TaskState.CANCELED
        assert await them.cancel_task("default", agent.line(), "task-1")  # there is nothing more to tell
        assert await them.cancel_task("default", agent.line(), "task-9")
        assert not await them.cancel_task("default", agent.line(url="http://127.0.0.1:1/"), "task-1")

    with_agent(run, speaks=speaks)


# ── ways ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_dialect_that_was_found_is_spoken_from_then_on() -> None:
    async def run(agent: Agent) -> list[str]:
        them = launcher()
        await them.launch(prompt(agent, "echo"))
        await them.launch(prompt(agent, "echo"))
        return agent.calls

    assert with_agent(run, speaks=V0) == ["send", "send", "send"]


def test_a_dialect_that_was_registered_is_not_changed() -> None:
    async def run(agent: Agent) -> tuple[Outcome, list[str]]:
        pinned = agent.line(protocol=AgentProtocol.V1_0)
        return await launcher().launch(prompt(agent, "echo", agent=pinned)), agent.calls

    outcome, calls = with_agent(run, speaks=V0)
    assert isinstance(outcome, Refused)
    assert calls == ["send"]


def test_a_card_that_points_elsewhere_is_not_followed_and_the_token_stays() -> None:
    async def run(agent: Agent) -> None:
        async with Agent() as other:
            agent.shows(other.url.replace("127.0.0.1", "localhost"))
            line = agent.line(token="s3cret")
            assert isinstance(await launcher().launch(prompt(agent, "echo", agent=line)), Finished)
            assert (len(agent.sent), len(other.sent)) == (1, 0)
            assert agent.heads[-1]["authorization"] == "Bearer s3cret"
            allowed = agent.line(token="s3cret", allowed_hosts=("localhost",))
            assert isinstance(await launcher().launch(prompt(agent, "echo", agent=allowed)), Finished)
            assert len(other.sent) == 1
            assert "authorization" not in other.heads[-1]
            pinned = agent.line(allowed_hosts=("localhost",), input_hosts=((agent.url.rstrip("/"),),))
            assert isinstance(await launcher().launch(prompt(agent, "echo", agent=pinned)), Finished)
            assert (len(agent.sent), len(other.sent)) == (2, 1)

    with_agent(run)


def test_a_card_that_never_comes_takes_no_more_than_its_part_of_the_time() -> None:
    async def run(agent: Agent) -> None:
        agent.hides()
        slow = launcher()
        assert isinstance(await slow.launch(prompt(agent, "completed fine", seconds=4)), Finished)
        agent.tasks["task-1"].state = TaskState.WORKING
        assert await slow.cancel_task("default", agent.line(), "task-1")

    with_agent(run)


def test_an_address_of_the_card_at_which_nobody_is_gives_way_to_the_registered_one() -> None:
    async def run(agent: Agent) -> Outcome:
        agent.shows("http://127.0.0.1:1/")
        return await launcher().launch(prompt(agent, "echo"))

    assert isinstance(with_agent(run), Finished)


def test_nobody_at_all_is_unreachable_and_nobody_named_is_refused() -> None:
    async def run(line: AgentLine | None) -> Outcome:
        return await launcher().launch(request_for("prompt", {"prompt": "hi"}, agent=line))

    assert isinstance(asyncio.run(run(AgentLine("a", "http://127.0.0.1:1/"))), Unreachable)
    assert isinstance(asyncio.run(run(AgentLine("a", "ftp://127.0.0.1/"))), Refused)
    assert isinstance(asyncio.run(run(AgentLine("a", "http://169.254.169.254/"))), Refused)
    assert isinstance(asyncio.run(run(AgentLine("a", None))), Refused)
    assert isinstance(asyncio.run(run(None)), Refused)


def test_the_token_stands_in_no_error() -> None:
    async def run(agent: Agent) -> Outcome:
        return await launcher().launch(prompt(agent, "-32603", agent=agent.line(token="s3cret")))

    outcome = with_agent(run)
    assert isinstance(outcome, RunFailed)
    assert "s3cret" not in repr(outcome)


@pytest.mark.parametrize("hushed", [False, True])
def test_an_agent_is_told_where_to_give_hints_if_its_card_says_that_it_can(hushed: bool) -> None:
    async def run(agent: Agent) -> None:
        agent.shows(agent.url, push=True)
        them = launcher()
        request = prompt(agent, "slow", report_url="http://127.0.0.1:1/api/runs/run-1/report", report_token="hrt_0.x")
        launch = asyncio.ensure_future(them.launch(request))
        await agent.until("get")
        asked = [wish.get("taskPushNotificationConfig") for wish in agent.wishes]
        assert [None if each is None else each["url"] for each in asked] == [
            "http://127.0.0.1:1/api/runs/run-1/pushes",
            *([None] if hushed else []),
        ]
        agent.tasks["task-1"].state = TaskState.COMPLETED
        them.hint("run-1")
        assert isinstance(await launch, Finished)
        assert "hrt_0.x" not in repr(agent.sent) + repr(agent.wishes)

    with_agent(run, hushed=hushed)
