"""How inputs are changed: RFC 7396, where an object is merged key by key and null takes a key away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(target: object, patch: object) -> Any:
    """A new value; neither of the two is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
