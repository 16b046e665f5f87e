"""One conversation with one agent: it calls, waits and tells the holder; what follows is decided in `conversation.py`.

Whoever runs `converse` bounds it and may stop it at any time; what is known until then stands in the talk, so that
`call_off` finds what there is to be stopped.
"""

from __future__ import annotations

from dataclasses import replace

from horarium.launchers.a2a.client import Called, NotSent, TargetForbidden
from horarium.launchers.a2a.conversation import (
    Done,
    Follow,
    Leave,
    Pause,
    Seek,
    Send,
    Stage,
    Step,
    Where,
    first_stage,
    next_step,
    ours,
    poll_pause,
)
from horarium.launchers.a2a.dialect import (
    Dialect,
    OutgoingMessage,
    RpcFailed,
    TasksListed,
    get_body,
    list_body,
    send_body,
)
from horarium.launchers.a2a.line import POLL_SECONDS, Line, Means, call_off
from horarium.launchers.a2a.message import context_of, headers_of, is_fresh
from horarium.launchers.launcher import AgentLine, LaunchRequest
from horarium.life.outcome import Outcome


class Talk:
    def __init__(self, means: Means, request: LaunchRequest, agent: AgentLine, message: OutgoingMessage) -> None:
        self._means = means
        self._request = request
        self._agent = agent
        self._message = message
        self._answering = message.task_id is not None
        self._stage = first_stage(request.reference, answering=self._answering, heard=request.heard)
        self._otherwise: Outcome | None = None
        self._began = self._sent_at = means.clock.monotonic()
        self._calls = 0
        self._shown = False
        self._line: Line | None = None
        self.reference = request.reference
        self.begun = request.heard or request.reference is not None
        """Whether the agent may have something of this run."""

    async def converse(self, seconds_left: float) -> Outcome:
        ends = self._began + seconds_left
        line = self._line = await self._open()
        with self._means.hints.listening(self._request.run_id):
            while True:
                heard = await self._ask(line, max(ends - self._means.clock.monotonic(), 0.0))
                step = next_step(self._where(line), heard, self._means.clock.now())
                outcome = await self._take(line, step)
                if outcome is not None:
                    await self._show(line)
                    return outcome

    async def call_off(self) -> Outcome | None:
        """Ask for the end of what the agent may have begun; what it became, where it had ended before."""
        if not self.begun:
            return None
        line = self._line or await self._open()
        if self.reference is None:
            self.reference = await self._found(line)
        return None if self.reference is None else (await call_off(line, self.reference, self._name()))[1]

    async def _open(self) -> Line:
        return await Line.to(self._means, self._request.namespace, self._agent, headers_of(self._request))

    def _where(self, line: Line) -> Where:
        return Where(
            self._stage,
            line.way.dialect,
            self._message.message_id,
            fresh=is_fresh(self._request),
            answering=self._answering,
            heard=self._request.heard,
            once=self._request.once,
            early=self._means.clock.monotonic() - self._sent_at < self._means.settling_seconds,
            otherwise=self._otherwise,
        )

    async def _ask(self, line: Line, left: float) -> Called:
        if self._stage is Stage.SENDING:
            return await self._send(line, left)
        if self._stage is Stage.LOOKING:
            return await self._list(line, min(left, POLL_SECONDS))
        assert self.reference is not None
        history = self._stage is Stage.CHECKING
        body = get_body(line.way.dialect, self.reference, self._name(), history=history)
        return await line.call(body, min(left, POLL_SECONDS))

    async def _send(self, line: Line, left: float) -> Called:
        """It may last as long as the run may: whoever runs us ends it, and so knows that it was the deadline."""
        begun, self.begun = self.begun, True
        heard = await line.call(send_body(line.way.dialect, self._message, self._name()), left + POLL_SECONDS)
        if isinstance(heard, NotSent | TargetForbidden):
            self.begun = begun
        self._sent_at = self._means.clock.monotonic()
        return heard

    async def _list(self, line: Line, seconds: float) -> Called:
        if line.way.dialect is not Dialect.V1_0:
            return RpcFailed(-32601, "tasks cannot be listed in this dialect")
        return await line.call(list_body(context_of(self._request), self._name()), seconds)

    async def _take(self, line: Line, step: Step) -> Outcome | None:
        match step:
            case Done(outcome, unwanted):
                if unwanted and self.reference is not None:
                    await call_off(line, self.reference, self._name())
                return outcome
            case Pause(elsewhere):
                if elsewhere:
                    line.try_elsewhere()
                await self._pause()
            case Follow(task_id, at_once):
                await self._follow(line, task_id)
                if not at_once:
                    await self._pause()
            case Send(context_id):
                self._stage = Stage.SENDING
                if context_id is not None:  # the agent's own name for the conversation: it need not have taken ours
                    self._message = replace(self._message, context_id=context_id)
            case Seek(stage, otherwise):
                self._stage, self._otherwise = stage, otherwise
            case Leave(what, outcome):
                if not line.leave(what):
                    return outcome
        return None

    async def _follow(self, line: Line, task_id: str) -> None:
        news = self._stage is not Stage.FOLLOWING or self.reference != task_id
        self.reference, self._stage = task_id, Stage.FOLLOWING
        if news and self._request.holder is not None:
            await self._request.holder.taken(task_id)
        await self._show(line)

    async def _show(self, line: Line) -> None:
        """What the agent was found to be, once: it is no news a second time."""
        if not self._shown and self._request.holder is not None:
            self._shown = True
            await self._request.holder.seen(line.told())

    async def _pause(self) -> None:
        age = self._means.clock.monotonic() - self._began
        await self._means.hints.pause(self._request.run_id, poll_pause(age), self._request.cancelled)

    async def _found(self, line: Line) -> str | None:
        heard = await self._list(line, POLL_SECONDS)
        if not isinstance(heard, TasksListed):
            return None
        task = ours(heard.tasks, self._message.message_id, fresh=is_fresh(self._request))
        return None if task is None else task.task_id

    def _name(self) -> str:
        self._calls += 1
        return f"{self._request.run_id}:{self._calls}"
