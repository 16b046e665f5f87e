"""Runs as prompts to agents over the A2A protocol: the launch lasts from the message to the agent's final answer.

The message is sent without waiting for its end, the agent's name for the task is kept at once, and the task is
followed until it is final, asks something, or the time is up. Whoever takes over a run that was left in the middle
goes on from that name, and sends nothing. An agent that finished, failed or asked is believed; one that is silent is
told to stop when the deadline comes or somebody stops the run. Where this process only lets go, the agent goes on.
"""

from __future__ import annotations

import asyncio
import ssl

from horarium.core.document import kinds
from horarium.core.lifecycle.outcome import Outcome, Refused, RunCancelled, RunTimedOut, Unreachable
from horarium.launchers.a2a.cards import Cards
from horarium.launchers.a2a.client import A2AClient
from horarium.launchers.a2a.conversation import SETTLING_SECONDS
from horarium.launchers.a2a.hints import Hints
from horarium.launchers.a2a.line import CALL_OFF_SECONDS, Dialects, Line, Means, call_off
from horarium.launchers.a2a.message import CALLER, CALLER_HEADER, BadPrompt, message_of
from horarium.launchers.a2a.talk import Talk
from horarium.launchers.bounds import CancelAsked, DeadlineReached, Ended, run_within
from horarium.launchers.launcher import AgentLine, Launcher, LaunchRequest
from horarium.launchers.preflight import Cleared, preflight
from horarium.launchers.ssrf import Guard
from horarium.platform.clock import Clock

CONCURRENCY = 10
_TIDY_SECONDS = 1.0
# For the reply to a message that is just being sent when somebody asks to stop: without the task's name it could only
# be looked for, and in the old dialect not even that.
LATE_REPLY_SECONDS = 0.7


class A2ALauncher(Launcher):
    declares = kinds.PROMPT
    kind = declares.name
    honours_key = False
    concurrency = CONCURRENCY
    can_poll = False

    def __init__(
        self,
        clock: Clock,
        *,
        guard: Guard | None = None,
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
        self._guard = guard or Guard()
        client = A2AClient(clock, self._guard, tls)
        self.cards = Cards(client, clock)
        self.hints = hints or Hints()
        self._means = Means(clock, client, self.cards, self.hints, Dialects(), settling_seconds)

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
            case Ended(outcome):
                return outcome
            case DeadlineReached():
                late = "the agent sent no final answer before the deadline"
                return await self._ended(talk, request, RunTimedOut(late) if talk.begun else Unreachable(late))
            case CancelAsked():
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
                line = await Line.to(self._means, namespace, agent, headers, seconds=CALL_OFF_SECONDS)
                done, _ = await call_off(line, reference, reference)
                return done
        except TimeoutError:
            return False
