"""Values that nobody means well with, and bodies with one of them inside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# Values that do not belong where they are put. Some of them are good in some places.
VALUES: dict[str, Any] = {
    "zero": "a\0b",
    "long": "x" * 10_000,
    "wide": "\U0001f552" * 300,
    "backwards": "\u202e",
    "large": 10**400,
    "long integer": 2**63,
    "negative": -1,
    "tiny": 5e-324,
    "deep": json.loads("[" * 100 + "]" * 100),
    "wide list": [0] * 5_000,
    "object": {"a\0b": {"": None}},
    "true": True,
    "null": None,
}

LENIENT = {
    ("PATCH", "/workspaces/{workspace_id}/schedules/{workspace_schedule_id}"),
    ("POST", "/api/schedules/draft"),
}
"""Nothing is required in the one, and names that are not known are ignored: such a body changes nothing, and is no
error. The other writes nothing at all, and its answer is what is wrong.
"""


def replaced(body: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The body with one of its values replaced, at every place in turn."""
    inside = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, inner in list(inside):
        for place, changed in [("", value), *replaced(inner, value)]:
            copy = dict(body) if isinstance(body, dict) else list(body)
            copy[key] = changed
            yield f"/{key}{place}", copy
