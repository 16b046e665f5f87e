"""A thread that publishes messages to one broker over its own connection, in batches.

A launch adds a message and waits for its outcome. Messages are sent one after the other, in one batch if the broker
supports it, and their outcomes are returned together. An unreachable broker is tried again after a pause, and
messages that wait for it delay no others.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import structlog
from celery import Celery

from horarium.core.lifecycle.outcome import Accepted, Outcome, Refused, Unknown, Unreachable
from horarium.launchers.celery.broker import (
    BrokerConnection,
    BrokerLost,
    MessageNotSent,
    TaskMessage,
    connect,
    error_text,
    is_refusal,
)

# Messages that go out in one go: where that goes wrong, it is unknown of all of them whether they arrived.
TOGETHER: Final = 100
# A connection that nobody used for so long is made anew: it may be gone, which would show only after a send.
_IDLE_SECONDS: Final = 20.0
FIRST_REST_SECONDS: Final = 1.0
_LONGEST_REST_SECONDS: Final = 10.0
_STOPPED = "the publishing process is stopping; nothing was sent"

_log = structlog.get_logger("horarium.launchers")


class _State(Enum):
    WAITING = "waiting"
    SENDING = "sending"
    OVER = "over"


@dataclass(slots=True, eq=False)
class Parcel:
    """A message and whoever waits for its answer."""

    message: TaskMessage
    answer: asyncio.Future[Outcome]
    put_at: float = 0.0
    _state: _State = _State.WAITING
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> bool:
        """Begin to send, unless it was withdrawn; afterwards it can no longer be withdrawn."""
        return self._move(_State.WAITING, _State.SENDING)

    def withdraw(self) -> bool:
        """Withdraw, and tell whether it was not sent and never will be."""
        return self._move(_State.WAITING, _State.OVER)

    def _move(self, before: _State, after: _State) -> bool:
        with self._lock:
            if self._state is not before:
                return False
            self._state = after
            return True


@dataclass(slots=True, eq=False)
class Revocation:
    task_ids: list[str]
    terminate: bool
    answer: asyncio.Future[bool]


Order = Parcel | Revocation


class Publisher:
    """Connection of the settings. `urls` are those of its broker and its results.

    `rest_seconds` is the first pause after a broker could not be reached.
    """

    def __init__(
        self, name: str, app: Celery, urls: tuple[str, str | None], rest_seconds: float = FIRST_REST_SECONDS
    ) -> None:
        self.name = name
        self._app = app
        self._urls = urls
        self._first_rest = rest_seconds
        self._rest = rest_seconds
        self._orders: deque[Order] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._link: BrokerConnection | None = None
        self._down = False
        self._why = ""

    def put(self, order: Order) -> None:
        with self._changed:
            if not self._closed:
                self._orders.append(order)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name=f"celery-{self.name}", daemon=True)
                    self._thread.start()
                self._changed.notify()
                return
        self._answer([(order, Unreachable(_STOPPED))])

    def close(self, patience_seconds: float) -> None:
        """Close the line. Unsent messages get an error; a thread that hangs in its broker is left behind."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(patience_seconds)

    # ── the thread ───────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while orders := self._next():
            try:
                self._serve(deque(orders))
            except Exception as wrong:  # a line that ends would leave everybody waiting
                _log.error("broker_connection_failed", connection=self.name, error=error_text(wrong, *self._urls))
                self._drop()
                self._answer([(each, Unknown("the connection to the broker was lost")) for each in orders])
        self._drop()
        with self._changed:
            left, self._orders = list(self._orders), deque()
        self._answer([(each, Unreachable(_STOPPED)) for each in left])

    def _next(self) -> list[Order]:
        """All that waits; nothing when the line is closed."""
        with self._changed:
            while not self._orders and not self._closed:
                if not self._changed.wait(_IDLE_SECONDS):
                    self._drop()
            if self._closed:
                return []
            taken, self._orders = list(self._orders), deque()
            return taken

    def _serve(self, orders: deque[Order]) -> None:
        while orders:
            link = self._linked() or self._linked_after_a_rest()
            if isinstance(link, str):
                self._answer([(each, Unreachable(link)) for each in orders])
                return
            first = orders.popleft()
            if isinstance(first, Revocation):
                self._revoke(link, first)
                continue
            parcels = [first]
            while orders and len(parcels) < TOGETHER and isinstance(following := orders[0], Parcel):
                parcels.append(following)
                orders.popleft()
            self._send(link, parcels)

    def _linked_after_a_rest(self) -> BrokerConnection | str:
        """A broker that is away is not asked by everybody at once; the text says why it cannot be reached."""
        with self._changed:
            if not self._closed:
                self._changed.wait_for(lambda: self._closed, self._rest)
        if self._closed:
            return _STOPPED
        self._rest = min(self._rest * 2, _LONGEST_REST_SECONDS)
        return self._linked() or f"the broker of the connection {self.name!r} is unreachable: {self._why}"

    def _linked(self) -> BrokerConnection | None:
        if self._link is not None:
            return self._link
        try:
            self._link = connect(self._app, self._urls[0])
        except Exception as wrong:
            self._why = error_text(wrong, *self._urls)
            if not self._down:
                self._down = True
                _log.warning("broker_unreachable", connection=self.name, error=self._why)
            return None
        if self._down:
            self._down = False
            _log.info("broker_reachable", connection=self.name)
        self._rest = self._first_rest
        return self._link

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _send(self, link: BrokerConnection, parcels: Sequence[Parcel]) -> None:
        """Together where the broker takes batches; what may be sent only once goes alone: more is known of it then."""
        crowd = [each for each in parcels if not each.message.once] if link.takes_batches else []
        if len(crowd) > 1:
            alone = [each for each in parcels if each.message.once]
            self._send_together(link, crowd)
        else:
            alone = list(parcels)
        for each in alone:
            if each.begin():
                self._answer([(each, self._sent(each.message))])

    def _send_together(self, link: BrokerConnection, parcels: Sequence[Parcel]) -> None:
        begun = [each for each in parcels if each.begin()]
        if not begun:
            return
        try:
            answers = link.publish_together([each.message for each in begun])
        except MessageNotSent:  # one of them is bad: alone each of them hears what is wrong with it
            self._answer([(each, self._sent(each.message)) for each in begun])
        except Exception as wrong:
            self._drop()
            unknown = Unknown(f"the broker may not have received the message: {error_text(wrong, *self._urls)}")
            self._answer([(each, unknown) for each in begun])
        else:
            if any(answers):  # a Redis that is another's replica by now refuses: a new connection may find the first
                self._drop()
            each_own = zip(begun, answers, strict=True)
            self._answer(
                [(each, self._taken(each.message) if no is None else self._failed(no)) for each, no in each_own]
            )

    def _sent(self, message: TaskMessage) -> Outcome:
        link = self._linked()
        if link is None:
            return Unreachable(self._why)
        try:
            link.publish(message)
        except BrokerLost as away:
            self._drop()
            return Unreachable(
                f"the connection to the broker was lost: {error_text(away.__cause__ or away, *self._urls)}"
            )
        except MessageNotSent as wrong:
            return Refused(f"the message cannot be encoded: {error_text(wrong, *self._urls)}")
        except Exception as wrong:
            self._drop()
            return self._failed(wrong)
        return self._taken(message)

    @staticmethod
    def _taken(message: TaskMessage) -> Outcome:
        return Accepted(message.task_id, queued=True)

    def _failed(self, wrong: Exception) -> Outcome:
        error = error_text(wrong, *self._urls)
        if is_refusal(wrong):
            return Unreachable(f"the broker rejected the message: {error}", sent=True)
        return Unknown(f"the broker may not have received the message: {error}")

    def _revoke(self, link: BrokerConnection, order: Revocation) -> None:
        try:
            link.revoke(order.task_ids, terminate=order.terminate)
        except Exception as wrong:
            self._drop()
            _log.warning("celery_revoke_failed", connection=self.name, error=error_text(wrong, *self._urls))
            self._answer([(order, False)])
        else:
            self._answer([(order, True)])

    def _answer(self, answers: Sequence[tuple[Order, Any]]) -> None:
        """In one go for each event loop: usually there is one."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Order, Any]]] = {}
        for order, answer in answers:
            by_loop.setdefault(order.answer.get_loop(), []).append((order, answer))
        for loop, told in by_loop.items():
            try:
                loop.call_soon_threadsafe(_deliver, told)
            except RuntimeError:  # the loop is closed, and nobody waits any more
                continue


def _deliver(answers: Sequence[tuple[Order, Any]]) -> None:
    for order, answer in answers:
        if order.answer.done():
            continue
        if isinstance(order, Parcel):
            order.answer.set_result(answer)
        else:
            order.answer.set_result(answer is True)
