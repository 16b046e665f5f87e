"""The asynchronous client: the methods of `client.Client` as coroutines.

    async with AsyncClient("http://127.0.0.1:8765", token="hor_…") as client:
        await client.create_schedule(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
        async for run in client.iter_runs(state="failed"):
            print(run.schedule_id, run.error)

The methods are the calls of `schedule_calls`, `run_calls` and `service_calls`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

import httpx

from horarium.client.assignee_calls import AssigneeCalls
from horarium.client.call import Call
from horarium.client.connection import DEFAULT_RETRIES, DEFAULT_SOURCE, DEFAULT_TIMEOUT_SECONDS
from horarium.client.discover import connect
from horarium.client.draft_calls import DraftCalls, RevisionMethods
from horarium.client.exchange import NAMESPACE, Done, Exchange, Retries, Wait
from horarium.client.page import Page
from horarium.client.registrar_calls import RegistrarCalls
from horarium.client.run_calls import POLL_SECONDS, RunCalls
from horarium.client.schedule_calls import ScheduleCalls, ScheduleMethods
from horarium.client.secret_calls import SecretCalls
from horarium.client.service_calls import ServiceCalls, follow_feed
from horarium.client.stream import Listening
from horarium.client.subscription_calls import SubscriptionCalls
from horarium.client.trust import Trust
from horarium.client.workflow_calls import WorkflowCalls
from horarium.features.approvals.calls import ApprovalCalls
from horarium.features.runs.model import RunLogLine
from horarium.features.tenants.model import FeedEntry

T = TypeVar("T")


class AsyncClient(
    ScheduleCalls,
    DraftCalls,
    RunCalls,
    ServiceCalls,
    RegistrarCalls,
    SubscriptionCalls,
    SecretCalls,
    WorkflowCalls,
    AssigneeCalls,
    ApprovalCalls,
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
        exchange = Exchange(call, self.connection.retries, self.connection.base_url)
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
                case Wait(seconds):
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
