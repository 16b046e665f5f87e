"""What an agent's reply means for the run: the final state of a task, a message, an error, as one outcome.

| reply                                   | outcome                                             |
|-----------------------------------------|-----------------------------------------------------|
| completed, or a message, with a text    | Finished with text, task id and context id          |
| completed, or a message, without one    | RunFailed, `empty_response`                         |
| failed                                  | RunFailed, `agent_failed`                           |
| rejected                                | RunFailed, `agent_rejected`                         |
| canceled                                | RunCancelled                                        |
| input-required, auth-required           | Asked                                               |
| -32603, -32006, codes of the agent's own| RunFailed, `agent_error`                            |
| other codes of the protocol             | Refused: the request will never be right            |
| -32001: no such task                    | Unknown: the agent has lost what it had begun       |
| more than can be kept                   | RunFailed, `reply_too_large`                        |
| not of the protocol                     | RunFailed, `contract_violated`                      |
"""

from __future__ import annotations

from typing import Final

from horarium.launchers.a2a.dialect import MessageSeen, RpcFailed, TaskSeen, TaskState
from horarium.launchers.payload import MAX_RESULT_BYTES, NotJson, clean_text, dump
from horarium.life.outcome import Asked, Finished, Outcome, Refused, RunCancelled, RunFailed, Unknown
from horarium.policy.approval import AGENT_AUTH, AGENT_INPUT
from horarium.policy.replying import MAX_QUESTION
from horarium.policy.retry import AgentFault, RetryCause
from horarium.schedule.json_limits import Json

NO_SUCH_TASK: Final = -32001
NOT_CANCELABLE: Final = -32002
NO_PUSH: Final = -32003
UNSUPPORTED: Final = -32004
OF_THE_REQUEST: Final = frozenset({-32600, -32602, NO_PUSH})
"""The agent has read the message, does not like how it is asked, and has begun nothing."""
_NEVER_RIGHT = OF_THE_REQUEST | {-32700, -32601, UNSUPPORTED, -32005, -32007, -32008, -32009}

GATES: Final = {TaskState.INPUT_REQUIRED: AGENT_INPUT, TaskState.AUTH_REQUIRED: AGENT_AUTH}
_MAX_SAID = 2_000


def of_task(task: TaskSeen) -> Outcome | None:
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


def of_message(message: MessageSeen) -> Outcome:
    return _answer(message.text, {"task_id": None, "context_id": message.context_id})


def of_error(error: RpcFailed) -> Outcome:
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
    return clean_text(f"{said}: {more.strip()}" if more.strip() else said, _MAX_SAID)
