"""The two generations of the A2A protocol: what is written in each, and what is read from any reply."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from horarium.launchers.a2a.dialect import (
    MAX_ID,
    Dialect,
    Malformed,
    MessageSeen,
    OutgoingMessage,
    Push,
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

OLD, NEW = Dialect.V0_3, Dialect.V1_0
PLAIN = OutgoingMessage("m1", "hi", "c1")
FULL = OutgoingMessage("m1", "hi", "c1", "t1", {"rows": 3}, {"attempt": 1}, Push("https://us/pushes", "hrt_x"))


def envelope(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            send_body(OLD, PLAIN, "r1"),
            envelope(
                "message/send",
                {
                    "message": {
                        "kind": "message",
                        "role": "user",
                        "messageId": "m1",
                        "contextId": "c1",
                        "parts": [{"kind": "text", "text": "hi"}],
                    },
                    "configuration": {"blocking": False},
                },
            ),
        ),
        (
            send_body(NEW, PLAIN, "r1"),
            envelope(
                "SendMessage",
                {
                    "message": {
                        "role": "ROLE_USER",
                        "messageId": "m1",
                        "contextId": "c1",
                        "parts": [{"text": "hi"}],
                    },
                    "configuration": {"returnImmediately": True},
                },
            ),
        ),
        (
            send_body(OLD, FULL, "r1"),
            envelope(
                "message/send",
                {
                    "message": {
                        "kind": "message",
                        "role": "user",
                        "messageId": "m1",
                        "contextId": "c1",
                        "taskId": "t1",
                        "parts": [{"kind": "text", "text": "hi"}, {"kind": "data", "data": {"rows": 3}}],
                        "metadata": {"attempt": 1},
                    },
                    "configuration": {
                        "blocking": False,
                        "pushNotificationConfig": {"url": "https://us/pushes", "token": "hrt_x"},
                    },
                },
            ),
        ),
        (
            send_body(NEW, FULL, "r1"),
            envelope(
                "SendMessage",
                {
                    "message": {
                        "role": "ROLE_USER",
                        "messageId": "m1",
                        "contextId": "c1",
                        "taskId": "t1",
                        "parts": [{"text": "hi"}, {"data": {"rows": 3}}],
                        "metadata": {"attempt": 1},
                    },
                    "configuration": {
                        "returnImmediately": True,
                        "taskPushNotificationConfig": {"url": "https://us/pushes", "token": "hrt_x"},
                    },
                },
            ),
        ),
        (get_body(OLD, "t1", "r1"), envelope("tasks/get", {"id": "t1"})),
        (get_body(NEW, "t1", "r1"), envelope("GetTask", {"id": "t1"})),
        (get_body(NEW, "t1", "r1", history=False), envelope("GetTask", {"id": "t1", "historyLength": 0})),
        (cancel_body(OLD, "t1", "r1"), envelope("tasks/cancel", {"id": "t1"})),
        (cancel_body(NEW, "t1", "r1"), envelope("CancelTask", {"id": "t1"})),
        (list_body("c1", "r1"), envelope("ListTasks", {"contextId": "c1", "pageSize": 50})),
    ],
)
def test_a_request_is_written_as_its_generation_spells_it(body: Any, expected: Any) -> None:
    assert body == expected


def test_data_that_is_no_object_is_wrapped_where_only_objects_are_taken() -> None:
    message = OutgoingMessage("m", "hi", "c", data=[1, 2])
    old, new = (send_body(each, message, "r")["params"]["message"]["parts"][1] for each in (OLD, NEW))
    assert old == {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}}
    assert new == {"data": [1, 2]}


def test_no_text_shows_what_was_said_or_proves_a_push() -> None:
    assert "hi" not in repr(FULL)
    assert "hrt_x" not in repr(FULL)


def task(state: str | None = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": "t", "contextId": "c", "status": {} if state is None else {"state": state}, **fields}


def parts(*texts: str) -> dict[str, Any]:
    return {"parts": [{"kind": "text", "text": each} for each in texts]}


def seen(state: TaskState = TaskState.COMPLETED, text: str = "", *names: str) -> TaskSeen:
    return TaskSeen("t", "c", state, text, frozenset(names))


QUESTION = {"state": "TASK_STATE_INPUT_REQUIRED", "message": {"role": "ROLE_AGENT", "parts": [{"text": "which?"}]}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"kind": "message", "contextId": "c", **parts("a", "b")}, MessageSeen("a\nb", "c")),
        ({"message": {"role": "ROLE_AGENT", "contextId": "c", "parts": [{"text": "a"}]}}, MessageSeen("a", "c")),
        ({"role": "agent", "parts": [{"type": "text", "text": "a"}]}, MessageSeen("a", None)),
        ({"kind": "message", "contextId": "", "parts": []}, MessageSeen("", None)),
        ({"message": {"role": "ROLE_AGENT"}}, MessageSeen("", None)),
        ({"kind": "task", **task("working")}, seen(TaskState.WORKING)),
        ({"task": task("TASK_STATE_WORKING")}, seen(TaskState.WORKING)),
        (task("TASK_STATE_AUTH_REQUIRED"), seen(TaskState.AUTH_REQUIRED)),
        (task("TASK_STATE_CANCELLED"), seen(TaskState.CANCELED)),
        (task("TASK_STATE_PAUSED"), seen(TaskState.UNKNOWN)),
        (task(None), seen(TaskState.UNKNOWN)),
        (task(artifacts=[parts("a", "b"), parts("c")]), seen(text="a\nb\nc")),
        (task(artifacts=[{}], status={"state": "completed", "message": parts("told")}), seen(text="told")),
        (task(artifacts=[parts("made")], status={"state": "completed", "message": parts("told")}), seen(text="made")),
        (task(artifacts=[parts("half")], status=QUESTION), seen(TaskState.INPUT_REQUIRED, "which?")),
        (task("failed", artifacts=[parts("half")]), seen(TaskState.FAILED, "half")),
        (
            task(history=[{"messageId": "m1", **parts("our prompt")}, {"messageId": "m2"}, {"messageId": 7}]),
            seen(TaskState.COMPLETED, "", "m1", "m2"),
        ),
        (task(artifacts=[{"parts": [{"data": {"rows": 3}}, {"text": " "}]}]), seen(text='{"rows":3}')),
        (task(artifacts=[{"parts": [{"data": {"rows": 3}}, {"text": "three"}]}]), seen(text="three")),
        (
            task(artifacts=[{"parts": [{"kind": "file", "file": {"name": "a.csv", "bytes": "AAAA"}}]}]),
            seen(text='{"name":"a.csv"}'),
        ),
        (task(artifacts=[{"parts": [{"url": "https://x/a.csv"}]}]), seen(text='{"url":"https://x/a.csv"}')),
        (task(artifacts=[{"parts": [{"raw": "AAAA"}]}]), seen()),
        (task(artifacts=[parts("nul\x00")]), seen(text="nul\ufffd")),
        ({"tasks": [task("working")], "pageSize": 50}, TasksListed((seen(TaskState.WORKING),))),
        ({"tasks": []}, TasksListed(())),
        ({"pageSize": 50, "totalSize": 0}, TasksListed(())),
    ],
)
def test_a_result_is_read_in_either_spelling(result: Any, expected: Any) -> None:
    assert read_reply({"jsonrpc": "2.0", "id": "r", "result": result}) == expected
    assert read_reply({"jsonrpc": "2.0", "id": "r", "error": None, "result": result}) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": -32601, "message": "no such method"}, RpcFailed(-32601, "no such method")),
        ({"code": -32603}, RpcFailed(-32603, "")),
        ({"code": -32603, "message": ["?"], "data": "x"}, RpcFailed(-32603, "")),
        ({"code": -32603, "message": "x" * 9_000}, RpcFailed(-32603, "x" * 499 + "…")),
    ],
)
def test_an_error_is_an_answer(error: Any, expected: RpcFailed) -> None:
    assert read_reply({"jsonrpc": "2.0", "id": "r", "error": error}) == expected
    assert read_reply({"error": error, "result": None}) == expected


def nested(depth: int) -> Any:
    return orjson.loads(b"[" * depth + b"]" * depth)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "text",
        7,
        {},
        [{"result": task()}],
        {"result": None},
        {"result": []},
        {"result": "done"},
        {"result": {}},
        {"result": {"kind": "status-update", "taskId": "t", "final": True}},
        {"result": {"kind": ["task"], **task()}},
        {"result": {"task": task(), "message": {"parts": []}}},
        {"result": task(), "error": {"code": -1}},
        {"error": {"message": "no code"}},
        {"error": {"code": "-32601"}},
        {"error": {"code": True}},
        {"error": "broken"},
        {"result": {"task": "t"}},
        {"result": {"task": {"id": "t"}}},
        {"result": {"task": {"status": {"state": "working"}}}},
        {"result": task(7)},  # type: ignore[arg-type]  # what an agent may send
        {"result": {**task(), "id": 7}},
        {"result": {**task(), "id": ""}},
        {"result": {**task(), "id": "x" * (MAX_ID + 1)}},
        {"result": {**task(), "id": "a\x00b"}},
        {"result": {**task(), "id": "a\nb"}},
        {"result": {**task(), "contextId": {}}},
        {"result": task(artifacts={})},
        {"result": task(artifacts=["a"])},
        {"result": task(artifacts=[{"parts": "a"}])},
        {"result": task(artifacts=[{"parts": ["a"]}])},
        {"result": task(artifacts=[{"parts": [{"text": 7}]}])},
        {"result": task(artifacts=[{"parts": [{"data": nested(300)}]}])},
        {"result": task(history={})},
        {"result": task(history=["m1"])},
        {"result": task(status={"state": "completed", "message": "told"})},
        {"result": {"tasks": {}}},
        {"result": {"tasks": [None]}},
        {"result": {"kind": "message", "parts": 7}},
        {"result": nested(1_000)},
    ],
)
def test_what_is_no_reply_is_said_to_be_none(document: Any) -> None:
    reply = read_reply(document)
    assert isinstance(reply, Malformed)
    assert 0 < len(reply.why) <= 500
