"""The routes of tokens: given out once, listed without their secrets, taken back.

Giving one out is the only write without an idempotency key: its answer is a secret, and none is kept.
"""

from __future__ import annotations

from fastapi import APIRouter

from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.views import Body, moment
from horarium.ids import id_text
from horarium.operations import tokens
from horarium.store.tokens import TokenRow

router = APIRouter(prefix="/api/tokens", tags=["tokens"])


@router.get("")
def list_tokens(resources: ResourcesOf, caller: CallerOf) -> Answer:
    """Those of the namespace, oldest first, revoked and expired ones too."""
    return Answer({"tokens": [_shown(row) for row in tokens.list_tokens(resources, caller)]})


@router.post("", status_code=201)
def issue(resources: ResourcesOf, caller: CallerOf, body: Document) -> Answer:
    """`secret` is in this answer and nowhere else."""
    fields = Fields(body)
    name = fields.require("name", fields.text("name", most=255))
    role = fields.require("role", fields.text("role", most=32))
    subject = fields.text("subject", most=255)
    expires_at = fields.moment("expires_at")
    fields.check()
    issued = tokens.issue(resources, caller, name=name, role=role, subject=subject, expires_at=expires_at)
    return Answer({**_shown(tokens.get(resources, caller, issued.token_id)), "secret": issued.secret}, 201)


@router.delete("/{token_id}")
@idempotent
def revoke(resources: ResourcesOf, caller: CallerOf, token_id: str) -> Answer:
    """From now on it opens nothing; once more is harmless."""
    was_live = tokens.revoke(resources, caller, token_id)
    return Answer({"token_id": token_id.upper(), "outcome": "revoked" if was_live else "unchanged"})


def _shown(row: TokenRow) -> Body:
    return {
        "token_id": id_text(row.token_id),
        "namespace": row.namespace,
        "name": row.name,
        "role": row.role,
        "subject": row.subject,
        "created_at": moment(row.created_at),
        "expires_at": moment(row.expires_at),
        "revoked_at": moment(row.revoked_at),
        "last_used_at": moment(row.last_used_at),
    }
