"""The reporter of a worker process: its spool, its sender, and their settings.

The main process of a prefork worker has no thread, since it forks: its reports stay in the spool, and one of its
children takes them. After a fork, the child begins with nothing of its parent.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from horarium.celery.reports import TaskReport, started
from horarium.celery.sender import ReportSender
from horarium.celery.spool import LIMIT_BYTES, Spool, log, open_directory, usual_places
from horarium.celery.spool_file import ANY_NAMESPACE, Destination, line_of
from horarium.errors import InvalidDefinition
from horarium.features.runs.calls import RunCalls
from horarium.features.runs.model import RunReportOutcome
from horarium.platform.client.connection import Connection
from horarium.platform.client.errors import ClientError, UnexpectedAnswer
from horarium.platform.client.exchange import NEVER, Attempts, Done
from horarium.platform.client.trust import USUAL, Trust
from horarium.platform.clock import Clock, SystemClock
from horarium.platform.job import RunHeader
from horarium.platform.wire import ReportOutcome

TIMEOUT_SECONDS = 10.0
FLUSH_SECONDS = 3.0
_MOST_URL = 2_048
_MOST_TEXT = 256
_CALL = "/api/runs/{run_id}/report"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings. Without `url`, messages name it. `token` is sent only to `url`, since a message may name any host."""

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    spool: Path | None = None
    limit_bytes: int = LIMIT_BYTES
    timeout_seconds: float = TIMEOUT_SECONDS
    flush_seconds: float = FLUSH_SECONDS
    trust: Trust = USUAL

    def destination(self, header: RunHeader) -> Destination | None:
        """Return None if the header, which any client of the broker can write, names no usable destination."""
        url, token = self.url or _service(header), header.report_token
        if url is None or token is None or max(map(len, (header.run_id, header.namespace, token))) > _MOST_TEXT:
            return None
        return Destination(url, header.namespace if self.uses_token(url) else ANY_NAMESPACE)

    def uses_token(self, url: str) -> bool:
        return self.token is not None and url == self.url


def _service(header: RunHeader) -> str | None:
    """Return the URL of the service from the URL for reports on this run."""
    call = _CALL.format(run_id=header.run_id)
    url = header.report_url
    if url is None or len(url) > _MOST_URL or not url.endswith(call):
        return None
    base = url.removesuffix(call)
    return base if base.startswith(("http://", "https://")) else None


class Reporter:
    """Reporter of this process and, after each fork, of the child."""

    def __init__(self, options: Options, clock: Clock | None = None) -> None:
        self.options = options
        self.leaves = False
        self._clock = clock or SystemClock()
        self._begin()

    def _begin(self) -> None:
        self._parts: tuple[Spool, ReportSender] | None = None
        self._clients: dict[Destination, httpx.Client] = {}
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def put(self, report: TaskReport) -> None:
        """Write a report to the spool and wake the sender. Never raises, so that no task fails because of a report."""
        try:
            destination = self.options.destination(report.header)
            if destination is None:
                self._tell_once("a run has no URL or token for reports; set the url of report_to")
                return
            spool, sender = self._parts or self._open()
            spool.put(destination, line_of(report.document(), final=report.final))
            if not self.leaves:
                sender.wake()
        except Exception as wrong:
            log.error("the report on the run %s is lost: %s", report.header.run_id, wrong)

    def is_over(self, header: RunHeader) -> bool:
        """Ask the service whether this attempt has ended, and wait for the answer.

        False where the service cannot be reached: dispatched work is then done rather than left undone.
        """
        destination = self.options.destination(header)
        if destination is None:
            return False
        try:
            [outcome] = self._post(destination, [started(header).document()])
        except (ClientError, ValueError) as wrong:
            log.warning("%s could not be asked whether the run %s is over: %s", destination.url, header.run_id, wrong)
            return False
        return outcome.outcome is ReportOutcome.LATE

    def start(self) -> None:
        """Send reports of ended processes, before this process has its own."""
        if self.leaves:
            return
        try:
            _, sender = self._parts or self._open()
            sender.start()
        except Exception as wrong:
            log.error("nothing can be reported: %s", wrong)

    def stop(self) -> None:
        """Send what can be sent within `flush_seconds`; the rest stays on file. The reporter can be used again."""
        parts, self._parts = self._parts, None
        if parts is not None:
            spool, sender = parts
            if not sender.stop(self.options.flush_seconds):
                return  # its thread still uses the files, and ends with the process
            spool.close()
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def after_fork(self) -> None:
        """Drop the state of the parent in a forked child, where its locks may be in any state."""
        parts = self._parts
        self.leaves = False
        self._begin()
        if parts is not None:
            parts[0].forget()

    def _open(self) -> tuple[Spool, ReportSender]:
        with self._lock:
            if self._parts is None:
                said = self.options.spool
                directory = open_directory(usual_places(sys.platform) if said is None else (said,))
                spool = Spool(directory, self.options.limit_bytes, leaves=self.leaves)
                self._parts = spool, ReportSender(spool, self._post, self._has_token, self._clock)
            return self._parts

    def _has_token(self, destination: Destination) -> bool:
        """Tell whether the token of the worker is used. Reports without one name no namespace, and need none."""
        return self.options.uses_token(destination.url) and destination.namespace != ANY_NAMESPACE

    def _post(self, destination: Destination, documents: list[dict[str, Any]]) -> Sequence[RunReportOutcome]:
        call = RunCalls.report_runs(documents)
        exchange = Attempts(call, NEVER, destination.url)
        try:
            response = self._client(destination).request(**exchange.request)
            answered = exchange.answered(response)
        except httpx.RequestError as wrong:
            exchange.failed(wrong)
            raise AssertionError("a call without retries raises") from wrong
        except (httpx.InvalidURL, InvalidDefinition) as wrong:
            raise UnexpectedAnswer(str(wrong)) from wrong
        assert isinstance(answered, Done)  # a call without retries raises, or is done
        return answered.value.outcomes

    def _client(self, destination: Destination) -> httpx.Client:
        """Return the client of a destination, which the sender and tasks may request at the same time."""
        with self._lock:
            if destination not in self._clients:
                token = self.options.token if self._has_token(destination) else None
                namespace = None if token is None else destination.namespace
                timeout, trust = self.options.timeout_seconds, self.options.trust
                connection = Connection(destination.url, token, namespace, timeout=timeout, trust=trust)
                self._clients[destination] = httpx.Client(**connection.options)
            return self._clients[destination]

    def _tell_once(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            log.warning("%s (process %d)", what, os.getpid())
