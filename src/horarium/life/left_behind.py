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
    """Tell whether the target may still work on a run whose work it has a name for.

    A repeated cancellation is harmless, so the answer is True in doubt.
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
    """Tell whether a worker must be stopped that may be executing the run from a broker.

    A cancellation only revokes the message. A terminated run must be stopped, and so must a run that a timeout or a
    limit has ended while it is known to be `running`: a message that no worker received has expired.
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
