"""The caller of an operation: principal, namespace and role. Limits of pages and of runs started at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from horarium.core.decision.decide import MOST_AT_ONCE, must_be_confirmed
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.states import CommandContext
from horarium.core.policy.approval import NO_SKIPPING, Skipping
from horarium.errors import InvalidDefinition
from horarium.instant import Instant
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.errors import ConfirmationRequired, Forbidden
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission, Role

_GRANTED: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.ADMIN: frozenset(Permission),
        Role.OWNER: frozenset(Permission) - {Permission.ADMINISTER},
        Role.OPERATOR: frozenset(
            {Permission.LOOK, Permission.READ, Permission.OPERATE, Permission.APPROVE, Permission.RUN}
        ),
        Role.VIEWER: frozenset({Permission.LOOK, Permission.READ}),
        Role.AGENT: frozenset({Permission.LOOK, Permission.WORK, Permission.SCHEDULE, Permission.RUN}),
    }
)


def roles_with(permission: Permission) -> list[Role]:
    return [role for role, granted in _GRANTED.items() if permission in granted]


class Work(Protocol):
    """Columns of a run that determine who may report on it."""

    @property
    def run_id(self) -> bytes: ...
    @property
    def claimed_by(self) -> str | None: ...
    @property
    def assignee_type(self) -> str | None: ...
    @property
    def assignee(self) -> str | None: ...
    @property
    def member(self) -> str | None: ...


def run_principal(run_id: bytes) -> str:
    """Principal of reports with the token of a run: its target."""
    return f"run:{id_text(run_id)}"


@dataclass(frozen=True, slots=True)
class Caller:
    """`source` is the door: api, cli, embedded …; `reason` is why, in the words of whoever asks.

    `everywhere`: an admin whose credential is good in every namespace, whichever is spoken for now. `address` is where
    the request came from. `queues`: those that its credential is good for, None = all. The principal of an agent is
    its agent id. `confirmed`: what is asked for is meant, also where it starts very many runs at once. `skipping`: what
    the request says to get round an approval. `token_id` is that of a stored token, `credential_ends_at` the end of a
    signed token or a certificate. `all_namespaces`: lists cover the whole installation.
    """

    principal: str | None
    role: Role
    namespace: str = DEFAULT_NAMESPACE
    source: str | None = None
    request_id: str | None = None
    reason: str | None = None
    everywhere: bool = False
    address: str | None = None
    queues: frozenset[str] | None = None
    confirmed: bool = False
    skipping: Skipping = NO_SKIPPING
    token_id: bytes | None = None
    credential_ends_at: Instant | None = None
    all_namespaces: bool = False

    @property
    def scope(self) -> str | None:
        """The namespace that a list covers; None = all of the installation."""
        return None if self.all_namespaces else self.namespace

    def over_all_namespaces(self) -> Caller:
        """Cover all namespaces with lists; raises Forbidden for everybody but an admin of the installation."""
        if not (self.is_admin and self.everywhere):
            raise Forbidden("Only an admin of the installation may list all namespaces.")
        return replace(self, all_namespaces=True)

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    def may(self, permission: Permission) -> bool:
        return permission in _GRANTED[self.role]

    def require(self, permission: Permission) -> None:
        if not self.may(permission):
            raise Forbidden(f"the role {self.role} lacks the permission {permission}")

    def require_namespace(self, named: str) -> None:
        """Refuse a request whose body names another namespace than its header or token."""
        if named != self.namespace:
            raise InvalidDefinition({"namespace": [f"differs from the namespace of the request, {self.namespace!r}"]})

    @property
    def of_the_house(self) -> bool:
        """Tell whether the caller may manage what concerns all tenants, as callers in the default namespace may."""
        return self.everywhere or self.namespace == DEFAULT_NAMESPACE

    def require_house(self, permission: Permission = Permission.ADMINISTER) -> None:
        self.require(permission)
        if not self.of_the_house:
            who = "an admin" if permission is Permission.ADMINISTER else "a user"
            raise Forbidden(f"only {who} of the default namespace may do this")

    @property
    def agent_id(self) -> str | None:
        """Agent whose work alone this caller sees; None = all work in the namespace."""
        return None if self.may(Permission.READ) else self.principal or ""

    def sees(self, run: Work) -> bool:
        """An agent sees what it has claimed, what is assigned to it, and what its team gave it to do.

        The target of a run sees that run. A team is no agent, whatever it is called.
        """
        own = self.agent_id
        agent = None if run.assignee_type == AssigneeType.TEAM else run.assignee
        return own is None or (own != "" and own in (run.claimed_by, agent, run.member, run_principal(run.run_id)))

    def takes_from(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues

    def owns(self, owner: str | None) -> bool:
        return owner is None or owner == self.principal or self.is_admin

    def require_owner(self, owner: str | None, what: str) -> None:
        """Only the owner or an admin; what nobody owns is open to all who may write."""
        if not self.owns(owner):
            raise Forbidden(f"only its owner or an admin may change or schedule {what}")

    def because(self, reason: str | None) -> Caller:
        return self if reason is None else replace(self, reason=reason)

    def confirming(self, confirmed: bool) -> Caller:
        return replace(self, confirmed=True) if confirmed else self

    def asking_to_skip(self, approval_status: str | None, skip: bool) -> Caller:
        return replace(self, skipping=Skipping(approval_status, skip)) if approval_status is not None or skip else self

    def context(self) -> CommandContext:
        return CommandContext(self.principal, self.request_id, self.source, self.reason)


def internal(source: str, namespace: str = DEFAULT_NAMESPACE) -> Caller:
    """The service itself, for what it does on its own behalf."""
    return Caller(None, Role.ADMIN, namespace, source, everywhere=True, confirmed=True)


def require_confirmed(caller: Caller, runs: int) -> None:
    """Raises ConfirmationRequired, and then nothing was done."""
    if must_be_confirmed(runs) and not caller.confirmed:
        raise ConfirmationRequired(runs, MOST_AT_ONCE)


DEFAULT_LIMIT = 50
MAX_LIMIT = 200


def checked_limit(limit: int | None, *, default: int = DEFAULT_LIMIT, most: int = MAX_LIMIT) -> int:
    if limit is None:
        return default
    if not 1 <= limit <= most:
        raise InvalidDefinition({"page_size": [f"must be between 1 and {most}"]})
    return limit
