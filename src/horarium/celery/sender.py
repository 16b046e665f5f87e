"""The thread that sends reports from the spool: in batches, in order, for as long as it takes.

| response of the service       | to several reports     | to a single report     |
|-------------------------------|------------------------|------------------------|
| an outcome for each           | delivered, or refused  | delivered, or refused  |
| 400, 413, 422                 | half of them are sent  | refused                |
| 401, to the tokens of runs    | half of them are sent  | refused                |
| 401, 403, to the sender token | later                  | later                  |
| anything else, or none        | later                  | later                  |

A refused report would be refused again, so it is dropped and logged.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from horarium.celery.spool import Spool, log
from horarium.celery.spool_file import Destination, SpoolFile
from horarium.core.policy.approval import backoff, unit_hash
from horarium.features.runs.model import MAX_REPORTS, RunReportOutcome
from horarium.platform.client.errors import ClientError, RateLimited, ServerUnavailable
from horarium.platform.clock import Clock

# ── responses ─────────────────────────────────────────────────────────────────────────────────────────


_BASE_MS, _LONGEST_MS = 500, 30_000
# The longest Retry-After that is obeyed.
_MAX_RETRY_AFTER_SECONDS = 300.0
_UNREADABLE = frozenset({400, 413, 422})
_TAKEN = range(200, 300)
_REFUSED = range(400, 500)


@dataclass(frozen=True, slots=True)
class Processed:
    """The first `count` reports are done; `refused` has the positions and reasons of those that were refused."""

    count: int
    refused: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Halve:
    """One unreadable report blocks the batch; the batch is halved to find it."""


@dataclass(frozen=True, slots=True)
class SendLater:
    why: str
    least_seconds: float = 0.0


Verdict: TypeAlias = Processed | Halve | SendLater


def judge(sent: int, answer: Sequence[RunReportOutcome] | ClientError, *, with_token: bool) -> Verdict:
    """Decide what follows from a response. `with_token`: sent with the token of the worker, not those of runs."""
    if not isinstance(answer, ClientError):
        return _of_each(sent, answer)
    if isinstance(answer, RateLimited | ServerUnavailable):
        return SendLater(answer.message, min(answer.retry_after or 0.0, _MAX_RETRY_AFTER_SECONDS))
    alone = answer.status in _UNREADABLE or (
        answer.status == 401 and answer.body.get("reason") == "unauthorized" and not with_token
    )
    if not alone:
        return SendLater(answer.message)
    return Halve() if sent > 1 else Processed(1, ((0, answer.message),))


def _of_each(sent: int, outcomes: Sequence[RunReportOutcome]) -> Verdict:
    """Keep the order: reports after one that must be sent again are sent again, too."""
    if len(outcomes) != sent:
        return SendLater(f"received {len(outcomes)} outcomes for {sent} reports")
    refused = []
    for place, each in enumerate(outcomes):
        if each.status in _REFUSED and each.status != 429:
            refused.append((place, f"{each.reason}: {each.message}"))
        elif each.status not in _TAKEN:
            why = f"{each.reason}: {each.message}"
            return Processed(place, tuple(refused)) if place else SendLater(why)
    return Processed(sent, tuple(refused))


def pause_seconds(failures: int, least_seconds: float, key: str) -> float:
    """Return the pause after consecutive failures: up to half a second at first, up to half a minute later."""
    return max(least_seconds, backoff(_BASE_MS, _LONGEST_MS, failures, unit_hash(key, failures)) / 1_000)


MAX_BATCH_BYTES = 786_432
LINGER_SECONDS = 0.1
"""How long a report waits, so that others can be sent with it."""
SWEEP_SECONDS = 2.0

Post: TypeAlias = Callable[[Destination, list[dict[str, Any]]], Sequence[RunReportOutcome]]
"""Sends reports; raises ClientError."""


@dataclass(slots=True)
class _Backoff:
    """Failures and next attempt of one destination; `most` limits the reports of one request."""

    failures: int = 0
    next_at: float = 0.0
    most: int = MAX_REPORTS


class ReportSender:
    """The sending thread. `has_token` tells whether `post` uses the token of the worker for a destination."""

    def __init__(self, spool: Spool, post: Post, has_token: Callable[[Destination], bool], clock: Clock) -> None:
        self._spool = spool
        self._post = post
        self._has_token = has_token
        self._clock = clock
        self._backoffs: dict[Destination, _Backoff] = {}
        self._woken = threading.Event()
        self._starting = threading.Lock()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="horarium-reports", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        if not self._woken.is_set():
            self._woken.set()
        if self._thread is None:
            self.start()

    def stop(self, seconds: float) -> bool:
        """Send what can be sent within `seconds`; return whether the thread has ended."""
        thread = self._thread
        if thread is None:
            return True
        self._stopping = True
        self._woken.set()
        thread.join(seconds)
        return not thread.is_alive()

    def step(self) -> bool:
        """Send one batch to each destination that is not in a pause; return whether anything was delivered."""
        delivered = False
        for file in self._spool.sources:
            state = self._backoffs.setdefault(file.destination, _Backoff())
            if self._clock.monotonic() >= state.next_at:
                delivered |= self._send(file, state)
        return delivered

    def _run(self) -> None:
        while True:
            try:
                self._spool.sweep()
                while self.step():
                    pass
            except Exception:  # the reports stay on file for the next round
                log.exception("reports could not be sent")
            if self._stopping:
                return
            if self._woken.wait(SWEEP_SECONDS) and not self._stopping:
                time.sleep(LINGER_SECONDS)
            self._woken.clear()

    def _send(self, file: SpoolFile, state: _Backoff) -> bool:
        waiting = file.pending(state.most, MAX_BATCH_BYTES)
        readable = [(each, document) for each in waiting.lines if (document := each.document()) is not None]
        if not readable:
            if waiting.lines:
                log.error("%d lines in %s are no reports", len(waiting.lines), file.path)
                file.delivered(waiting.lines[-1].end, waiting.generation)
            return bool(waiting.lines)
        documents = [document for _, document in readable]
        try:
            answer: Sequence[RunReportOutcome] | ClientError = self._post(file.destination, documents)
        except ClientError as wrong:
            answer = wrong
        match judge(len(documents), answer, with_token=self._has_token(file.destination)):
            case Processed(count, refused):
                for place, why in refused:
                    log.error("the report on the run %s is given up: %s", documents[place].get("run_id"), why)
                file.delivered(readable[count - 1][0].end, waiting.generation)
                self._succeeded(file, state)
                return True
            case Halve():
                state.most = max(1, len(documents) // 2)
                return True
            case SendLater(why, least_seconds):
                self._failed(file, state, why, least_seconds)
                return False

    def _succeeded(self, file: SpoolFile, state: _Backoff) -> None:
        if state.failures:
            log.warning("%s takes reports again", file.destination.url)
        state.failures, state.next_at, state.most = 0, 0.0, min(MAX_REPORTS, state.most * 2)

    def _failed(self, file: SpoolFile, state: _Backoff, why: str, least_seconds: float) -> None:
        state.failures += 1
        pause = pause_seconds(state.failures, least_seconds, f"{os.getpid()} {file.destination.url}")
        state.next_at = self._clock.monotonic() + pause
        if state.failures & (state.failures - 1) == 0:  # each time that the count has doubled
            log.warning("%s does not take reports, which wait in %s: %s", file.destination.url, file.path.parent, why)
