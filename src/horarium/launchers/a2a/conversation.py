"""The state of a conversation with an agent, and the next step after each reply.

| stage     | request                             | until                                                        |
|-----------|-------------------------------------|--------------------------------------------------------------|
| sending   | the message itself                  | the agent has it, or has certainly not                       |
| looking   | the tasks of the conversation (1.0) | it is known whether a message that may have arrived has      |
| checking  | the task that waits for an answer   | it is known whether the answer has arrived, and is wanted    |
| following | the task                            | it is final, or asks something                               |

Nothing is sent again before it is known that it did not arrive. If that cannot be known, the outcome is `Unknown`,
and the `delivery` of the run decides. While a task is followed, no failed poll ends the run: the deadline does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from horarium.core.lifecycle.outcome import Outcome, Refused, Unknown, Unreachable
from horarium.instant import Instant
from horarium.launchers.a2a import messages
from horarium.launchers.a2a.client import AgentAddressForbidden, Called, HttpStatus, LostReply, RequestNotSent, TooLarge
from horarium.launchers.a2a.dialect import (
    FINAL,
    OTHER_DIALECT_CODES,
    Dialect,
    Malformed,
    MessageSeen,
    RpcFailed,
    TaskSeen,
    TasksListed,
    TaskState,
)
from horarium.launchers.http import not_done

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
# How long an agent may take before what it was sent is seen in its tasks.
SETTLING_SECONDS = 2.0
_NOBODY_KNOWS = frozenset({502, 503, 504})
_NO_SUCH_PLACE = frozenset({404, 405})


class Stage(Enum):
    SENDING = "sending"
    LOOKING = "looking"
    CHECKING = "checking"
    FOLLOWING = "following"


@dataclass(frozen=True, slots=True)
class Where:
    """`fresh`: the conversation holds nothing but this attempt. `answering`: the message answers a question.

    `heard`: an earlier delivery may have arrived. `once`: what may have arrived is not sent again. `early`: it may
    have arrived so lately that nobody sees it yet. `push`: the message asks for hints. `otherwise`: what a message
    that was sent in this launch comes to if it is not found; None = none was. `context_id` is our name for the
    conversation, `task_id` the task that is asked for.
    """

    stage: Stage
    dialect: Dialect
    message_id: str
    fresh: bool = True
    answering: bool = False
    heard: bool = False
    once: bool = False
    early: bool = False
    push: bool = False
    otherwise: Outcome | None = None
    context_id: str | None = None
    task_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationDone:
    """`unwanted`: the task may go on at the agent, for nobody."""

    outcome: Outcome
    unwanted: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """The same again, a moment later. `elsewhere`: at another address, if there is one."""

    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Follow:
    """The agent has it under this name. `at_once`: what was seen of it is not all, so that it is asked for now."""

    task_id: str
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """`context_id` is the agent's name for the conversation, where it has told one."""

    context_id: str | None = None


@dataclass(frozen=True, slots=True)
class Seek:
    """Find out in that stage whether it arrived; `otherwise` is what it comes to if not."""

    stage: Stage
    otherwise: Outcome


class Left(Enum):
    """Unusable part of a connection: an unsupported dialect, or a URL that does not respond."""

    DIALECT = "dialect"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Leave:
    """The same by another way, since nothing has begun; `outcome` where none is left."""

    what: Left
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class WithoutPush:
    """The same without asking for hints: the agent gives none, or none to our address."""


Step: TypeAlias = ConversationDone | Pause | Follow | Send | Seek | Leave | WithoutPush


def poll_pause(age_seconds: float) -> float:
    """Pause before the next poll: young tasks are polled often, old ones less."""
    return min(max(age_seconds / 10, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


def first_stage(reference: str | None, *, answering: bool, heard: bool) -> Stage:
    if reference is not None:
        return Stage.CHECKING if answering else Stage.FOLLOWING
    return Stage.LOOKING if heard else Stage.SENDING


def next_step(where: Where, heard: Called, now: Instant) -> Step:
    match where.stage:
        case Stage.SENDING:
            return _sent(where, heard, now)
        case Stage.LOOKING:
            return _looked(where, heard)
        case Stage.CHECKING:
            return _checked(where, heard)
        case Stage.FOLLOWING:
            return _followed(where, heard)


def _sent(where: Where, heard: Called, now: Instant) -> Step:
    match heard:
        case TaskSeen():
            return _seen(where, heard)
        case MessageSeen():
            return ConversationDone(messages.outcome_of_message(heard))
        case TasksListed():
            return ConversationDone(messages.not_of_the_protocol("the response lists tasks"))
        case Malformed(why):
            return ConversationDone(messages.not_of_the_protocol(why))
        case RpcFailed():
            return _refused(where, heard)
        case RequestNotSent(error):
            return Leave(Left.ADDRESS, Unreachable(error))
        case AgentAddressForbidden(error):
            return Leave(Left.ADDRESS, Refused(error))
        case LostReply(error):
            return _lost(where, error)
        case TooLarge():
            return ConversationDone(messages.too_large())
        case HttpStatus(status, said, retry_after):
            if status in _NOBODY_KNOWS and not (status == 503 and retry_after is not None):
                return _lost(where, said)
            if 300 <= status < 400:
                return Leave(Left.ADDRESS, Refused(said))
            outcome = not_done(status, said, retry_after, now)
            return Leave(Left.ADDRESS, outcome) if status in _NO_SUCH_PLACE else ConversationDone(outcome)


def _refused(where: Where, error: RpcFailed) -> Step:
    outcome = messages.outcome_of_error(error)
    if error.code in OTHER_DIALECT_CODES:
        return Leave(Left.DIALECT, outcome)
    if where.push and error.code in messages.OF_THE_REQUEST:
        return WithoutPush()
    if where.answering and error.code == messages.UNSUPPORTED:
        return Seek(Stage.CHECKING, outcome)  # the task is over, and what it came to is worth more than our answer
    if error.code == messages.NO_SUCH_TASK and not where.answering:
        return ConversationDone(Refused(f"the agent rejected a new message with error {error.code}: {error.message}"))
    return ConversationDone(outcome)


def _lost(where: Where, error: str) -> Step:
    """It was sent, and nobody has said what became of it."""
    if where.answering:
        # The task tells whether the answer is in it; if not, nothing has begun.
        return Seek(Stage.CHECKING, Unreachable(error, sent=True))
    if where.dialect is Dialect.V1_0:
        return Seek(Stage.LOOKING, Unknown(error))
    return ConversationDone(Unknown(error))


def _looked(where: Where, heard: Called) -> Step:
    match heard:
        case TasksListed(tasks):
            found = ours(tasks, where.message_id, where.context_id if where.fresh else None)
            if found is not None:
                return Follow(found.task_id, at_once=True)
            return Pause() if where.early else _not_found(where, "the agent has no task for the message")
        case RequestNotSent() | LostReply():
            return Pause(elsewhere=True)
        case HttpStatus(status) if status >= 500 or status in (408, 425, 429):
            return Pause(elsewhere=True)
        case AgentAddressForbidden(error):
            return ConversationDone(where.otherwise or Refused(error))
        case _:
            return _not_found(where, "the agent does not report whether it received the message")


def _not_found(where: Where, why: str, context_id: str | None = None) -> Step:
    if where.otherwise is not None:
        return ConversationDone(where.otherwise)
    if where.heard and where.once:
        return ConversationDone(Unknown(why))
    return Send(context_id)


def ours(tasks: tuple[TaskSeen, ...], message_id: str, own_context: str | None) -> TaskSeen | None:
    """The task that our message began. In a conversation of our own any is, whether or not the agent says so.

    What is listed of other conversations is not: an agent may tell of all its tasks, whatever it was asked.
    """
    for task in tasks:
        if message_id in task.message_ids:
            return task
    if own_context is None:
        return None
    return next((task for task in tasks if task.context_id == own_context), None)


def _checked(where: Where, heard: Called) -> Step:
    if not isinstance(heard, TaskSeen) or _is_another(where, heard):
        return _followed(where, heard)
    arrived = where.message_id in heard.message_ids
    if arrived or heard.state not in messages.GATES:
        return _seen(where, heard)
    if where.early and (where.heard or where.otherwise is not None):
        return Pause()
    return _not_found(where, "the agent's task does not show whether it received the answer", heard.context_id)


def _is_another(where: Where, task: TaskSeen) -> bool:
    return where.task_id is not None and task.task_id != where.task_id


def _followed(where: Where, heard: Called) -> Step:
    match heard:
        case TaskSeen() if _is_another(where, heard):
            return Pause()  # what became of another task says nothing about ours
        case TaskSeen():
            return _seen(where, heard)
        case RpcFailed(code) if code == messages.NO_SUCH_TASK:
            return ConversationDone(messages.outcome_of_error(heard))
        case RpcFailed(code) if code in OTHER_DIALECT_CODES:
            return Leave(Left.DIALECT, Unknown("the agent does not report the state of the task"))
        case TooLarge():
            return ConversationDone(messages.too_large(), unwanted=True)
        case RequestNotSent() | LostReply() | HttpStatus() | AgentAddressForbidden():
            return Pause(elsewhere=True)
        case _:
            return Pause()


def _seen(where: Where, task: TaskSeen) -> Step:
    if where.answering and where.early and task.state in messages.GATES:
        return Follow(task.task_id)  # the old question, as long as the agent has not begun with the answer
    outcome = messages.outcome_of_task(task)
    return Follow(task.task_id) if outcome is None else ConversationDone(outcome)


# ── calling off ──────────────────────────────────────────────────────────────────────────────────────


class CalledOff(Enum):
    """Outcome of a request to cancel a task."""

    TOLD = "told"
    OVER = "over"
    """It had ended before: it is worth a look what it became."""
    POINTLESS = "pointless"
    """The agent has no such task, or stops none."""
    NOT_TOLD = "not told"
    OTHER_DIALECT = "other dialect"


def called_off(heard: Called) -> CalledOff:
    match heard:
        case TaskSeen(state=state):
            over = state in FINAL and state is not TaskState.CANCELED
            return CalledOff.OVER if over else CalledOff.TOLD
        case MessageSeen():
            return CalledOff.TOLD
        case RpcFailed(code):
            if code == messages.NOT_CANCELABLE:
                return CalledOff.OVER
            if code in OTHER_DIALECT_CODES:
                return CalledOff.OTHER_DIALECT
            return CalledOff.NOT_TOLD if code in (-32603, -32006) else CalledOff.POINTLESS
        case _:
            return CalledOff.NOT_TOLD
