"""A whole service in one process for tests: real database, real decisions, and a clock that the test moves.

Nothing runs by itself. `advance` goes from one due time to the next and lets the engine do at each what it would
have done then, so a test about a year takes as long as the occurrences in it.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TextIO, TypeVar

import httpx
from starlette.types import ASGIApp

from horarium.client.client import Client
from horarium.core.document.states import OPEN
from horarium.core.lifecycle.outcome import Finished
from horarium.features.cluster import verification
from horarium.features.history import rows as history
from horarium.features.history import service as histories
from horarium.features.history.routes import history_event
from horarium.features.history.rows import HistoryRow
from horarium.features.resources import Resources
from horarium.features.runs import reports, views
from horarium.features.runs import rows as runs_read
from horarium.features.runs import service as run_service
from horarium.features.runs.model import Run, RunSummary
from horarium.features.runs.rows import RunFilter, RunRow
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.model import HistoryEvent
from horarium.features.schedules.pause_rows import Outlook, look_ahead
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_rfc3339
from horarium.launchers.recording import RecordingLauncher, Step
from horarium.platform.caller import Caller
from horarium.platform.database import Connection, open_database
from horarium.platform.database.schema import migrate
from horarium.platform.settings import DATABASE_FILE, Settings
from horarium.platform.wire import Role
from horarium.serve.launchers import Application, Bare
from horarium.serve.service import Service, open_service, put_templates
from horarium.testing.doubles import DEFAULT_START, FakeClock, When, instant_of, recording_registry

# ── HTTP without a network ────────────────────────────────────────────────────────────────────────────


RunInLoop = Callable[[Coroutine[Any, Any, httpx.Response]], httpx.Response]


class AppTransport(httpx.BaseTransport):
    """`run` carries a coroutine to the loop that the application lives in, and its answer back."""

    def __init__(self, app: ASGIApp, run: RunInLoop) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._run = run

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        if "transfer-encoding" in asked.headers:  # httpx adds the length, and a request with both is refused
            del asked.headers["content-length"]
        return self._run(self._answer(asked))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        # As it was sent: the response unpacks what was packed.
        raw = b"".join([piece async for piece in answer.aiter_raw()])
        return httpx.Response(answer.status_code, headers=answer.headers, content=raw)


# ── service ───────────────────────────────────────────────────────────────────────────────────────────


T = TypeVar("T")

TOKEN = "hor_testing"
"""The admin token of every service under test."""

_ADDRESS = "http://horarium.test"
# Of every service under test: what one signs, another on the same database recognises.
_KEY = b"horarium.testing"
_MANY = 100_000
# More rounds than this at one instant mean that two parts of the engine keep each other busy: a chain of a thousand
# nodes takes two for each.
_MAX_ROUNDS = 20_000


class _Loop:
    """An event loop of its own thread: a test may be sync or async."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="horarium-testing", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class TestService:
    """Made by `service()`. `launcher.deliveries` are the launches; `caller` is an admin of the default namespace."""

    __test__ = False  # the name is for people; pytest must not collect it

    def __init__(self, parts: Service, clock: FakeClock, launcher: RecordingLauncher, loop: _Loop) -> None:
        self.parts = parts
        self.clock = clock
        self.launcher = launcher
        self.caller = Caller("test", Role.ADMIN, source="testing")
        self._loop = loop

    @property
    def resources(self) -> Resources:
        """Resources for the services of the features."""
        return self.parts.resources

    @property
    def now(self) -> Instant:
        return self.clock.now()

    # ── asking ───────────────────────────────────────────────────────────────────────────────────

    def create(self, document: Mapping[str, Any] | None = None, /, **fields: Any) -> str:
        """The id of the new schedule."""
        return schedule_service.create(self.resources, self.caller, {**(document or {}), **fields}).schedule_id

    def runs(self, schedule_id: str | None = None) -> list[Run]:
        """Oldest first; those of one schedule, also a deleted one, or of all."""

        def look(connection: Connection) -> list[run_service.RunView]:
            page = runs_read.page_of_namespace(connection, self.caller.namespace, limit=_MANY, whole=True)
            wanted = [row for row in reversed(page.rows) if schedule_id in (None, row.schedule_id)]
            return run_service.view(self.resources, connection, wanted)

        return [views.shown(run) for run in self.resources.database.read(look)]

    def history(self, schedule_id: str) -> list[HistoryEvent]:
        """Oldest first; of the newest schedule that had this id."""

        def look(connection: Connection) -> list[HistoryRow]:
            uid = histories.find_any(connection, self.caller, schedule_id).schedule_uid
            return history.read(connection, uid, limit=_MANY)

        return [history_event(row) for row in self.resources.database.read(look)]

    def verify(self) -> Sequence[verification.Finding]:
        """Find faults of the records; there should be none."""
        return list(verification.verify(self.resources, self.caller))

    def client(self, *, token: str | None = TOKEN, namespace: str | None = "default") -> Client:
        """The typed client of the service, with an admin's token unless another one is given."""
        transport = AppTransport(self.parts.api, self._loop.run)
        return Client(_ADDRESS, token=token, namespace=namespace, transport=transport)

    def http(self, *, token: str | None = TOKEN, namespace: str | None = None) -> httpx.Client:
        """A client of the HTTP API, with an admin's token unless another one is given."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if namespace is not None:
            headers["X-Namespace"] = namespace
        transport = AppTransport(self.parts.api, self._loop.run)
        return httpx.Client(transport=transport, base_url=_ADDRESS, headers=headers)

    # ── telling how runs end ─────────────────────────────────────────────────────────────────────

    def finish(self, run: RunSummary, result: Any = None) -> None:
        self._report(run, state="succeeded", result=result)

    def fail(self, run: RunSummary, error: str = "the request failed", *, error_class: str | None = None) -> None:
        self._report(run, state="failed", error=error, error_class=error_class)

    def _report(self, run: RunSummary, **said: Any) -> None:
        row = self.resources.database.read(
            partial(run_service.find_in_namespace, caller=self.caller, run_id=run.run_id)
        )
        said["report_token"] = self.resources.tokens.make(row.run_id, run.attempt, row.gates_passed)
        reports.report(self.resources, self.caller, run.run_id, reports.parse_report(said))
        self.settle()

    # ── moving time ──────────────────────────────────────────────────────────────────────────────

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let time pass; whatever falls due on the way happens when it is due."""
        self.advance_to(self.now + round(seconds * SECOND + minutes * MINUTE + hours * HOUR + days * DAY))

    def advance_to(self, moment: When) -> None:
        target = instant_of(moment)
        if target < self.now:
            raise ValueError(f"{to_rfc3339(target)} is in the past; use `clock.set` to move the clock back")
        self._loop.run(self._live_until(target))

    def sleep(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let time pass while the service is down; what fell due meanwhile was missed."""
        self.clock.advance(seconds + minutes * 60 + hours * 3_600 + days * 86_400)

    def settle(self) -> None:
        """Do everything that can be done now."""
        self._loop.run(self._until_quiet())

    async def _live_until(self, target: Instant) -> None:
        outlook = await self._until_quiet()
        while (upcoming := self._next_moment(outlook)) is not None and upcoming <= target:
            self.clock.set(max(upcoming, self.now))
            outlook = await self._until_quiet(outlook)
        self.clock.set(target)
        await self._until_quiet()

    async def _until_quiet(self, known: Outlook | None = None) -> Outlook:
        """Round after round; `known` is the outlook of a moment ago, since when nothing has happened.

        The database is asked on this thread: the loop is ours, and nobody else waits for it.
        """
        engine, look = self.parts.engine, partial(self.resources.database.glance, look_ahead)
        outlook = known or look()
        for _ in range(_MAX_ROUNDS):
            engine.ticker.expect(outlook.earliest)
            done = engine.ticker.patient_step().claimed
            if outlook.has_open_runs:  # of what is born in this round there is nothing to tidy up or to follow yet
                done += engine.janitor.step().total + await engine.follower.step()
            done += await engine.dispatcher.step()
            if outlook.has_open_runs:
                done += engine.advancer.step().total
            if not done:
                # A pause that ended here claims nothing, and yet there is something new to come.
                return outlook if outlook.next_due is None or outlook.next_due > self.now else look()
            outlook = look()
            if outlook.is_quiet(self.now):
                return outlook
        raise RuntimeError(f"the service did not become idle at {to_rfc3339(self.now)}")

    def _next_moment(self, outlook: Outlook) -> Instant | None:
        """When something may happen next by itself, strictly after now."""
        moments = [outlook.next_due]
        for run in self.resources.database.read(self._open_runs) if outlook.has_open_runs else ():
            moments += [run.ready_at, run.deadline, run.lease_until]
            if run.stop_requested_at is not None:
                moments.append(self.now + SECOND)  # its grace is its schedule's business: look every second
        return min((moment for moment in moments if moment is not None and moment > self.now), default=None)

    @staticmethod
    def _open_runs(connection: Connection) -> list[RunRow]:
        wanted = RunFilter(states=OPEN, with_steps=True)
        return [
            run
            for each in tenant_rows.all_namespaces(connection)
            for run in runs_read.page_of_namespace(connection, each.namespace, wanted, limit=_MANY).rows
        ]


@contextmanager
def service(
    *,
    at: When = DEFAULT_START,
    answer: Step = Finished(),  # noqa: B008 - frozen, so one for all is safe
    script: Sequence[Step] = (),
    app: Application | None = None,
    database: str | None = None,
    settings: Mapping[str, Any] | None = None,
    log_to: TextIO | None = None,
) -> Iterator[TestService]:
    """A service that begins at `at`, on SQLite in a directory that is gone afterwards, or on `database`.

    `answer` is what the target of every action says; with `Accepted()` runs stay open until the test calls
    `finish` or `fail`. `script` are the first answers, one for each delivery. `settings` are knobs by name.
    """
    clock = FakeClock(at)
    launcher = RecordingLauncher(clock, script=script, otherwise=answer)
    application = app or Bare()
    loop = _Loop()
    with tempfile.TemporaryDirectory(prefix="horarium-testing-") as directory:
        usual: dict[str, Any] = {
            "data_dir": Path(directory),
            "database": database,
            "log_level": "error",
            "token": TOKEN,
        }
        usual["check_addresses"] = False  # a test asks no name server
        chosen = Settings(**{**usual, **(settings or {})})
        if chosen.database is None and chosen.data_dir == Path(directory):
            Path(directory, DATABASE_FILE).write_bytes(_fresh_database(clock.now()))
        registry = recording_registry(launcher, clock, application.tasks, chosen)
        try:
            with open_service(
                chosen,
                clock=clock,
                application=application,
                registry=registry,
                log_to=log_to,
                key=_KEY,
                durable=False,
            ) as parts:
                parts.engine.stay_in_one_thread()
                put_templates(parts)
                loop.run(registry.start())
                try:
                    yield TestService(parts, clock, launcher, loop)
                finally:
                    loop.run(registry.close())
        finally:
            loop.close()


@lru_cache(maxsize=4)
def _fresh_database(at: Instant) -> bytes:
    """A file with tables and nothing in them. Making one takes longer than most tests; they begin at few instants."""
    with tempfile.TemporaryDirectory(prefix="horarium-testing-") as directory:
        path = Path(directory, DATABASE_FILE)
        made = open_database(f"sqlite:///{path}", durable=False)
        try:
            migrate(made, FakeClock(at))
        finally:
            made.close()
        return path.read_bytes()
