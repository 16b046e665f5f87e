"""One launch of a prompt at an agent, on the real clock, and all that its holder was told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agents.house import name
from launchers.far_ends import request_for

from horarium.core.lifecycle.outcome import Outcome
from horarium.instant import SECOND
from horarium.launchers.a2a.launcher import A2ALauncher
from horarium.launchers.launcher import AgentLine, CardSeen, LaunchRequest
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.platform.clock import SystemClock

# A launch that ends by itself ends long before that.
ENOUGH = 60.0


@dataclass
class Notes:
    """Who holds the run, as the launcher sees it."""

    references: list[str] = field(default_factory=list)
    cards: list[CardSeen] = field(default_factory=list)
    wants_stop: bool = False

    async def taken(self, reference: str) -> None:
        self.references.append(reference)

    async def seen(self, card: CardSeen) -> None:
        self.cards.append(card)

    def stop_wanted(self) -> bool:
        return self.wants_stop


def request(url: str, prompt: str, *, seconds: float = ENOUGH, **changes: Any) -> LaunchRequest:
    """A delivery that nothing else in the session has the key of."""
    now = SystemClock().now()
    given = {
        "run_id": name("run"),
        "key": name("key"),
        "deadline": now + round(seconds * SECOND),
        "agent": AgentLine("someone", url),
        "holder": Notes(),
        "cancelled": asyncio.Event(),
    }
    return request_for("prompt", {"prompt": prompt}, **{**given, **changes})


@asynccontextmanager
async def launcher() -> AsyncIterator[A2ALauncher]:
    made = A2ALauncher(SystemClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def launched(asked: LaunchRequest) -> Outcome:
    """What comes of it, within a time that only something endless takes."""

    async def launch() -> Outcome:
        async with launcher() as made:
            return await asyncio.wait_for(made.launch(asked), 2 * ENOUGH)

    return asyncio.run(launch())


def notes_of(asked: LaunchRequest) -> Notes:
    assert isinstance(asked.holder, Notes)
    return asked.holder
