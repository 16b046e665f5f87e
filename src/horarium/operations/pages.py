"""How long a page of a list may be."""

from __future__ import annotations

from horarium.errors import InvalidDefinition

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


def checked_limit(limit: int | None, *, default: int = DEFAULT_LIMIT, most: int = MAX_LIMIT) -> int:
    if limit is None:
        return default
    if not 1 <= limit <= most:
        raise InvalidDefinition({"page_size": [f"must be between 1 and {most}"]})
    return limit
