"""The routes of namespaces, the tenants of a service."""

from __future__ import annotations

from fastapi import APIRouter

from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.views import Body, moment
from horarium.operations import namespaces
from horarium.store.namespaces import NamespaceRow

router = APIRouter(prefix="/api/namespaces", tags=["namespaces"])


@router.get("")
def list_namespaces(resources: ResourcesOf, caller: CallerOf) -> Answer:
    return Answer({"namespaces": [_shown(row) for row in namespaces.list_namespaces(resources, caller)]})


@router.post("", status_code=201)
@idempotent
def create(resources: ResourcesOf, caller: CallerOf, body: Document) -> Answer:
    fields = Fields(body)
    name = fields.require("namespace", fields.text("namespace", "name", most=128))
    description = fields.text("description") or ""
    fields.check()
    return Answer(_shown(namespaces.create(resources, caller, name, description)), 201)


@router.get("/{namespace}")
def get(resources: ResourcesOf, caller: CallerOf, namespace: str) -> Answer:
    """One's own; an admin of the house may look at any."""
    return Answer(_shown(namespaces.get(resources, caller, namespace)))


def _shown(row: NamespaceRow) -> Body:
    return {"namespace": row.namespace, "description": row.description, "created_at": moment(row.created_at)}
