"""How long lists are cut into pages: a limit within bounds, and a token that says where the next one begins."""

from __future__ import annotations

import base64
import binascii

from horarium.errors import InvalidDefinition

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


def checked_limit(limit: int | None, *, default: int = DEFAULT_LIMIT, most: int = MAX_LIMIT) -> int:
    if limit is None:
        return default
    if not 1 <= limit <= most:
        raise InvalidDefinition({"page_size": [f"must be between 1 and {most}"]})
    return limit


def make_token(*parts: str | int) -> str:
    """Opaque to callers; what is in it is no secret."""
    return base64.urlsafe_b64encode("\n".join(str(part) for part in parts).encode()).decode().rstrip("=")


def read_token(token: str, parts: int) -> list[str]:
    """Raises InvalidDefinition for a token that we did not make."""
    try:
        padded = token + "=" * (-len(token) % 4)
        found = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode().split("\n")
    except (ValueError, binascii.Error):
        found = []
    if len(found) != parts or len(token) > 1_000:
        raise InvalidDefinition({"next_page_token": ["is not a token that a page has given"]})
    return found
