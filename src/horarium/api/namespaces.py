"""Routes of namespaces, the tenants of a service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from msgspec import structs

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.pages import readable
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import ADMINISTER, READ, Routes
from horarium.instant import to_datetime
from horarium.operations import namespaces
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.policy.quotas import Quota
from horarium.policy.retention import Retention
from horarium.store.namespaces import NamespaceRow
from horarium.wire.bodies import NamespaceBody, NamespaceChange, read_body
from horarium.wire.outcomes import RemovalOutcome
from horarium.wire.service import (
    Namespace,
    NamespaceDeleted,
    NamespaceList,
    NamespaceQuotas,
    NamespaceRetention,
    QuotaUse,
)

routes = Routes("/api/namespaces", tag="namespaces")
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


@routes(
    "GET",
    "",
    needs=ADMINISTER,
    summary="List namespaces",
    answer=NamespaceList,
    example=NamespaceList(namespaces=(examples.NAMESPACE,)),
)
def list_namespaces(resources: ResourcesOf, caller: CallerOf) -> Reply:
    found = namespaces.list_namespaces(resources, caller)
    shown: Any = tuple(readable(resources, "namespace", found, _shown, lambda row: row.namespace))
    return Reply(NamespaceList(namespaces=shown))


@routes(
    "POST",
    "",
    needs=ADMINISTER,
    summary="Create a namespace",
    body=NamespaceBody,
    sends={"namespace": "tenant", "description": "a tenant"},
    answer=Namespace,
    status=201,
    example=examples.NAMESPACE,
)
def create_namespace(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    asked = read_body(NamespaceBody, body)
    return Reply(_shown(namespaces.create(resources, caller, asked.namespace, asked.description)), 201)


@routes(
    "GET",
    "/{namespace}",
    needs=READ,
    summary="Show a namespace",
    answer=Namespace,
    example=_LIMITED,
)
def get_namespace(resources: ResourcesOf, caller: CallerOf, namespace: str) -> Reply:
    """Includes its limits and usage. An admin of the default namespace can show any namespace; other callers only their
    own.
    """
    return Reply(_whole(resources, caller, namespace))


@routes(
    "PATCH",
    "/{namespace}",
    needs=ADMINISTER,
    summary="Update the limits of a namespace",
    body=NamespaceChange,
    sends={"quotas": {"open_runs": 1_000, "schedules": "default"}, "retention": {"keep_runs_days": 30}},
    answer=Namespace,
    example=_LIMITED,
)
def change_namespace(resources: ResourcesOf, caller: CallerOf, namespace: str, body: Document) -> Reply:
    """Omitted fields are kept. null = no limit, or kept forever. `default` = the value of the settings."""
    asked = read_body(NamespaceChange, body)
    namespaces.change(
        resources,
        caller,
        namespace,
        description=asked.description,
        quotas=asked.quotas,
        retention=asked.retention,
    )
    return Reply(_whole(resources, caller, namespace))


@routes(
    "DELETE",
    "/{namespace}",
    needs=ADMINISTER,
    summary="Delete a namespace",
    answer=NamespaceDeleted,
    example=NamespaceDeleted(namespace="tenant", outcome=RemovalOutcome.DELETED, schedules=0, open_runs=0),
    repeatable=False,  # many transactions; the second time it is not there
)
def delete_namespace(
    resources: ResourcesOf,
    caller: CallerOf,
    namespace: str,
    force: Annotated[bool, Query(description="Delete even if it has live schedules or open runs.")] = False,
    dry_run: Annotated[bool, Query(description="Only count the schedules and runs.")] = False,
) -> Reply:
    """Deletes all its data: schedules, history, runs, calendars, tokens. Its tokens become invalid."""
    done = namespaces.delete(resources, caller, namespace, force=force, dry_run=dry_run)
    return Reply(
        NamespaceDeleted(
            namespace=done.namespace,
            outcome=done.outcome,
            schedules=done.usage.schedules,
            open_runs=done.usage.open_runs,
        )
    )


def _whole(resources: Resources, caller: Caller, name: str) -> Namespace:
    row, standing = namespaces.standing(resources, caller, name)
    uses = {
        quota.value: QuotaUse(
            limit=standing.limits.limit(quota), used=standing.usage.of(quota), own=quota.value in row.quotas
        )
        for quota in Quota
    }
    settings = Retention(resources.settings.keep_runs_days, resources.settings.keep_history_days)
    kept = Retention(row.keep_runs_days, row.keep_history_days).in_force(settings)
    return structs.replace(
        _shown(row),
        quotas=NamespaceQuotas(**uses),
        retention=NamespaceRetention(
            keep_runs_days=kept.keep_runs_days or None, keep_history_days=kept.keep_history_days or None
        ),
    )


def _shown(row: NamespaceRow) -> Namespace:
    return Namespace(namespace=row.namespace, description=row.description, created_at=to_datetime(row.created_at))
