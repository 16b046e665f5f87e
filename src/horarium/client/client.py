"""The client for ordinary code: each method sends the call of the same name and returns its answer.

    with Client("http://127.0.0.1:8765", token="hor_…") as client:
        client.create_schedule(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
        for run in client.iter_runs(state="failed"):
            print(run.schedule_id, run.error)

Signatures and documentation of the methods are those of the functions in `calls` and `house_calls`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

import httpx

from horarium.client import calls, house_calls
from horarium.client.answers import Page
from horarium.client.call import Call
from horarium.client.connection import DEFAULT_RETRIES, DEFAULT_TIMEOUT_SECONDS, DEFAULT_URL, Connection
from horarium.client.exchange import Done, Exchange, Retries, Wait
from horarium.client.house_answers import FeedEntry
from horarium.client.methods import like
from horarium.client.stream import Listening

P = ParamSpec("P")
T = TypeVar("T")


def _asks(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(make(*args, **kwargs))

    return like(make, method)


def _goes_through(make: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[Client, P], Iterator[T]]:
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.pages(make(*args, **kwargs))

    return like(make, method)


def _asks_about(make: Callable[Concatenate[str, P], Call[T]]) -> Callable[Concatenate[ScheduleHandle, P], T]:
    def method(self: ScheduleHandle, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.client.send(make(self.schedule_id, *args, **kwargs))

    return like(make, method, bound=1)


def _goes_through_its(
    make: Callable[Concatenate[str, P], Call[Page[T]]],
) -> Callable[Concatenate[ScheduleHandle, P], Iterator[T]]:
    def method(self: ScheduleHandle, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.client.pages(make(self.schedule_id, *args, **kwargs))

    return like(make, method, bound=1)


class Client:
    """May be used by several threads at once. `transport` puts something else in place of the network."""

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        namespace: str | None = "default",
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
        retries: Retries = DEFAULT_RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.connection = Connection(base_url, token, namespace, timeout, retries)
        self._http = httpx.Client(**self.connection.options, transport=transport)

    def send(self, call: Call[T]) -> T:
        """Any call; the methods below do this with theirs."""
        exchange = Exchange(call, self.connection.retries, self.connection.base_url)
        while True:
            try:
                step = exchange.answered(self._http.request(**exchange.request))
            except httpx.RequestError as error:
                step = exchange.failed(error)
            match step:
                case Done(value):
                    return value
                case Wait(seconds):
                    time.sleep(seconds)

    def pages(self, call: Call[Page[T]]) -> Iterator[T]:
        """Every item of a list; the next page is asked for when the last one is used up."""
        following: Call[Page[T]] | None = call
        while following is not None:
            page = self.send(following)
            yield from page
            following = following.after(page)

    def events(self, *, last_event_id: str | None = None) -> Iterator[FeedEntry]:
        """What happens, as it happens, without end; a broken connection is taken up where it broke.

        `last_event_id` is the `id` of the last entry that was seen before.
        """
        call = house_calls.events(last_event_id=last_event_id)
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

    def schedule_handle(self, schedule_id: str) -> ScheduleHandle:
        """One schedule to hold on to; asks nothing."""
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
        return f"Client({self.connection.base_url!r}, namespace={self.connection.namespace!r})"

    # ── schedules ──────────────────────────────────────────────────────────────────────────────────
    create_schedule = _asks(calls.create_schedule)
    upsert_schedule = _asks(calls.upsert_schedule)
    list_schedules = _asks(calls.list_schedules)
    describe_schedule = _asks(calls.describe_schedule)
    update_schedule = _asks(calls.update_schedule)
    patch_schedule = _asks(calls.patch_schedule)
    delete_schedule = _asks(calls.delete_schedule)
    pause_schedule = _asks(calls.pause_schedule)
    resume_schedule = _asks(calls.resume_schedule)
    trigger_schedule = _asks(calls.trigger_schedule)
    backfill_schedule = _asks(calls.backfill_schedule)
    get_schedule_history = _asks(calls.get_schedule_history)
    list_schedule_runs = _asks(calls.list_schedule_runs)
    preview_schedule = _asks(calls.preview_schedule)
    explain_schedule = _asks(calls.explain_schedule)
    get_schedule_health = _asks(calls.get_schedule_health)
    set_calendars = _asks(calls.set_calendars)
    clear_calendars = _asks(calls.clear_calendars)
    set_condition = _asks(calls.set_condition)
    clear_condition = _asks(calls.clear_condition)
    set_rotation = _asks(calls.set_rotation)
    clear_rotation = _asks(calls.clear_rotation)

    # ── runs ───────────────────────────────────────────────────────────────────────────────────────
    list_runs = _asks(calls.list_runs)
    get_run = _asks(calls.get_run)
    get_run_events = _asks(calls.get_run_events)
    cancel_run = _asks(calls.cancel_run)
    terminate_run = _asks(calls.terminate_run)
    approve_run = _asks(calls.approve_run)
    reject_run = _asks(calls.reject_run)
    report_run = _asks(calls.report_run)
    claim_runs = _asks(calls.claim_runs)
    heartbeat_run = _asks(calls.heartbeat_run)
    start_run = _asks(calls.start_run)
    list_approvals = _asks(house_calls.list_approvals)

    # ── what schedules refer to ────────────────────────────────────────────────────────────────────
    list_calendars = _asks(house_calls.list_calendars)
    create_calendar = _asks(house_calls.create_calendar)
    get_calendar = _asks(house_calls.get_calendar)
    update_calendar = _asks(house_calls.update_calendar)
    delete_calendar = _asks(house_calls.delete_calendar)
    clone_calendar = _asks(house_calls.clone_calendar)
    list_workflows = _asks(house_calls.list_workflows)
    put_workflow = _asks(house_calls.put_workflow)
    get_workflow = _asks(house_calls.get_workflow)
    delete_workflow = _asks(house_calls.delete_workflow)
    validate_workflow = _asks(house_calls.validate_workflow)
    list_assignments = _asks(house_calls.list_assignments)
    create_assignment = _asks(house_calls.create_assignment)
    get_assignment = _asks(house_calls.get_assignment)
    update_assignment = _asks(house_calls.update_assignment)
    delete_assignment = _asks(house_calls.delete_assignment)
    list_agents = _asks(house_calls.list_agents)
    create_agent = _asks(house_calls.create_agent)
    get_agent = _asks(house_calls.get_agent)
    update_agent = _asks(house_calls.update_agent)
    delete_agent = _asks(house_calls.delete_agent)
    list_teams = _asks(house_calls.list_teams)
    create_team = _asks(house_calls.create_team)
    get_team = _asks(house_calls.get_team)
    update_team = _asks(house_calls.update_team)
    delete_team = _asks(house_calls.delete_team)

    # ── the house ──────────────────────────────────────────────────────────────────────────────────
    list_tokens = _asks(house_calls.list_tokens)
    issue_token = _asks(house_calls.issue_token)
    revoke_token = _asks(house_calls.revoke_token)
    list_namespaces = _asks(house_calls.list_namespaces)
    create_namespace = _asks(house_calls.create_namespace)
    get_namespace = _asks(house_calls.get_namespace)
    get_feed = _asks(house_calls.get_feed)
    apply = _asks(house_calls.apply)
    cluster_info = _asks(house_calls.cluster_info)
    health = _asks(house_calls.health)
    readiness = _asks(house_calls.readiness)
    liveness = _asks(house_calls.liveness)
    metrics = _asks(house_calls.metrics)

    # ── lists, page after page ─────────────────────────────────────────────────────────────────────
    iter_schedules = _goes_through(calls.list_schedules)
    iter_schedule_history = _goes_through(calls.get_schedule_history)
    iter_schedule_runs = _goes_through(calls.list_schedule_runs)
    iter_runs = _goes_through(calls.list_runs)
    iter_run_events = _goes_through(calls.get_run_events)
    iter_approvals = _goes_through(house_calls.list_approvals)
    iter_feed = _goes_through(house_calls.get_feed)


class ScheduleHandle:
    """One schedule: the client's calls about it, without its id."""

    def __init__(self, client: Client, schedule_id: str) -> None:
        self.client = client
        self.schedule_id = schedule_id

    def __repr__(self) -> str:
        return f"ScheduleHandle({self.schedule_id!r})"

    describe = _asks_about(calls.describe_schedule)
    update = _asks_about(calls.update_schedule)
    patch = _asks_about(calls.patch_schedule)
    pause = _asks_about(calls.pause_schedule)
    resume = _asks_about(calls.resume_schedule)
    trigger = _asks_about(calls.trigger_schedule)
    backfill = _asks_about(calls.backfill_schedule)
    delete = _asks_about(calls.delete_schedule)
    history = _asks_about(calls.get_schedule_history)
    runs = _asks_about(calls.list_schedule_runs)
    preview = _asks_about(calls.preview_schedule)
    explain = _asks_about(calls.explain_schedule)
    health = _asks_about(calls.get_schedule_health)
    set_calendars = _asks_about(calls.set_calendars)
    clear_calendars = _asks_about(calls.clear_calendars)
    set_condition = _asks_about(calls.set_condition)
    clear_condition = _asks_about(calls.clear_condition)
    set_rotation = _asks_about(calls.set_rotation)
    clear_rotation = _asks_about(calls.clear_rotation)
    iter_history = _goes_through_its(calls.get_schedule_history)
    iter_runs = _goes_through_its(calls.list_schedule_runs)
