"""The routes of tokens: who may ask, and with which role. Secrets are shown once, when they are made."""

from __future__ import annotations

from typing import Any

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.pages import readable
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import ADMINISTER, Routes
from horarium.api.sessions import OwnSessionOf
from horarium.ids import id_text
from horarium.instant import from_datetime, to_datetime
from horarium.operations import tokens
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.store.tokens import IssuedToken as NewToken
from horarium.store.tokens import TokenRow
from horarium.wire.answer import time_of
from horarium.wire.bodies import read_body
from horarium.wire.outcomes import RevokeOutcome
from horarium.wire.service import IssuedToken, Token, TokenList, TokenRevoked
from horarium.wire.token_bodies import AgentTokenBody, RotateBody, TokenBody

routes = Routes("/api/tokens", tag="tokens")
agent_routes = Routes("/api/agents", tag="agents")


@routes(
    "GET",
    "",
    needs=ADMINISTER,
    summary="List tokens",
    answer=TokenList,
    example=TokenList(tokens=(examples.TOKEN,)),
)
def list_tokens(resources: ResourcesOf, caller: CallerOf) -> Reply:
    """Without secrets, which are not stored."""
    found = tokens.list_tokens(resources, caller)
    shown: Any = tuple(readable(resources, "token", found, lambda row: Token(**_shown(row)), lambda row: row.token_id))
    return Reply(TokenList(tokens=shown))


@routes(
    "POST",
    "",
    needs=ADMINISTER,
    summary="Create a token",
    body=TokenBody,
    sends={"name": "ci", "role": "operator"},
    answer=IssuedToken,
    status=201,
    example=examples.ISSUED,
    repeatable=False,  # a secret is not kept, so there is nothing to answer a repetition with
)
def issue_token(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """`secret` is returned only once, in this answer."""
    asked = read_body(TokenBody, body)
    issued = tokens.issue(
        resources,
        caller,
        name=asked.name,
        role=asked.role,
        subject=asked.subject,
        expires_at=None if asked.expires_at is None else from_datetime(asked.expires_at),
        queues=asked.queues,
    )
    return Reply(_issued(resources, caller, issued), 201)


@agent_routes(
    "POST",
    "/{agent_id}/tokens",
    needs=ADMINISTER,
    summary="Create a token for an agent",
    body=AgentTokenBody,
    sends={"name": "the agent in the cluster"},
    answer=IssuedToken,
    status=201,
    example=examples.ISSUED,
    repeatable=False,  # as above
)
def create_agent_token(resources: ResourcesOf, caller: CallerOf, agent_id: str, body: Document) -> Reply:
    """The token has the role `agent`, gives access to this agent's work, and ends when the agent is deleted. `secret`
    is returned only once, in this answer.
    """
    asked = read_body(AgentTokenBody, body)
    until = None if asked.expires_at is None else from_datetime(asked.expires_at)
    issued = tokens.issue_for_agent(resources, caller, agent_id, name=asked.name, expires_at=until)
    return Reply(_issued(resources, caller, issued), 201)


@routes(
    "POST",
    "/{token_id}/rotate",
    needs=ADMINISTER,
    summary="Rotate a token",
    body=RotateBody,
    sends={"overlap_seconds": 3600},
    answer=IssuedToken,
    example=examples.ISSUED,
    repeatable=False,  # as above
)
def rotate_token(
    resources: ResourcesOf, caller: CallerOf, token_id: str, body: Document, session: OwnSessionOf
) -> Reply:
    """`secret` is returned only once, in this answer. The old secret stays valid for `overlap_seconds` (default 86400).
    A browser session that rotates its own token continues with the new one.
    """
    is_own = session.is_of(resources, token_id)
    overlap = read_body(RotateBody, body).overlap_seconds
    chosen = tokens.DEFAULT_OVERLAP if overlap is None else overlap
    issued = tokens.rotate(resources, caller, token_id, overlap_seconds=chosen)
    headers = session.with_secret(issued.secret) if is_own else {}
    return Reply(_issued(resources, caller, issued), headers=headers)


@routes(
    "DELETE",
    "/{token_id}",
    needs=ADMINISTER,
    summary="Revoke a token",
    answer=TokenRevoked,
    example=TokenRevoked(token_id=examples.UID, outcome=RevokeOutcome.REVOKED),
)
def revoke_token(resources: ResourcesOf, caller: CallerOf, token_id: str) -> Reply:
    """The token becomes invalid immediately. Repeating the request has no effect."""
    was_live = tokens.revoke(resources, caller, token_id)
    outcome = RevokeOutcome.REVOKED if was_live else RevokeOutcome.UNCHANGED
    return Reply(TokenRevoked(token_id=token_id.upper(), outcome=outcome))


def _issued(resources: Resources, caller: Caller, issued: NewToken) -> IssuedToken:
    return IssuedToken(**_shown(tokens.get(resources, caller, issued.token_id)), secret=issued.secret)


def _shown(row: TokenRow) -> dict[str, Any]:
    return {
        "token_id": id_text(row.token_id),
        "namespace": row.namespace,
        "name": row.name,
        "role": row.role,
        "subject": row.subject,
        "created_at": to_datetime(row.created_at),
        "expires_at": time_of(row.expires_at),
        "revoked_at": time_of(row.revoked_at),
        "last_used_at": time_of(row.last_used_at),
        "previous_until": time_of(row.previous_until),
        "queues": None if row.queues is None else tuple(sorted(row.queues)),
    }
