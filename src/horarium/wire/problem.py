"""The problem document of failed requests."""

from __future__ import annotations

from collections.abc import Mapping

from horarium.wire.answer import Answer


class Problem(Answer, frozen=True, kw_only=True):
    """A problem document (RFC 9457). `message` and `reason` are for programs, `errors` for forms. Some reasons have
    more members.

    `error` is present only on the paths of workspaces and admins.
    """

    type: str
    title: str
    status: int
    detail: str
    message: str
    reason: str
    errors: Mapping[str, tuple[str, ...]] = {}
    validation_errors: Mapping[str, tuple[str, ...]] = {}
    field: str | None = None
    error: str | None = None
