"""The principals that can approve runs, as far as this installation knows them."""

from __future__ import annotations

from horarium.instant import Instant
from horarium.operations.caller import Caller, roles_with
from horarium.policy.approval import ROLE_PREFIX, ApprovalPolicy
from horarium.policy.deciding import names_of
from horarium.settings import Settings
from horarium.store import tokens
from horarium.store.database import Connection
from horarium.wire.roles import Permission, Role

# Settings that let in principals of which no row is stored.
_OUTSIDE = ("jwt_secret", "jwks_file", "jwks_url", "jwt_key_file", "tls_principals")
# The principal of the setting `token`.
FIXED = "admin"


def lacking_approvers(
    settings: Settings,
    connection: Connection,
    caller: Caller,
    policy: ApprovalPolicy,
    owner: str | None,
    now: Instant,
) -> str | None:
    """Explain why nobody could approve the runs of a schedule that the caller writes; None = somebody could.

    Where principals come from outside (signed tokens, certificates, names in `approvers`), somebody is taken to exist.
    """
    if caller.principal is None or any(getattr(settings, name) for name in _OUTSIDE):
        return None
    authors = {caller.principal, owner or caller.principal}
    named = {each for each in policy.approvers if not each.startswith(ROLE_PREFIX)}
    known = _known(settings, connection, caller, now)
    able = {who for who, role in known if not policy.approvers or names_of(who, role) & policy.approvers} | named
    required = policy.approvals_required or 1
    if policy.allow_requester:
        if len(able) >= required:
            return None
        return f"approvals_required: is {required}, but only {len(able)} users may approve"
    if len(able - authors) >= required:
        return None
    others = f"{required} other approvers" if required > 1 else "another approver"
    who = " and ".join(sorted(authors))
    return (
        f"allow_requester: runs await approval, but {who} may not approve runs of their own schedule; "
        f"set allow_requester (--allow-requester), or issue a token for {others}"
    )


def _known(settings: Settings, connection: Connection, caller: Caller, now: Instant) -> set[tuple[str, str]]:
    """Principals that hold the permission, with their roles."""
    roles = [role.value for role in roles_with(Permission.APPROVE)]
    found = set(tokens.principals(connection, caller.namespace, roles, now))
    if caller.principal is not None and caller.may(Permission.APPROVE):
        found.add((caller.principal, caller.role.value))
    return found | ({(FIXED, Role.ADMIN.value)} if settings.token is not None else set())
