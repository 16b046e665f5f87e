"""Routes of secrets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from horarium.features.secrets import service
from horarium.features.secrets.model import Secret, SecretBody, SecretDeleted, SecretList
from horarium.features.secrets.operations import SecretOperations
from horarium.features.secrets.rows import SecretName
from horarium.instant import to_datetime
from horarium.platform.bodies import read_body
from horarium.platform.http.audited import Audited
from horarium.platform.http.examples import AT
from horarium.platform.http.limits import readable
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import Routes
from horarium.platform.wire import WriteOutcome

routes = Routes()

_EXAMPLE = Secret(
    name="erp-token",
    hosts=("erp.example.com",),
    generated=False,
    principal="ops@example.com",
    version=1,
    created_at=AT,
    updated_at=AT,
)


@routes.implements(SecretOperations.list_secrets, example=SecretList(secrets=(_EXAMPLE,), next_page_token=None))
def list_secrets(
    resources: ResourcesOf,
    caller: CallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=128)] = None,
) -> Reply:
    """Sorted by name, without values. Not available to the role `agent`."""
    page = service.list_secrets(resources, caller, page_size=page_size, next_page_token=next_page_token)
    shown: Any = tuple(readable(resources, "secret", page.secrets, _shown, lambda each: each.name))
    return Reply(SecretList(secrets=shown, next_page_token=page.next_page_token))


@routes.implements(
    SecretOperations.put_secret,
    audited=Audited.IN_NAMESPACE,
    sends={"value": "Bearer 3f9a2c", "hosts": ["erp.example.com"]},
    example=_EXAMPLE,
)
def put_secret(resources: ResourcesOf, caller: CallerOf, secret_name: str, document: Document) -> Reply:
    """The value is stored encrypted and never returned."""
    asked = read_body(SecretBody, document)
    kept = service.put(resources, caller, secret_name, asked.value, asked.hosts)
    return Reply(_shown(kept), 201 if kept.version == 1 else 200)


@routes.implements(
    SecretOperations.delete_secret,
    audited=Audited.IN_NAMESPACE,
    example=SecretDeleted(name="erp-token", outcome=WriteOutcome.DELETED),
)
def delete_secret(
    resources: ResourcesOf,
    caller: CallerOf,
    secret_name: str,
    force: Annotated[bool, Query(description="Delete even if schedules use it.")] = False,
) -> Reply:
    """Rejected while a schedule uses it."""
    service.delete(resources, caller, secret_name, force=force)
    return Reply(SecretDeleted(name=secret_name, outcome=WriteOutcome.DELETED))


def _shown(row: SecretName) -> Secret:
    return Secret(
        name=row.name,
        hosts=row.hosts,
        generated=row.generated,
        principal=row.principal,
        version=row.version,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
    )
