"""Runs as prompts to agents over the A2A protocol: a launch lasts from the message to the agent's final reply.

The message is sent without waiting for its end, the agent's task ID is stored at once, and the task is followed
until it is final, asks something, or the deadline passes. A process that takes over an interrupted run continues
from that ID and sends nothing. A reply that the agent finished, failed or asks is believed; a silent agent is told
to stop at the deadline or when the run is cancelled. If this process only releases the run, the agent continues.

A conversation calls, waits and reports to the holder of the run; `conversation.py` decides each next step.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace

from horarium.core.document import reader
from horarium.core.lifecycle.outcome import Outcome, Refused, RunCancelled, RunTimedOut, Unreachable
from horarium.launchers.a2a.client import A2AClient, AgentAddressForbidden, Called, RequestNotSent
from horarium.launchers.a2a.connections import (
    CALL_OFF_SECONDS,
    POLL_SECONDS,
    AgentConnection,
    Cards,
    ConversationServices,
    Dialects,
    call_off,
)
from horarium.launchers.a2a.conversation import (
    SETTLING_SECONDS,
    ConversationDone,
    Follow,
    Leave,
    Pause,
    Seek,
    Send,
    Stage,
    Step,
    Where,
    WithoutPush,
    first_stage,
    next_step,
    ours,
    poll_pause,
)
from horarium.launchers.a2a.dialect import (
    Dialect,
    MessageSeen,
    OutgoingMessage,
    RpcFailed,
    TaskSeen,
    TasksListed,
    get_body,
    list_body,
    send_body,
)
from horarium.launchers.a2a.messages import (
    CALLER,
    CALLER_HEADER,
    BadPrompt,
    Hints,
    context_of,
    headers_of,
    is_fresh,
    message_of,
    push_for,
)
from horarium.launchers.launcher import AgentLine, Launcher, LaunchRequest
from horarium.launchers.payload import CancelRequested, Cleared, WorkEnded, WorkTimedOut, preflight, run_within
from horarium.launchers.ssrf import AddressGuard
from horarium.platform.clock import Clock

# ── one conversation ──────────────────────────────────────────────────────────────────────────────────


class Talk:
    def __init__(
        self, means: ConversationServices, request: LaunchRequest, agent: AgentLine, message: OutgoingMessage
    ) -> None:
        self._means = means
        self._request = request
        self._agent = agent
        self._message = message
        self._answering = message.task_id is not None
        self._stage = first_stage(request.reference, answering=self._answering, heard=request.heard)
        self._otherwise: Outcome | None = None
        # The deadline runs by the loop's own time, and so does all that comes before it.
        self._time = asyncio.get_running_loop().time
        self._began = self._sent_at = self._time()
        self._calls = 0
        self._shown = False
        self._told: str | None = None
        self._line: AgentConnection | None = None
        # What must not be lost half-way, although whoever runs us stops us: see `late_reply`.
        self._sending: asyncio.Future[Called] | None = None
        self._telling: asyncio.Future[None] | None = None
        self.reference = request.reference
        self.begun = request.heard or request.reference is not None
        """Whether the agent may have something of this run."""

    async def converse(self, seconds_left: float) -> Outcome:
        ends = self._began + seconds_left
        line = self._line = await self._open(seconds_left)
        if line.offers_push:
            self._message = replace(self._message, push=push_for(self._request))
        with self._means.hints.listening(self._request.run_id):
            while True:
                heard = await self._ask(line, max(ends - self._time(), 0.0))
                step = next_step(self._where(line), heard, self._means.clock.now())
                outcome = await self._take(line, step)
                if outcome is not None:
                    await self._show(line)
                    return outcome

    async def call_off(self) -> Outcome | None:
        """Ask for the end of what the agent may have begun; what it became, where it had ended before."""
        if not self.begun:
            return None
        line = self._line or await self._open(CALL_OFF_SECONDS)
        if self.reference is None:
            self.reference = await self._found(line)
        return None if self.reference is None else (await call_off(line, self.reference, self._name()))[1]

    async def late_reply(self, seconds: float) -> Outcome | None:
        """Wait for the reply to a message that is being sent while the conversation stops; its outcome counts."""
        sending, self._sending = self._sending, None
        try:
            async with asyncio.timeout(seconds):
                if sending is not None:
                    return await self._late_outcome(await sending)
                if self._telling is not None:
                    await self._telling
        except TimeoutError:
            pass
        return None

    async def _late_outcome(self, heard: Called) -> Outcome | None:
        if self._line is None or not isinstance(heard, TaskSeen | MessageSeen):
            return None
        match next_step(self._where(self._line), heard, self._means.clock.now()):
            case ConversationDone(outcome):
                return outcome
            case Follow(task_id):
                self.reference = task_id
                await self._tell(task_id)
                return None
            case _:
                return None

    def drop_calls(self) -> None:
        """Nothing of it goes on by itself."""
        for each in (self._sending, self._telling):
            if each is not None:
                each.cancel()

    async def _open(self, seconds: float) -> AgentConnection:
        headers = headers_of(self._request)
        return await AgentConnection.to(self._means, self._request.namespace, self._agent, headers, seconds=seconds)

    def _where(self, line: AgentConnection) -> Where:
        return Where(
            self._stage,
            line.way.dialect,
            self._message.message_id,
            fresh=is_fresh(self._request),
            answering=self._answering,
            heard=self._request.heard,
            once=self._request.once,
            early=self._time() - self._sent_at < self._means.settling_seconds,
            push=self._message.push is not None,
            otherwise=self._otherwise,
            context_id=context_of(self._request),
            task_id=self.reference,
        )

    async def _ask(self, line: AgentConnection, left: float) -> Called:
        if self._stage is Stage.SENDING:
            return await self._send(line, left)
        if self._stage is Stage.LOOKING:
            return await self._list(line, min(left, POLL_SECONDS))
        assert self.reference is not None
        history = self._stage is Stage.CHECKING
        body = get_body(line.way.dialect, self.reference, self._name(), history=history)
        return await line.call(body, min(left, POLL_SECONDS))

    async def _send(self, line: AgentConnection, left: float) -> Called:
        """It may last as long as the run may: whoever runs us ends it, and so knows that it was the deadline."""
        begun, self.begun = self.begun, True
        body = send_body(line.way.dialect, self._message, self._name())
        self._sending = asyncio.ensure_future(line.call(body, left + POLL_SECONDS))
        heard = await asyncio.shield(self._sending)
        self._sending = None
        if isinstance(heard, RequestNotSent | AgentAddressForbidden):
            self.begun = begun
        self._sent_at = self._time()
        return heard

    async def _list(self, line: AgentConnection, seconds: float) -> Called:
        if line.way.dialect is not Dialect.V1_0:
            return RpcFailed(-32601, "this protocol version cannot list tasks")
        return await line.call(list_body(context_of(self._request), self._name()), seconds)

    async def _take(self, line: AgentConnection, step: Step) -> Outcome | None:
        match step:
            case ConversationDone(outcome, unwanted):
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
            case WithoutPush():
                self._message = replace(self._message, push=None)
            case Leave(what, outcome):
                if not line.leave(what):
                    return outcome
        return None

    async def _follow(self, line: AgentConnection, task_id: str) -> None:
        if self._stage is not Stage.FOLLOWING:
            self.reference, self._stage = task_id, Stage.FOLLOWING
        await self._tell(self.reference or task_id)
        await self._show(line)

    async def _tell(self, task_id: str) -> None:
        if self._told != task_id and self._request.holder is not None:
            self._told = task_id
            self._telling = asyncio.ensure_future(self._request.holder.taken(task_id))
            await asyncio.shield(self._telling)

    async def _show(self, line: AgentConnection) -> None:
        """Report the agent's card and dialect once; later results are no news."""
        if not self._shown and self._request.holder is not None:
            self._shown = True
            await self._request.holder.seen(line.card_seen())

    async def _pause(self) -> None:
        age = self._time() - self._began
        await self._means.hints.pause(self._request.run_id, poll_pause(age), self._request.cancelled)

    async def _found(self, line: AgentConnection) -> str | None:
        heard = await self._list(line, POLL_SECONDS)
        if not isinstance(heard, TasksListed):
            return None
        own_context = context_of(self._request) if is_fresh(self._request) else None
        task = ours(heard.tasks, self._message.message_id, own_context)
        return None if task is None else task.task_id

    def _name(self) -> str:
        self._calls += 1
        return f"{self._request.run_id}:{self._calls}"


# ── launcher ──────────────────────────────────────────────────────────────────────────────────────────


CONCURRENCY = 10
_TIDY_SECONDS = 1.0
# For the reply to a message that is just being sent when somebody asks to stop: without the task's name it could only
# be looked for, and in the old dialect not even that.
LATE_REPLY_SECONDS = 0.7


class A2ALauncher(Launcher):
    declares = reader.PROMPT
    kind = declares.name
    honours_key = False
    concurrency = CONCURRENCY
    can_poll = False

    def __init__(
        self,
        clock: Clock,
        *,
        guard: AddressGuard | None = None,
        hints: Hints | None = None,
        tls: ssl.SSLContext | None = None,
        settling_seconds: float = SETTLING_SECONDS,
        late_reply_seconds: float = LATE_REPLY_SECONDS,
    ) -> None:
        """`settling_seconds`: how long an agent may take before what it was sent is seen in its tasks.

        `late_reply_seconds`: how long a message that is being sent has for its reply when the launch is to stop.
        """
        self._late_reply_seconds = late_reply_seconds
        self._clock = clock
        self._guard = guard or AddressGuard()
        client = A2AClient(clock, self._guard, tls)
        self.cards = Cards(client, clock)
        self.hints = hints or Hints()
        self._means = ConversationServices(clock, client, self.cards, self.hints, Dialects(), settling_seconds)

    async def close(self) -> None:
        self._guard.close()

    def hint(self, run_id: str) -> None:
        self.hints.hint(run_id)

    async def launch(self, request: LaunchRequest) -> Outcome:
        agent = request.agent
        if agent is None or not agent.url:
            return Refused("the prompt has no agent with a URL")
        cleared = preflight(request, self._clock)
        if isinstance(cleared, Refused):
            return cleared
        try:
            talk = Talk(self._means, request, agent, message_of(request))
        except BadPrompt as wrong:
            return Refused(str(wrong))
        try:
            return await self._held(talk, request, cleared)
        finally:
            talk.drop_calls()

    async def _held(self, talk: Talk, request: LaunchRequest, cleared: Cleared | RunTimedOut | RunCancelled) -> Outcome:
        if not isinstance(cleared, Cleared):
            return await self._ended(talk, request, cleared)
        end = await run_within(
            talk.converse(cleared.seconds_left),
            seconds=cleared.seconds_left,
            cancelled=request.cancelled,
            grace_seconds=_TIDY_SECONDS,
        )
        match end:
            case WorkEnded(outcome):
                return outcome
            case WorkTimedOut():
                late = "the agent sent no final answer before the deadline"
                return await self._ended(talk, request, RunTimedOut(late) if talk.begun else Unreachable(late))
            case CancelRequested():
                said = await talk.late_reply(self._late_reply_seconds)
                stopped = RunCancelled("cancelled while the agent was working")
                return said or await self._ended(talk, request, stopped)

    async def _ended(
        self, talk: Talk, request: LaunchRequest, outcome: RunTimedOut | RunCancelled | Unreachable
    ) -> Outcome:
        """The agent is told, unless this process only lets go of the run: then somebody else follows the task."""
        if isinstance(outcome, RunCancelled) and request.holder is not None and not request.holder.stop_wanted():
            return outcome
        try:
            async with asyncio.timeout(CALL_OFF_SECONDS):
                return await talk.call_off() or outcome
        except TimeoutError:
            return outcome

    async def cancel_task(self, namespace: str, agent: AgentLine, reference: str) -> bool:
        """Tell an agent that nobody waits for a task any more. False: it could not be told, and may be later."""
        try:
            async with asyncio.timeout(CALL_OFF_SECONDS):
                headers = {CALLER_HEADER: CALLER}
                line = await AgentConnection.to(self._means, namespace, agent, headers, seconds=CALL_OFF_SECONDS)
                done, _ = await call_off(line, reference, reference)
                return done
        except TimeoutError:
            return False
