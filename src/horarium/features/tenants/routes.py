"""Routes of namespaces, the tenants of a service, and of tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from msgspec import structs

from horarium.core.policy.limits import Quota, RetentionPolicy
from horarium.features.resources import Resources
from horarium.features.tenants import service
from horarium.features.tenants.model import (
    AgentTokenBody,
    IssuedToken,
    Namespace,
    NamespaceDeleted,
    NamespaceList,
    NamespaceQuotas,
    NamespaceRetention,
    QuotaUse,
    RotateBody,
    Token,
    TokenBody,
    TokenList,
    TokenRevoked,
)
from horarium.features.tenants.operations import NamespaceOperations, TokenOperations
from horarium.features.tenants.rows import NamespaceRow, NewToken, TokenRow
from horarium.features.tenants.session_routes import OwnSessionOf
from horarium.instant import from_datetime, to_datetime
from horarium.platform.bodies import NamespaceBody, NamespaceChange, read_body
from horarium.platform.caller import Caller
from horarium.platform.http import examples
from horarium.platform.http.limits import readable
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import ADMINISTER, Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import RemovalOutcome, RevokeOutcome, time_of

routes = Routes()
_LIMITED = Namespace(
    namespace="tenant",
    description="a tenant",
    created_at=examples.AT,
    quotas=NamespaceQuotas(
        schedules=QuotaUse(limit=250_000, used=12),
        runs_per_minute=QuotaUse(limit=200_000, used=3),
        open_runs=QuotaUse(limit=1_000, used=7, own=True),
        bytes_stored=QuotaUse(limit=50_000_000_000, used=48_213),
        shortest_gap_seconds=QuotaUse(limit=1),
    ),
    retention=NamespaceRetention(keep_runs_days=30, keep_history_days=None),
)


@routes.implements(NamespaceOperations.list_namespaces, example=NamespaceList(namespaces=(examples.NAMESPACE,)))
def list_namespaces(resources: ResourcesOf, caller: CallerOf) -> Reply:
    found = service.list_namespaces(resources, caller)
    shown: Any = tuple(readable(resources, "namespace", found, _namespace, lambda row: row.namespace))
    return Reply(NamespaceList(namespaces=shown))


@routes.implements(
    NamespaceOperations.create_namespace,
    sends={"namespace": "tenant", "description": "a tenant"},
    example=examples.NAMESPACE,
)
def create_namespace(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    asked = read_body(NamespaceBody, body)
    return Reply(_namespace(service.create_namespace(resources, caller, asked.namespace, asked.description)), 201)


@routes.implements(NamespaceOperations.get_namespace, example=_LIMITED)
def get_namespace(resources: ResourcesOf, caller: CallerOf, namespace: str) -> Reply:
    """Includes its limits and usage. An admin of the default namespace can show any namespace; other callers only their
    own.
    """
    return Reply(_whole(resources, caller, namespace))


@routes.implements(
    NamespaceOperations.change_namespace,
    sends={"quotas": {"open_runs": 1_000, "schedules": "default"}, "retention": {"keep_runs_days": 30}},
    example=_LIMITED,
)
def change_namespace(resources: ResourcesOf, caller: CallerOf, namespace: str, body: Document) -> Reply:
    """Omitted fields are kept. null = no limit, or kept forever. `default` = the value of the settings."""
    asked = read_body(NamespaceChange, body)
    service.change_namespace(
        resources,
        caller,
        namespace,
        description=asked.description,
        quotas=asked.quotas,
        retention=asked.retention,
    )
    return Reply(_whole(resources, caller, namespace))


@routes.implements(
    NamespaceOperations.delete_namespace,
    example=NamespaceDeleted(namespace="tenant", outcome=RemovalOutcome.DELETED, schedules=0, open_runs=0),
)
def delete_namespace(
    resources: ResourcesOf,
    caller: CallerOf,
    namespace: str,
    force: Annotated[bool, Query(description="Delete even if it has live schedules or open runs.")] = False,
    dry_run: Annotated[bool, Query(description="Only count the schedules and runs.")] = False,
) -> Reply:
    """Deletes all its data: schedules, history, runs, calendars, tokens. Its tokens become invalid."""
    done = service.delete_namespace(resources, caller, namespace, force=force, dry_run=dry_run)
    return Reply(
        NamespaceDeleted(
            namespace=done.namespace,
            outcome=done.outcome,
            schedules=done.usage.schedules,
            open_runs=done.usage.open_runs,
        )
    )


def _whole(resources: Resources, caller: Caller, name: str) -> Namespace:
    row, standing = service.namespace_usage(resources, caller, name)
    uses = {
        quota.value: QuotaUse(
            limit=standing.limits.limit(quota), used=standing.usage.of(quota), own=quota.value in row.quotas
        )
        for quota in Quota
    }
    settings = RetentionPolicy(resources.settings.keep_runs_days, resources.settings.keep_history_days)
    kept = RetentionPolicy(row.keep_runs_days, row.keep_history_days).in_force(settings)
    return structs.replace(
        _namespace(row),
        quotas=NamespaceQuotas(**uses),
        retention=NamespaceRetention(
            keep_runs_days=kept.keep_runs_days or None, keep_history_days=kept.keep_history_days or None
        ),
    )


def _namespace(row: NamespaceRow) -> Namespace:
    return Namespace(namespace=row.namespace, description=row.description, created_at=to_datetime(row.created_at))


token_routes = Routes()
agent_routes = Routes("/api/agents", tag="agents")


@token_routes.implements(TokenOperations.list_tokens, example=TokenList(tokens=(examples.TOKEN,)))
def list_tokens(resources: ResourcesOf, caller: CallerOf) -> Reply:
    """Without secrets, which are not stored."""
    found = service.list_tokens(resources, caller)
    shown: Any = tuple(readable(resources, "token", found, lambda row: Token(**_token(row)), lambda row: row.token_id))
    return Reply(TokenList(tokens=shown))


@token_routes.implements(TokenOperations.issue_token, sends={"name": "ci", "role": "operator"}, example=examples.ISSUED)
def issue_token(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """`secret` is returned only once, in this answer."""
    asked = read_body(TokenBody, body)
    issued = service.issue_token(
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
    issued = service.issue_for_agent(resources, caller, agent_id, name=asked.name, expires_at=until)
    return Reply(_issued(resources, caller, issued), 201)


@token_routes.implements(TokenOperations.rotate_token, sends={"overlap_seconds": 3600}, example=examples.ISSUED)
def rotate_token(
    resources: ResourcesOf, caller: CallerOf, token_id: str, body: Document, session: OwnSessionOf
) -> Reply:
    """`secret` is returned only once, in this answer. The old secret stays valid for `overlap_seconds` (default 86400).
    A browser session that rotates its own token continues with the new one.
    """
    is_own = session.is_of(resources, token_id)
    overlap = read_body(RotateBody, body).overlap_seconds
    chosen = service.DEFAULT_OVERLAP if overlap is None else overlap
    issued = service.rotate_token(resources, caller, token_id, overlap_seconds=chosen)
    headers = session.with_secret(issued.secret) if is_own else {}
    return Reply(_issued(resources, caller, issued), headers=headers)


@token_routes.implements(
    TokenOperations.revoke_token, example=TokenRevoked(token_id=examples.UID, outcome=RevokeOutcome.REVOKED)
)
def revoke_token(resources: ResourcesOf, caller: CallerOf, token_id: str) -> Reply:
    """The token becomes invalid immediately. Repeating the request has no effect."""
    was_live = service.revoke_token(resources, caller, token_id)
    outcome = RevokeOutcome.REVOKED if was_live else RevokeOutcome.UNCHANGED
    return Reply(TokenRevoked(token_id=token_id.upper(), outcome=outcome))


def _issued(resources: Resources, caller: Caller, issued: NewToken) -> IssuedToken:
    return IssuedToken(**_token(service.get_token(resources, caller, issued.token_id)), secret=issued.secret)


def _token(row: TokenRow) -> dict[str, Any]:
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
