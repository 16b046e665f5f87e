"""Audit entries of administrative requests, and of rejected requests, which are counted."""

from __future__ import annotations

import inspect
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import wraps
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from horarium.core.audit_entries import Act, AuditAction, DetailValue
from horarium.errors import HorariumError
from horarium.features.agents.workspace_model import WorkspaceCallerUnnamed
from horarium.features.resources import Resources
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.creation import ScheduleChange
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows.service import WorkflowChange
from horarium.instant import MINUTE, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection, Database, audit_chain
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.database.wrapper import DatabaseWrapper
from horarium.platform.errors import ApprovalRequired, Unauthorized
from horarium.platform.http.authentication import TokenMissing, end_cookie
from horarium.platform.http.connections import client_address
from horarium.platform.http.responses import Reply, on_failed_login, on_refusal, status_of
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission, WriteOutcome

T = TypeVar("T")
Endpoint = Callable[..., Reply]

_OF_THE_HOUSE = "/api/namespaces"
# Members of a body that are told: names and choices, none of which is ever a secret. Of the second list objects are
# told as well; elsewhere an object may hold anything, as the `action` of a schedule does.
_PLAIN: Final = frozenset({
    "action", "adopt", "agent_id", "all", "assignee_id", "assignee_type", "assignment_id", "bundle", "expires_at", "id",
    "limit", "name", "namespace", "new_name", "overlap_seconds", "owner", "parent_id", "prune", "reason", "role",
    "rule", "schedule_id", "subject", "subscription_id", "team_id", "timezone", "user_id", "workflow_id",
})  # fmt: skip
_WHOLE: Final = frozenset({"filter", "hosts", "kinds", "quotas", "retention"})
_OWNERS: Final = frozenset({"owner", "user_id"})
# Ids that an act has made.
_MADE: Final = ("token_id", "subscription_id")


class Audited(Enum):
    """Audit setting of an operation: no administrative act, or the chain in which it is recorded."""

    NEVER = "never"
    IN_NAMESPACE = "in the chain of the namespace"
    IN_HOUSE = "in the chain of the default namespace: it concerns all tenants"
    NAMING_OWNER = "in the chain of the namespace, if an admin changes the owner"


def audited_by_rule(method: str, path: str, needs: object) -> Audited:
    """For a route that says nothing: whatever only admins may do, and changes something, is an administrative act."""
    if method == "GET" or needs is not Permission.ADMINISTER:
        return Audited.NEVER
    return Audited.IN_HOUSE if path.startswith(_OF_THE_HOUSE) else Audited.IN_NAMESPACE


def chain_of(rule: Audited, caller: Caller, given: Mapping[str, Any]) -> str | None:
    """The namespace in whose chain this request leaves an entry; None = in none."""
    # In the query, where only a route that knows it has it. In a body anybody may write it; what only tries out by
    # that commits nothing, and so leaves no entry.
    if rule is Audited.NEVER or given.get("dry_run") is True:
        return None
    if rule is Audited.NAMING_OWNER and not caller.is_admin:
        return None
    return DEFAULT_NAMESPACE if rule is Audited.IN_HOUSE else caller.namespace


def detail_of(given: Mapping[str, Any]) -> dict[str, DetailValue]:
    """Collect parameters of path and query, and the listed fields of the body."""
    named = {name: value for name, value in given.items() if name != "idempotency_key"}
    told: dict[str, DetailValue] = {name: value for name, value in named.items() if isinstance(value, str | int)}
    for name, value in _body(given).items():
        known = _told(name, value)
        if known is not None and known != told.get(name):  # a body may repeat what the path says
            told[f"new_{name}" if name in told else name] = known
    address = _body(given).get("url")
    if isinstance(address, str):
        told["host"] = _host(address)
    return told


def audited(endpoint: Endpoint, name: str, rule: Audited) -> Endpoint:
    """Around an endpoint that takes `resources` and `caller` and works through them alone."""
    if inspect.iscoroutinefunction(endpoint):
        raise TypeError(f"{name} is a coroutine, and its transactions are not seen here")

    @wraps(endpoint)
    def acting(*, resources: Resources, caller: Caller, **given: Any) -> Reply:
        chain = chain_of(rule, caller, given)
        if chain is None:
            return endpoint(resources=resources, caller=caller, **given)
        deed = AuditAction(name, caller.principal, caller.address, caller.request_id, caller.source, detail_of(given))

        def tell(connection: Connection, result: object) -> None:
            if isinstance(result, ApprovalRequired):  # it was refused, and only that was written
                return
            made = _made(result) if rule is not Audited.NAMING_OWNER else _given_away(connection, caller, result)
            if made is not None:
                told = replace(deed, detail={**deed.detail, **made})
                audit_chain.append(connection, chain, [told], now=resources.clock.now())

        telling = replace(resources, database=_Telling(resources.database, tell))
        return endpoint(resources=telling, caller=caller, **given)

    signature = inspect.signature(endpoint, eval_str=True)
    acting.__signature__ = signature  # type: ignore[attr-defined]  # what FastAPI reads
    return acting


class _Telling(DatabaseWrapper):
    """A database that adds the entry to the first transaction that is committed."""

    def __init__(self, inner: Database, tell: Callable[[Connection, object], None]) -> None:
        super().__init__(inner)
        self._tell = tell
        self._told = False

    def write(self, work: Callable[[Connection], T]) -> T:
        return self._once(super().write, work)

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        return self._once(super().write_planned, work)

    def _once(self, write: Callable[[Callable[[Connection], T]], T], work: Callable[[Connection], T]) -> T:
        if self._told:
            return write(work)

        def both(connection: Connection) -> T:
            result = work(connection)
            self._tell(connection, result)
            return result

        result = write(both)
        self._told = True
        return result


def _body(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((value for value in given.values() if isinstance(value, Mapping)), {})


def _told(name: str, value: object) -> DetailValue:
    if name in _WHOLE and isinstance(value, list | dict):
        return json.dumps(value, sort_keys=True)
    if name not in _PLAIN | _WHOLE:
        return None
    if isinstance(value, bool | int):
        return value if -(2**63) <= value < 2**63 else None
    return value if isinstance(value, str) else None


def _host(url: str) -> str | None:
    """An address may carry credentials in its other parts."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _made(result: object) -> dict[str, DetailValue]:
    """With the version of a workflow that was put: what it changed is between that and the one before."""
    found = {name: getattr(result, name, None) for name in _MADE}
    version: dict[str, DetailValue] = {"version": result.version} if isinstance(result, WorkflowChange) else {}
    return version | {name: id_text(value) for name, value in found.items() if isinstance(value, bytes)}


def _given_away(connection: Connection, caller: Caller, result: object) -> dict[str, DetailValue] | None:
    """By what was written, however it was spelled: who owns the schedule now; None = whoever would have anyway.

    With its revision: what it changed is between that and the one before.
    """
    if not isinstance(result, ScheduleChange):
        return None
    row = schedules.find(connection, result.namespace, result.schedule_id)
    is_other = result.outcome is WriteOutcome.CREATED and row is not None and row.owner != caller.principal
    if row is None or not (is_other or _OWNERS.intersection(result.changed)):
        return None
    return {"schedule_id": result.schedule_id, "owner": row.owner, "revision": row.revision}


MOST_ALIKE = 50
"""Entries that the refusals of one minute in one namespace may leave, but for one more."""
# Of all namespaces together; what comes then is counted with the rest of its namespace.
_MOST = 5_000
_ACTS = {401: Act.LOGIN_FAILED, 403: Act.PERMISSION_REFUSED}
_PAUSE_SECONDS = MINUTE / 1_000_000


@dataclass(frozen=True, slots=True)
class RefusalKey:
    """Key by which refusals are counted; `address` None and no `operation` = one of the others."""

    namespace: str
    act: Act
    address: str | None = None
    principal: str | None = None
    operation: str | None = None
    reason: str | None = None

    def rest(self) -> RefusalKey:
        return RefusalKey(self.namespace, self.act)


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
    found: dict[tuple[int, RefusalKey], Counted] = field(default_factory=dict)
    _kinds: Counter[tuple[int, str]] = field(default_factory=Counter)

    def add(self, refusal: RefusalKey, now: Instant, request_id: str | None, source: str | None) -> None:
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

    def take(self, before: Instant | None) -> dict[tuple[int, str], list[AuditAction]]:
        """Remove refusals of finished minutes, by minute and namespace; None = all refusals."""
        until = None if before is None else before // MINUTE
        taken = [key for key in self.found if until is None or key[0] < until]
        deeds: dict[tuple[int, str], list[AuditAction]] = {}
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

    def add(self, refusal: RefusalKey, request_id: str | None, source: str | None) -> None:
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

    def _write(self, since: Instant, namespace: str, deeds: list[AuditAction]) -> None:
        def work(connection: Connection) -> None:
            # One that was made since then may be another tenant's, of the same name.
            found = tenant_rows.find_namespace(connection, namespace)
            chain = namespace if found is None or found.created_at <= since else DEFAULT_NAMESPACE
            audit_chain.append(connection, chain, deeds, now=self._resources.clock.now())

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


def refusal_of(act: Act, caller: Caller | None, address: str, operation: str | None, reason: str) -> RefusalKey:
    """Key of a refused request; an unauthenticated caller is identified by the address alone.

    The rest of what such a caller sends can be forged. The refusal is recorded in the chain of the default namespace,
    since the namespace that the caller names proves nothing.
    """
    if act is Act.LOGIN_FAILED or caller is None:
        return RefusalKey(DEFAULT_NAMESPACE, act, address)
    return RefusalKey(caller.namespace, act, address, caller.principal, operation, reason)


def _operation(scope: Mapping[str, object]) -> str | None:
    found = getattr(scope.get("route"), "operation_id", None)
    return found if isinstance(found, str) else None


def _deed(refusal: RefusalKey, counted: Counted) -> AuditAction:
    detail = {"count": counted.count, "operation": refusal.operation, "reason": refusal.reason}
    return AuditAction(
        refusal.act,
        refusal.principal,
        refusal.address,
        counted.request_id,
        counted.source,
        {name: value for name, value in detail.items() if value is not None},
    )
