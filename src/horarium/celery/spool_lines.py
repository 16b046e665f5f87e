"""What stands in a spool: lines, and where they go.

The first line of a file is its destination, the second how far it has been delivered, and each further line one
report. A line that ends without a newline was not finished when its writer died, and says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

FORMAT = 1
_OFFSET_DIGITS = 20
MAX_LINE = 1_048_576
"""Bytes of one report on disk; what was bounded before it was written is never longer."""
_FINAL, _PROGRESS = b"F", b"P"
ANY_NAMESPACE = ""
"""Of reports that show the tokens of their runs, which say by themselves where those are."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where reports go: the address of a service, and the namespace of the runs, or `ANY_NAMESPACE`."""

    url: str
    namespace: str


class Line(NamedTuple):
    """One report in a file, from `begin` to where the next one begins."""

    final: bool
    text: bytes
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin

    def document(self) -> dict[str, Any] | None:
        """None for what is no report any more; the disk may have been full, or somebody else's hand in it."""
        try:
            read = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        return read if isinstance(read, dict) else None


class Head(NamedTuple):
    """The first two lines: `size` is where the reports begin, `done` up to where they have been delivered."""

    destination: Destination
    size: int
    done: int

    @property
    def offset_at(self) -> int:
        return self.size - _OFFSET_DIGITS - 1


def line_of(document: dict[str, Any], *, final: bool) -> bytes:
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    return b"%b %b\n" % (_FINAL if final else _PROGRESS, text)


def head_of(destination: Destination) -> bytes:
    said = {"horarium_spool": FORMAT, "url": destination.url, "namespace": destination.namespace}
    first = json.dumps(said).encode("ascii") + b"\n"
    return first + offset_text(len(first) + _OFFSET_DIGITS + 1)


def offset_text(offset: int) -> bytes:
    return b"%0*d\n" % (_OFFSET_DIGITS, offset)


def read_head(raw: bytes) -> Head | None:
    """None for what no program of ours wrote, or one of a later version."""
    first, _, rest = raw.partition(b"\n")
    digits, newline, _ = rest.partition(b"\n")
    try:
        said = json.loads(first)
        if not isinstance(said, dict) or said.get("horarium_spool") != FORMAT or not newline:
            return None
        destination = Destination(said["url"], said["namespace"])
        done = int(digits)
    except (ValueError, KeyError, RecursionError):
        return None
    if not all(isinstance(each, str) for each in (destination.url, destination.namespace)):
        return None
    size = len(first) + 1 + _OFFSET_DIGITS + 1
    return Head(destination, size, max(done, size)) if len(digits) == _OFFSET_DIGITS else None


def read_lines(raw: bytes, start: int, most: int | None = None) -> list[Line]:
    """The first lines in `raw`, which begins at `start` of the file; one that is not finished is left out."""
    lines: list[Line] = []
    begin = 0
    while len(lines) != most and (newline := raw.find(b"\n", begin)) >= 0:
        kind, text = raw[begin : begin + 1], raw[begin + 2 : newline]
        lines.append(Line(kind == _FINAL, text, start + begin, start + newline + 1))
        begin = newline + 1
    return lines


def to_keep(lines: Sequence[Line], most: int) -> list[Line]:
    """Choose lines for `most` bytes: ends before progress, and of each the newest, in their order."""
    kept: set[int] = set()
    left = most
    for final in (True, False):
        for place in _newest(lines, final=final):
            if lines[place].size > left:
                break
            left -= lines[place].size
            kept.add(place)
        else:
            continue
        break  # what is less worth has no room either
    return [line for place, line in enumerate(lines) if place in kept]


def _newest(lines: Sequence[Line], *, final: bool) -> Iterable[int]:
    return (place for place in reversed(range(len(lines))) if lines[place].final is final)
