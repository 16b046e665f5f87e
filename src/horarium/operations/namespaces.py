"""How tenants are made, listed and taken away; only admins of the house do any of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.errors import (
    Forbidden,
    NamespaceAlreadyExists,
    NamespaceGoing,
    NamespaceInUse,
    NamespaceNotFound,
    NamespaceProtected,
)
from horarium.operations.resources import Resources
from horarium.policy.names import PolicyError
from horarium.policy.quotas import changed_quotas
from horarium.policy.retention import Retention, changed_retention
from horarium.schedule.naming import checked_id
from horarium.store import namespaces, removal
from horarium.store.database import Connection
from horarium.store.errors import CommitUnknown, Conflict, StoreUnavailable
from horarium.store.migrate import DEFAULT_NAMESPACE
from horarium.store.namespaces import NamespaceRow
from horarium.store.quotas import Standing
from horarium.store.removal import Usage
from horarium.wire.outcomes import RemovalOutcome
from horarium.wire.roles import Permission

MAX_DESCRIPTION = 1_000
# Transactions that whoever asks over HTTP waits for; the rest is done by itself.
_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class Removal:
    """`usage` is what was live when it was asked for."""

    namespace: str
    outcome: RemovalOutcome
    usage: Usage


def create(resources: Resources, caller: Caller, name: object, description: str = "") -> NamespaceRow:
    caller.require_house()
    try:
        namespace = checked_id("namespace", name)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None
    _check_description(description)
    now = resources.clock.now()
    try:
        resources.database.write(lambda connection: namespaces.insert(connection, namespace, description, now=now))
    except Conflict:
        if resources.database.read(lambda connection: namespaces.find(connection, namespace)) is None:
            raise NamespaceGoing(f"the namespace {namespace!r} is being deleted; retry later") from None
        raise NamespaceAlreadyExists(namespace) from None
    return NamespaceRow(namespace, description, now)


def get(resources: Resources, caller: Caller, name: str) -> NamespaceRow:
    """One's own, or any for an admin of the house; what others have is not there."""
    caller.require(Permission.READ)
    if name != caller.namespace:
        _require_house(caller, name)

    def look(connection: Connection) -> NamespaceRow:
        found = namespaces.find(connection, name)
        if found is None:
            raise NamespaceNotFound(name)
        return found

    return resources.database.read(look)


def standing(resources: Resources, caller: Caller, name: str) -> tuple[NamespaceRow, Standing]:
    """As `get`, with its limits and what it has of each, counted now."""
    row = get(resources, caller, name)
    now = resources.clock.now()
    found = resources.database.read(lambda connection: resources.quotas.standing(connection, name, now, exact=True))
    if found is None:
        raise NamespaceNotFound(name)
    return row, found


def change(
    resources: Resources,
    caller: Caller,
    name: str,
    *,
    description: str | None = None,
    quotas: object = None,
    retention: object = None,
) -> None:
    """Change the given parts: description, quotas and retention. Only for admins of the installation."""
    caller.require(Permission.ADMINISTER)
    _require_house(caller, name)
    if description is not None:
        _check_description(description)

    def work(connection: Connection) -> None:
        if len(name) > _MAX_NAME or not namespaces.lock(connection, name):
            raise NamespaceNotFound(name)
        row = namespaces.find(connection, name)
        assert row is not None  # it is locked
        own = Retention(row.keep_runs_days, row.keep_history_days)
        kept = own if retention is None else changed_retention(own, retention)
        changed = replace(
            row,
            description=row.description if description is None else description,
            quotas=row.quotas if quotas is None else changed_quotas(row.quotas, quotas),
            keep_runs_days=kept.keep_runs_days,
            keep_history_days=kept.keep_history_days,
        )
        namespaces.update(connection, changed)

    try:
        resources.database.write(work)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _check_description(description: str) -> None:
    if len(description) > MAX_DESCRIPTION:
        raise InvalidDefinition({"description": [f"must not be longer than {MAX_DESCRIPTION} characters"]})


def list_namespaces(resources: Resources, caller: Caller) -> list[NamespaceRow]:
    caller.require_house()
    return resources.database.read(namespaces.all_namespaces)


def delete(resources: Resources, caller: Caller, name: str, *, force: bool = False, dry_run: bool = False) -> Removal:
    """With all that belongs to it. What is live is refused unless `force`; its tokens open nothing from now on.

    A small one is gone when this returns. Of a large one a part is, and the rest goes by itself; until then its name
    is not free.
    """
    caller.require(Permission.ADMINISTER)
    _require_house(caller, name)
    if name in (DEFAULT_NAMESPACE, resources.settings.default_namespace):
        raise NamespaceProtected(f"{name!r} is the default namespace and cannot be deleted")

    def work(connection: Connection) -> Usage:
        if len(name) > _MAX_NAME or not removal.lock(connection, name):
            raise NamespaceNotFound(name)
        found = removal.usage(connection, name)
        if dry_run:
            return found
        if not force and (found.schedules or found.open_runs):
            raise NamespaceInUse(name, found.schedules, found.open_runs)
        removal.mark_deleted(connection, name, now=resources.clock.now())
        return found

    found = resources.database.write(work)
    if dry_run:
        return Removal(name, RemovalOutcome.PLANNED, found)
    is_gone = _remove(resources, name)
    return Removal(name, RemovalOutcome.DELETED if is_gone else RemovalOutcome.DELETING, found)


def _require_house(caller: Caller, name: str) -> None:
    """Hide other namespaces from an admin of a tenant; for its own namespace the denial is shown."""
    try:
        caller.require_house()
    except Forbidden:
        if name == caller.namespace:
            raise
        raise NamespaceNotFound(name) from None


def _remove(resources: Resources, name: str) -> bool:
    """It is deleted, whatever happens here: what is left, or cannot be written now, retention removes."""
    with suppress(StoreUnavailable, CommitUnknown):
        for _ in range(_MOST_STEPS):
            step = resources.database.write(
                lambda connection: removal.remove_some(connection, resources.known, name, now=resources.clock.now())
            )
            if step is not removal.Step.MORE:
                return step is removal.Step.DONE
    return False


_MAX_NAME = 128
