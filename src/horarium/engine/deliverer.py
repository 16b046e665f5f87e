"""Deliver entries of the feed to subscribers as signed webhooks, in order, at least once.

A look finds the subscriptions for which there is news. Each is then served by a task of its own, under a lease, so
that a receiver that hangs delays no other, and one namespace never takes all places. The messages of a subscription
share a connection, and the cursor moves at least once a second: after a crash the messages since then come again.

An entry that cannot be delivered holds back those after it, and is tried again after growing pauses. After the last it
becomes a dead letter, and the subscription goes on. An entry that cannot be read is skipped and counted. A
subscription that cannot be read itself is parked. Neither concerns any other subscription.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.json_values import unreadable_of
from horarium.core.document.states import FEED_KINDS, NoticeType, RunState
from horarium.engine.loop import EngineThreads
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.history.entry_rows import START, FeedCursor, FeedRow, cursor_text
from horarium.features.history.model import cloud_event, entry_of, message_id
from horarium.features.webhooks import delivery_rows
from horarium.features.webhooks.delivery_rows import DeadLetterRow, DeliveryPage
from horarium.features.webhooks.filters import (
    FeedNotice,
    SubscriptionFilter,
    has_place,
    is_wanted,
    pause_after,
    read_filter,
)
from horarium.features.webhooks.rows import SubscriptionRow
from horarium.instant import SECOND
from horarium.launchers.webhook import Channel, Delivered, Delivery, Undelivered, WebhookMessage, WebhookSender
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.installation import Sealer
from horarium.platform.ids import id_text, new_id

P = ParamSpec("P")
T = TypeVar("T")

LOOK_SECONDS = 1.0
_SOON_SECONDS = 0.05
_THREADS = 4
# Subscriptions that a look asks about; where there are more, the next look goes on from there.
_LOOKS = 500
_PAGE = 200
# Between two notes of how far a subscription has been told.
_NOTE_SECONDS = 1.0
# Pages that a task serves before it gives its place to another.
_PAGES = 10
_REDELIVERIES = 50
_UNREADABLE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class DelivererOptions:
    """`pauses` are the seconds after the first failed delivery of an entry, the second, …; then it is given up."""

    pauses: Sequence[float] = (5, 30, 120, 600, 1_800, 3_600)
    places: int = 32
    places_of_one: int = 8


class _Prepared(NamedTuple):
    """A message: the name of its entry, and what is sent."""

    name: str
    body: bytes


@dataclass(slots=True)
class _Serving:
    """A subscription in hand; what was settled since `row` was last written: up to `cursor`, so many delivered."""

    row: SubscriptionRow
    secret: str
    wanted: SubscriptionFilter
    channel: Channel
    delivered: int = 0
    unreadable: list[str] = field(default_factory=list)
    cursor: FeedCursor = START

    def __post_init__(self) -> None:
        self.cursor = self.row.cursor

    def go_on(self) -> None:
        """Begin anew from what was written just now."""
        self.row = replace(self.row, cursor=self.cursor, failures=0)
        self.delivered = 0
        self.unreadable = []


class Deliverer:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        sender: WebhookSender,
        sealer: Sealer,
        options: DelivererOptions | None = None,
        log: FilteringBoundLogger | None = None,
        tell_unreadable: Callable[..., None] = lambda *_row, **_about: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._sender = sender
        self._sealer = sealer
        self._options = options or DelivererOptions()
        # Its own, so that no crowd of subscriptions can take those of the ticker.
        self._threads = EngineThreads(_THREADS)
        self._log = log or structlog.get_logger()
        self._tell_unreadable = tell_unreadable
        self._after = b""
        # Their leases could not be given back, since the database was away.
        self._unreturned: list[SubscriptionRow] = []
        self._tasks: dict[bytes, tuple[str, asyncio.Task[None]]] = {}

    async def step(self) -> float:
        """Begins to serve those who have news; seconds until the next look."""
        for row in await self._threads.run(self._look):
            if self._has_place(row):
                task = asyncio.create_task(self._serve(row), name=f"subscription {id_text(row.subscription_id)}")
                self._tasks[row.subscription_id] = (row.namespace, task)
                task.add_done_callback(partial(self._leave, row.subscription_id))
        return _SOON_SECONDS if self._after else LOOK_SECONDS

    async def settle(self) -> None:
        """Until all that are being served now have been."""
        await asyncio.gather(*(task for _, task in list(self._tasks.values())))

    async def stop(self) -> None:
        """Cancel deliveries in progress. They may or may not have arrived, and the next deliverer sends them again."""
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Nobody sends any more."""
        self._threads.close()
        self._sender.close()

    def _look(self) -> list[SubscriptionRow]:
        """Find the subscriptions with new entries. An unreadable one does not keep the others waiting."""
        now = self._clock.now()
        while self._unreturned:  # else each would wait for the end of its lease, although the fault is over
            row = self._unreturned[-1]
            self._database.write(partial(delivery_rows.give_back, row=row))
            self._unreturned.remove(row)
        found = self._database.read(partial(delivery_rows.due, now=now, after=self._after, limit=_LOOKS))
        self._after = found[-1].subscription_id if len(found) == _LOOKS else b""
        readable: list[SubscriptionRow] = []
        for row in found:
            wrong = unreadable_of(row)
            if wrong is None:
                readable.append(row)
            else:
                name = id_text(row.subscription_id)
                self._tell_unreadable("subscription", name, wrong.detail, namespace=row.namespace)
        damaged = [row for row in readable if row.damage is not None]
        sound = [row for row in readable if row.damage is None]
        # Parked subscriptions receive nothing; their damage is recorded.
        return damaged + (self._database.read(partial(delivery_rows.with_work, rows=sound)) if sound else [])

    def _has_place(self, row: SubscriptionRow) -> bool:
        mine = sum(namespace == row.namespace for namespace, _ in self._tasks.values())
        options = self._options
        return row.subscription_id not in self._tasks and has_place(
            mine, len(self._tasks), places=options.places, places_of_one=options.places_of_one
        )

    def _leave(self, subscription_id: bytes, _task: asyncio.Task[None]) -> None:
        self._tasks.pop(subscription_id, None)

    # ── one subscription ─────────────────────────────────────────────────────────────────────────

    async def _serve(self, found: SubscriptionRow) -> None:
        """Never raises: what goes wrong here is this subscription's alone, and is tried again at a later look."""
        try:
            row = await self._write(delivery_rows.take, found.subscription_id, self._clock.now())
            if row is None:
                return
            try:
                await self._deliver(row)
            finally:
                try:
                    await self._write(delivery_rows.give_back, row)
                except HorariumError:
                    self._unreturned.append(row)
        except Exception as wrong:
            about = {"namespace": found.namespace, "subscription": found.name}
            self._log.error("delivery_page_failed", **about, error=f"{type(wrong).__name__}: {wrong}")

    async def _deliver(self, row: SubscriptionRow) -> None:
        try:
            if row.damage is not None:
                raise InvalidDefinition({"subscription": [f"cannot be read: {row.damage}; edit the subscription"]})
            secret = self._sealer.unseal(row.secret, row.subscription_id)
            wanted = read_filter(row.kinds, row.filter)
        except HorariumError as wrong:  # only an edit mends it
            now = self._clock.now()
            name = f"{row.namespace}/{row.name}"
            self._tell_unreadable("subscription", name, wrong.message, namespace=row.namespace)
            await self._write(delivery_rows.park, row, wrong.message, now, retry_at=now + _UNREADABLE_SECONDS * SECOND)
            return
        channel = self._sender.channel()
        try:
            serving = _Serving(row, secret, wanted, channel)
            if not await self._redeliver(serving):
                return
            if row.retry_at is not None and row.retry_at > self._clock.now():
                return
            for _ in range(_PAGES):
                page = await self._read(delivery_rows.next_page, serving.row, _PAGE, with_labels=bool(wanted.labels))
                if not await self._deliver_page(serving, page):
                    return
        finally:
            channel.close()

    async def _deliver_page(self, serving: _Serving, page: DeliveryPage) -> bool:
        """True when another page may follow."""
        noted_at = self._clock.monotonic()
        try:
            for each in page.rows:
                prepared = self._prepare(serving, each, page)
                if prepared is not None:
                    outcome = await self._send(serving, *prepared)
                    if not isinstance(outcome, Delivered):
                        # What is settled before it is noted first: it fails alone.
                        noted = await self._note(serving)
                        if not noted or not await self._settle(serving, each, page, prepared.body, outcome):
                            return False
                        continue
                    serving.delivered += 1
                serving.cursor = each.cursor
                if self._clock.monotonic() - noted_at >= _NOTE_SECONDS:
                    if not await self._note(serving):
                        return False
                    noted_at = self._clock.monotonic()
        except asyncio.CancelledError:  # the process ends: what has arrived need not come again
            await asyncio.shield(self._note(serving))
            raise
        return await self._note(serving) and len(page.rows) == _PAGE

    def _prepare(self, serving: _Serving, each: FeedRow, page: DeliveryPage) -> _Prepared | None:
        """Write the message of an entry; None = it is not wanted, or cannot be read."""
        name = cursor_text(each.cursor)
        wrong = unreadable_of(each.event)
        try:
            if wrong is None:
                schedule_id = page.schedule_ids.get(each.event.schedule_uid or b"")
                if not is_wanted(serving.wanted, _told(each, schedule_id, page)):
                    return None
                return _Prepared(name, cloud_event(entry_of(each.event, name, schedule_id)))
            why = wrong.detail
        except (HorariumError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}"[:200]
        serving.unreadable.append(f"{name}: {why}")
        self._tell_unreadable("feed entry", name, why, **_log_fields(each, page))
        return None

    async def _note(self, serving: _Serving) -> bool:
        """Store the position of the subscription; False = another process holds its lease."""
        row = serving.row
        if serving.cursor == row.cursor:
            return True
        delivered, unreadable = serving.delivered, tuple(serving.unreadable)
        moved = partial(delivery_rows.move, delivered=delivered, unreadable=unreadable)
        if not await self._write(moved, row, serving.cursor, self._clock.now()):
            return False
        serving.go_on()
        return True

    async def _settle(
        self, serving: _Serving, each: FeedRow, page: DeliveryPage, body: bytes, outcome: Undelivered
    ) -> bool:
        """Postpone an entry that was not delivered, or give it up; whether the next one may follow."""
        row = serving.row
        now, failures = self._clock.now(), row.failures + 1
        pause = pause_after(failures, self._options.pauses)
        if pause is not None:
            at = now + round(pause * SECOND)
            await self._write(delivery_rows.postpone, row, outcome.error, now, retry_at=at)
            return False
        letter = DeadLetterRow(
            dead_letter_id=new_id(),
            namespace=row.namespace,
            subscription_id=row.subscription_id,
            entry=cursor_text(each.cursor),
            kind=FEED_KINDS[each.event.event_type],
            body=body.decode(),
            attempts=failures,
            status=outcome.status,
            error=outcome.error,
            failed_at=now,
            redeliver_at=None,
        )
        self._log.warning(
            "delivery_dead_lettered", **_log_fields(each, page), subscription=row.name, error=outcome.error
        )
        if not await self._write(_give_up, row, each, letter):
            return False
        serving.cursor = each.cursor
        serving.go_on()
        return True

    async def _redeliver(self, serving: _Serving) -> bool:
        """Send each dead letter once that was asked for; whether the subscription is still ours."""
        row = serving.row
        for letter in await self._read(delivery_rows.requested_redeliveries, row.subscription_id, _REDELIVERIES):
            wrong = unreadable_of(letter)
            if wrong is not None:
                self._tell_unreadable("dead letter", id_text(letter.dead_letter_id), wrong.detail)
                await self._write(delivery_rows.put_aside, letter.dead_letter_id)
                continue
            outcome = await self._send(serving, letter.entry, letter.body.encode())
            if isinstance(outcome, Delivered):
                await self._write(delivery_rows.delete_dead_letter, letter.dead_letter_id)
            else:
                now = self._clock.now()
                await self._write(delivery_rows.failed_again, letter, outcome.status, outcome.error, now)
            # Many that hang take longer than the lease, and meanwhile its author may have sent them elsewhere.
            if not await self._write(delivery_rows.renew, row, self._clock.now()):
                return False
        return True

    async def _send(self, serving: _Serving, entry: str, body: bytes) -> Delivery:
        row = serving.row
        name = message_id(row.subscription_id, entry)
        return await serving.channel.send(WebhookMessage(row.url, name, body, serving.secret, row.namespace))

    async def _read(self, look: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        return await self._threads.run(lambda: self._database.read(lambda c: look(c, *values, **named)))

    async def _write(self, work: Callable[Concatenate[Connection, P], T], *values: P.args, **named: P.kwargs) -> T:
        return await self._threads.run(lambda: self._database.write(lambda c: work(c, *values, **named)))


def _log_fields(each: FeedRow, page: DeliveryPage) -> dict[str, str]:
    """The fields of log events about the delivery of an entry."""
    event = each.event
    schedule_id = page.schedule_ids.get(event.schedule_uid or b"")
    run_id = None if event.run_id is None else id_text(event.run_id)
    found = {"namespace": event.namespace, "schedule_id": schedule_id, "run_id": run_id}
    return {name: value for name, value in found.items() if value is not None}


def _told(each: FeedRow, schedule_id: str | None, page: DeliveryPage) -> FeedNotice:
    event = each.event
    state, status = event.payload.get("state"), event.payload.get("status")
    kind = event.event_type
    return FeedNotice(
        FEED_KINDS[kind],
        schedule_id,
        page.labels.get(event.schedule_uid or b"", {}),
        RunState(state) if kind is NoticeType.RUN_FINISHED and state is not None else None,
        HealthStatus(status) if kind is NoticeType.SCHEDULE_HEALTH and status is not None else None,
    )


def _give_up(connection: Connection, row: SubscriptionRow, each: FeedRow, letter: DeadLetterRow) -> bool:
    """In one transaction, so that nothing is lost between the feed and the list."""
    if not delivery_rows.give_up(connection, row, each.cursor, letter.error, letter.failed_at):
        return False
    delivery_rows.insert_dead_letter(connection, letter)
    return True
