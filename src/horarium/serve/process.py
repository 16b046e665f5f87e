"""The life of a service process: it starts, publishes its address, and stops in order when it is signalled.

The first SIGTERM or SIGINT stops the claiming of runs, lets active ones finish or releases them, and ends with exit
code 0; `asgi.py` describes how the port closes meanwhile. A second signal ends the process at once with exit code 1.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from horarium.engine.loop import settle_in
from horarium.errors import HorariumError
from horarium.platform.database.wrapper import LOOK_SECONDS, SharedClock
from horarium.platform.http.middleware import Shortages
from horarium.platform.settings import Settings
from horarium.serve.asgi import HostCheck, LastAnswers, Leaving, MetricsOnly, hosts_of, is_open, port_settings
from horarium.serve.data_dir import addressed, owned, seed_admin_token
from horarium.serve.http_protocol import BoundedProtocol, bounded_protocol, keep_time
from horarium.serve.launchers import Application
from horarium.serve.service import Service, open_service, put_templates
from horarium.serve.sockets import IN_THE_CLEAR_REMEDY, Arriving, Tls, arrivals, in_the_clear, open_tls
from horarium.serve.startup import Say, greet, require_resources

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 2_048
# A connection that is kept open by its client must not keep the process: who sends and reads nothing for two looks.
_CLOSE_CONNECTIONS_SECONDS = 5.0
_CLIENT_LOOK_SECONDS = 1.5

# Between two requests on one connection.
_IDLE_SECONDS = 5

# What remains of `shutdown_seconds` after the last wait for a lock: to answer, and to close the database.
_LOCK_MARGIN_SECONDS = 4.0

# What is still going on when everything has ended.
_LEFT_SECONDS = 1.0


class AddressTaken(HorariumError):
    """The API cannot listen where it was told to."""

    reason = "address_taken"


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a service that this process runs."""

    api: bool
    engine: bool


# What a process does that has a door.
API = "api"
UP = Parts(api=True, engine=True)
SERVER = Parts(api=True, engine=False)
WORKER = Parts(api=False, engine=True)


# Python hands its lock on after 5 ms: so long a busy thread keeps each of the others waiting, each time that one has
# something to do. A request passes through several hands, and a fire too.
_SWITCH_SECONDS = 0.001


def run(
    settings: Settings,
    parts: Parts,
    *,
    say: Say,
    application: Application | None = None,
    before: Callable[[Service, str], None] | None = None,
    to_terminal: bool = False,
) -> None:
    """Until a signal comes. `before` is called with our URL before anything runs, `say` when all is ready.

    `to_terminal`: what is said is read by a person, and kept nowhere.
    """
    require_resources(settings.pool_size, serves=parts.api)
    with owned(settings) if parts is UP else nullcontext():
        _run_parts(settings, parts, say, application, before, to_terminal=to_terminal)


def _run_parts(
    settings: Settings,
    parts: Parts,
    say: Say,
    application: Application | None,
    before: Callable[[Service, str], None] | None,
    *,
    to_terminal: bool,
) -> None:
    tls = open_tls(settings) if parts.api else None
    # First of all: a second service on the same port must not touch the database of the first.
    listening = listen(settings.host, settings.port) if parts.api else None
    url = "" if listening is None else url_of(listening, tls=tls is not None)
    try:
        if listening is not None and settings.public_url is None:
            settings = settings.model_copy(update={"public_url": url + settings.base_path})
        with open_service(settings, application=application, migrates=parts is UP) as service:
            service.clock.measure()
            token = seed_admin_token(settings, service.database, service.clock) if parts.api else None
            put_templates(service)
            if before is not None:
                before(service, url)
            settle_in()
            sys.setswitchinterval(_SWITCH_SECONDS)
            door = _metrics_door(service) if listening is None else Door(service, listening, tls)
            with addressed(settings, url) if parts.api else nullcontext():
                _run(_live(service, parts, door, lambda: greet(say, service, url, token, to_terminal=to_terminal)))
    finally:
        if listening is not None:
            listening.close()


def _run(main: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`, but a task of a user's that cannot be cancelled keeps the process for a moment only."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_LEFT_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _metrics_door(service: Service) -> Door | None:
    """The port of a process without an API. The engine works without it where it is taken or turned off."""
    settings, log = service.settings, service.telemetry.log
    if settings.metrics_port == 0:
        return None
    try:
        listening = listen(settings.metrics_host, settings.metrics_port, flag="--metrics-port")
    except AddressTaken as taken:
        log.warning("metrics_not_served", problem=taken.message)
        return None
    service.api.state.metrics_open = is_open(settings)
    log.info("metrics_served", url=f"{url_of(listening)}{settings.base_path}/metrics")
    app = MetricsOnly(service.api, settings.base_path)
    return Door(service, listening, app=app, settings=port_settings(settings))


def listen(host: str, port: int, *, flag: str = "--port") -> socket.socket:
    try:
        [(family, *_rest, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as wrong:  # a name that no name server can be asked for is the latter
        why = getattr(wrong, "strerror", None) or wrong
        hint = f"; is another Horarium running? Choose another {flag}" if port else ""
        raise AddressTaken(f"Cannot listen on {host} port {port}: {why}{hint}") from wrong
    # Inherited by every connection. asyncio sets it only where the protocol is named, which `create_server` does
    # not do; without it an answer in two pieces waits 40 ms for the client's acknowledgement of the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def _live(service: Service, parts: Parts, door: Door | None, ready: Callable[[], None]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(partial(_on_loop_error, service.api.state.shortages))
    with _stopped_by_signals(stop):
        giving_up = asyncio.create_task(_give_up_on_locks(service, stop), name="giving-up")
        async with _beating(service, parts, stop):
            await _work(service, parts, door, ready, stop)
    giving_up.cancel()
    service.telemetry.flush()


async def _give_up_on_locks(service: Service, stop: asyncio.Event) -> None:
    """Another process may hold a lock for as long as it likes; one that is stopping has an end to keep."""
    await stop.wait()
    seconds = service.settings.shutdown_seconds
    service.database.stop_waiting(service.settings.drain + max(seconds / 2, seconds - _LOCK_MARGIN_SECONDS))


def _on_loop_error(shortages: Shortages, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A connection that cannot be accepted for want of a file is tried again each second: one line a minute will do."""
    if shortages.note(context.get("exception")) is None:
        loop.default_exception_handler(context)


@asynccontextmanager
async def _beating(service: Service, parts: Parts, stop: asyncio.Event) -> AsyncIterator[None]:
    """Seen by the others until everything else has ended."""
    heartbeat, over = service.engine.heartbeat, asyncio.Event()
    if parts.api:
        heartbeat.takes_part(API)
    if parts.engine:
        service.engine.takes_part()
    beating = asyncio.create_task(heartbeat.run(over, stop), name="heartbeat")
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(beating, return_exceptions=True)


async def _work(
    service: Service, parts: Parts, door: Door | None, ready: Callable[[], None], stop: asyncio.Event
) -> None:
    tasks: list[asyncio.Task[None]] = []
    service.api.state.probes.decides, service.api.state.probes.serves = parts.engine, parts.api
    if parts.engine:
        tasks.append(asyncio.create_task(service.engine.work(stop), name="engine"))
    else:
        tasks.append(asyncio.create_task(_keep_time(service.clock, service.api.state.shortages, stop), name="clock"))
    if door is not None:
        if parts.api and (problem := in_the_clear(service.settings)) is not None:
            service.telemetry.log.warning("tls_missing", problem=problem, remedy=IN_THE_CLEAR_REMEDY)
        tasks.append(asyncio.create_task(door.run(stop), name="api"))
        await asyncio.wait([asyncio.create_task(door.ready.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    if not any(task.done() for task in tasks):
        ready()
    await _until_all_end(tasks, stop)


async def _keep_time(clock: SharedClock, shortages: Shortages, stop: asyncio.Event) -> None:
    """A process without an engine must not drift away from those that have one."""
    while not stop.is_set():
        try:
            if clock.must_be_measured():
                await asyncio.to_thread(clock.measure)
        except HorariumError:
            pass  # what was measured last still holds
        except (OSError, RuntimeError) as error:
            if shortages.note(error) is None:
                raise
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), LOOK_SECONDS)


async def _until_all_end(tasks: list[asyncio.Task[None]], stop: asyncio.Event) -> None:
    """A part that ends, ends the others: half a service is worse than none, since nobody restarts it."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    await asyncio.gather(*tasks)


class Door:
    """The HTTP server inside our loop; signals are ours, not its."""

    def __init__(
        self,
        service: Service,
        listening: socket.socket,
        tls: Tls | None = None,
        *,
        app: ASGIApp | None = None,
        settings: Settings | None = None,
    ) -> None:
        """`app` and `settings` are those of the service where nothing else is given."""
        self.ready = asyncio.Event()
        settings = settings or service.settings
        config = uvicorn.Config(
            LastAnswers(
                HostCheck(app or service.api, hosts_of(settings), settings.base_path), service.api.state.draining
            ),
            http=bounded_protocol(settings),
            ws="none",
            timeout_keep_alive=_IDLE_SECONDS,
            log_config=None,
            log_level="error",  # a line for each request that is no HTTP: strangers would write our log
            access_log=False,
            lifespan="off",
            server_header=False,
            date_header=True,
            proxy_headers=False,  # uvicorn trusts any peer on loopback; `connections.py` decides
            # What is under way is ours to end, as a launch is.
            timeout_graceful_shutdown=math.ceil(max(_CLOSE_CONNECTIONS_SECONDS, settings.shutdown_seconds)),
        )
        self._server = _QuietServer(config, self.ready, tls)
        self._tls = tls
        self._log = service.telemetry.log
        self._listening = listening
        state = service.api.state
        self._leaving = Leaving(state.draining, state.closing, settings.drain)

    async def run(self, stop: asyncio.Event) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=[self._listening]))
        others: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
        if self._tls is not None:
            others.append(asyncio.create_task(self._tls.keep_current(self._log)))
        await asyncio.wait([serving, *others], return_when=asyncio.FIRST_COMPLETED)
        await self._leaving.begin(serving)
        for each in others:
            each.cancel()
        self._server.should_exit = True
        await serving


class _QuietServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: asyncio.Event, tls: Tls | None) -> None:
        super().__init__(config)
        self._ready = ready
        self._tls = tls

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._tls is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            for each in sockets or ():
                self.servers.append(await self._secured(each, self._tls))
        self._ready.set()

    async def _secured(self, listening: socket.socket, tls: Tls) -> asyncio.Server:
        """As uvicorn would, but that handshakes are bounded."""
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        made = partial(make, config=self.config, server_state=self.server_state)
        return await asyncio.get_running_loop().create_server(
            partial(Arriving, made, tls, arrivals()), sock=listening, backlog=_BACKLOG
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        cutting = asyncio.create_task(self._cut_off())
        try:
            await super().shutdown(sockets)
        finally:
            cutting.cancel()

    async def _cut_off(self) -> None:
        """Those who do not end their request, or do not read its answer; whoever waits for us is answered."""
        before: set[BoundedProtocol] = set()
        while True:
            await asyncio.sleep(_CLIENT_LOOK_SECONDS)
            known = [each for each in self.server_state.connections if isinstance(each, BoundedProtocol)]
            idle = {each for each in known if not each.waits_for_us()}
            for each in idle & before:
                each.leave()
            before = idle

    async def on_tick(self, counter: int) -> bool:
        keep_time(self.server_state.connections)
        return await super().on_tick(counter)


@contextmanager
def _stopped_by_signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)  # not sys.exit: that would wait for the threads that this caller no longer waits for
        stop.set()

    for each in _SIGNALS:
        loop.add_signal_handler(each, on_signal)
    try:
        yield
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)


def url_of(listening: socket.socket, *, tls: bool = False) -> str:
    host, port = listening.getsockname()[:2]
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
