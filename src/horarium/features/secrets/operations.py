"""Operations on secrets."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.features.secrets.model import Secret, SecretBody, SecretDeleted, SecretList
from horarium.platform.client.call import Call, Page, Pages
from horarium.platform.operation import READ, WRITE, Operations

operation = Operations("/api/secrets", tag="secrets")
_NAMED = {"name": "secret_name"}


class SecretOperations:
    """Operations on secrets. No answer contains a value."""

    @operation("GET", "", needs=READ, summary="List secrets", answer=SecretList)
    @staticmethod
    def list_secrets(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Secret]]:
        """List secrets by name, without values."""

    @operation(
        "PUT",
        "/{secret_name}",
        needs=WRITE,
        summary="Create or replace a secret",
        body=SecretBody,
        answer=Secret,
        also=(201,),
        renamed=_NAMED,
        has_command=False,  # secret set, which takes no value from the command line
    )
    @staticmethod
    def put_secret(name: str, value: str, *, hosts: Sequence[str] | None = None) -> Call[Secret]:
        """Create or replace a secret. `hosts`: hosts it may be sent to, `["*"]` = any (default: unchanged)."""

    @operation("DELETE", "/{secret_name}", needs=WRITE, summary="Delete a secret", answer=SecretDeleted, renamed=_NAMED)
    @staticmethod
    def delete_secret(name: str, *, force: bool | None = None) -> Call[SecretDeleted]:
        """Delete a secret. Raises SecretInUse while a schedule uses it, unless `force` is set."""

    iter_secrets = Pages(list_secrets)
