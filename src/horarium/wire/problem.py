"""How a refusal looks."""

from __future__ import annotations

from collections.abc import Mapping

from horarium.wire.answer import Answer


class Problem(Answer, frozen=True, kw_only=True):
    """RFC 9457, with `message` and `reason` for programs and `errors` for forms. Some reasons have more members.

    `error` is there on the paths of workspaces and of admins, and on no others.
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
