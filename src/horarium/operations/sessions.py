"""What somebody who has signed in may do and where: the namespaces to choose from, and the permissions of the role."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.store import namespaces
from horarium.wire.roles import Permission

MOST_NAMESPACES = 1_000


@dataclass(frozen=True, slots=True)
class Reach:
    """`more`: there are namespaces beyond those that are named."""

    permissions: tuple[Permission, ...]
    namespaces: tuple[str, ...]
    more: bool


def reach_of(resources: Resources, caller: Caller) -> Reach:
    permissions = tuple(each for each in Permission if caller.may(each))
    if not caller.everywhere:
        return Reach(permissions, (caller.namespace,), more=False)
    names = resources.database.read(lambda connection: namespaces.first_names(connection, MOST_NAMESPACES + 1))
    return Reach(permissions, tuple(names[:MOST_NAMESPACES]), more=len(names) > MOST_NAMESPACES)
