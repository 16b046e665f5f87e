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
# Whoever is told to come again next year comes again in a while all the same.
_LONGEST_WISH_SECONDS = 300.0
_UNREADABLE = frozenset({400, 413, 422})
_TAKEN = range(200, 300)
_REFUSED = range(400, 500)


@dataclass(frozen=True, slots=True)
class Processed:
    """The first `count` need not be sent again; `refused` are the places of those that were in vain, and why."""

    count: int
    refused: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Halve:
    """One of them keeps the others from being read."""


@dataclass(frozen=True, slots=True)
class SendLater:
    why: str
    least_seconds: float = 0.0


Verdict: TypeAlias = Processed | Halve | SendLater


def judge(sent: int, answer: Sequence[RunReportOutcome] | ClientError, *, with_token: bool) -> Verdict:
    """`with_token`: whoever sent them has a token of its own, and did not rely on those of the runs."""
    if not isinstance(answer, ClientError):
        return _of_each(sent, answer)
    if isinstance(answer, RateLimited | ServerUnavailable):
        return SendLater(answer.message, min(answer.retry_after or 0.0, _LONGEST_WISH_SECONDS))
    alone = answer.status in _UNREADABLE or (
        answer.status == 401 and answer.body.get("reason") == "unauthorized" and not with_token
    )
    if not alone:
        return SendLater(answer.message)
    return Halve() if sent > 1 else Processed(1, ((0, answer.message),))


def _of_each(sent: int, outcomes: Sequence[RunReportOutcome]) -> Verdict:
    """They are delivered in order: what comes after one that must be sent again is sent again, too."""
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
    """Before the next try, after so many failures in a row: half a second at first, half a minute at last."""
    return max(least_seconds, backoff(_BASE_MS, _LONGEST_MS, failures, unit_hash(key, failures)) / 1_000)


MAX_BATCH_BYTES = 786_432
LINGER_SECONDS = 0.1
"""How long a report waits for company."""
SWEEP_SECONDS = 2.0

Post: TypeAlias = Callable[[Destination, list[dict[str, Any]]], Sequence[RunReportOutcome]]
"""Sends reports; raises ClientError."""


@dataclass(slots=True)
class _Line:
    """State of one destination; `most` is how many reports it is sent at once."""

    failures: int = 0
    next_at: float = 0.0
    most: int = MAX_REPORTS


class ReportSender:
    """`post` with a token of its own for those destinations of which `has_token` says so."""

    def __init__(self, spool: Spool, post: Post, has_token: Callable[[Destination], bool], clock: Clock) -> None:
        self._spool = spool
        self._post = post
        self._has_token = has_token
        self._clock = clock
        self._lines: dict[Destination, _Line] = {}
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
        """Sends what can be sent now, for so long at most; whether it is through."""
        thread = self._thread
        if thread is None:
            return True
        self._stopping = True
        self._woken.set()
        thread.join(seconds)
        return not thread.is_alive()

    def step(self) -> bool:
        """One batch for each destination that is not to be left alone for a while; whether anything was delivered."""
        delivered = False
        for file in self._spool.sources:
            line = self._lines.setdefault(file.destination, _Line())
            if self._clock.monotonic() >= line.next_at:
                delivered |= self._send(file, line)
        return delivered

    def _run(self) -> None:
        while True:
            try:
                self._spool.sweep()
                while self.step():
                    pass
            except Exception:  # reports are on file, and the next round may be luckier
                log.exception("reports could not be sent")
            if self._stopping:
                return
            if self._woken.wait(SWEEP_SECONDS) and not self._stopping:
                time.sleep(LINGER_SECONDS)
            self._woken.clear()

    def _send(self, file: SpoolFile, line: _Line) -> bool:
        waiting = file.pending(line.most, MAX_BATCH_BYTES)
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
                self._succeeded(file, line)
                return True
            case Halve():
                line.most = max(1, len(documents) // 2)
                return True
            case SendLater(why, least_seconds):
                self._failed(file, line, why, least_seconds)
                return False

    def _succeeded(self, file: SpoolFile, line: _Line) -> None:
        if line.failures:
            log.warning("%s takes reports again", file.destination.url)
        line.failures, line.next_at, line.most = 0, 0.0, min(MAX_REPORTS, line.most * 2)

    def _failed(self, file: SpoolFile, line: _Line, why: str, least_seconds: float) -> None:
        line.failures += 1
        pause = pause_seconds(line.failures, least_seconds, f"{os.getpid()} {file.destination.url}")
        line.next_at = self._clock.monotonic() + pause
        if line.failures & (line.failures - 1) == 0:  # each time that the count has doubled
            log.warning("%s does not take reports, which wait in %s: %s", file.destination.url, file.path.parent, why)
