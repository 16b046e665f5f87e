"""The one spelling of a JSON value, for texts that are compared or hashed: sorted keys, no blanks, ASCII."""

from __future__ import annotations

import json


def canonical_json(value: object) -> str:
    """Raises ValueError for NaN and TypeError for what JSON has no word for."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
