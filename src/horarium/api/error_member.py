"""The member `error` of problems on the paths of workspaces and admins: one sentence, fixed for some reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from horarium.api.base_path import inner_path
from horarium.wire.answer import encode

Handler = Callable[[Request, Exception], Response]

_PATHS: Final = ("/workspaces/", "/admin/")
_SENTENCES: Final[Mapping[str, str]] = {
    "agent_not_found": "workspace not found",
    "malformed_json": "invalid JSON",
    "schedule_not_found": "schedule not found",
}
_MADE_ANEW: Final = frozenset({"content-length", "content-type"})


def with_error(path: str, refusal: Response) -> Response:
    if not path.startswith(_PATHS):
        return refusal
    body: dict[str, Any] = orjson.loads(refusal.body)
    body["error"] = _SENTENCES.get(body["reason"], body["message"])
    headers = {name: value for name, value in refusal.headers.items() if name not in _MADE_ANEW}
    return Response(encode(body), refusal.status_code, headers, refusal.media_type)


def telling_error(handler: Handler) -> Handler:
    """Around a handler of exceptions."""

    def told(request: Request, error: Exception) -> Response:
        return with_error(inner_path(request.scope), handler(request, error))

    return told
