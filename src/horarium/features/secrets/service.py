"""Secrets of a tenant: values that are set, listed by name and deleted, and never shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.core.document.secret_values import checked_hosts, checked_value
from horarium.core.policy.queue import PolicyError, checked_id
from horarium.errors import InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.schedules.drafts import check_stored, hold_namespace, require_namespace
from horarium.features.schedules.lookup_rows import schedules_with_secret
from horarium.features.secrets import rows
from horarium.features.secrets.rows import SecretName
from horarium.features.workflows.rows import workflows_with_secret
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.database.installation import Sealer
from horarium.platform.errors import Forbidden, OperationRefused, SecretInUse, SecretNotFound
from horarium.platform.wire import Permission, Role

_USERS_NAMED = 20


@dataclass(frozen=True, slots=True)
class SecretPage:
    secrets: tuple[SecretName, ...]
    next_page_token: str | None


def put(resources: Resources, caller: Caller, name: str, value: object, hosts: object = None) -> SecretName:
    """Its version is 1 if there was none. Without `hosts` they stay as they were, and a new one may go to any.

    The value is always given: nobody sends a secret elsewhere who does not know it.
    """
    caller.require(Permission.WRITE)
    _check(name, value, hosts)

    def work(connection: Connection) -> SecretName:
        hold_namespace(connection, caller.namespace)
        before = rows.find(connection, caller.namespace, name) if hosts is None else None
        allowed = checked_hosts(hosts) if before is None else before.hosts
        return keep(resources, connection, caller, name, checked_value(value), allowed)

    return resources.database.write(work)


def keep(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    name: str,
    value: str,
    hosts: Sequence[str] | None = None,
    *,
    generated: bool = False,
) -> SecretName:
    """For whoever writes more than that in the same transaction, and has checked name, value and hosts."""
    if resources.sealer is None:
        raise OperationRefused("this process has no secret key, so it cannot store secrets; set secret_key")
    most = resources.settings.secrets_per_namespace
    before = rows.find(connection, caller.namespace, name)
    if before is None and rows.count(connection, caller.namespace) >= most:
        raise OperationRefused(f"the namespace has {most} secrets, the maximum (setting secrets_per_namespace)")
    return seal(resources, connection, caller, resources.sealer, name, value, hosts, generated=generated)


def seal(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    sealer: Sealer,
    name: str,
    value: str,
    hosts: Sequence[str] | None,
    *,
    generated: bool,
) -> SecretName:
    """Store the value. Raise QuotaExceeded where what it takes beside the value before does not fit."""
    namespace, now = caller.namespace, resources.clock.now()
    before = _size(connection, namespace, name)
    written = rows.put(connection, sealer, namespace, name, value, hosts, generated, now, principal=caller.principal)
    added = _size(connection, namespace, name) - before
    if added > 0:
        check_stored(resources, connection, namespace, added, now)
    return written


def _size(connection: Connection, namespace: str, name: str) -> int:
    return sum(len(row.sealed) for row in rows.find_all(connection, namespace, [name]).values())


def list_secrets(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> SecretPage:
    """By name, without values."""
    caller.require(Permission.READ)
    if caller.role is Role.AGENT:
        raise Forbidden("the role agent may not list secrets")
    limit = checked_limit(page_size)
    after = None if next_page_token is None else _token(next_page_token)

    def look(connection: Connection) -> SecretPage:
        require_namespace(connection, caller.namespace)
        found = rows.names(connection, caller.namespace, after_name=after, limit=limit + 1)
        return SecretPage(tuple(found[:limit]), found[limit - 1].name if len(found) > limit else None)

    return resources.database.read(look)


def delete(resources: Resources, caller: Caller, name: str, *, force: bool = False) -> None:
    """Refused while a schedule or workflow names it, unless by `force`: without it no run could be launched."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> None:
        if rows.find(connection, caller.namespace, name) is None:
            raise SecretNotFound(name)
        users = [] if force else schedules_with_secret(connection, caller.namespace, name, most=_USERS_NAMED)
        others = [] if force else workflows_with_secret(connection, caller.namespace, name, most=_USERS_NAMED)
        if users or others:
            raise SecretInUse(name, tuple(users), tuple(others))
        rows.delete(connection, caller.namespace, name)

    resources.database.write(work)


def _check(name: object, value: object, hosts: object) -> None:
    """Raises InvalidDefinition with every problem."""
    errors: dict[str, list[str]] = {}
    for check in (lambda: checked_id("name", name), lambda: checked_value(value), lambda: checked_hosts(hosts)):
        try:
            check()
        except PolicyError as wrong:
            errors[wrong.field] = [wrong.text]
    if errors:
        raise InvalidDefinition(errors)


def _token(text: str) -> str:
    """A page begins behind a name."""
    try:
        return checked_id("next_page_token", text)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None
