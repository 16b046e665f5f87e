"""Who was turned away: failed logins and refused permissions reach the audit counted, and never slow an answer.

An attacker must not fill the disk. What is alike - the same address, or the same principal with the same operation -
is one entry for each minute, with a count; beyond a few dozen different ones a minute the rest of a namespace is one
entry, too. What is counted is written in a thread of its own when its minute is over.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import Response

from horarium.api.address import client_address
from horarium.api.auth import TokenMissing
from horarium.api.authorization import end_cookie
from horarium.api.problems import on_failed_login, on_refusal, status_of
from horarium.audit import Act, Deed
from horarium.errors import HorariumError
from horarium.instant import MINUTE, Instant
from horarium.operations.caller import Caller
from horarium.operations.errors import Unauthorized
from horarium.operations.resources import Resources
from horarium.operations.workspace_errors import WorkspaceCallerUnnamed
from horarium.store import audit, namespaces
from horarium.store.database import Connection
from horarium.store.migrate import DEFAULT_NAMESPACE

MOST_ALIKE = 50
"""Entries that the refusals of one minute in one namespace may leave, but for one more."""
# Of all namespaces together; what comes then is counted with the rest of its namespace.
_MOST = 5_000
_ACTS = {401: Act.LOGIN_FAILED, 403: Act.PERMISSION_REFUSED}
_PAUSE_SECONDS = MINUTE / 1_000_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Key by which refusals are counted; `address` None and no `operation` = one of the others."""

    namespace: str
    act: Act
    address: str | None = None
    principal: str | None = None
    operation: str | None = None
    reason: str | None = None

    def rest(self) -> Refusal:
        return Refusal(self.namespace, self.act)


@dataclass(frozen=True, slots=True)
class Counted:
    """`request_id` and `source` are those of the first."""

    count: int
    request_id: str | None
    source: str | None


@dataclass(slots=True)
class Tally:
    """The refusals of some minutes; its size is bounded, whoever asks."""

    most_alike: int = MOST_ALIKE
    most: int = _MOST
    found: dict[tuple[int, Refusal], Counted] = field(default_factory=dict)
    _kinds: Counter[tuple[int, str]] = field(default_factory=Counter)

    def add(self, refusal: Refusal, now: Instant, request_id: str | None, source: str | None) -> None:
        minute = now // MINUTE
        key = (minute, refusal)
        if key not in self.found and self._is_full(minute, refusal.namespace):
            key = (minute, refusal.rest())
        before = self.found.get(key)
        if before is None:
            self._kinds[minute, refusal.namespace] += 1
            self.found[key] = Counted(1, request_id, source)
        else:
            self.found[key] = replace(before, count=before.count + 1)

    def take(self, before: Instant | None) -> dict[tuple[int, str], list[Deed]]:
        """Remove refusals of finished minutes, by minute and namespace; None = all refusals."""
        until = None if before is None else before // MINUTE
        taken = [key for key in self.found if until is None or key[0] < until]
        deeds: dict[tuple[int, str], list[Deed]] = {}
        for key in sorted(taken, key=lambda each: each[0]):
            minute, refusal = key
            deeds.setdefault((minute, refusal.namespace), []).append(_deed(refusal, self.found.pop(key)))
            del self._kinds[minute, refusal.namespace]
        return deeds

    def _is_full(self, minute: int, namespace: str) -> bool:
        return len(self.found) >= self.most or self._kinds[minute, namespace] >= self.most_alike


class Refusals:
    """Refused requests of one process."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._lock = threading.Lock()
        self._tally = Tally()
        self._timer: threading.Timer | None = None
        self._closed = False

    def add(self, refusal: Refusal, request_id: str | None, source: str | None) -> None:
        with self._lock:
            self._tally.add(refusal, self._resources.clock.now(), request_id, source)
            self._wait()

    def flush(self, *, all_of_it: bool = False) -> None:
        """Writes what is over. What cannot be written now is lost, and the log says how much."""
        with self._lock:
            taken = self._tally.take(None if all_of_it else self._resources.clock.now())
        for (minute, namespace), deeds in taken.items():
            self._write(minute * MINUTE, namespace, deeds)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
        self.flush(all_of_it=True)

    def _write(self, since: Instant, namespace: str, deeds: list[Deed]) -> None:
        def work(connection: Connection) -> None:
            # One that was made since then may be another tenant's, of the same name.
            found = namespaces.find(connection, namespace)
            chain = namespace if found is None or found.created_at <= since else DEFAULT_NAMESPACE
            audit.append(connection, chain, deeds, now=self._resources.clock.now())

        try:
            self._resources.database.write(work)
        except HorariumError as wrong:
            lost = sum(int(deed.detail["count"] or 0) for deed in deeds)
            self._resources.telemetry.log.error("denied_requests_not_recorded", count=lost, why=wrong.message)

    def _wait(self) -> None:
        """The caller has the lock."""
        if self._timer is None and not self._closed:
            self._timer = threading.Timer(_PAUSE_SECONDS, self._on_time)
            self._timer.daemon = True
            self._timer.start()

    def _on_time(self) -> None:
        self.flush()
        with self._lock:
            self._timer = None
            if self._tally.found:
                self._wait()


def on_counted_refusal(request: Request, error: Exception) -> Response:
    """As every refusal is answered; some are counted on the way."""
    assert isinstance(error, HorariumError)
    act = None if _is_unaudited(error) else _ACTS.get(status_of(error))
    if act is not None:
        refusals: Refusals = request.app.state.refusals
        caller: Caller | None = getattr(request.state, "caller", None)
        refusal = refusal_of(act, caller, client_address(request.scope), _operation(request.scope), error.reason)
        refusals.add(refusal, request.state.request_id, None if caller is None else caller.source)
    tried = isinstance(error, Unauthorized) and not isinstance(error, TokenMissing)
    answer = on_failed_login(request, error) if tried else on_refusal(request, error)
    return end_cookie(request, answer) if isinstance(error, Unauthorized) else answer


def _is_unaudited(error: HorariumError) -> bool:
    """A first visit shows no credential at all, so no login has failed; a caller may also leave out its name."""
    return type(error) is TokenMissing or isinstance(error, WorkspaceCallerUnnamed)


def refusal_of(act: Act, caller: Caller | None, address: str, operation: str | None, reason: str) -> Refusal:
    """Key of a refused request; an unauthenticated caller is identified by the address alone.

    The rest of what such a caller sends can be forged. The refusal is recorded in the chain of the default namespace,
    since the namespace that the caller names proves nothing.
    """
    if act is Act.LOGIN_FAILED or caller is None:
        return Refusal(DEFAULT_NAMESPACE, act, address)
    return Refusal(caller.namespace, act, address, caller.principal, operation, reason)


def _operation(scope: Mapping[str, object]) -> str | None:
    found = getattr(scope.get("route"), "operation_id", None)
    return found if isinstance(found, str) else None


def _deed(refusal: Refusal, counted: Counted) -> Deed:
    detail = {"count": counted.count, "operation": refusal.operation, "reason": refusal.reason}
    return Deed(
        refusal.act,
        refusal.principal,
        refusal.address,
        counted.request_id,
        counted.source,
        {name: value for name, value in detail.items() if value is not None},
    )
