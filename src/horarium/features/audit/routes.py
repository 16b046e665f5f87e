"""The route of the audit log: administrative actions and rejected requests."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from horarium.features.audit import service
from horarium.features.audit.model import Audit, AuditEntry, AuditLink, shown_entry, shown_link
from horarium.features.audit.service import parse_order
from horarium.features.forecast.routes import moment
from horarium.platform.database.audit_chain import EntryFilter
from horarium.platform.http import examples
from horarium.platform.http.limits import readable
from horarium.platform.http.requests import CallerOf, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import ADMINISTER, Routes

routes = Routes("/api", tag="audit")

_HASH = "f3ccd1c0ae2a2f1e1a1d8ce8fb67cdc1f4a3b7b3f0d4d0f0f6f4e2c4a1b2c3d4"


@routes(
    "GET",
    "/audit",
    needs=ADMINISTER,
    summary="List audit entries",
    answer=Audit,
    example=Audit(
        namespace="default",
        entries=(
            AuditEntry(
                namespace="default",
                sequence=17,
                recorded_at=examples.AT,
                act="issue_token",
                principal="alice",
                address="192.0.2.1",
                request_id=examples.UID,
                source="cli",
                detail={"name": "ci", "role": "operator", "token_id": examples.UID},
                hash=_HASH,
            ),
        ),
        begin=AuditLink(sequence=0, hash="0" * 64),
        head=AuditLink(sequence=17, hash=_HASH),
        next_page_token="17",
    ),
)
def list_audit(
    resources: ResourcesOf,
    caller: CallerOf,
    namespace: Annotated[
        str | None,
        Query(
            max_length=128,
            description="Another namespace, which may be deleted. Requires an admin of the default namespace.",
        ),
    ] = None,
    act: Annotated[
        str | None, Query(max_length=256, description="Action, such as issue_token or login_failed.")
    ] = None,
    principal: Annotated[str | None, Query(max_length=256)] = None,
    since: Annotated[str | None, Query(description="Only entries recorded at or after this time.")] = None,
    until: Annotated[str | None, Query(description="Only entries recorded before this time.")] = None,
    order: Annotated[
        str | None, Query(max_length=16, description="Sort order: newest or oldest first (default newest).")
    ] = None,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=32)] = None,
) -> Reply:
    """Administrative actions and rejected requests of the namespace. Each entry contains the hash of the previous."""
    wanted = EntryFilter(
        act,
        principal,
        None if since is None else moment("since", since),
        None if until is None else moment("until", until),
    )
    page = service.read(
        resources,
        caller,
        wanted,
        namespace=namespace,
        order=parse_order(order),
        page_size=page_size,
        next_page_token=next_page_token,
    )
    shown: Any = tuple(readable(resources, "audit entry", page.entries, shown_entry, lambda each: each.sequence))
    return Reply(
        Audit(
            namespace=page.namespace,
            entries=shown,
            begin=shown_link(page.begin),
            head=None if page.head is None else shown_link(page.head),
            next_page_token=page.next_page_token,
        )
    )
