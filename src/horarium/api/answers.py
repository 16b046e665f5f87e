"""How an answer becomes bytes."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from horarium.wire.answer import encode


class Reply(Response):
    """An answer of `wire`, or plain JSON, with its status and headers."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encode(content)
