"""The connection to one broker, with timeouts, and the Celery message of a run.

A message has arguments, time limits, priority and the header that names the run. The Celery app is private to this
process. Errors name the broker without its password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from celery import Celery
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.messaging import Producer

from horarium.core.document.json_values import Json
from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import clean_text, encode
from horarium.platform.job import HEADER, RunHeader

# ── message of a run ──────────────────────────────────────────────────────────────────────────────────


LOWEST_PRIORITY: Final = 0
HIGHEST_PRIORITY: Final = 9
# A task is warned by its soft limit so long before the hard one, and not at all where that leaves it too little.
_WARNED_BEFORE: Final = 10
_LEAST_WARNED: Final = 30
# What a worker's log and its monitors show of the arguments.
_MOST_SHOWN: Final = 1_024
_HIDDEN: Final = "***"
# What stands beside the arguments in the body (Celery's message protocol 2): nothing follows on a task of ours.
_EMBED: Final = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


class BadArguments(ValueError):
    """The input is neither an array nor an object."""


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """`queue` None = the connection's default one. `once`: what may have arrived must not be sent again."""

    task: str
    task_id: str
    queue: str | None
    body: bytes = field(repr=False)
    shown: tuple[str, str] = field(repr=False)
    priority: int
    time_limit: int
    soft_time_limit: int | None
    expires: str
    headers: Mapping[str, Any] = field(repr=False)
    deadline: Instant
    once: bool


def message_of(request: LaunchRequest, queue: str | None, seconds_left: float) -> TaskMessage:
    """Raises BadArguments, and NotJson for arguments that cannot be spelled."""
    args, kwargs = arguments(request.action.target, request.inputs, wins=request.own_inputs)
    limit, soft = time_limits(seconds_left)
    return TaskMessage(
        task=str(request.action.target.get("task", "")),
        task_id=request.key,
        queue=queue,
        body=encode([args, kwargs, _EMBED]),
        shown=(_HIDDEN, _HIDDEN) if request.secrets else (_shown(args), _shown(kwargs)),
        priority=clipped_priority(request.priority),
        time_limit=limit,
        soft_time_limit=soft,
        expires=to_rfc3339(request.deadline),
        headers={HEADER: header_of(request).to_header(), **_trace(request)},
        deadline=request.deadline,
        once=request.once,
    )


def arguments(target: Mapping[str, Json], inputs: Json, *, wins: bool) -> tuple[list[Any], dict[str, Any]]:
    """By place and by name. An input is one or the other, where the action does not say it itself.

    `wins`: the input is that of a rotation, or was given for this run alone, and stands in place of the action's own.
    """
    args, kwargs = target.get("args"), target.get("kwargs")
    if isinstance(inputs, Mapping):
        kwargs = inputs if wins or kwargs is None else kwargs
    elif isinstance(inputs, list | tuple):
        args = inputs if wins or args is None else args
    elif inputs is not None:
        raise BadArguments("the input must be an array of positional arguments or an object of keyword arguments")
    if not isinstance(args, list | tuple | None) or not isinstance(kwargs, Mapping | None):
        raise BadArguments("args must be an array, and kwargs an object")
    return list(args or ()), dict(kwargs or {})


def time_limits(seconds_left: float) -> tuple[int, int | None]:
    """Hard and soft, in whole seconds: the worker stops a task when its run's time is up, and warns it before."""
    hard = max(1, ceil(seconds_left))
    return hard, hard - _WARNED_BEFORE if hard >= _LEAST_WARNED else None


def clipped_priority(priority: int) -> int:
    return max(LOWEST_PRIORITY, min(HIGHEST_PRIORITY, priority))


def priority_at(driver: str, priority: int) -> int:
    """As the broker counts: on Redis 0 is taken first."""
    return HIGHEST_PRIORITY - priority if driver == "redis" else priority


def header_of(request: LaunchRequest) -> RunHeader:
    return RunHeader(
        run_id=request.run_id,
        namespace=request.namespace,
        attempt=request.attempt,
        nominal=to_rfc3339(request.nominal),
        schedule_id=request.schedule_id,
        report_url=request.report_url,
        report_token=request.report_token,
    )


def seconds_until(deadline: Instant, now: Instant) -> float:
    return (deadline - now) / SECOND


def _trace(request: LaunchRequest) -> dict[str, str]:
    return {} if request.traceparent is None else {"traceparent": request.traceparent}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


# ── connection ────────────────────────────────────────────────────────────────────────────────────────


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


class MessageNotSent(Exception):
    """Nothing of the message has left this process."""


class BrokerLost(MessageNotSent):
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


def error_text(error: BaseException, *urls: str | None) -> str:
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
class BrokerConnection:
    """An open connection to a broker, for one thread."""

    app: Celery
    connection: Connection
    producer: Producer
    driver: str
    _known: set[str] = field(default_factory=set)

    @property
    def takes_batches(self) -> bool:
        return bool(self.producer.supports_batch_publish)

    def publish(self, message: TaskMessage) -> None:
        """Raises NotSent for what was wrong before a byte left; whatever else it raises, the message may have left."""
        queue = message.queue or self.app.conf.task_default_queue
        try:
            headers, properties = self._parts(message)
            self._have_queue(queue)
        except self.connection.recoverable_connection_errors as away:
            raise BrokerLost(f"{type(away).__name__}: {away}") from away
        except Exception as wrong:
            raise MessageNotSent(f"{type(wrong).__name__}: {wrong}") from wrong
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

    def publish_together(self, messages: list[TaskMessage]) -> list[Exception | None]:
        """Publish messages and return the broker's error for each, None = accepted.

        Raises NotSent as long as none has left.
        """
        with self.producer.batch(max_size=_LARGE_BATCH) as batch:
            try:
                for each in messages:
                    self.publish(each)
            except MessageNotSent:
                raise
            except Exception as wrong:
                raise MessageNotSent(f"{type(wrong).__name__}: {wrong}") from wrong
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

    def _parts(self, message: TaskMessage) -> tuple[dict[str, Any], Mapping[str, Any]]:
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


def connect(app: Celery, broker: str) -> BrokerConnection:
    """Raises whatever the library raises, within a few seconds; nothing was sent by then.

    The URL is said once more, since CELERY_BROKER_URL in the environment would go before that of the app.
    """
    connection = app.connection_for_write(broker, heartbeat=0)
    try:
        # One try for each of the hosts that the URL names.
        connection.ensure_connection(max_retries=max(0, len(connection.alt) - 1), interval_start=0, interval_step=0)
        channel = connection.channel()
        return BrokerConnection(app, connection, Producer(channel), connection.transport.driver_type)
    except BaseException:
        with suppress(Exception):
            connection.collect(socket_timeout=1.0)
        raise


def why_unreachable(broker: str) -> str | None:
    """None where it can be reached; nothing is published."""
    try:
        connect(make_app(broker), broker).close()
    except Exception as wrong:
        return error_text(wrong, broker)
    return None
