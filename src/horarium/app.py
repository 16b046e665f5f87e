"""Horarium inside your program: tasks are functions, schedules stand beside them, one object runs both.

    app = Horarium()

    @app.schedule("0 2 * * *", timezone="Europe/Istanbul")
    def nightly_report() -> None: ...

    app.run()                      # blocks, like `horarium up`

or, inside a program that has a loop of its own:

    async with app:
        ...
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Any, TypeVar, overload

import httpx
from fastapi import FastAPI

from horarium.audience import Audience, parse_audience
from horarium.client.client import AsyncClient, Client
from horarium.client.inprocess import InProcess
from horarium.core.document.document import parse_definition
from horarium.core.document.reader import PYTHON
from horarium.core.document.states import Source
from horarium.core.policy.queue import PolicyError, checked_id
from horarium.errors import InvalidDefinition, KindNotAvailable
from horarium.launchers.signals import Provider
from horarium.launchers.tasks import Task, TaskRegistry
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.settings import Settings, load_settings
from horarium.serve.data_dir import seed_admin_token
from horarium.serve.maintenance import one_pass
from horarium.serve.process import UP, run
from horarium.serve.service import Service, open_service, put_templates

F = TypeVar("F", bound=Callable[..., Any])

_HERE = "http://in-process.invalid"  # no name that a network could know
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._:@-]+")


class Horarium:
    """`settings` and keywords are the knobs of `horarium config`; environment and `horarium.toml` count too.

    With a `name` the application owns its schedules: what a new release declares no more is paused. `release` tells
    releases apart, such as the tag of an image; without it, those with the same declarations are the same.
    `namespaces` are those that may use its tasks, `["*"]` = all; without it, the default namespace. A function is for a
    namespace in which it is declared as a schedule, too.
    `signal_provider` is a function of namespace and schedule id, or the setting, which names one.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        name: str | None = None,
        release: str | None = None,
        signal_provider: Provider | str | None = None,
        namespaces: Sequence[str] | None = None,
        **knobs: Any,
    ) -> None:
        if isinstance(signal_provider, str):
            knobs["signal_provider"] = signal_provider
        if settings is not None and knobs:
            raise TypeError("pass either settings or single options, not both")
        self.name = None if name is None else _checked("name", name)
        self.release = None if release is None else _checked("release", release)
        self._given = settings
        self._knobs = knobs
        self.signal_provider = None if isinstance(signal_provider, str) else signal_provider
        self.tasks = TaskRegistry(_audience(namespaces))
        self._templates: dict[str, Mapping[str, Any]] = {}
        self._places: dict[str, str] = {}
        self._workflows: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._open: _Open | None = None
        self._inside: _Inside | None = None

    @property
    def settings(self) -> Settings:
        """Read when it is first needed, so that importing a module of tasks reads no file and no environment."""
        if self._given is None:
            self._given = load_settings(self._knobs)
        return self._given

    @property
    def templates(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self._templates.values())

    @property
    def workflows(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """Documents of the workflows that are put in place at each start, by namespace and id."""
        return dict(self._workflows)

    @property
    def service(self) -> Service:
        """The parts of the running service."""
        return self._living().service

    @property
    def client(self) -> Client:
        """The ordinary client, without a network between: what code does and what HTTP does is one thing.

        For tasks and other ordinary functions; a coroutine would block its loop with it, and has `async_client`.
        """
        return self._living().client

    @property
    def async_client(self) -> AsyncClient:
        return self._living().async_client

    @property
    def api(self) -> FastAPI:
        """The HTTP API of the running service, to be mounted in another application."""
        return self.service.api

    @contextmanager
    def inside(self, service: Service) -> Iterator[None]:
        """Called by whoever runs this application, also by `horarium up --app`."""
        before, self._inside = self._inside, _Inside(service)
        try:
            yield
        finally:
            self._inside.close()
            self._inside = before

    def _living(self) -> _Inside:
        if self._inside is None:
            raise RuntimeError("the service is not running; use `async with app:`, `app.run()` or `horarium up --app`")
        return self._inside

    # ── declaring ────────────────────────────────────────────────────────────────────────────────

    @overload
    def task(self, function: F, /) -> F: ...
    @overload
    def task(
        self, /, *, name: str | None = None, cpu: bool = False, namespaces: Sequence[str] | None = None
    ) -> Callable[[F], F]: ...
    def task(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        cpu: bool = False,
        namespaces: Sequence[str] | None = None,
    ) -> Any:
        """Schedules may call it by its name. `cpu` gives it a process of its own; `namespaces` are those that may."""
        register = self.tasks.task(name=name, cpu=cpu, audience=_audience(namespaces))
        return register if function is None else register(function)

    def schedule(
        self,
        expr: str | None = None,
        *,
        schedule_id: str | None = None,
        timezone: str | None = None,
        retries: int | None = None,
        **fields: Any,
    ) -> Callable[[F], F]:
        """Call the function at these times. `fields` are those of a schedule's document.

        The schedule is put in place at each start: one that has not changed is left alone, and pausing it
        stays with whoever paused it. Its id is the function's name unless one is given. A mistake in a field raises
        InvalidDefinition here, with the file and the line of this call.

        A failed run is retried once unless `retries` says otherwise: `retries=0` never runs the function again.
        """
        if retries is not None:
            fields["retries"] = retries
        place = _place(sys._getframe(1))

        def declare(function: F) -> F:
            task = self.tasks.add(function, name=self._known_name(function))
            self._declare(schedule_id or _id_of(task), task, expr, timezone, fields, place)
            return function

        return declare

    def workflow(
        self,
        workflow_id: str,
        document: Mapping[str, Any] | None = None,
        /,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        **fields: Any,
    ) -> None:
        """Keep a workflow that stands in code. `fields` are those of its document: `nodes`, `edges`, `triggers` …

        It is put in place at each start, with the schedules of its triggers: one that has not changed is left alone,
        and pausing a schedule stays with whoever paused it.
        """
        key = namespace, _checked("workflow_id", workflow_id)
        if key in self._workflows:
            raise InvalidDefinition({"workflow_id": [f"the workflow ID {workflow_id!r} is used twice"]})
        self._workflows[key] = {**(document or {}), **fields}

    def _known_name(self, function: Callable[..., Any]) -> str | None:
        """A function that is a task already keeps its name."""
        known = (self.tasks.get(name) for name in self.tasks)
        return next((task.name for task in known if task is not None and task.function is function), None)

    def _declare(
        self,
        schedule_id: str,
        task: Task,
        expr: str | None,
        timezone: str | None,
        fields: Mapping[str, Any],
        place: str,
    ) -> None:
        if schedule_id in self._templates:
            other = f"the schedule ID {schedule_id!r} is used twice; the other one is at {self._places[schedule_id]}"
            raise InvalidDefinition({"schedule_id": [other]}, place=place)
        spec = {**fields.get("spec", {})}
        if expr is not None:
            spec["cron_expressions"] = [expr, *spec.get("cron_expressions", ())]
        if timezone is not None:
            spec["timezone"] = timezone
        action = {"kind": PYTHON.name, "callable": task.name, **fields.get("action", {})}
        rest = {name: value for name, value in fields.items() if name not in ("spec", "action")}
        own = {"schedule_id": schedule_id, "source": Source.TEMPLATE.value, "spec": spec, "action": action}
        document = {**rest, **own}
        _check(document, place)
        self._templates[schedule_id], self._places[schedule_id] = document, place
        # What the code itself schedules there is for that namespace.
        self.tasks.open_to(task.name, Audience(frozenset({rest.get("namespace", DEFAULT_NAMESPACE)})))

    # ── running ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """API and engine in this process, until SIGTERM or Ctrl-C."""
        run(
            self.settings,
            UP,
            say=lambda line: print(line, file=sys.stderr, flush=True),
            application=self,
            to_terminal=sys.stderr.isatty(),
        )

    def tick(self, *, limit: int | None = None) -> list[dict[str, Any]]:
        """One pass of the engine, for those who let another scheduler keep the time; `horarium tick` does the same.

        Decides what is due, at most `limit` schedules, hands out what is ready, waits for the answers, and returns
        what was decided: `schedule_id`, `outcome`, `occurrence_time`, `run_id` and more.
        """
        settings = self.settings if limit is None else self.settings.model_copy(update={"tick_batch": limit})
        with open_service(settings, application=self) as service:
            put_templates(service)
            return asyncio.run(one_pass(service, everything=limit is None)).decisions

    async def __aenter__(self) -> Horarium:
        if self._open is not None:
            raise RuntimeError("the service is already running")
        self._open = await _Open.start(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.close()


class _Inside:
    """Clients for code in the process of a running service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._transport = InProcess(service.api)
        self.client = Client(_HERE, token=service.secret, namespace=DEFAULT_NAMESPACE, transport=self._transport)
        transport = httpx.ASGITransport(app=service.api, raise_app_exceptions=False)
        self.async_client = AsyncClient(_HERE, token=service.secret, namespace=DEFAULT_NAMESPACE, transport=transport)

    def close(self) -> None:
        self.client.close()
        self._transport.close()


class _Open:
    """A service inside somebody else's loop: the engine is a task, and signals stay with their owner."""

    def __init__(self, service: Service, stack: ExitStack) -> None:
        self.service = service
        self._stack = stack
        self._stop = asyncio.Event()
        self._engine = asyncio.create_task(service.engine.run(self._stop), name="horarium")

    @classmethod
    async def start(cls, app: Horarium) -> _Open:
        stack = ExitStack()
        try:
            service = await asyncio.to_thread(stack.enter_context, open_service(app.settings, application=app))
            await asyncio.to_thread(service.clock.measure)
            await asyncio.to_thread(seed_admin_token, app.settings, service.database, service.clock)
            await asyncio.to_thread(put_templates, service)
            return cls(service, stack)
        except BaseException:
            stack.close()
            raise

    async def close(self) -> None:
        self._stop.set()
        try:
            await self._engine
        finally:
            self.service.telemetry.flush()
            await asyncio.to_thread(self._stack.close)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _check(document: Mapping[str, Any], place: str) -> None:
    """Raise what can be told without a service: the rest, such as a missing calendar, is found at the start."""
    try:
        parse_definition(document, now=0, namespace=DEFAULT_NAMESPACE, may_be_over=True)
    except KindNotAvailable:  # another package may bring it
        return
    except InvalidDefinition as wrong:
        raise InvalidDefinition(wrong.errors, place=place) from None


def _audience(namespaces: Sequence[str] | None) -> Audience | None:
    try:
        return None if namespaces is None else parse_audience(namespaces)
    except ValueError as wrong:
        raise InvalidDefinition({"namespaces": [str(wrong)]}) from None


def _checked(field: str, value: str) -> str:
    try:
        return checked_id(field, value)
    except PolicyError as wrong:
        raise InvalidDefinition({field: [wrong.text]}) from None


def _id_of(task: Task) -> str:
    """The function's own name: it stays when the module moves, and people recognise it."""
    return _NOT_IN_AN_ID.sub("-", task.function.__name__).strip("-._:@")
