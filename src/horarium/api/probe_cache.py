"""Answer probes in bounded time from what was read last, while at most one look of a kind asks the database.

A look may hang: a table is locked, or all connections are taken. Then a probe is answered from figures that grow old
until they fail. The look at the schema reads no table of schedules, so that `/healthz` passes where only these are
locked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from horarium.errors import HorariumError
from horarium.operations import health as probes
from horarium.operations.health import Check, Figures, Readiness
from horarium.operations.resources import Resources
from horarium.recurrence.zone import tzdata_version
from horarium.store.errors import shown
from horarium.telemetry.metrics import Installation

T = TypeVar("T")

FRESH_SECONDS = 1.0
PATIENCE_SECONDS = 0.8
"""Seconds that a probe waits for a look; callers often give a second."""
HANGS_AFTER_SECONDS = 5.0
"""A look that takes longer than this counts as a database that does not answer."""
GAUGES_FRESH_SECONDS = 5.0
"""Age at which the gauges of the installation are read again: several scrapers cost one look."""
_SLOW, _REMEDY = "the database does not respond in time", "look at the database"


class _Look(Generic[T]):
    """One question to the database, in a thread of its own: those of requests may all be waiting."""

    def __init__(self, resources: Resources, ask: Callable[[Resources], T], fresh_seconds: Callable[[], float]) -> None:
        self._resources = resources
        self._fresh_seconds = fresh_seconds
        self._ask = ask
        self._lock = threading.Lock()
        self._answer: tuple[float, T | HorariumError] | None = None
        self._asking: Future[None] | None = None
        self._began = 0.0

    def begin(self) -> Future[None] | None:
        """Ask unless the answer is fresh or on its way; None = nothing is to be waited for."""
        with self._lock:
            now = self._resources.clock.monotonic()
            if self._answer is not None and 0 <= now - self._answer[0] < self._fresh_seconds():
                return None
            if self._asking is None:
                asking: Future[None] = Future()
                asking.set_running_or_notify_cancel()  # a probe that leaves must not cancel it for the others
                # Without a thread this raises: an old answer must not stand for a look that cannot be made.
                threading.Thread(target=self._run, args=(asking,), name="horarium-probe", daemon=True).start()
                self._asking, self._began = asking, now
            return self._asking

    def answer(self) -> T | HorariumError | None:
        """The last answer; None = there is none yet."""
        return None if self._answer is None else self._answer[1]

    def hangs(self) -> bool:
        """Return true when the look has waited so long that its last answer is out of date."""
        with self._lock:
            return self._asking is not None and self._waits() > HANGS_AFTER_SECONDS

    def patience(self) -> float:
        """Seconds until the look hangs: however many wait for it, they wait for that together."""
        with self._lock:
            return 0.0 if self._asking is None else max(0.0, HANGS_AFTER_SECONDS - self._waits())

    def _waits(self) -> float:
        return self._resources.clock.monotonic() - self._began

    def _run(self, asking: Future[None]) -> None:
        found: T | HorariumError
        try:
            found = self._ask(self._resources)
        except HorariumError as wrong:
            found = wrong
        except BaseException as wrong:
            with self._lock:
                self._asking = None
            asking.set_exception(wrong)
            return
        with self._lock:
            self._answer, self._asking = (self._resources.clock.monotonic(), found), None
        asking.set_result(None)


class ProbeCache:
    """`decides`: this process is not ready where no occurrence is decided; another one only reports it.

    `serves`: this process answers requests, and shows the gauges of the installation.
    """

    def __init__(self, resources: Resources, *, decides: bool = True, serves: bool = True) -> None:
        self._resources = resources
        self.decides = decides
        self.serves = serves
        self._schema: _Look[Check] = _Look(resources, probes.schema_check, lambda: FRESH_SECONDS)
        self._figures: _Look[Figures] = _Look(resources, probes.read_figures, lambda: FRESH_SECONDS)
        self._gauges: _Look[Installation] = _Look(resources, probes.read_installation, lambda: GAUGES_FRESH_SECONDS)

    def installation(self) -> Installation | None:
        """Wait in this thread for figures; None = the database does not answer, or this process serves nobody."""
        if not self.serves:
            return None
        if (asking := self._gauges.begin()) is not None:
            wait([asking], timeout=self._gauges.patience())
            if not asking.done() or asking.exception() is not None:
                return None
        found = self._gauges.answer()
        return found if isinstance(found, Installation) else None

    async def readiness(self) -> Readiness:
        """Never raises because of the database, and takes a second at most, however many ask and whatever is locked."""
        ends_at = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        await _wait(self._schema.begin(), ends_at)
        schema = self._schema.answer()
        if isinstance(schema, Check) and schema.passed:
            await _wait(self._figures.begin(), ends_at)
        return Readiness(tuple(self._checks()), tzdata_version())

    def _checks(self) -> list[Check]:
        schema = self._schema.answer()
        if isinstance(schema, HorariumError):
            return [Check("database", False, shown(schema), _REMEDY)]
        if schema is None or self._schema.hangs():
            return [*([schema] if schema else []), Check("database", False, _SLOW, _REMEDY)]
        return [schema, *self._judged()] if schema.passed else [schema]

    def _judged(self) -> list[Check]:
        figures, resources = self._figures.answer(), self._resources
        if isinstance(figures, HorariumError):
            return [Check("deciding", False, shown(figures), _REMEDY, self.decides)]
        unknown = Check("deciding", False, _SLOW, "look for a lock on the tables of schedules", self.decides)
        if figures is None:
            return [unknown]
        judged = probes.figure_checks(figures, resources.settings, resources.clock.now(), decides=self.decides)
        hangs = self._figures.hangs()
        return [unknown if hangs and check.name == unknown.name else check for check in judged]


async def _wait(asking: Future[None] | None, ends_at: float) -> None:
    if asking is None:
        return
    left = max(0.0, ends_at - asyncio.get_running_loop().time())
    done, _ = await asyncio.wait([asyncio.wrap_future(asking)], timeout=left)
    for each in done:
        each.result()  # an error of our own
