"""Which values can be kept as JSON: finite, made of text that UTF-8 can spell, and not too deep.

Documents are checked once, on their way in, so that writing them out again cannot fail: a number
that JSON has no word for, half a surrogate pair, or a nesting that overflows the writer's stack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from horarium.policy.names import PolicyError
from horarium.schedule.json_limits import OBJECT

# Below the length at which Python refuses to print an integer (4,300 digits).
MAX_INTEGER_BITS = 4_096


def checked_object(field: str, value: object) -> dict[str, object]:
    """A shallow copy of an object all of whose parts are JSON; raises PolicyError."""
    if not isinstance(value, Mapping):
        raise PolicyError(field, "must be an object")
    waiting: list[tuple[object, int]] = [(value, 1)]
    seen = 0
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if seen > OBJECT.values:
            raise PolicyError(field, f"has more than {OBJECT.values} values")
        if depth > OBJECT.depth:
            raise PolicyError(field, f"is nested more than {OBJECT.depth} deep")
        waiting.extend((child, depth + 1) for child in _children(field, item))
    return {str(key): item for key, item in value.items()}


def _children(field: str, value: object) -> list[object]:
    match value:
        case None | bool():
            return []
        case str():
            check_text(field, value)
            return []
        case int():
            if value.bit_length() > MAX_INTEGER_BITS:
                raise PolicyError(field, "contains an integer of more than 64 bits")
            return []
        case float():
            if not math.isfinite(value):
                raise PolicyError(field, "contains NaN or an infinite number, which is not valid JSON")
            return []
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise PolicyError(field, f"contains a key of type {type(key).__name__}; keys must be strings")
                check_text(field, key)
            return list(value.values())
        case list() | tuple():
            return list(value)
        case _:
            raise PolicyError(field, f"contains a {type(value).__name__}, which is not valid JSON")


def check_text(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PolicyError(field, "contains an unpaired surrogate character") from None
