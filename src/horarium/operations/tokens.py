"""How tokens are given out, listed, renewed and taken back; a token is shown once and never again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horarium.errors import InvalidDefinition
from horarium.ids import id_text, parse_id
from horarium.instant import SECOND, Instant
from horarium.operations.agents import AGENTS
from horarium.operations.caller import Caller
from horarium.operations.drafts import hold_namespace
from horarium.operations.errors import TokenNotFound, TokenNotLive
from horarium.operations.quotas import check_rows
from horarium.operations.resources import Resources
from horarium.policy.names import PolicyError, parse_name, text
from horarium.store import row_limits, tokens
from horarium.store.database import Connection
from horarium.store.errors import StoreUnavailable
from horarium.store.runs import standing_approvals
from horarium.store.tokens import IssuedToken, TokenRow
from horarium.wire.roles import Permission, Role

DEFAULT_OVERLAP = 86_400
"""Default seconds for which the old secret of a rotated token stays valid."""
MAX_OVERLAP = 30 * 86_400
MAX_QUEUES = 100
"""Of one token."""


def issue(
    resources: Resources,
    caller: Caller,
    *,
    name: object,
    role: object,
    subject: object = None,
    expires_at: Instant | None = None,
    queues: object = None,
    check: Callable[[Connection], object] = lambda _: None,
) -> IssuedToken:
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

    def work(connection: Connection) -> IssuedToken:
        hold_namespace(connection, caller.namespace)
        check(connection)
        check_rows(connection, row_limits.TOKENS, caller.namespace)
        return tokens.issue(connection, namespace=caller.namespace, now=now, expires_at=expires_at, **asked)

    return resources.database.write(work)


def issue_for_agent(
    resources: Resources, caller: Caller, agent_id: str, *, name: object = None, expires_at: Instant | None = None
) -> IssuedToken:
    """With which that agent, and nobody else, comes to us: the role is `agent`, and its work is all that it sees.

    The agent is held meanwhile: whoever deletes it takes back the tokens that it has.
    """
    return issue(
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
    return resources.database.read(lambda connection: tokens.all_tokens(connection, caller.namespace))


def get(resources: Resources, caller: Caller, token_id: bytes) -> TokenRow:
    caller.require(Permission.ADMINISTER)
    row = resources.database.read(lambda connection: tokens.find(connection, caller.namespace, token_id))
    if row is None:
        raise TokenNotFound(id_text(token_id))
    return row


def rotate(
    resources: Resources, caller: Caller, token_id: str, *, overlap_seconds: int = DEFAULT_OVERLAP
) -> IssuedToken:
    """A new secret for the same token. The old one is good until the overlap ends; 0 = it ends now.

    Where it is the token that this process has left in its data directory, the file holds the new one from now on:
    else the next start would find a file that opens nothing, and end this token.
    """
    caller.require(Permission.ADMINISTER)
    if not 0 <= overlap_seconds <= MAX_OVERLAP:
        raise InvalidDefinition({"overlap_seconds": [f"must be between 0 and {MAX_OVERLAP}"]})
    identity = _identity(token_id)

    def work(connection: Connection) -> tuple[IssuedToken, bool]:
        now = resources.clock.now()
        if tokens.find(connection, caller.namespace, identity) is None:
            raise TokenNotFound(token_id)
        kept = _is_kept(resources, connection, identity, now)
        until = now + overlap_seconds * SECOND
        issued = tokens.rotate(connection, caller.namespace, identity, now=now, previous_until=until)
        if issued is None:
            raise TokenNotLive("this token is revoked or expired; issue another one")
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


def _is_kept(resources: Resources, connection: Connection, token_id: bytes, now: Instant) -> bool:
    secret = None if resources.admin_file is None else resources.admin_file.secret()
    return secret is not None and _opens(connection, secret, token_id, now)


def _opens(connection: Connection, secret: str, token_id: bytes, now: Instant) -> bool:
    found = tokens.find_by_secret(connection, secret, now=now)
    return found is not None and found.token_id == token_id


def revoke(resources: Resources, caller: Caller, token_id: str) -> bool:
    """Revoke a token and tell whether it was active; a second revocation is harmless."""
    caller.require(Permission.ADMINISTER)
    identity = _identity(token_id)

    def work(connection: Connection) -> bool:
        if tokens.find(connection, caller.namespace, identity) is None:
            raise TokenNotFound(token_id)
        now = resources.clock.now()
        revoked = tokens.revoke(connection, caller.namespace, identity, now=now)
        standing_approvals.close_ended(connection, caller.namespace, now)
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
