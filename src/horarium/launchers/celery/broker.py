"""The way to one broker: an app of ours that nobody else uses, a connection with bounds, and what may be said of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from celery import Celery
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.messaging import Producer

from horarium.launchers.celery.message import Message, priority_at
from horarium.launchers.payload import clean_text

# A broker answers within milliseconds or is in trouble; a publisher must not hang on one that accepts and says nothing.
CONNECT_SECONDS: Final = 4.0
ANSWER_SECONDS: Final = 5.0
_MOST_ERROR: Final = 500
# What a batch may hold before it goes out by itself; ours go out when we say so, since only then is it known what left.
_LARGE_BATCH: Final = 1_000_000
_PERSISTENT: Final = 2
_ORIGIN: Final = "horarium"
_USER_INFO = re.compile(r"//[^/@\s]+@")
_SHORT_PASSWORD = 4
# Answers of a broker that say that it has not taken the message.
_NOT_TAKEN = frozenset({"ResponseError", "MessageNacked", "ChannelError"})


class NotSent(Exception):
    """Nothing of the message has left this process."""


class Lost(NotSent):
    """The connection broke before it did: there is nothing wrong with the message."""


def make_app(broker: str, result: str | None = None, answer_seconds: float = ANSWER_SECONDS) -> Celery:
    """Create an app without tasks: it makes messages, reads results and calls workers; it is never the current app."""
    app = Celery("horarium", broker=broker, set_as_current=False, loader="app")
    # Not by the configuration: a variable of the environment, such as CELERY_RESULT_BACKEND, would go before it.
    app.backend_cls = result or "disabled://"
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        result_accept_content=["json"],
        broker_connection_timeout=CONNECT_SECONDS,
        broker_transport_options=transport_options(broker, answer_seconds),
        redis_socket_timeout=answer_seconds,
        redis_socket_connect_timeout=CONNECT_SECONDS,
        redis_retry_on_timeout=False,
    )
    return app


def transport_options(broker: str, answer_seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
    """Bounds for the sockets, and word from the broker that it has a message before we say that it has."""
    scheme = urlsplit(broker).scheme.partition("+")[0]
    if scheme in ("redis", "rediss", "sentinel"):
        return {
            "socket_timeout": answer_seconds,
            "socket_connect_timeout": CONNECT_SECONDS,
            "retry_on_timeout": False,  # it would send twice what may have arrived
        }
    if scheme in ("amqp", "amqps", "pyamqp"):
        return {"confirm_publish": True, "read_timeout": answer_seconds, "write_timeout": answer_seconds}
    return {}


def said(error: BaseException, *urls: str | None) -> str:
    """Describe an error without the password and address in the URL of a broker: libraries repeat it."""
    text = f"{type(error).__name__}: {error}"
    for url in urls:
        if url is None:
            continue
        text = text.replace(url, "***")
        password = urlsplit(url.partition(";")[0]).password or ""
        for each in (password, unquote(password)):
            text = text.replace(each, "***") if len(each) >= _SHORT_PASSWORD else text
    return clean_text(_USER_INFO.sub("//***@", text), _MOST_ERROR)


def is_refusal(error: BaseException) -> bool:
    """Tell whether the broker itself rejected the message."""
    cause = error.__cause__ or error
    return any(each.__name__ in _NOT_TAKEN for each in type(cause).__mro__)


@dataclass(slots=True)
class Link:
    """An open connection to a broker, for one thread."""

    app: Celery
    connection: Connection
    producer: Producer
    driver: str
    _known: set[str] = field(default_factory=set)

    @property
    def takes_batches(self) -> bool:
        return bool(self.producer.supports_batch_publish)

    def publish(self, message: Message) -> None:
        """Raises NotSent for what was wrong before a byte left; whatever else it raises, the message may have left."""
        queue = message.queue or self.app.conf.task_default_queue
        try:
            headers, properties = self._parts(message)
            self._have_queue(queue)
        except self.connection.recoverable_connection_errors as away:
            raise Lost(f"{type(away).__name__}: {away}") from away
        except Exception as wrong:
            raise NotSent(f"{type(wrong).__name__}: {wrong}") from wrong
        waiting = {"timeout": ANSWER_SECONDS, "confirm_timeout": ANSWER_SECONDS} if self.driver == "amqp" else {}
        self.producer.publish(
            message.body,
            routing_key=queue,
            content_type="application/json",
            content_encoding="utf-8",
            headers=headers,
            priority=priority_at(self.driver, message.priority),
            delivery_mode=_PERSISTENT,
            retry=False,
            **waiting,
            **properties,
        )

    def publish_together(self, messages: list[Message]) -> list[Exception | None]:
        """Publish messages and return the broker's error for each, None = accepted.

        Raises NotSent as long as none has left.
        """
        with self.producer.batch(max_size=_LARGE_BATCH) as batch:
            try:
                for each in messages:
                    self.publish(each)
            except NotSent:
                raise
            except Exception as wrong:
                raise NotSent(f"{type(wrong).__name__}: {wrong}") from wrong
            # Not `flush`, which tells all of them what was said to one, and shows its command.
            answers = batch.state.session.pipeline.execute(raise_on_error=False)
        if len(answers) != len(messages):
            raise ConnectionError(f"received {len(answers)} answers for {len(messages)} messages")
        return [each if isinstance(each, Exception) else None for each in answers]

    def revoke(self, task_ids: list[str], *, terminate: bool) -> None:
        """To all workers that listen: not to begin them, and with `terminate` to end those that have begun."""
        exchange = self.app.control.mailbox.exchange
        arguments = {"task_id": task_ids, "terminate": terminate, "signal": "SIGTERM"}
        self.producer.publish(
            {"method": "revoke", "arguments": arguments, "destination": None, "pattern": None, "matcher": None},
            exchange=exchange.name,
            declare=[exchange],
            headers={"clock": self.app.clock.forward(), "expires": 0},
            serializer="json",
            retry=False,
        )

    def close(self) -> None:
        """Without a word to a broker that may not answer."""
        with suppress(Exception):
            self.connection.collect(socket_timeout=1.0)

    def _parts(self, message: Message) -> tuple[dict[str, Any], Mapping[str, Any]]:
        args, kwargs = message.shown
        made = self.app.amqp.as_task_v2(
            message.task_id,
            message.task,
            time_limit=message.time_limit,
            soft_time_limit=message.soft_time_limit,
            expires=message.expires,
            argsrepr=args,
            kwargsrepr=kwargs,
            origin=_ORIGIN,
        )
        return {**made.headers, **message.headers}, made.properties

    def _have_queue(self, name: str) -> None:
        """RabbitMQ drops what goes to a queue that is not there. One that is there may have arguments of its own."""
        if self.driver != "amqp" or name in self._known:
            return
        try:
            self._declare(name, passive=True)
        except self.connection.channel_errors:  # which closes that channel, and no other
            self._declare(name, passive=False)
        self._known.add(name)

    def _declare(self, name: str, *, passive: bool) -> None:
        channel = self.connection.channel()
        Queue(name, durable=True, channel=channel).queue_declare(passive=passive)
        channel.close()


def connect(app: Celery, broker: str) -> Link:
    """Raises whatever the library raises, within a few seconds; nothing was sent by then.

    The URL is said once more, since CELERY_BROKER_URL in the environment would go before that of the app.
    """
    connection = app.connection_for_write(broker, heartbeat=0)
    try:
        # One try for each of the hosts that the URL names.
        connection.ensure_connection(max_retries=max(0, len(connection.alt) - 1), interval_start=0, interval_step=0)
        channel = connection.channel()
        return Link(app, connection, Producer(channel), connection.transport.driver_type)
    except BaseException:
        with suppress(Exception):
            connection.collect(socket_timeout=1.0)
        raise


def why_unreachable(broker: str) -> str | None:
    """None where it can be reached; nothing is published."""
    try:
        connect(make_app(broker), broker).close()
    except Exception as wrong:
        return said(wrong, broker)
    return None
