"""How an answer becomes bytes."""

from __future__ import annotations

import json
from typing import Any

import orjson
from starlette.responses import Response


def dump(content: Any) -> bytes:
    """Never raises for what JSON can hold: after a commit there must be an answer."""
    try:
        return orjson.dumps(content)
    except TypeError:  # whole numbers beyond 64 bits and lone surrogates, which orjson refuses
        return json.dumps(content, ensure_ascii=True, allow_nan=False).encode("ascii")


class Answer(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dump(content)
