"""What follows from an agent's reply, in each stage of a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.assignee import AgentProtocol
from horarium.core.lifecycle.outcome import (
    Asked,
    Busy,
    Finished,
    Refused,
    RunCancelled,
    RunFailed,
    Unknown,
    Unreachable,
)
from horarium.launchers.a2a import messages
from horarium.launchers.a2a.card import AgentRoute, Endpoint, moved_back, ways_to, without_address, without_dialect
from horarium.launchers.a2a.client import AgentAddressForbidden, HttpStatus, LostReply, RequestNotSent, TooLarge
from horarium.launchers.a2a.conversation import (
    CalledOff,
    ConversationDone,
    Follow,
    Leave,
    Left,
    Pause,
    Seek,
    Send,
    Stage,
    Where,
    WithoutPush,
    called_off,
    first_stage,
    next_step,
    ours,
    poll_pause,
)
from horarium.launchers.a2a.dialect import Dialect, Malformed, MessageSeen, RpcFailed, TaskSeen, TasksListed, TaskState
from horarium.launchers.payload import MAX_RESULT_BYTES

NOW = 1_700_000_000_000_000


def task(state: str, text: str = "", ids: tuple[str, ...] = (), name: str = "t1") -> TaskSeen:
    return TaskSeen(name, "c1", TaskState(state), text, frozenset(ids))


IDS = {"task_id": "t1", "context_id": "c1"}
FAULTS = {
    "empty": RunFailed("the agent returned an empty answer", "empty_response", IDS),
    "failed": RunFailed("the agent failed: no disk", "agent_failed", IDS),
    "rejected": RunFailed("the agent rejected the prompt: not my job", "agent_rejected", IDS),
}
TASKS: dict[str, tuple[TaskSeen, Any]] = {
    "completed": (task("completed", "done"), Finished({"text": "done", **IDS})),
    "completed without a text": (task("completed", " \n"), FAULTS["empty"]),
    "failed": (task("failed", "no disk"), FAULTS["failed"]),
    "failed without a word": (task("failed"), RunFailed("the agent failed", "agent_failed", IDS)),
    "rejected": (task("rejected", "not my job"), FAULTS["rejected"]),
    "canceled": (task("canceled"), RunCancelled("the agent cancelled the task")),
    "asks": (task("input-required", "which city?"), Asked("agent_input", "which city?", "t1")),
    "asks without a word": (task("input-required"), Asked("agent_input", "the agent requires an answer", "t1")),
    "asks for access": (task("auth-required"), Asked("agent_auth", "the agent requires authorization", "t1")),
}


@pytest.mark.parametrize("stage", [Stage.SENDING, Stage.FOLLOWING])
@pytest.mark.parametrize(("seen", "outcome"), TASKS.values(), ids=TASKS)
def test_the_state_of_a_task_is_what_becomes_of_the_run(stage: Stage, seen: TaskSeen, outcome: Any) -> None:
    assert next_step(Where(stage, Dialect.V1_0, "m1"), seen, NOW) == ConversationDone(outcome)


@pytest.mark.parametrize("stage", [Stage.SENDING, Stage.FOLLOWING, Stage.CHECKING])
@pytest.mark.parametrize("state", ["submitted", "working", "unknown"])
def test_a_task_at_work_is_followed(stage: Stage, state: str) -> None:
    assert next_step(Where(stage, Dialect.V0_3, "m1"), task(state), NOW) == Follow("t1")


def error(code: int) -> RpcFailed:
    return RpcFailed(code, "why")


def said(code: int) -> str:
    return f"the agent answered with error {code}: why"


REFUSED = [-32700, -32600, -32602, -32004, -32005, -32003]
SENT: dict[str, tuple[Any, Any]] = {
    "a message": (
        MessageSeen("hi", "c1"),
        ConversationDone(Finished({"text": "hi", "task_id": None, "context_id": "c1"})),
    ),
    "an empty message": (
        MessageSeen("", None),
        ConversationDone(
            RunFailed("the agent returned an empty answer", "empty_response", {"task_id": None, "context_id": None})
        ),
    ),
    "too much text": (MessageSeen("x" * MAX_RESULT_BYTES, None), ConversationDone(messages.too_large())),
    "too much": (TooLarge(), ConversationDone(messages.too_large())),
    "nonsense": (
        Malformed("no JSON"),
        ConversationDone(RunFailed("the agent's reply is not valid: no JSON", "contract_violated")),
    ),
    "a list": (
        TasksListed(()),
        ConversationDone(RunFailed("the agent's reply is not valid: the response lists tasks", "contract_violated")),
    ),
    "an exception": (error(-32603), ConversationDone(RunFailed(said(-32603), "agent_error"))),
    "a code of its own": (error(-32050), ConversationDone(RunFailed(said(-32050), "agent_error"))),
    **{f"refused {code}": (error(code), ConversationDone(Refused(said(code)))) for code in REFUSED},
    "no such method": (error(-32601), Leave(Left.DIALECT, Refused(said(-32601)))),
    "no such version": (error(-32009), Leave(Left.DIALECT, Refused(said(-32009)))),
    "not sent": (RequestNotSent("refused"), Leave(Left.ADDRESS, Unreachable("refused"))),
    "forbidden": (AgentAddressForbidden("private"), Leave(Left.ADDRESS, Refused("private"))),
    "lost": (LostReply("broken"), Seek(Stage.LOOKING, Unknown("broken"))),
    "gateway": (HttpStatus(502, "HTTP 502"), Seek(Stage.LOOKING, Unknown("HTTP 502"))),
    "no time": (HttpStatus(503, "HTTP 503", "7"), ConversationDone(Busy(7.0, sent=True))),
    "too many": (HttpStatus(429, "HTTP 429", None), ConversationDone(Busy(None, sent=True, error_class="rate_limit"))),
    "no entry": (HttpStatus(401, "HTTP 401"), ConversationDone(Refused("HTTP 401"))),
    "nobody there": (HttpStatus(404, "HTTP 404"), Leave(Left.ADDRESS, Refused("HTTP 404"))),
    "redirect": (HttpStatus(307, "HTTP 307"), Leave(Left.ADDRESS, Refused("HTTP 307"))),
    "broke down": (HttpStatus(500, "HTTP 500"), ConversationDone(RunFailed("HTTP 500", "provider_error"))),
}


@pytest.mark.parametrize(("heard", "step"), SENT.values(), ids=SENT)
def test_what_follows_from_the_reply_to_a_message(heard: Any, step: Any) -> None:
    assert next_step(Where(Stage.SENDING, Dialect.V1_0, "m1"), heard, NOW) == step


def test_what_was_lost_cannot_be_looked_for_in_the_old_dialect() -> None:
    assert next_step(Where(Stage.SENDING, Dialect.V0_3, "m1"), LostReply("broken"), NOW) == ConversationDone(
        Unknown("broken")
    )


@pytest.mark.parametrize("code", [-32003, -32602, -32600])
def test_an_agent_that_gives_no_hints_is_asked_for_none(code: int) -> None:
    where = Where(Stage.SENDING, Dialect.V1_0, "m1", push=True)
    assert next_step(where, error(code), NOW) == WithoutPush()
    assert next_step(where, error(-32603), NOW) == ConversationDone(RunFailed(said(-32603), "agent_error"))


def test_a_new_message_cannot_have_lost_a_task() -> None:
    step = next_step(Where(Stage.SENDING, Dialect.V1_0, "m1"), error(-32001), NOW)
    assert isinstance(step, ConversationDone)
    assert isinstance(step.outcome, Refused)


LOST = Unknown("broken")
NO_TASK = Unknown("the agent has no task for the message")
MINE, OTHERS = task("working", ids=("m1",)), task("working", ids=("m0",), name="t0")
LOOKED: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "found": ({"heard": True}, TasksListed((OTHERS, MINE)), Follow("t1", at_once=True)),
    "found in a conversation of its own": ({"heard": True}, TasksListed((OTHERS,)), Follow("t0", at_once=True)),
    "of another conversation": ({"heard": True, "context_id": "c2"}, TasksListed((OTHERS,)), Send()),
    "not among others": ({"heard": True, "fresh": False}, TasksListed((OTHERS,)), Send()),
    "none yet": ({"heard": True, "early": True}, TasksListed(()), Pause()),
    "none": ({"heard": True}, TasksListed(()), Send()),
    "none, and once only": ({"heard": True, "once": True}, TasksListed(()), ConversationDone(NO_TASK)),
    "none after a lost reply": ({"otherwise": LOST}, TasksListed(()), ConversationDone(LOST)),
    "an old agent": ({"heard": True}, error(-32601), Send()),
    "an old agent after a lost reply": ({"otherwise": LOST}, error(-32601), ConversationDone(LOST)),
    "unreachable": ({"otherwise": LOST}, RequestNotSent("refused"), Pause(elsewhere=True)),
    "broken again": ({"heard": True}, LostReply("broken"), Pause(elsewhere=True)),
    "restarting": ({"heard": True}, HttpStatus(503, "HTTP 503"), Pause(elsewhere=True)),
    "no entry": ({"otherwise": LOST}, HttpStatus(401, "HTTP 401"), ConversationDone(LOST)),
    "forbidden": ({"heard": True}, AgentAddressForbidden("private"), ConversationDone(Refused("private"))),
    "nonsense": ({"otherwise": LOST}, Malformed("no JSON"), ConversationDone(LOST)),
}


@pytest.mark.parametrize(("where", "heard", "step"), LOOKED.values(), ids=LOOKED)
def test_what_follows_from_looking_for_a_message(where: dict[str, Any], heard: Any, step: Any) -> None:
    asked = Where(Stage.LOOKING, Dialect.V1_0, "m1", **{"context_id": "c1", **where})
    assert next_step(asked, heard, NOW) == step


GONE = ConversationDone(Unknown("the agent no longer has the task: why"))
FOLLOWED: dict[str, tuple[Any, Any]] = {
    "lost with its agent": (error(-32001), GONE),
    "another dialect": (
        error(-32601),
        Leave(Left.DIALECT, Unknown("the agent does not report the state of the task")),
    ),
    "broken down": (error(-32603), Pause()),
    "nonsense": (Malformed("no JSON"), Pause()),
    "the end of another task": (task("completed", "done", name="t0"), Pause()),
    "the question of another task": (task("input-required", "which city?", name="t0"), Pause()),
    "too much": (TooLarge(), ConversationDone(messages.too_large(), unwanted=True)),
    "unreachable": (RequestNotSent("refused"), Pause(elsewhere=True)),
    "broken": (LostReply("broken"), Pause(elsewhere=True)),
    "no entry": (HttpStatus(401, "HTTP 401"), Pause(elsewhere=True)),
    "forbidden": (AgentAddressForbidden("private"), Pause(elsewhere=True)),
}


@pytest.mark.parametrize("stage", [Stage.FOLLOWING, Stage.CHECKING])
@pytest.mark.parametrize(("heard", "step"), FOLLOWED.values(), ids=FOLLOWED)
def test_no_poll_that_goes_wrong_ends_what_is_followed(stage: Stage, heard: Any, step: Any) -> None:
    assert next_step(Where(stage, Dialect.V1_0, "m1", task_id="t1"), heard, NOW) == step


ASKS = task("input-required", "which city?")
ASKED = ConversationDone(Asked("agent_input", "which city?", "t1"))
NOT_BEGUN = Unreachable("broken", sent=True)
CHECKED: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "still asks": ({}, ASKS, Send("c1")),
    "went on without us": ({}, task("working"), Follow("t1")),
    "ended without us": ({}, task("completed", "done"), ConversationDone(Finished({"text": "done", **IDS}))),
    "may have arrived just now": ({"heard": True, "early": True}, ASKS, Pause()),
    "did not arrive": ({"heard": True}, ASKS, Send("c1")),
    "nobody knows": (
        {"heard": True, "once": True},
        ASKS,
        ConversationDone(Unknown("the agent's task does not show whether it received the answer")),
    ),
    "did not arrive in this launch": ({"otherwise": NOT_BEGUN}, ASKS, ConversationDone(NOT_BEGUN)),
    "arrived": ({"heard": True}, task("working", ids=("m1",)), Follow("t1")),
    "arrived, and is being read": (
        {"heard": True, "early": True},
        task("input-required", ids=("m1",)),
        Follow("t1"),
    ),
    "arrived, and there is another question": (
        {"heard": True},
        task("input-required", "which city?", ids=("m1",)),
        ASKED,
    ),
}


@pytest.mark.parametrize(("where", "heard", "step"), CHECKED.values(), ids=CHECKED)
def test_what_follows_from_the_task_that_asked(where: dict[str, Any], heard: Any, step: Any) -> None:
    assert next_step(Where(Stage.CHECKING, Dialect.V0_3, "m1", answering=True, **where), heard, NOW) == step


ANSWERED: dict[str, tuple[bool, Any, Any]] = {
    "the old question": (True, ASKS, Follow("t1")),
    "a new question": (False, ASKS, ASKED),
    "at work": (True, task("working"), Follow("t1")),
    "lost": (True, LostReply("broken"), Seek(Stage.CHECKING, NOT_BEGUN)),
    "over": (True, error(-32004), Seek(Stage.CHECKING, Refused(said(-32004)))),
    "no such task": (True, error(-32001), GONE),
}


@pytest.mark.parametrize(("early", "heard", "step"), ANSWERED.values(), ids=ANSWERED)
def test_what_follows_from_the_reply_to_an_answer(early: bool, heard: Any, step: Any) -> None:
    where = Where(Stage.SENDING, Dialect.V0_3, "m1", answering=True, early=early)
    assert next_step(where, heard, NOW) == step


@pytest.mark.parametrize(
    ("reference", "answering", "heard", "stage"),
    [
        (None, False, False, Stage.SENDING),
        (None, False, True, Stage.LOOKING),
        ("t1", False, True, Stage.FOLLOWING),
        ("t1", True, False, Stage.CHECKING),
        ("t1", True, True, Stage.CHECKING),
    ],
)
def test_where_a_conversation_begins(reference: str | None, answering: bool, heard: bool, stage: Stage) -> None:
    assert first_stage(reference, answering=answering, heard=heard) is stage


def test_a_task_that_names_our_message_comes_before_one_that_does_not() -> None:
    assert ours((OTHERS, MINE), "m1", "c1") is MINE
    assert ours((), "m1", "c1") is None


@pytest.mark.parametrize(("age", "seconds"), [(0, 0.1), (0.5, 0.1), (3, 0.3), (50, 5), (3_000, 5)])
def test_what_is_young_is_asked_often(age: float, seconds: float) -> None:
    assert poll_pause(age) == pytest.approx(seconds)


STOPPED: dict[str, tuple[Any, CalledOff]] = {
    "canceled": (task("canceled"), CalledOff.TOLD),
    "completed": (task("completed", "done"), CalledOff.OVER),
    "going to stop": (task("working"), CalledOff.TOLD),
    "ended before": (error(-32002), CalledOff.OVER),
    "unknown": (error(-32001), CalledOff.POINTLESS),
    "stops nothing": (error(-32004), CalledOff.POINTLESS),
    "broken down": (error(-32603), CalledOff.NOT_TOLD),
    "other dialect": (error(-32601), CalledOff.OTHER_DIALECT),
    "unreachable": (RequestNotSent("refused"), CalledOff.NOT_TOLD),
    "lost": (LostReply("broken"), CalledOff.NOT_TOLD),
    "status": (HttpStatus(503, "HTTP 503"), CalledOff.NOT_TOLD),
}


@pytest.mark.parametrize(("heard", "came"), STOPPED.values(), ids=STOPPED)
def test_what_came_of_asking_an_agent_to_stop(heard: Any, came: CalledOff) -> None:
    assert called_off(heard) is came


V1, V0 = Dialect.V1_0, Dialect.V0_3
U, V, R = "http://a/1", "http://a/0", "http://a/"
AUTO = AgentProtocol.AUTO
WAYS: dict[str, tuple[list[Endpoint], AgentProtocol, Dialect | None, list[tuple[str, Dialect]]]] = {
    "nothing known": ([Endpoint(R, None, True)], AUTO, None, [(R, V1), (R, V0)]),
    "it answered before": ([Endpoint(R, None, True)], AUTO, V0, [(R, V0), (R, V1)]),
    "its card": ([Endpoint(R, V0, True)], AUTO, None, [(R, V0), (R, V1)]),
    "its card, and another answer": ([Endpoint(R, V0, True)], AUTO, V1, [(R, V1), (R, V0)]),
    "two addresses": (
        [Endpoint(U, V1, True), Endpoint(V, V0, True), Endpoint(R, V1, True)],
        AUTO,
        None,
        [(U, V1), (R, V1), (V, V1), (V, V0), (U, V0), (R, V0)],
    ),
    "named": ([Endpoint(U, V1, True), Endpoint(R, V1, True)], AgentProtocol.V0_3, V1, [(U, V0), (R, V0)]),
}


@pytest.mark.parametrize(("endpoints", "protocol", "last", "ways"), WAYS.values(), ids=WAYS)
def test_the_ways_to_an_agent_begin_with_the_likeliest(
    endpoints: list[Endpoint], protocol: AgentProtocol, last: Dialect | None, ways: list[tuple[str, Dialect]]
) -> None:
    assert [(way.url, way.dialect) for way in ways_to(endpoints, protocol, last)] == ways


def test_of_many_addresses_a_few_are_tried_and_the_registered_one_always() -> None:
    many = [*(Endpoint(f"http://a/{n}", V1, True) for n in range(30)), Endpoint(R, V1, True)]
    assert [way.url for way in ways_to(many, AgentProtocol.V1_0, None)] == ["http://a/0", "http://a/1", "http://a/2", R]


def test_a_way_that_led_nowhere_is_left() -> None:
    ways = ways_to([Endpoint(U, V1, True), Endpoint(R, V1, False)], AUTO, None)
    assert without_dialect(ways, V1) == (AgentRoute(U, V0, True), AgentRoute(R, V0, False))
    assert without_address(ways, U) == (AgentRoute(R, V1, False), AgentRoute(R, V0, False))
    assert moved_back(ways, ways[0])[-1] == ways[0]
