"""The errors of a client that have others below them; `errors.py` draws the tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from horarium.errors import HorariumError

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ClientError(HorariumError):
    """`body` is the problem document; empty where the answer had none."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str | None = None,
        body: Mapping[str, Any] = _NOTHING,
    ) -> None:
        super().__init__(message)
        self.status = status
        if reason is not None:
            self.reason = reason  # type: ignore[misc]  # the class knows the usual one, this one its own
        self.body = body


class Unauthorized(ClientError):
    reason = "unauthorized"


class Forbidden(ClientError):
    reason = "forbidden"


class NotFound(ClientError):
    reason = "not_found"

    @property
    def name(self) -> str | None:
        """Of what was looked for."""
        name = self.body.get("name")
        return name if isinstance(name, str) else None


class Conflict(ClientError):
    reason = "refused"


class AlreadyExists(Conflict):
    reason = "already_exists"
