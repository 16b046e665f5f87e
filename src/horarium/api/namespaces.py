"""The routes of namespaces, the tenants of a service."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import ADMINISTER, READ, Routes
from horarium.instant import to_datetime
from horarium.operations import namespaces
from horarium.store.namespaces import NamespaceRow
from horarium.wire.bodies import NamespaceBody, read_body
from horarium.wire.outcomes import RemovalOutcome
from horarium.wire.service import Namespace, NamespaceDeleted, NamespaceList

routes = Routes("/api/namespaces", tag="namespaces")


@routes(
    "GET",
    "",
    needs=ADMINISTER,
    summary="List namespaces",
    answer=NamespaceList,
    example=NamespaceList(namespaces=(examples.NAMESPACE,)),
)
def list_namespaces(resources: ResourcesOf, caller: CallerOf) -> Reply:
    return Reply(NamespaceList(namespaces=tuple(_shown(row) for row in namespaces.list_namespaces(resources, caller))))


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
    example=examples.NAMESPACE,
)
def get_namespace(resources: ResourcesOf, caller: CallerOf, namespace: str) -> Reply:
    """One's own; an admin of the default namespace may look at any."""
    return Reply(_shown(namespaces.get(resources, caller, namespace)))


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
    force: Annotated[bool, Query(description="also with live schedules and open runs")] = False,
    dry_run: Annotated[bool, Query(description="only count them")] = False,
) -> Reply:
    """With all its rows: schedules, history, runs, calendars, tokens. Its tokens open nothing from now on."""
    done = namespaces.delete(resources, caller, namespace, force=force, dry_run=dry_run)
    return Reply(
        NamespaceDeleted(
            namespace=done.namespace,
            outcome=done.outcome,
            schedules=done.usage.schedules,
            open_runs=done.usage.open_runs,
        )
    )


def _shown(row: NamespaceRow) -> Namespace:
    return Namespace(namespace=row.namespace, description=row.description, created_at=to_datetime(row.created_at))
