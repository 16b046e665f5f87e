"""Base classes of client errors; `errors.py` shows the tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from horarium.errors import HorariumError

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ClientError(HorariumError):
    """A failed call. `body` is the problem document, empty if the answer had none."""

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
        """Name of the missing resource."""
        name = self.body.get("name")
        return name if isinstance(name, str) else None


class Conflict(ClientError):
    reason = "refused"


class AlreadyExists(Conflict):
    reason = "already_exists"
