"""Calls about secrets."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.features.secrets.model import Secret, SecretDeleted
from horarium.platform.client.call import Call, Method, Page, Pages, given, many, one

SECRETS, SECRET = "/api/secrets", "/api/secrets/{secret_name}"


class SecretCalls:
    """Calls about secrets. No answer contains a value."""

    @Method
    @staticmethod
    def list_secrets(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Secret]]:
        """List secrets by name, without values."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", SECRETS, many(Secret, "secrets"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def put_secret(name: str, value: str, *, hosts: Sequence[str] | None = None) -> Call[Secret]:
        """Create or replace a secret. `hosts`: hosts it may be sent to, `["*"]` = any (default: unchanged)."""
        body = {"value": value, **given(hosts=None if hosts is None else list(hosts))}
        return Call("PUT", SECRET, one(Secret), {"secret_name": name}, body=body)

    @Method
    @staticmethod
    def delete_secret(name: str, *, force: bool | None = None) -> Call[SecretDeleted]:
        """Delete a secret. Raises SecretInUse while a schedule uses it, unless `force` is set."""
        return Call("DELETE", SECRET, one(SecretDeleted), {"secret_name": name}, query={"force": force})

    iter_secrets = Pages(list_secrets)
