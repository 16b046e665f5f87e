"""Wake-ups after a commit: of listeners in this process, and on PostgreSQL in others.

A wake-up is a hint, never the truth: it may come twice or, when a connection breaks, not at all. The loops poll as
well. On SQLite, and behind PgBouncer, which has no LISTEN, only this process is woken.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Protocol

import psycopg
from psycopg import sql

Wake = Callable[[str], None]
NoticeHandler = Callable[[str, str], None]
"""Called with a channel and the payload of a message."""

_log = logging.getLogger("horarium.store")
# A connection that died without a word is noticed after this long.
_HEALTH_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 1.5
_FIRST_SUBSCRIPTION_SECONDS = 5.0


class WakeupListener(Protocol):
    def close(self) -> None:
        """After this returns, `wake` is not called again."""


class Bell:
    """Wake-ups inside one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: list[WakeupSubscription] = []

    def listen(self, channels: Iterable[str], wake: Wake, told: NoticeHandler | None = None) -> WakeupSubscription:
        subscription = WakeupSubscription(self, frozenset(channels), wake, told)
        with self._lock:
            self._subscriptions.append(subscription)
        return subscription

    def ring(self, messages: Mapping[str, str]) -> None:
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            for channel, said in messages.items():
                subscription.hear(channel, said)

    def remove(self, subscription: WakeupSubscription) -> None:
        with self._lock, suppress(ValueError):
            self._subscriptions.remove(subscription)


class WakeupSubscription:
    """One listener on a Bell."""

    def __init__(self, bell: Bell, channels: frozenset[str], wake: Wake, told: NoticeHandler | None) -> None:
        self._bell = bell
        self._channels = channels
        self._wake = wake
        self._told = told
        # Held while `wake` runs, so that `close` waits for it; reentrant, for a wake that closes itself.
        self._lock = threading.RLock()
        self._open = True

    def hear(self, channel: str, said: str) -> None:
        with self._lock:
            if self._open and channel in self._channels:
                _call(self._wake, self._told, channel, said)

    def close(self) -> None:
        self._bell.remove(self)
        with self._lock:
            self._open = False


class PostgresListener:
    """A thread with a connection of its own that LISTENs; after a reconnect every channel is woken once."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection],
        channels: Iterable[str],
        wake: Wake,
        told: NoticeHandler | None = None,
    ) -> None:
        self._connect = connect
        self._channels = tuple(sorted(set(channels)))
        self._wake = wake
        self._told = told
        self._subscribed = threading.Event()
        self._closing = threading.Event()
        # Closing writes a byte here: the thread sleeps on both sockets and need not wake up to look.
        self._asleep, self._alarm = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="horarium-listen", daemon=True)
        self._thread.start()
        self._subscribed.wait(_FIRST_SUBSCRIPTION_SECONDS)

    def close(self) -> None:
        if not self._closing.is_set():
            # In this order: a thread that is awake ends at once when it is told, and closes the sockets.
            with suppress(OSError):  # another caller has closed it meanwhile
                self._alarm.send(b".")
            self._closing.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                with self._connect() as connection:
                    self._subscribe(connection)
                    if failures > 1:
                        _log.warning("LISTEN restored after %d failures", failures)
                    failures = 0
                    self._hear(connection)
            except (psycopg.Error, OSError) as lost:
                failures += 1
                pause = min(_LONGEST_PAUSE_SECONDS, 0.1 * 2 ** min(failures, 10))
                if failures == 1:
                    _log.warning("LISTEN failed, retrying in %.1f s: %s", pause, lost)
                self._closing.wait(pause)
        self._asleep.close()
        self._alarm.close()

    def _subscribe(self, connection: psycopg.Connection) -> None:
        for channel in self._channels:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        if self._subscribed.is_set():  # what was said while nobody listened is lost
            for channel in self._channels:
                _call(self._wake, None, channel, "")
        self._subscribed.set()

    def _hear(self, connection: psycopg.Connection) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._asleep, selectors.EVENT_READ)
            while not self._closing.is_set():
                # Messages may already have been read along with the answer to another statement.
                heard = ((message.channel, message.payload) for message in connection.notifies(timeout=0))
                for channel, said in dict.fromkeys((channel, said if self._told else "") for channel, said in heard):
                    if not self._closing.is_set():
                        _call(self._wake, self._told, channel, said)
                if not selector.select(_HEALTH_SECONDS):
                    connection.execute("SELECT 1")


def _call(wake: Wake, told: NoticeHandler | None, channel: str, said: str) -> None:
    try:
        if said and told is not None:
            told(channel, said)
        else:
            wake(channel)
    except Exception:
        # A listener that fails must not stop the others, nor undo what is committed.
        _log.exception("Listener on %s failed", channel)


DUE = "horarium_due"
READY = "horarium_ready"
PUSHED = "horarium_pushed"
"""The payload names the run, so that the follower polls its target at once."""
