"""What the small agent of the demonstration does with a prompt: it works for a second, may ask, and answers.

A prompt with the words `Ask first:` makes it stop with the question that follows them; what is answered stands in
what it says in the end. The same message again is the same task: nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

ASKS = "Ask first:"
# The oldest go: a demonstration may run for weeks.
MOST_TASKS = 1_000


class State(StrEnum):
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    CANCELED = "canceled"


OVER = frozenset({State.COMPLETED, State.CANCELED})


@dataclass(frozen=True, slots=True)
class Said:
    """One message of whoever gives us work."""

    message_id: str
    text: str
    context_id: str | None = None
    task_id: str | None = None


@dataclass(slots=True)
class Task:
    """`since` is when it was last given something to work on; its state follows from the time."""

    task_id: str
    context_id: str
    said: list[Said]
    since: float
    canceled: bool = False

    def state(self, now: float, seconds: float) -> State:
        if self.canceled:
            return State.CANCELED
        if now - self.since < seconds:
            return State.WORKING
        return State.INPUT_REQUIRED if self.question and len(self.said) == 1 else State.COMPLETED

    @property
    def question(self) -> str:
        return self.said[0].text.partition(ASKS)[2].strip()

    @property
    def answer(self) -> str:
        prompt = self.said[0].text.partition(ASKS)[0].strip()
        told = f" ({self.said[-1].text.strip()})" if len(self.said) > 1 else ""
        return f"Done{told}: {prompt}"


class NoSuchTask(Exception):
    """It was never here, or is forgotten."""


class TaskOver(Exception):
    """Nothing more can be done with it."""


@dataclass(slots=True)
class Conversation:
    """The tasks of one agent. `now` is in seconds of any clock that does not go back."""

    seconds: float = 1.0
    _tasks: dict[str, Task] = field(default_factory=dict)

    def send(self, said: Said, now: float) -> Task:
        if (known := self._with(said.message_id)) is not None:
            return known
        if said.task_id is not None:
            return self._go_on(said, self.get(said.task_id), now)
        # Named after the message, so that an agent that was restarted would say the same.
        task = Task(f"task-{said.message_id}", said.context_id or f"context-{said.message_id}", [said], now)
        if len(self._tasks) >= MOST_TASKS:
            del self._tasks[next(iter(self._tasks))]
        self._tasks[task.task_id] = task
        return task

    def get(self, task_id: str) -> Task:
        if task_id not in self._tasks:
            raise NoSuchTask
        return self._tasks[task_id]

    def cancel(self, task_id: str, now: float) -> Task:
        task = self.get(task_id)
        if task.state(now, self.seconds) in OVER:
            raise TaskOver
        task.canceled = True
        return task

    def of(self, context_id: str) -> Iterator[Task]:
        return (task for task in self._tasks.values() if task.context_id == context_id)

    def _with(self, message_id: str) -> Task | None:
        found = (task for task in self._tasks.values() for said in task.said if said.message_id == message_id)
        return next(found, None)

    def _go_on(self, said: Said, task: Task, now: float) -> Task:
        if task.state(now, self.seconds) is not State.INPUT_REQUIRED:
            raise TaskOver
        task.said.append(said)
        task.since = now
        return task
