"""Operations on namespaces and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from horarium.features.tenants.model import (
    IssuedToken,
    Namespace,
    NamespaceDeleted,
    NamespaceList,
    RotateBody,
    Token,
    TokenBody,
    TokenList,
    TokenRevoked,
)
from horarium.platform.bodies import NamespaceBody, NamespaceChange
from horarium.platform.client.call import Call, Page, When
from horarium.platform.operation import ADMINISTER, READ, Operations

namespaces = Operations("/api/namespaces", tag="namespaces")
tokens = Operations("/api/tokens", tag="tokens")


class NamespaceOperations:
    @namespaces("GET", "", needs=ADMINISTER, summary="List namespaces", answer=NamespaceList)
    @staticmethod
    def list_namespaces() -> Call[Page[Namespace]]: ...

    @namespaces(
        "POST", "", needs=ADMINISTER, summary="Create a namespace", body=NamespaceBody, answer=Namespace, status=201
    )
    @staticmethod
    def create_namespace(namespace: str, *, description: str | None = None) -> Call[Namespace]: ...

    @namespaces("GET", "/{namespace}", needs=READ, summary="Show a namespace", answer=Namespace, has_command=False)
    @staticmethod
    def get_namespace(namespace: str) -> Call[Namespace]: ...

    @namespaces(
        "PATCH",
        "/{namespace}",
        needs=ADMINISTER,
        summary="Update the limits of a namespace",
        body=NamespaceChange,
        answer=Namespace,
        has_command=False,  # namespace quota
    )
    @staticmethod
    def change_namespace(
        namespace: str,
        *,
        description: str | None = None,
        quotas: Mapping[str, int | str | None] | None = None,
        retention: Mapping[str, int | str | None] | None = None,
    ) -> Call[Namespace]:
        """Update a namespace. Omitted fields are kept. None = no limit, or kept forever. `"default"` = the value of the
        settings.
        """

    @namespaces(
        "DELETE",
        "/{namespace}",
        needs=ADMINISTER,
        summary="Delete a namespace",
        answer=NamespaceDeleted,
        repeatable=False,  # many transactions; the second time it is not there
    )
    @staticmethod
    def delete_namespace(
        namespace: str, *, force: bool | None = None, dry_run: bool | None = None
    ) -> Call[NamespaceDeleted]:
        """Delete a namespace with all its data. Live schedules and open runs require `force`."""


class TokenOperations:
    @tokens("GET", "", needs=ADMINISTER, summary="List tokens", answer=TokenList)
    @staticmethod
    def list_tokens() -> Call[Page[Token]]:
        """List tokens, without secrets."""

    @tokens(
        "POST",
        "",
        needs=ADMINISTER,
        summary="Create a token",
        body=TokenBody,
        answer=IssuedToken,
        status=201,
        repeatable=False,  # a secret is not kept, so there is nothing to answer a repetition with
        retried=False,
        has_command=False,  # token create
    )
    @staticmethod
    def issue_token(
        name: str,
        role: str,
        *,
        subject: str | None = None,
        expires_at: When | None = None,
        queues: Sequence[str] | None = None,
    ) -> Call[IssuedToken]:
        """Create a token in the namespace of the client. The secret is returned only once.

        The subject of a token for an agent is its agent ID. `queues`: queues it may claim from (None = all).
        """

    @tokens(
        "POST",
        "/{token_id}/rotate",
        needs=ADMINISTER,
        summary="Rotate a token",
        body=RotateBody,
        answer=IssuedToken,
        repeatable=False,  # as above
        retried=False,
    )
    @staticmethod
    def rotate_token(token_id: str, *, overlap_seconds: int | None = None) -> Call[IssuedToken]:
        """Create a new secret, which is returned only once. The old one stays valid for `overlap_seconds` (default
        86400).
        """

    @tokens("DELETE", "/{token_id}", needs=ADMINISTER, summary="Revoke a token", answer=TokenRevoked)
    @staticmethod
    def revoke_token(token_id: str) -> Call[TokenRevoked]: ...
