"""The one spelling of a JSON value, for texts that are compared or hashed: sorted keys, no blanks, ASCII."""

from __future__ import annotations

from json import JSONEncoder

# Made once: `json.dumps` would make one for every text.
_ENCODER = JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    """Raises ValueError for NaN and TypeError for what JSON has no word for."""
    return _ENCODER.encode(value)
