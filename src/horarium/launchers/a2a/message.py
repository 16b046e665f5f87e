"""What an agent is sent for a run: the prompt or an answer, under ids that a second delivery repeats.

| id          | is                                                                                            |
|-------------|-----------------------------------------------------------------------------------------------|
| `messageId` | the delivery key, so that a retry and an answer have ids of their own and a redelivery has not |
| `contextId` | `fresh`: the key with which the attempt began; `schedule`: one for all runs of the schedule    |

What the message says of its run stands flat in `metadata`. The report token is not part of it: the run is ended by
whoever follows the agent, and what an agent is told may end up in a language model.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from horarium.instant import to_rfc3339
from horarium.launchers.a2a.dialect import OutgoingMessage
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import NotJson, check
from horarium.schedule.agent_words import AgentContext
from horarium.schedule.json_limits import Json
from horarium.schedule.run import begun_key

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
