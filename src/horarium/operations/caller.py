"""Who asks, in which namespace, and what the role allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from horarium.operations.errors import Forbidden
from horarium.schedule.event import CommandContext
from horarium.store.migrate import DEFAULT_NAMESPACE
from horarium.wire.roles import Permission, Role

_GRANTED: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.ADMIN: frozenset(Permission),
        Role.OWNER: frozenset({Permission.READ, Permission.WRITE, Permission.OPERATE, Permission.WORK}),
        Role.OPERATOR: frozenset({Permission.READ, Permission.OPERATE}),
        Role.VIEWER: frozenset({Permission.READ}),
        Role.AGENT: frozenset({Permission.READ, Permission.WORK}),
    }
)


@dataclass(frozen=True, slots=True)
class Caller:
    """`source` is the door: api, cli, embedded …; `reason` is why, in the words of whoever asks.

    `everywhere`: an admin whose credential is good in every namespace, whichever is spoken for now. `confirmed`: what
    is asked for is meant, also where it starts very many runs at once.
    """

    principal: str | None
    role: Role
    namespace: str = DEFAULT_NAMESPACE
    source: str | None = None
    request_id: str | None = None
    reason: str | None = None
    everywhere: bool = False
    confirmed: bool = False

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    def may(self, permission: Permission) -> bool:
        return permission in _GRANTED[self.role]

    def require(self, permission: Permission) -> None:
        if not self.may(permission):
            raise Forbidden(f"the role {self.role} may not {permission}")

    def require_house(self) -> None:
        """What concerns all tenants is for admins of the default namespace: an admin of a tenant has that one only."""
        self.require(Permission.ADMINISTER)
        if not (self.everywhere or self.namespace == DEFAULT_NAMESPACE):
            raise Forbidden("only an admin of the default namespace may do this")

    def owns(self, owner: str | None) -> bool:
        return owner is None or owner == self.principal or self.is_admin

    def require_owner(self, owner: str | None, what: str) -> None:
        """Only the owner or an admin; what nobody owns is open to all who may write."""
        if not self.owns(owner):
            raise Forbidden(f"only its owner or an admin may schedule or change {what}")

    def because(self, reason: str | None) -> Caller:
        return self if reason is None else replace(self, reason=reason)

    def confirming(self, confirmed: bool) -> Caller:
        return replace(self, confirmed=True) if confirmed else self

    def context(self) -> CommandContext:
        return CommandContext(self.principal, self.request_id, self.source, self.reason)


def internal(source: str, namespace: str = DEFAULT_NAMESPACE) -> Caller:
    """The service itself, for what it does on its own behalf."""
    return Caller(None, Role.ADMIN, namespace, source, everywhere=True, confirmed=True)
