"""How tenants are made and listed; only admins of the house do either."""

from __future__ import annotations

from horarium.errors import InvalidDefinition
from horarium.operations.caller import Caller
from horarium.operations.errors import Forbidden, NamespaceAlreadyExists, NamespaceNotFound
from horarium.operations.resources import Resources
from horarium.policy.names import PolicyError
from horarium.schedule.naming import checked_id
from horarium.store import namespaces
from horarium.store.database import Connection
from horarium.store.errors import Conflict
from horarium.store.namespaces import NamespaceRow
from horarium.wire.roles import Permission

MAX_DESCRIPTION = 1_000


def create(resources: Resources, caller: Caller, name: object, description: str = "") -> NamespaceRow:
    caller.require_house()
    try:
        namespace = checked_id("namespace", name)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None
    if len(description) > MAX_DESCRIPTION:
        raise InvalidDefinition({"description": [f"must not be longer than {MAX_DESCRIPTION} characters"]})
    now = resources.clock.now()
    try:
        resources.database.write(lambda connection: namespaces.insert(connection, namespace, description, now=now))
    except Conflict:
        raise NamespaceAlreadyExists(namespace) from None
    return NamespaceRow(namespace, description, now)


def get(resources: Resources, caller: Caller, name: str) -> NamespaceRow:
    """One's own, or any for an admin of the house; what others have is not there."""
    caller.require(Permission.READ)
    if name != caller.namespace:
        try:
            caller.require_house()
        except Forbidden:
            raise NamespaceNotFound(name[:128]) from None

    def look(connection: Connection) -> NamespaceRow:
        found = namespaces.find(connection, name)
        if found is None:
            raise NamespaceNotFound(name)
        return found

    return resources.database.read(look)


def list_namespaces(resources: Resources, caller: Caller) -> list[NamespaceRow]:
    caller.require_house()
    return resources.database.read(namespaces.all_namespaces)
