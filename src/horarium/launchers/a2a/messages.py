"""Messages to an agent for a run, its push notifications, and the outcomes of its replies.

| id          | is                                                                                             |
|-------------|------------------------------------------------------------------------------------------------|
| `messageId` | the delivery key: retries and answers have IDs of their own, a redelivery repeats the ID       |
| `contextId` | `fresh`: the key with which the attempt began; `schedule`: one for all runs of the schedule    |

Facts about the run are flat members of `metadata`. The report token is not among them: the process that follows the
agent ends the run, and the content of a message may end up in a language model. Push notifications get a token that
allows nothing else.

| reply                                   | outcome                                             |
|-----------------------------------------|-----------------------------------------------------|
| completed, or a message, with a text    | Finished with text, task id and context id          |
| completed, or a message, without one    | RunFailed, `empty_response`                         |
| failed                                  | RunFailed, `agent_failed`                           |
| rejected                                | RunFailed, `agent_rejected`                         |
| canceled                                | RunCancelled                                        |
| input-required, auth-required           | Asked                                               |
| -32603, -32006, the agent's own codes   | RunFailed, `agent_error`                            |
| other codes of the protocol             | Refused: the request stays invalid            |
| -32001: no such task                    | Unknown: the agent lost the task it had begun       |
| more than can be kept                   | RunFailed, `reply_too_large`                        |
| not of the protocol                     | RunFailed, `contract_violated`                      |

A hint ends the pause of a waiting launch, and the next poll finds the news. A hint proves nothing and carries
nothing. One for a run that no launch in this process follows is dropped: the process that follows the run polls
anyway.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from horarium.core.document.assignee import AgentContext
from horarium.core.document.definition import host_in
from horarium.core.document.json_values import Json
from horarium.core.document.states import begun_key
from horarium.core.lifecycle.outcome import (
    Asked,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    Unknown,
    push_token,
    push_url,
)
from horarium.core.policy.approval import AGENT_AUTH, AGENT_INPUT, MAX_QUESTION, AgentFault, RetryCause
from horarium.instant import to_rfc3339
from horarium.launchers.a2a.dialect import MessageSeen, OutgoingMessage, Push, RpcFailed, TaskSeen, TaskState
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import MAX_RESULT_BYTES, NotJson, check, clean_text, dump

# ── messages ──────────────────────────────────────────────────────────────────────────────────────────


CALLER: Final = "system:scheduler"
CALLER_HEADER: Final = "X-Workspace-ID"


class BadPrompt(ValueError):
    """There is nothing that could be sent; the message says why."""


def message_of(request: LaunchRequest) -> OutgoingMessage:
    """The prompt with the run's inputs beside it, or the answer to the question with which the task stopped.

    Raises BadPrompt. Without a task there is nothing to answer: what was asked is lost, and the prompt begins anew.
    """
    if request.answer is not None and request.reference is not None:
        return _message(request, _checked(request.answer, "the answer"), task_id=request.reference)
    prompt = request.action.target.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise BadPrompt("the prompt must be a non-blank string")
    return _message(request, _checked(prompt, "the prompt"), data=request.inputs)


def _message(request: LaunchRequest, text: str, *, task_id: str | None = None, data: Json = None) -> OutgoingMessage:
    return OutgoingMessage(
        message_id=request.key,
        text=text,
        context_id=context_of(request),
        task_id=task_id,
        data=data,
        metadata=_metadata(request),
    )


def context_of(request: LaunchRequest) -> str:
    if is_fresh(request) or request.schedule_id is None:
        return begun_key(request.key)
    # The length keeps ("a", "bc") and ("ab", "c") apart.
    told = f"{len(request.namespace)}:{request.namespace}:{request.schedule_id}"
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def is_fresh(request: LaunchRequest) -> bool:
    """Tell whether the conversation contains this attempt only."""
    shared = request.agent is not None and request.agent.context is AgentContext.SCHEDULE
    return not shared or request.schedule_id is None


def headers_of(request: LaunchRequest) -> dict[str, str]:
    traced = {} if request.traceparent is None else {"traceparent": request.traceparent}
    return {CALLER_HEADER: CALLER, **traced}


def _metadata(request: LaunchRequest) -> dict[str, Json]:
    workflow = request.workflow or {}
    told: dict[str, Json] = {
        "schedule_id": request.schedule_id,
        "run_id": request.run_id,
        "instance_id": request.instance_id,
        "workflow_id": workflow.get("workflow_id"),
        "workflow_version": workflow.get("version"),
        "node_id": request.node_id,
        "traceparent": request.traceparent,
    }
    return {
        "caller": CALLER,
        "nominal_time": to_rfc3339(request.nominal),
        "attempt": request.attempt,
        "origin": request.origin,
        **{name: value for name, value in told.items() if value is not None},
    }


def _checked(text: str, what: str) -> str:
    try:
        check(text)
    except NotJson as wrong:
        raise BadPrompt(f"{what} {wrong}") from None
    return text


# ── push notifications ────────────────────────────────────────────────────────────────────────────────


def push_for(request: LaunchRequest) -> Push | None:
    """None where the agent could not reach us: this service has not been told its address, or it is this machine's own.

    Nobody is asked to call an address on the machine that it is on itself: some agents refuse the whole message then.
    """
    if request.report_url is None or request.report_token is None or request.agent is None:
        return None
    if _is_here(request.report_url) and not _is_here(request.agent.url):
        return None
    return Push(push_url(request.report_url), push_token(request.report_token))


def _is_here(url: str | None) -> bool:
    host = None if url is None else host_in(url)
    if host is None or host == "localhost":
        return host is not None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # 0.0.0.0, on which a service listens everywhere, leads nowhere from outside.
    return address.is_loopback or address.is_unspecified


# However often an agent calls, it is asked at most so often: hints must not cost more than they save.
LEAST_PAUSE_SECONDS = 0.05


class Hints:
    """Belongs to one event loop. `hint` may be called from any thread."""

    def __init__(self) -> None:
        self._news: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = {}

    @contextmanager
    def listening(self, run_id: str) -> Iterator[None]:
        """Inside it a hint that comes between two pauses ends the next one."""
        self._news[run_id] = (asyncio.get_running_loop(), asyncio.Event())
        try:
            yield
        finally:
            self._news.pop(run_id, None)

    def hint(self, run_id: str) -> bool:
        """Notify the conversation of a run and tell whether there is one here."""
        found = self._news.get(run_id)
        if found is None:
            return False
        loop, news = found
        try:
            loop.call_soon_threadsafe(news.set)
        except RuntimeError:  # the loop has ended in the meantime, and nobody waits any more
            return False
        return True

    async def pause(self, run_id: str, seconds: float, cancelled: asyncio.Event | None = None) -> None:
        """Until the time is up, a hint comes or somebody asks to stop."""
        _, news = self._news.get(run_id) or (None, asyncio.Event())
        least = min(seconds, LEAST_PAUSE_SECONDS)
        await _first_of(least, cancelled)
        if seconds > least and not (cancelled is not None and cancelled.is_set()):
            await _first_of(seconds - least, news, cancelled)
        news.clear()


async def _first_of(seconds: float, *events: asyncio.Event | None) -> None:
    given = [event for event in events if event is not None]
    if any(event.is_set() for event in given):
        return
    waiting = [asyncio.ensure_future(event.wait()) for event in given]
    try:
        if waiting:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)
    finally:
        for each in waiting:
            each.cancel()


# ── outcomes ──────────────────────────────────────────────────────────────────────────────────────────


NO_SUCH_TASK: Final = -32001
NOT_CANCELABLE: Final = -32002
NO_PUSH: Final = -32003
UNSUPPORTED: Final = -32004
OF_THE_REQUEST: Final = frozenset({-32600, -32602, NO_PUSH})
"""The agent has read the message, does not like how it is asked, and has begun nothing."""
_NEVER_RIGHT = OF_THE_REQUEST | {-32700, -32601, UNSUPPORTED, -32005, -32007, -32008, -32009}

GATES: Final = {TaskState.INPUT_REQUIRED: AGENT_INPUT, TaskState.AUTH_REQUIRED: AGENT_AUTH}
_MAX_MESSAGE = 2_000


def outcome_of_task(task: TaskSeen) -> Outcome | None:
    """None while the agent is at work."""
    ids = {"task_id": task.task_id, "context_id": task.context_id}
    match task.state:
        case TaskState.COMPLETED:
            return _answer(task.text, ids)
        case TaskState.FAILED:
            return RunFailed(_with("the agent failed", task.text), AgentFault.FAILED, ids)
        case TaskState.REJECTED:
            return RunFailed(_with("the agent rejected the prompt", task.text), AgentFault.REJECTED, ids)
        case TaskState.CANCELED:
            return RunCancelled(_with("the agent cancelled the task", task.text))
        case TaskState.INPUT_REQUIRED | TaskState.AUTH_REQUIRED:
            return Asked(GATES[task.state], _question(task), task.task_id)
        case _:
            return None


def outcome_of_message(message: MessageSeen) -> Outcome:
    return _answer(message.text, {"task_id": None, "context_id": message.context_id})


def outcome_of_error(error: RpcFailed) -> Outcome:
    """Outcome of an error code, also of an unsupported method or version once no other dialect is left."""
    said = _with(f"the agent answered with error {error.code}", error.message)
    if error.code == NO_SUCH_TASK:
        return Unknown(_with("the agent no longer has the task", error.message))
    return Refused(said) if error.code in _NEVER_RIGHT else RunFailed(said, AgentFault.ERROR)


def too_large() -> Outcome:
    return RunFailed("the agent's reply is too large to store", AgentFault.TOO_LARGE)


def not_of_the_protocol(why: str) -> Outcome:
    return RunFailed(_with("the agent's reply is not valid", why), RetryCause.CONTRACT_VIOLATED)


def _answer(text: str, ids: dict[str, str | None]) -> Outcome:
    if not text.strip():
        return RunFailed("the agent returned an empty answer", AgentFault.EMPTY, ids)
    result: Json = {"text": text, **ids}
    try:
        dump(result, limit=MAX_RESULT_BYTES)
    except NotJson:
        return too_large()
    return Finished(result)


def _question(task: TaskSeen) -> str:
    usual = "the agent requires an answer"
    if task.state is TaskState.AUTH_REQUIRED:
        usual = "the agent requires authorization"
    return clean_text(task.text.strip() or usual, MAX_QUESTION)


def _with(said: str, more: str) -> str:
    """Append the agent's own text, which may be long, to the meaning."""
    return clean_text(f"{said}: {more.strip()}" if more.strip() else said, _MAX_MESSAGE)
