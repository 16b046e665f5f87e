"""Reports of a Celery worker: `report_to` connects to the signals of Celery, once for a process and its children.

`SkipEnded` does not begin a task whose run is over, for brokers that deliver a message twice. It is no lock. Two
deliveries at the same time both begin, and so does a second one that comes before the end of the first has been
reported, which takes some tenths of a second.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from celery import Task, concurrency, signals
from celery.exceptions import Ignore

from horarium.celery import reports
from horarium.celery.reporter import FLUSH_SECONDS, TIMEOUT_SECONDS, Options, Reporter
from horarium.celery.reports import TaskReport
from horarium.celery.spool import LIMIT_BYTES, log
from horarium.platform.client.connection import Connection
from horarium.platform.client.trust import trust_of
from horarium.platform.job import HEADER, RunHeader, read_header

_UID = "horarium.report_to"


def report_to(
    url: str | None = None,
    token: str | None = None,
    *,
    app: Any = None,
    spool: str | os.PathLike[str] | None = None,
    spool_bytes: int = LIMIT_BYTES,
    timeout_seconds: float = TIMEOUT_SECONDS,
    flush_seconds: float = FLUSH_SECONDS,
) -> None:
    """Let the workers of this process say what becomes of the runs they are given.

    `url` is where the service is: else `HORARIUM_SERVER`, else the address that came with each run. `token` (else
    `HORARIUM_TOKEN`) goes to that `url` only; without one the tokens that came with the runs do. With `app`, only
    tasks of that app are reported. `spool` is the directory in which reports wait, of `spool_bytes` at most. Called
    again, the last call holds. Raises InvalidDefinition for an address or a token that cannot be used.
    """
    said = os.environ
    url = url or said.get("HORARIUM_SERVER") or said.get("HORARIUM_URL") or None
    if token and url is None:
        log.warning("report_to: the token is ignored because url is not set; the tokens of the runs are used")
    token = (token or said.get("HORARIUM_TOKEN") or None) if url is not None else None
    trust = trust_of(said)
    if url is not None:
        _ = Connection(url, token, trust=trust).options  # raises now what would be wrong later
    options = Options(
        url=None if url is None else url.rstrip("/"),
        token=token,
        spool=None if spool is None else Path(spool).absolute(),
        limit_bytes=spool_bytes,
        timeout_seconds=timeout_seconds,
        flush_seconds=flush_seconds,
        trust=trust,
    )
    LISTENER.listen(options, app)


class SignalListener:
    """Handlers of the signals. None of them raises: an exception would be the worker's problem."""

    def __init__(self) -> None:
        self.reporter: Reporter | None = None
        self._app: Any = None
        self._connected = False
        # What the main process knows of tasks in its children; an entry goes with the request.
        self._received: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def listen(self, options: Options, app: Any) -> None:
        self._app = app
        if self.reporter is None:
            self.reporter = Reporter(options)
        elif self.reporter.options != options:
            self.reporter.stop()
            self.reporter.options = options
        if not self._connected:
            self._connected = True
            for signal, receiver in self._receivers().items():
                signal.connect(receiver, weak=False, dispatch_uid=_UID)
            os.register_at_fork(after_in_child=self._after_fork)
            atexit.register(self._on_end)

    def _receivers(self) -> Mapping[Any, Callable[..., None]]:
        return {
            signals.task_received: self._on_received,
            signals.task_prerun: self._on_prerun,
            signals.task_retry: self._on_retry,
            signals.task_success: self._on_success,
            signals.task_failure: self._on_failure,
            signals.task_internal_error: self._on_internal_error,
            signals.task_revoked: self._on_revoked,
            signals.task_unknown: self._on_unknown,
            signals.task_rejected: self._on_rejected,
            signals.worker_init: self._on_worker_init,
            signals.worker_process_init: self._on_begin,
            signals.worker_ready: self._on_begin,
            signals.worker_process_shutdown: self._on_end,
            signals.worker_shutdown: self._on_end,
        }

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────

    def _on_received(self, sender: Any = None, request: Any = None, **_: Any) -> None:
        if request is not None and _header(getattr(request, "request_dict", None)) is not None:
            self._received[request.id] = request

    def _on_prerun(self, task: Any = None, **_: Any) -> None:
        self._report(task, _of_context(task.request), reports.started)

    def _on_retry(self, sender: Any = None, request: Any = None, **_: Any) -> None:
        self._report(sender, _of_context(request), reports.started)

    def _on_success(self, sender: Any = None, result: Any = None, **_: Any) -> None:
        self._report(sender, _of_context(sender.request), lambda header: reports.succeeded(header, result))

    def _on_failure(self, sender: Any = None, task_id: Any = None, exception: Any = None, **_: Any) -> None:
        """In the main process, after a hard time limit, the task does not know which request it is about."""
        header = _of_context(sender.request) if sender.request.id == task_id else None
        if header is None and (request := self._received.get(task_id)) is not None:
            header = _header(request.request_dict)
        self._report(sender, header, lambda header: reports.failed(header, exception))

    def _on_internal_error(self, sender: Any = None, request: Any = None, exception: Any = None, **_: Any) -> None:
        header = _header(request) if isinstance(request, Mapping) else _of_context(request)
        self._report(sender, header, lambda header: reports.failed(header, exception))

    def _on_revoked(
        self, sender: Any = None, request: Any = None, terminated: bool = False, expired: bool = False, **_: Any
    ) -> None:
        told = {"expired": bool(expired), "terminated": bool(terminated)}
        self._report(sender, _of_context(request), lambda header: reports.revoked(header, **told))

    def _on_unknown(self, sender: Any = None, message: Any = None, name: Any = None, **_: Any) -> None:
        self._report(sender, _header(message.headers), lambda header: reports.unknown(header, name))

    def _on_rejected(self, sender: Any = None, message: Any = None, exc: Any = None, **_: Any) -> None:
        self._report(sender, _header(message.headers), lambda header: reports.rejected(header, exc))

    def is_over(self, context: Any) -> bool:
        header = _of_context(context)
        return header is not None and self.reporter is not None and self.reporter.is_over(header)

    def _report(self, sender: Any, header: RunHeader | None, say: Callable[[RunHeader], TaskReport]) -> None:
        if header is None or self.reporter is None or (self._app is not None and _app_of(sender) is not self._app):
            return
        try:
            self.reporter.put(say(header))
        except Exception:  # what a task returns or raises may be anything at all
            log.exception("the run %s cannot be reported on", header.run_id)

    # ── processes ────────────────────────────────────────────────────────────────────────────────

    def _on_worker_init(self, sender: Any = None, **_: Any) -> None:
        """A process that forks has no threads of ours."""
        pool = concurrency.get_implementation(sender.pool_cls)
        if self.reporter is not None:
            self.reporter.leaves = pool.__module__ == "celery.concurrency.prefork"

    def _on_begin(self, **_: Any) -> None:
        if self.reporter is not None:
            self.reporter.start()

    def _on_end(self, **_: Any) -> None:
        if self.reporter is not None:
            self.reporter.stop()

    def _after_fork(self) -> None:
        self._received = WeakValueDictionary()
        if self.reporter is not None:
            self.reporter.after_fork()


LISTENER = SignalListener()


def _app_of(sender: Any) -> Any:
    """A task belongs to an app, and so does the consumer of messages that are no task."""
    return getattr(sender, "app", None)


def _of_context(context: Any) -> RunHeader | None:
    """Celery keeps what it does not know of a message's headers as attributes of the request, and in `headers`."""
    if context is None:
        return None
    given = context.__dict__.get(HEADER)
    return read_header(context.headers) if given is None else read_header({HEADER: given})


def _header(headers: Any) -> RunHeader | None:
    """Read the header of a message, or the one that an older publisher nested in it."""
    return read_header(headers) or (read_header(headers.get("headers")) if isinstance(headers, Mapping) else None)


class SkipEnded(Task):  # type: ignore[misc]  # Celery has no types
    """As the base of a task: `@app.task(base=SkipEnded)`. Each start costs a request to the service.

    What has ended, was cancelled, or is being tried again under another id is not executed. Where the service cannot be
    asked, and for tasks that are no runs, it begins as usual.
    """

    abstract = True

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        if LISTENER.is_over(self.request):
            raise Ignore("the run of this task has ended")
        super().before_start(task_id, args, kwargs)
