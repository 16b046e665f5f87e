"""Which operations are administrative acts, and how each leaves its entry in the audit.

The entry is written in the transaction of the act: in the first that it commits, where it has several. So nothing
of an act can have happened without its entry, and what was refused or only tried out leaves none. Of a body it
holds members on a list alone, so that no secret can get into it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from functools import wraps
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from horarium.api.answers import Reply
from horarium.audit import Deed, DetailValue
from horarium.ids import id_text
from horarium.operations.caller import Caller
from horarium.operations.changes import ScheduleChange
from horarium.operations.errors import ApprovalRequired
from horarium.operations.resources import Resources
from horarium.operations.workflows import WorkflowChange
from horarium.store import audit
from horarium.store.database import Connection, Database
from horarium.store.database.wrapper import DatabaseWrapper
from horarium.store.migrate import DEFAULT_NAMESPACE
from horarium.store.schedules import rows as schedules
from horarium.wire.outcomes import WriteOutcome
from horarium.wire.roles import Permission

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
        deed = Deed(name, caller.principal, caller.address, caller.request_id, caller.source, detail_of(given))

        def tell(connection: Connection, result: object) -> None:
            if isinstance(result, ApprovalRequired):  # it was refused, and only that was written
                return
            made = _made(result) if rule is not Audited.NAMING_OWNER else _given_away(connection, caller, result)
            if made is not None:
                told = replace(deed, detail={**deed.detail, **made})
                audit.append(connection, chain, [told], now=resources.clock.now())

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
