"""The A2A protocol on the wire: requests in both of its versions, and the meaning of replies in either.

|                 | 0.3                                    | 1.0                                 |
|-----------------|----------------------------------------|-------------------------------------|
| send, ask, stop | `message/send tasks/get tasks/cancel`  | `SendMessage GetTask CancelTask`    |
| list            | –                                      | `ListTasks`                         |
| type of a part  | `kind` beside its fields               | the name of the field that holds it |
| state of a task | `input-required`                       | `TASK_STATE_INPUT_REQUIRED`         |
| without waiting | `configuration.blocking: false`        | `configuration.returnImmediately`   |
| hints           | `configuration.pushNotificationConfig` | `….taskPushNotificationConfig`      |

Replies of both versions are read alike: an agent that supports both may mix them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from horarium.core.document.json_values import Json
from horarium.launchers.payload import NotJson, check, clean_text, dump

VERSION_HEADER: Final = "A2A-Version"
MAX_ID: Final = 1_024
"""Characters of a task's or a conversation's name: what a run keeps of a reference."""
# Newest first; a run asks for the tasks of its own conversation.
_LISTED_TASKS = 50
_SHOWN = 500


class Dialect(StrEnum):
    V1_0 = "1.0"
    V0_3 = "0.3"

    @property
    def other(self) -> Dialect:
        return Dialect.V0_3 if self is Dialect.V1_0 else Dialect.V1_0


class TaskState(StrEnum):
    SUBMITTED = "submitted"
    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    UNKNOWN = "unknown"


FINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
# JSON-RPC and A2A codes: no such method, and a version that is not spoken. Both come before anything is begun.
OTHER_DIALECT_CODES: Final = frozenset({-32601, -32009})


@dataclass(frozen=True, slots=True)
class Push:
    """Where an agent may say that something happened, and what shows that it was asked to."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """`task_id`: it goes on with that task. `data` stands beside the text; None = there is none."""

    message_id: str
    text: str = field(repr=False)
    context_id: str
    task_id: str | None = None
    data: Json = field(default=None, repr=False)
    metadata: Mapping[str, Json] = field(default_factory=dict)
    push: Push | None = None


def send_body(dialect: Dialect, message: OutgoingMessage, request_id: str) -> dict[str, Json]:
    """The agent is asked to answer at once: what lasts is followed, so that no open connection stands for it."""
    written: dict[str, Json] = {
        **({"kind": "message", "role": "user"} if dialect is Dialect.V0_3 else {"role": "ROLE_USER"}),
        "messageId": message.message_id,
        "contextId": message.context_id,
        **({} if message.task_id is None else {"taskId": message.task_id}),
        "parts": _parts(dialect, message),
        **({"metadata": dict(message.metadata)} if message.metadata else {}),
    }
    old = dialect is Dialect.V0_3
    configuration: dict[str, Json] = {"blocking": False} if old else {"returnImmediately": True}
    if message.push is not None:
        name = "pushNotificationConfig" if old else "taskPushNotificationConfig"
        configuration[name] = {"url": message.push.url, "token": message.push.token}
    method = "message/send" if old else "SendMessage"
    return _request(method, {"message": written, "configuration": configuration}, request_id)


def get_body(dialect: Dialect, task_id: str, request_id: str, *, history: bool = True) -> dict[str, Json]:
    """`history` False: without what was said so far, where the agent can leave it out; no text is read from it."""
    params: dict[str, Json] = {"id": task_id} if history else {"id": task_id, "historyLength": 0}
    return _request("tasks/get" if dialect is Dialect.V0_3 else "GetTask", params, request_id)


def cancel_body(dialect: Dialect, task_id: str, request_id: str) -> dict[str, Json]:
    return _request("tasks/cancel" if dialect is Dialect.V0_3 else "CancelTask", {"id": task_id}, request_id)


def list_body(context_id: str, request_id: str) -> dict[str, Json]:
    """Build a list request, which only version 1.0 has.

    Listed tasks have no artifacts: `get_body` requests the result of a task that was found.
    """
    return _request("ListTasks", {"contextId": context_id, "pageSize": _LISTED_TASKS}, request_id)


def _request(method: str, params: dict[str, Json], request_id: str) -> dict[str, Json]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _parts(dialect: Dialect, message: OutgoingMessage) -> list[Json]:
    if dialect is Dialect.V1_0:
        return [{"text": message.text}, *([] if message.data is None else [{"data": message.data}])]
    text = {"kind": "text", "text": message.text}
    if message.data is None:
        return [text]
    if isinstance(message.data, Mapping):
        return [text, {"kind": "data", "data": message.data}]
    # Data is an object in 0.3; this is how the published library carries other values through it.
    return [text, {"kind": "data", "data": {"value": message.data}, "metadata": {"data_part_compat": True}}]


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """`text` is what the agent says: its result where it has completed, else its question or its reason first.

    `message_ids` are those of the history, ours among them as far as the agent keeps one.
    """

    task_id: str
    context_id: str | None
    state: TaskState
    text: str = field(repr=False)
    message_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MessageSeen:
    text: str = field(repr=False)
    context_id: str | None


@dataclass(frozen=True, slots=True)
class TasksListed:
    tasks: tuple[TaskSeen, ...]


@dataclass(frozen=True, slots=True)
class RpcFailed:
    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """No reply of this protocol; what became of the request is not known from it."""

    why: str


Reply: TypeAlias = TaskSeen | MessageSeen | TasksListed | RpcFailed | Malformed


class _Wrong(ValueError):
    """The reply is not what the protocol says; the message is for people."""


def read_reply(document: object) -> Reply:
    try:
        return _reply(document)
    except _Wrong as wrong:
        return Malformed(clean_text(str(wrong), _SHOWN))


def _reply(document: object) -> Reply:
    fields = _object(document, "the reply")
    error, result = fields.get("error"), fields.get("result")
    if error is not None:
        if result is not None:
            raise _Wrong("the reply contains a result and an error")
        return _failed(_object(error, "error"))
    if result is None:
        raise _Wrong("the reply contains neither a result nor an error")
    return _result(_object(result, "result"))


def _failed(error: Mapping[str, Any]) -> RpcFailed:
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        raise _Wrong("error.code is not an integer")
    said = error.get("message")
    return RpcFailed(code, clean_text(said, _SHOWN) if isinstance(said, str) else "")


def _result(result: Mapping[str, Any]) -> Reply:
    kind = result.get("kind")
    if kind not in (None, "task", "message"):
        raise _Wrong(f"result is of the kind {_shown(kind)}, which does not match the request")
    if kind == "message":
        return _message(result)
    if kind == "task":
        return _task(result, "result")
    # Without `kind` the fields say what it is. A task that stands by itself has an id; a wrapped one is under its name.
    wrapped = [name for name in ("task", "message", "tasks") if result.get(name) is not None]
    if len(wrapped) > 1:
        raise _Wrong(f"result contains several answers: {', '.join(wrapped)}")
    if wrapped == ["task"]:
        return _task(_object(result["task"], "result.task"), "result.task")
    if wrapped == ["message"]:
        return _message(_object(result["message"], "result.message"))
    if wrapped == ["tasks"] or "totalSize" in result or "pageSize" in result:
        listed = enumerate(_list(result.get("tasks"), "result.tasks"))
        return TasksListed(tuple(_task(_object(each, f"tasks[{at}]"), f"tasks[{at}]") for at, each in listed))
    if "status" in result:
        return _task(result, "result")
    if "parts" in result:
        return _message(result)
    raise _Wrong("result is neither a task nor a message")


def _message(message: Mapping[str, Any]) -> MessageSeen:
    said = _ReplyText()
    said.parts(message.get("parts"), "parts")
    return MessageSeen(said.text(), _id(message, "contextId"))


def _task(task: Mapping[str, Any], where: str) -> TaskSeen:
    name = _id(task, "id")
    if name is None:
        raise _Wrong(f"{where} is a task without an ID")
    status = _object(task.get("status"), f"{where}.status")
    state = _state(status.get("state"))
    made, told = _ReplyText(), _ReplyText()
    for artifact in _list(task.get("artifacts"), "artifacts"):
        made.parts(_object(artifact, "an artifact").get("parts"), "the parts of an artifact")
    if status.get("message") is not None:
        message = _object(status["message"], f"{where}.status.message")
        told.parts(message.get("parts"), "the parts of status.message")
    first, second = (made, told) if state is TaskState.COMPLETED else (told, made)
    return TaskSeen(name, _id(task, "contextId"), state, first.text() or second.text(), _message_ids(task))


def _message_ids(task: Mapping[str, Any]) -> frozenset[str]:
    said = (_object(each, "a message of the history") for each in _list(task.get("history"), "history"))
    names = (each.get("messageId") for each in said)
    return frozenset(name for name in names if isinstance(name, str) and len(name) <= MAX_ID)


def _state(value: object) -> TaskState:
    """One spelling for both generations. A state that we do not know is followed, as one of which nothing is known."""
    if value is None:
        return TaskState.UNKNOWN
    if not isinstance(value, str):
        raise _Wrong("status.state is not a string")
    word = value[:64].removeprefix("TASK_STATE_").replace("_", "-").lower()
    if word == "cancelled":
        return TaskState.CANCELED
    try:
        return TaskState(word)
    except ValueError:
        return TaskState.UNKNOWN


class _ReplyText:
    """The parts of a reply as text. What is no text is spelled as JSON, and counts only where there is no text."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._others: list[str] = []

    def parts(self, value: object, where: str) -> None:
        for each in _list(value, where):
            part = _object(each, "a part")
            if part.get("text") is not None:
                if not isinstance(part["text"], str):
                    raise _Wrong("the text of a part is not a string")
                self._texts.append(part["text"])
            elif part.get("data") is not None:
                self._others.append(_spelled(part["data"]))
            elif (file := _file(part)) is not None:
                self._others.append(_spelled(file))

    def text(self) -> str:
        """Empty where all of it is blank."""
        for lines in (self._texts, self._others):
            text = "\n".join(lines)
            if text.strip():
                return clean_text(text, len(text))
        return ""


def _file(part: Mapping[str, Any]) -> dict[str, str] | None:
    """Describe a file by its metadata; its bytes would be unreadable in a result."""
    inner = part.get("file")
    holder: Mapping[str, Any] = inner if isinstance(inner, dict) else part
    names = ("name", "filename", "mimeType", "mediaType", "uri", "url")
    said = {name: holder[name] for name in names if isinstance(holder.get(name), str) and holder[name]}
    return said or None


def _spelled(value: Json) -> str:
    try:
        check(value)
        return dump(value).decode()
    except NotJson as wrong:
        raise _Wrong(f"a part {wrong}") from None


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{name} is not an object")
    return value


def _list(value: object, name: str) -> list[Any]:
    """Read an array; a missing one is empty, since 1.0 leaves empty lists out."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Wrong(f"{name} is not an array")
    return value


def _id(holder: Mapping[str, Any], name: str) -> str | None:
    """None where there is none. It is kept and sent back as it is, so it must be text that can be."""
    value = holder.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > MAX_ID or not value.isprintable():
        raise _Wrong(f"{name} is not a printable string of at most {MAX_ID} characters")
    return value


def _shown(value: object) -> str:
    return clean_text(repr(value), 100) if isinstance(value, str | int | float) else type(value).__name__
