"""Rotation: each run that is born gets the next entry of a list in place of the schedule's inputs.

The caller moves the index when a run is born and never on a skip, so that no entry is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from horarium.policy.names import PolicyError, shown, whole_number

Inputs = TypeVar("Inputs")

MAX_ROTATION = 1_000


def parse_rotation(value: object, field: str = "inputs_rotation") -> tuple[Mapping[str, object], ...]:
    """A list of input objects; null and an empty list are no rotation."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise PolicyError(field, f"must be an array of objects, not {shown(value)}")
    if len(value) > MAX_ROTATION:
        raise PolicyError(field, f"must have at most {MAX_ROTATION} entries")
    for position, entry in enumerate(value):
        if not isinstance(entry, Mapping):
            raise PolicyError(f"{field}.{position}", f"must be an object, not {shown(entry)}")
    return tuple(value)


def pick(rotation_length: int, index: int) -> int | None:
    """The position to use, or None where there is no rotation."""
    whole_number("rotation_length", rotation_length)
    if index < 0:
        raise ValueError(f"the rotation index must not be negative: {index}")
    return index % rotation_length if rotation_length else None


def inputs_for(inputs: Inputs, rotation: Sequence[Inputs], index: int) -> Inputs:
    position = pick(len(rotation), index)
    return inputs if position is None else rotation[position]
