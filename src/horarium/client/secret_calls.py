"""Every call about secrets, described once."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.client.call import Call, given, many, one
from horarium.client.methods import Method, Pages
from horarium.client.page import Page
from horarium.wire.secrets import Secret, SecretDeleted

SECRETS, SECRET = "/api/secrets", "/api/secrets/{secret_name}"


class SecretCalls:
    """Values go in and never come out."""

    @Method
    @staticmethod
    def list_secrets(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Secret]]:
        """By name, without values."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", SECRETS, many(Secret, "secrets"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def put_secret(name: str, value: str, *, hosts: Sequence[str] | None = None) -> Call[Secret]:
        """Set or replace it; `hosts` are those that it may be sent to, `["*"]` = any. Without them they stay."""
        body = {"value": value, **given(hosts=None if hosts is None else list(hosts))}
        return Call("PUT", SECRET, one(Secret), {"secret_name": name}, body=body)

    @Method
    @staticmethod
    def delete_secret(name: str, *, force: bool | None = None) -> Call[SecretDeleted]:
        """Raises SecretInUse while a schedule names it, unless by `force`."""
        return Call("DELETE", SECRET, one(SecretDeleted), {"secret_name": name}, query={"force": force})

    iter_secrets = Pages(list_secrets)
