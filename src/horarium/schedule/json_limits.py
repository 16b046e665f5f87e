"""What a JSON value is, and how large it may be: every bound, by where the JSON comes from or goes to."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

Json: TypeAlias = Any
"""A JSON value; it is never changed in place."""

MAX_URL: Final = 2_048


class JsonLimit(NamedTuple):
    """`values` are counted besides the bytes: a megabyte of `[0,0,…` is half a million values."""

    depth: int
    values: int


DOCUMENT: Final = JsonLimit(64, 20_000)
"""What is written down: schedules, also what is in an encoded input, so that nothing can be smuggled in."""
WORKFLOW: Final = JsonLimit(64, 100_000)
"""Workflows, of a thousand nodes and ten thousand edges."""
OBJECT: Final = JsonLimit(32, 10_000)
"""Small objects inside a workflow or a report, checked one by one."""
OUTGOING: Final = JsonLimit(200, 1_000_000)
"""What a target is handed or answers. orjson writes at most 254 levels; the envelope round a value takes a few."""
