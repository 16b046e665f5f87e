"""Probes and metrics of the service, answered in bounded time from recent results."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from fastapi import Request, Response

from horarium.core.recurrence.zone import tzdata_version
from horarium.errors import HorariumError
from horarium.features.cluster import health as probes
from horarium.features.cluster.health import CheckResult, Figures, Readiness
from horarium.features.resources import Resources
from horarium.features.tenants.model import Check, Health
from horarium.platform.database.errors import shown
from horarium.platform.http import examples
from horarium.platform.http.connections import without_base
from horarium.platform.http.middleware import Shortages
from horarium.platform.http.requests import ResourcesOf, caller_of
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import OPEN, OPERATIONS, READ, Routes
from horarium.platform.telemetry.metrics import CONTENT_TYPE, Installation

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
        self._schema: _Look[CheckResult] = _Look(resources, probes.schema_check, lambda: FRESH_SECONDS)
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
        if isinstance(schema, CheckResult) and schema.passed:
            await _wait(self._figures.begin(), ends_at)
        return Readiness(tuple(self._checks()), tzdata_version())

    def _checks(self) -> list[CheckResult]:
        schema = self._schema.answer()
        if isinstance(schema, HorariumError):
            return [CheckResult("database", False, shown(schema), _REMEDY)]
        if schema is None or self._schema.hangs():
            return [*([schema] if schema else []), CheckResult("database", False, _SLOW, _REMEDY)]
        return [schema, *self._judged()] if schema.passed else [schema]

    def _judged(self) -> list[CheckResult]:
        figures, resources = self._figures.answer(), self._resources
        if isinstance(figures, HorariumError):
            return [CheckResult("deciding", False, shown(figures), _REMEDY, self.decides)]
        unknown = CheckResult("deciding", False, _SLOW, "look for a lock on the tables of schedules", self.decides)
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


routes = Routes(tag="health")

_SERVING = "serving"
_OWN_CHECKS = frozenset({"migrated", "database", _SERVING})
_NOT_CHECKED = probes.CheckResult(
    "database", False, "the database was not checked: no thread or file descriptor is available"
)
_LEAVING = probes.CheckResult(_SERVING, False, "this process is shutting down", "send requests to another process")


@routes(
    "GET",
    "/livez",
    needs=OPEN,
    summary="Check that the process responds",
    answer=Health,
    example=Health(status="ok"),
)
async def liveness() -> Reply:
    """Runs in no thread, so it responds even when all threads are busy."""
    return Reply(Health(status="ok"))


_HEALTH: dict[str, Any] = {
    "needs": OPEN,
    "summary": "Check that the database responds",
    "answer": Health,
    "also": (503,),
    "example": examples.PROBE,
}


@routes("GET", "/healthz", **_HEALTH)
@routes("GET", "/api/health", name="health_under_prefix", **_HEALTH)
async def health(request: Request) -> Reply:
    found = await _found(request)
    return _reply(found, good=all(check.passed for check in found.checks if check.name in _OWN_CHECKS))


@routes(
    "GET",
    "/readyz",
    needs=OPEN,
    summary="Check that the service is ready",
    answer=Health,
    also=(503,),
    example=examples.PROBE,
)
async def readiness(request: Request) -> Reply:
    found = await _found(request)
    return _reply(found, good=found.ready)


@routes(
    "GET",
    "/metrics",
    needs=READ,
    summary="Show the metrics",
    media_type="text/plain",
    example="horarium_ticks_total 812.0",
)
def metrics(request: Request, resources: ResourcesOf) -> Response:
    """Prometheus text format. Requires a token of the default namespace, because the metrics cover all tenants; the
    setting `metrics_open` removes this requirement.

    Gauges of the installation are at most 5 seconds old and omitted while the database does not respond.
    """
    if not request.app.state.metrics_open:
        caller_of(request).require_house(READ)
    cache: ProbeCache = request.app.state.probes
    rendered = resources.telemetry.metrics.render(engine=cache.decides, installation=cache.installation())
    return Response(rendered, media_type=CONTENT_TYPE)


async def _found(request: Request) -> Readiness:
    cache: ProbeCache = request.app.state.probes
    shortages: Shortages = request.app.state.shortages
    try:
        found = await cache.readiness()
    except (OSError, RuntimeError) as error:
        if shortages.note(error) is None:
            raise
        found = Readiness((_NOT_CHECKED,), tzdata_version())
    if (lacking := shortages.current()) is not None:
        found = replace(found, checks=(*found.checks, probes.CheckResult("resources", False, lacking)))
    leaving: threading.Event = request.app.state.draining
    return replace(found, checks=(*found.checks, _LEAVING)) if leaving.is_set() else found


def _reply(found: Readiness, *, good: bool) -> Reply:
    checks = (
        Check(name=each.name, passed=each.passed, detail=each.detail, remedy=each.remedy) for each in found.checks
    )
    answer = Health(
        status="ok" if good else "failing",
        ready=found.ready,
        version=version("horarium"),
        tzdata=found.tzdata,
        checks=tuple(checks),
    )
    return Reply(answer, 200 if good else 503)


PROBES = frozenset(path for (_, path), each in OPERATIONS.items() if each.tag == "health" and each.needs is OPEN)
"""Paths of probes, which are answered even under full load."""


def is_probe(path: str, base: str = "") -> bool:
    """Tell whether the path is a probe: monitoring may call it with the base path or without."""
    return without_base(path, base) in PROBES
