"""Namespaces and tokens: create, list, renew and delete. A token is shown once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.policy.limits import RetentionPolicy, changed_quotas, changed_retention
from horarium.core.policy.queue import PolicyError, checked_id, parse_name, text
from horarium.errors import InvalidDefinition
from horarium.features.agents.service import AGENTS
from horarium.features.approvals import standing_rows
from horarium.features.resources import Resources
from horarium.features.schedules.drafts import check_rows, hold_namespace
from horarium.features.tenants import removal_rows, rows
from horarium.features.tenants.removal_rows import LiveRows
from horarium.features.tenants.rows import NamespaceRow, NewToken, QuotaUsage, TokenRow
from horarium.instant import SECOND, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection, limits
from horarium.platform.database.errors import CommitUnknown, StoreUnavailable, UniqueConflict
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.errors import (
    DefaultNamespaceProtected,
    Forbidden,
    NamespaceAlreadyExists,
    NamespaceBeingDeleted,
    NamespaceInUse,
    NamespaceNotFound,
    TokenInactive,
    TokenNotFound,
)
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission, RemovalOutcome, Role

MAX_DESCRIPTION = 1_000
# Transactions that whoever asks over HTTP waits for; the rest is done by itself.
_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class Removal:
    """`usage` is what was live when it was asked for."""

    namespace: str
    outcome: RemovalOutcome
    usage: LiveRows


def create_namespace(resources: Resources, caller: Caller, name: object, description: str = "") -> NamespaceRow:
    caller.require_house()
    try:
        namespace = checked_id("namespace", name)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None
    _check_description(description)
    now = resources.clock.now()
    try:
        resources.database.write(lambda connection: rows.insert_namespace(connection, namespace, description, now=now))
    except UniqueConflict:
        if resources.database.read(lambda connection: rows.find_namespace(connection, namespace)) is None:
            raise NamespaceBeingDeleted(f"the namespace {namespace!r} is being deleted; retry later") from None
        raise NamespaceAlreadyExists(namespace) from None
    return NamespaceRow(namespace, description, now)


def get_namespace(resources: Resources, caller: Caller, name: str) -> NamespaceRow:
    """One's own, or any for an admin of the house; what others have is not there."""
    caller.require(Permission.READ)
    if name != caller.namespace:
        _require_house(caller, name)

    def look(connection: Connection) -> NamespaceRow:
        found = rows.find_namespace(connection, name)
        if found is None:
            raise NamespaceNotFound(name)
        return found

    return resources.database.read(look)


def namespace_usage(resources: Resources, caller: Caller, name: str) -> tuple[NamespaceRow, QuotaUsage]:
    """As `get`, with its limits and what it has of each, counted now."""
    row = get_namespace(resources, caller, name)
    now = resources.clock.now()
    found = resources.database.read(lambda connection: resources.quotas.standing(connection, name, now, exact=True))
    if found is None:
        raise NamespaceNotFound(name)
    return row, found


def change_namespace(
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
        if len(name) > _MAX_NAME or not rows.lock_namespace(connection, name):
            raise NamespaceNotFound(name)
        row = rows.find_namespace(connection, name)
        assert row is not None  # it is locked
        own = RetentionPolicy(row.keep_runs_days, row.keep_history_days)
        kept = own if retention is None else changed_retention(own, retention)
        changed = replace(
            row,
            description=row.description if description is None else description,
            quotas=row.quotas if quotas is None else changed_quotas(row.quotas, quotas),
            keep_runs_days=kept.keep_runs_days,
            keep_history_days=kept.keep_history_days,
        )
        rows.update_namespace(connection, changed)

    try:
        resources.database.write(work)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _check_description(description: str) -> None:
    if len(description) > MAX_DESCRIPTION:
        raise InvalidDefinition({"description": [f"must not be longer than {MAX_DESCRIPTION} characters"]})


def list_namespaces(resources: Resources, caller: Caller) -> list[NamespaceRow]:
    caller.require_house()
    return resources.database.read(rows.all_namespaces)


def delete_namespace(
    resources: Resources, caller: Caller, name: str, *, force: bool = False, dry_run: bool = False
) -> Removal:
    """With all that belongs to it. What is live is refused unless `force`; its tokens open nothing from now on.

    A small one is gone when this returns. Of a large one a part is, and the rest goes by itself; until then its name
    is not free.
    """
    caller.require(Permission.ADMINISTER)
    _require_house(caller, name)
    if name in (DEFAULT_NAMESPACE, resources.settings.default_namespace):
        raise DefaultNamespaceProtected(f"{name!r} is the default namespace and cannot be deleted")

    def work(connection: Connection) -> LiveRows:
        if len(name) > _MAX_NAME or not removal_rows.lock_for_removal(connection, name):
            raise NamespaceNotFound(name)
        found = removal_rows.count_live_rows(connection, name)
        if dry_run:
            return found
        if not force and (found.schedules or found.open_runs):
            raise NamespaceInUse(name, found.schedules, found.open_runs)
        removal_rows.mark_deleted(connection, name, now=resources.clock.now())
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
                lambda connection: removal_rows.remove_some(
                    connection, resources.known, name, now=resources.clock.now()
                )
            )
            if step is not removal_rows.RemovalStep.MORE:
                return step is removal_rows.RemovalStep.DONE
    return False


_MAX_NAME = 128


DEFAULT_OVERLAP = 86_400
"""Default seconds for which the old secret of a rotated token stays valid."""
MAX_OVERLAP = 30 * 86_400
MAX_QUEUES = 100
"""Of one token."""


def issue_token(
    resources: Resources,
    caller: Caller,
    *,
    name: object,
    role: object,
    subject: object = None,
    expires_at: Instant | None = None,
    queues: object = None,
    check: Callable[[Connection], object] = lambda _: None,
) -> NewToken:
    """For the caller's namespace. `subject` is who the bearer is to owners and histories; without it, `name`.

    The subject of an agent is its agent id. `queues` are those that it may claim from; None = all. `check` is asked in
    the transaction, and raises where the token must not be.
    """
    caller.require(Permission.ADMINISTER)
    now = resources.clock.now()
    try:
        asked: dict[str, Any] = {
            "role": parse_name(Role, {}, role, "role").value,
            "name": text("name", name),
            "subject": None if subject is None else text("subject", subject),
            "queues": None if queues is None else _queues(queues),
        }
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None
    if expires_at is not None and expires_at <= now:
        raise InvalidDefinition({"expires_at": ["must be in the future"]})

    def work(connection: Connection) -> NewToken:
        hold_namespace(connection, caller.namespace)
        check(connection)
        check_rows(connection, limits.TOKENS, caller.namespace)
        return rows.issue_token(connection, namespace=caller.namespace, now=now, expires_at=expires_at, **asked)

    return resources.database.write(work)


def issue_for_agent(
    resources: Resources, caller: Caller, agent_id: str, *, name: object = None, expires_at: Instant | None = None
) -> NewToken:
    """With which that agent, and nobody else, comes to us: the role is `agent`, and its work is all that it sees.

    The agent is held meanwhile: whoever deletes it takes back the tokens that it has.
    """
    return issue_token(
        resources,
        caller,
        name=agent_id if name is None else name,
        role=Role.AGENT,
        subject=agent_id,
        expires_at=expires_at,
        check=lambda connection: AGENTS.find(connection, caller, agent_id, lock=True),
    )


def list_tokens(resources: Resources, caller: Caller) -> list[TokenRow]:
    caller.require(Permission.ADMINISTER)
    return resources.database.read(lambda connection: rows.all_tokens(connection, caller.namespace))


def get_token(resources: Resources, caller: Caller, token_id: bytes) -> TokenRow:
    caller.require(Permission.ADMINISTER)
    row = resources.database.read(lambda connection: rows.find_token(connection, caller.namespace, token_id))
    if row is None:
        raise TokenNotFound(id_text(token_id))
    return row


def rotate_token(
    resources: Resources, caller: Caller, token_id: str, *, overlap_seconds: int = DEFAULT_OVERLAP
) -> NewToken:
    """A new secret for the same token. The old one is good until the overlap ends; 0 = it ends now.

    Where it is the token that this process has left in its data directory, the file holds the new one from now on:
    else the next start would find a file that opens nothing, and end this token.
    """
    caller.require(Permission.ADMINISTER)
    if not 0 <= overlap_seconds <= MAX_OVERLAP:
        raise InvalidDefinition({"overlap_seconds": [f"must be between 0 and {MAX_OVERLAP}"]})
    identity = _identity(token_id)

    def work(connection: Connection) -> tuple[NewToken, bool]:
        now = resources.clock.now()
        if rows.find_token(connection, caller.namespace, identity) is None:
            raise TokenNotFound(token_id)
        kept = _is_admin_token(resources, connection, identity, now)
        until = now + overlap_seconds * SECOND
        issued = rows.rotate_token(connection, caller.namespace, identity, now=now, previous_until=until)
        if issued is None:
            raise TokenInactive("this token is revoked or expired; issue another one")
        return issued, kept

    issued, kept = resources.database.write(work)
    if kept and resources.admin_file is not None:
        try:
            resources.admin_file.replace(issued.secret)
        except StoreUnavailable as wrong:  # the caller has the secret, and it is good
            resources.telemetry.log.warning("admin_token_file_outdated", why=wrong.message)
    return issued


def is_secret_of(resources: Resources, secret: str, token_id: str) -> bool:
    """Tell whether the secret is that of this active token; raises TokenNotFound for a malformed id."""
    identity, now = _identity(token_id), resources.clock.now()
    return resources.database.read(lambda connection: _opens(connection, secret, identity, now))


def _is_admin_token(resources: Resources, connection: Connection, token_id: bytes, now: Instant) -> bool:
    secret = None if resources.admin_file is None else resources.admin_file.secret()
    return secret is not None and _opens(connection, secret, token_id, now)


def _opens(connection: Connection, secret: str, token_id: bytes, now: Instant) -> bool:
    found = rows.find_token_by_secret(connection, secret, now=now)
    return found is not None and found.token_id == token_id


def revoke_token(resources: Resources, caller: Caller, token_id: str) -> bool:
    """Revoke a token and tell whether it was active; a second revocation is harmless."""
    caller.require(Permission.ADMINISTER)
    identity = _identity(token_id)

    def work(connection: Connection) -> bool:
        if rows.find_token(connection, caller.namespace, identity) is None:
            raise TokenNotFound(token_id)
        now = resources.clock.now()
        revoked = rows.revoke_token(connection, caller.namespace, identity, now=now)
        standing_rows.close_ended(connection, caller.namespace, now)
        return revoked

    return resources.database.write(work)


def _queues(given: object) -> list[str]:
    """Raises PolicyError."""
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= MAX_QUEUES:
        raise PolicyError("queues", f"must be an array of 1 to {MAX_QUEUES} names")
    return [text("queues", each) for each in given]


def _identity(token_id: str) -> bytes:
    """Parse a token id; a malformed one is not found."""
    try:
        return parse_id(token_id, "token_id")
    except InvalidDefinition:
        raise TokenNotFound(token_id[:64]) from None


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
    names = resources.database.read(lambda connection: rows.first_namespaces(connection, MOST_NAMESPACES + 1))
    return Reach(permissions, tuple(names[:MOST_NAMESPACES]), more=len(names) > MOST_NAMESPACES)
