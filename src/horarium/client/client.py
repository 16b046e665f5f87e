"""The synchronous and the asynchronous client: each method sends the call of the same name and returns its answer.

    with Client("http://127.0.0.1:8765", token="hor_…") as client:
        client.create_schedule(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
        for run in client.iter_runs(state="failed"):
            print(run.schedule_id, run.error)

    async with AsyncClient("http://127.0.0.1:8765", token="hor_…") as client:
        await client.create_schedule(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
        async for run in client.iter_runs(state="failed"):
            print(run.schedule_id, run.error)

The methods are the calls of the features, which are the base classes of both clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

import httpx

from horarium.compat.registrar.calls import RegistrarCalls
from horarium.features.agents.calls import AssigneeCalls
from horarium.features.approvals.operations import ApprovalOperations
from horarium.features.calendars.operations import CalendarOperations
from horarium.features.cluster.calls import ServiceCalls, follow_feed
from horarium.features.runs.calls import POLL_SECONDS, RunCalls
from horarium.features.runs.model import RunLogLine
from horarium.features.schedules.calls import ScheduleCalls, ScheduleMethods
from horarium.features.schedules.draft_calls import DraftCalls, RevisionMethods
from horarium.features.secrets.operations import SecretOperations
from horarium.features.tenants.model import FeedEntry
from horarium.features.tenants.operations import NamespaceOperations, TokenOperations
from horarium.features.webhooks.operations import SubscriptionOperations
from horarium.features.workflows.calls import WorkflowCalls
from horarium.platform.client.call import Call, Page
from horarium.platform.client.connection import DEFAULT_RETRIES, DEFAULT_SOURCE, DEFAULT_TIMEOUT_SECONDS, connect
from horarium.platform.client.exchange import NAMESPACE, Attempts, Done, Listening, Retries, RetryAfter
from horarium.platform.client.trust import Trust

# ── synchronous ───────────────────────────────────────────────────────────────────────────────────────


T = TypeVar("T")


class Client(
    ScheduleCalls,
    DraftCalls,
    RunCalls,
    ServiceCalls,
    CalendarOperations,
    NamespaceOperations,
    TokenOperations,
    RegistrarCalls,
    SubscriptionOperations,
    SecretOperations,
    WorkflowCalls,
    AssigneeCalls,
    ApprovalOperations,
):
    """A thread-safe client. `transport` replaces the network.

    Values that are not given come from the environment or from a local `horarium up`, as for the command line.
    `ca_file` verifies the server; `client_cert` and `client_key` authenticate the client with mutual TLS. `source`
    (`cli`, `ui` or `client`) is recorded in history and audit log.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        token: str | None = None,
        namespace: str | None = None,
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
        retries: Retries = DEFAULT_RETRIES,
        transport: httpx.BaseTransport | None = None,
        ca_file: str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        source: str = DEFAULT_SOURCE,
    ) -> None:
        trust = Trust(ca_file, client_cert, client_key)
        self.connection = replace(connect(base_url, token, namespace, timeout, retries, trust), source=source)
        self.namespace = self.connection.namespace
        """The given namespace, otherwise that of the token, once the server has returned it."""
        self._http = httpx.Client(**self.connection.options, transport=transport)

    def send(self, call: Call[T]) -> T:
        """Send a call."""
        exchange = Attempts(call, self.connection.retries, self.connection.base_url)
        while True:
            try:
                response = self._http.request(**exchange.request)
                self.namespace = self.namespace or response.headers.get(NAMESPACE)
                step = exchange.answered(response)
            except httpx.RequestError as error:
                step = exchange.failed(error)
            match step:
                case Done(value):
                    return value
                case RetryAfter(seconds):
                    time.sleep(seconds)

    def pages(self, call: Call[Page[T]]) -> Iterator[T]:
        """Iterate over a list, page by page."""
        following: Call[Page[T]] | None = call
        while following is not None:
            page = self.send(following)
            yield from page
            following = following.after(page)

    def events(self, *, last_event_id: str | None = None) -> Iterator[FeedEntry]:
        """Iterate over feed entries as they happen, without end. Reconnects and continues after the last entry.

        `last_event_id`: `id` of the last entry received before.
        """
        call = follow_feed(last_event_id=last_event_id)
        listening = Listening(call, self.connection.retries, self.connection.base_url)
        while not listening.ended:
            try:
                with self._http.stream(**listening.request, timeout=self.connection.stream_timeout) as response:
                    if listening.opened(response):
                        for text in response.iter_text():
                            yield from listening.hear(text)
                        seconds = listening.closed()
                    else:
                        response.read()
                        seconds = listening.refused(response)
            except httpx.RequestError as error:
                seconds = listening.broken(error)
            time.sleep(seconds)

    def follow_run_logs(
        self, run_id: str, *, after: int = 0, poll_seconds: float = POLL_SECONDS
    ) -> Iterator[RunLogLine]:
        """Iterate over the log lines of a run until it ends."""
        while True:
            page = self.send(RunCalls.get_run_logs(run_id, after=after))
            yield from page
            after = page.items[-1].number if page.items else after
            if page.raw.get("ended") is not False:
                return
            time.sleep(poll_seconds)

    def schedule_handle(self, schedule_id: str) -> ScheduleHandle:
        """Return a handle for one schedule. Sends no request."""
        return ScheduleHandle(self, schedule_id)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.connection.base_url!r}, namespace={self.namespace!r})"


class ScheduleHandle(ScheduleMethods, RevisionMethods):
    """A handle for one schedule: the calls about it, without its ID."""

    def __init__(self, client: Client, schedule_id: str) -> None:
        self.client = client
        self.schedule_id = schedule_id

    def __repr__(self) -> str:
        return f"ScheduleHandle({self.schedule_id!r})"


# ── asynchronous ──────────────────────────────────────────────────────────────────────────────────────


class AsyncClient(
    ScheduleCalls,
    DraftCalls,
    RunCalls,
    ServiceCalls,
    CalendarOperations,
    NamespaceOperations,
    TokenOperations,
    RegistrarCalls,
    SubscriptionOperations,
    SecretOperations,
    WorkflowCalls,
    AssigneeCalls,
    ApprovalOperations,
):
    """A client for one event loop. `transport` replaces the network.

    Values that are not given come from the environment or from a local `horarium up`, as for the command line.
    `ca_file` verifies the server; `client_cert` and `client_key` authenticate the client with mutual TLS. `source`
    (`cli`, `ui` or `client`) is recorded in history and audit log.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        token: str | None = None,
        namespace: str | None = None,
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
        retries: Retries = DEFAULT_RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
        ca_file: str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        source: str = DEFAULT_SOURCE,
    ) -> None:
        trust = Trust(ca_file, client_cert, client_key)
        self.connection = replace(connect(base_url, token, namespace, timeout, retries, trust), source=source)
        self.namespace = self.connection.namespace
        """The given namespace, otherwise that of the token, once the server has returned it."""
        self._http = httpx.AsyncClient(**self.connection.options, transport=transport)

    async def send(self, call: Call[T]) -> T:
        """Send a call."""
        exchange = Attempts(call, self.connection.retries, self.connection.base_url)
        while True:
            try:
                response = await self._http.request(**exchange.request)
                self.namespace = self.namespace or response.headers.get(NAMESPACE)
                step = exchange.answered(response)
            except httpx.RequestError as error:
                step = exchange.failed(error)
            match step:
                case Done(value):
                    return value
                case RetryAfter(seconds):
                    await asyncio.sleep(seconds)

    async def pages(self, call: Call[Page[T]]) -> AsyncIterator[T]:
        """Iterate over a list, page by page."""
        following: Call[Page[T]] | None = call
        while following is not None:
            page = await self.send(following)
            for item in page:
                yield item
            following = following.after(page)

    async def events(self, *, last_event_id: str | None = None) -> AsyncIterator[FeedEntry]:
        """Iterate over feed entries as they happen, without end. Reconnects and continues after the last entry.

        `last_event_id`: `id` of the last entry received before.
        """
        call = follow_feed(last_event_id=last_event_id)
        listening = Listening(call, self.connection.retries, self.connection.base_url)
        while not listening.ended:
            try:
                async with self._http.stream(**listening.request, timeout=self.connection.stream_timeout) as response:
                    if listening.opened(response):
                        async for text in response.aiter_text():
                            for entry in listening.hear(text):
                                yield entry
                        seconds = listening.closed()
                    else:
                        await response.aread()
                        seconds = listening.refused(response)
            except httpx.RequestError as error:
                seconds = listening.broken(error)
            await asyncio.sleep(seconds)

    async def follow_run_logs(
        self, run_id: str, *, after: int = 0, poll_seconds: float = POLL_SECONDS
    ) -> AsyncIterator[RunLogLine]:
        """Iterate over the log lines of a run until it ends."""
        while True:
            page = await self.send(RunCalls.get_run_logs(run_id, after=after))
            for line in page:
                yield line
            after = page.items[-1].number if page.items else after
            if page.raw.get("ended") is not False:
                return
            await asyncio.sleep(poll_seconds)

    def schedule_handle(self, schedule_id: str) -> AsyncScheduleHandle:
        """Return a handle for one schedule. Sends no request."""
        return AsyncScheduleHandle(self, schedule_id)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient({self.connection.base_url!r}, namespace={self.namespace!r})"


class AsyncScheduleHandle(ScheduleMethods, RevisionMethods):
    """A handle for one schedule: the calls about it, without its ID."""

    def __init__(self, client: AsyncClient, schedule_id: str) -> None:
        self.client = client
        self.schedule_id = schedule_id

    def __repr__(self) -> str:
        return f"AsyncScheduleHandle({self.schedule_id!r})"
