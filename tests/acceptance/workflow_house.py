"""A service that may be killed between any two transactions, and a target outside that outlives it.

The engine's parts are stepped one by one, so that anything may come between them. `dies` lets the process end at a
commit, just before it or just after; what it held in memory is gone, and another process goes on with the database.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from acceptance.workflow_books import Books, delivered_wrongly, open_books, problems, unfinished

from horarium.core.document.states import FINAL
from horarium.core.lifecycle.outcome import Accepted, Busy, Outcome, Refused, Unreachable
from horarium.features.tenants import service as tenant_service
from horarium.instant import Instant
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.database import transactions
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Role
from horarium.testing import TestService, service

START = "2026-03-02T00:00:00Z"
PEOPLE = ("ann", "bob", "cleo")
_NOT_TAKEN = (Busy, Unreachable, Refused)
_DAYS = 12


class Killed(BaseException):
    """The process is gone. No handler of ours may catch it."""


class Target:
    """Takes each key once, and gives the same answer to whoever brings it again."""

    def __init__(self) -> None:
        self.accepted: list[LaunchRequest] = []
        self.coming: deque[Outcome] = deque()
        self.usual: Outcome = Accepted()
        self._answers: dict[str, Outcome] = {}

    def answer(self, request: LaunchRequest) -> Outcome:
        if request.key in self._answers:
            return self._answers[request.key]
        outcome = self.coming.popleft() if self.coming else self.usual
        if not isinstance(outcome, _NOT_TAKEN):
            self._answers[request.key] = outcome
        if isinstance(outcome, Accepted):
            self.accepted.append(request)
        return outcome


@contextmanager
def dies(commits: int, *, after: bool) -> Iterator[None]:
    """The process ends at the commit of that number, counted from 0."""
    real, numbers = transactions._commit, itertools.count()

    def commit(transaction: Any) -> None:
        number = next(numbers)
        if number > commits:
            raise Killed  # what is dead writes nothing more
        if number < commits or after:
            real(transaction)
        if number == commits:
            raise Killed

    transactions._commit = commit
    try:
        yield
    finally:
        transactions._commit = real


class House:
    def __init__(self, url: str) -> None:
        self._url = url
        self.target = Target()
        self._ended: dict[bytes, tuple[str, Instant]] = {}
        self._open(START)
        admin = self.service.caller
        self.tokens = {
            name: tenant_service.issue_token(
                self.service.resources, admin, name=name, role=Role.OPERATOR, subject=name
            ).secret
            for name in PEOPLE
        }

    # ── the process ──────────────────────────────────────────────────────────────────────────────

    def _open(self, at: str | Instant) -> None:
        self._context = service(at=at, answer=self.target.answer, database=self._url)
        self.service: TestService = self._context.__enter__()
        self._looked_at = 0
        self._http: dict[str | None, httpx.Client] = {}

    def begin_again(self) -> None:
        """Another process, on the same database and at the same time."""
        now = self.service.now
        self.close()
        self._open(now)

    def close(self) -> None:
        self._context.__exit__(None, None, None)

    def step(self, part: str) -> None:
        """One step of a part of the engine, as its loop makes it."""
        engine, run = self.service.parts.engine, self.service._loop.run
        match part:
            case "tick":
                engine.ticker.step()
            case "launch":
                run(engine.dispatcher.step())
            case "claim":  # and no more: who dies here leaves a lease behind
                run(engine.dispatcher.claim())
            case "advance":
                engine.advancer.step()
            case "tidy":
                engine.janitor.step()
            case "follow":
                run(engine.follower.step())
            case _:
                self.service.settle()

    def step_and_die(self, part: str, commits: int, *, after: bool) -> None:
        """Where a step has less to commit, the process dies when it has done all of it."""
        try:
            with dies(commits, after=after):
                self.step(part)
        except Killed:
            pass
        self.check()
        self.begin_again()

    # ── asking ───────────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, path: str, *, by: str | None = None, **rest: Any) -> httpx.Response:
        """`by` one of the people; without it, an admin. A fault of ours is no answer."""
        if by not in self._http:
            self._http[by] = self.service.http() if by is None else self.service.http(token=self.tokens[by])
        answer = self._http[by].request(method, path, **rest)
        assert answer.status_code < 500, f"{method} {path} {rest}: {answer.status_code} {answer.text}"
        return answer

    def books(self) -> Books:
        return self.service.resources.database.read(open_books)

    # ── what must be true ────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        books = self.books()
        found = problems(books)
        over = {id_text(run_id) for run_id in self._ended}
        deliveries = self.service.launcher.deliveries
        for request in deliveries[self._looked_at :]:
            found += delivered_wrongly(books, request, over)
        self._looked_at = len(deliveries)
        for run_id, (state, at) in self._ended.items():
            row = books.runs[run_id]
            if (row.state, row.finished_at) != (state, at):
                found.append(f"{id_text(run_id)} had ended {state}, and now it is {row.state}")
        self._ended |= {row.run_id: (row.state, row.finished_at) for row in books.runs.values() if row.state in FINAL}
        assert not found, "\n".join(found[:20])

    def drive_to_the_end(self) -> None:
        """Time passes, the target finishes nothing more, and nobody decides: all that is open must end by itself."""
        for row in self.books().positions:
            if row.status == "paused":
                self.ask("POST", f"/api/schedules/{row.schedule_id}/resume")
        for _ in range(_DAYS):
            self.service.advance(days=1)
            self.check()
            if not (left := unfinished(self.books())):
                break
        assert not left, "\n".join(left[:20])
        assert not self.service.verify()
        mended = self.service.parts.engine.repair.step()
        assert (mended.recounted, mended.planned, mended.keys) == (0, 0, 0), mended

    def report(self, request: LaunchRequest, **said: Any) -> httpx.Response:
        """By the target, with the token that it was handed."""
        assert parse_id(request.run_id, "run_id")
        body = {**said, "report_token": request.report_token}
        return self.ask("POST", f"/api/runs/{request.run_id}/report", json=body)
