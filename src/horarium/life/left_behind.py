"""Whether what a target has begun for a run goes on there although nobody wants it any more.

Whoever holds a run speaks with its target, and tells it of a stop and of the deadline, if it can be reached then. And
runs are also ended by those who cannot speak with it: by a person who terminates them, by an answer that nobody gave,
by a process that is gone.
"""

from __future__ import annotations

from horarium.life.change import Again, Change, End
from horarium.policy.retry import RetryCause
from horarium.schedule.run import RunState

# The target itself has said that it is over.
_SAID_BY_TARGET = frozenset({RunState.SUCCEEDED, RunState.FAILED})


def is_left_behind(change: Change) -> bool:
    """Of a run whose target has a name for what it does.

    To be told twice that a task is not wanted does no harm, so in doubt it is.
    """
    match change:
        case End(state=RunState.FAILED, cause=cause):
            return cause is not None  # a limit has ended it, and not its target
        case End(state=state):
            return state not in _SAID_BY_TARGET
        case Again(known=True, error_class=RetryCause.TIMEOUT.value):
            return True  # the next attempt is another task
        case _:
            return False


def is_to_be_ended(change: Change, *, running: bool) -> bool:
    """Of a run whose message a broker has: whether a worker may be at it who must be stopped.

    Whoever cancels only calls the message back. What is over by force must not go on, and neither must what is over
    because its time is, where somebody is known to be `running` it: a message that nobody took has expired.
    """
    match change:
        case End(state=RunState.TERMINATED):
            return True
        case End(state=RunState.FAILED, cause=cause):
            return running and cause is not None
        case End(state=RunState.TIMED_OUT) | Again(known=True, error_class=RetryCause.TIMEOUT.value):
            return running
        case _:
            return False
