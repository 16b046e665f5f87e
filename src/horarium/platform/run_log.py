"""Run log: a bounded buffer for the output of a run, until it is stored.

Writing is cheap: a piece is appended, and the oldest pieces are dropped above the limit. Pieces are split into lines
when they are read.
"""

from __future__ import annotations

import codecs
import threading
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol

from horarium.instant import Instant

MAX_LOG_BYTES = 65_536
"""The default limit of the log of a run."""
MAX_LINE = 8_192
"""The maximum length of a line, in characters; longer lines are split."""

# The overhead of a line, and of a piece that is not yet split.
_LINE_BYTES = 40
_PIECE_BYTES = 64
# Unsplit pieces may use a multiple of the limit.
_ROOM = 4


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"
    LOG = "log"


class Sink(Protocol):
    def write(self, stream: Stream, data: str) -> None: ...


class LogLine(NamedTuple):
    at: Instant
    stream: Stream
    text: str


class Batch(NamedTuple):
    """Lines to store; `dropped` lines before them are lost. `end` identifies the batch for `done`."""

    dropped: int
    lines: tuple[LogLine, ...]
    end: int


def split_lines(text: str) -> tuple[list[str], str]:
    """Split a text into complete lines and the rest; long lines are split."""
    *ended, rest = text.split("\n")
    lines = [part for each in ended for part in _cut(each.removesuffix("\r"))]
    *more, rest = _cut(rest)
    return [*lines, *more], rest


def _cut(line: str) -> list[str]:
    return [line[first : first + MAX_LINE] for first in range(0, max(1, len(line)), MAX_LINE)]


def cleaned(text: str) -> str:
    """Replace characters that a database cannot store."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


class RunLog:
    """The log of a run, thread-safe: `now` returns the time, `most` is the limit in bytes."""

    __slots__ = (
        "_bytes",
        "_closed",
        "_decoders",
        "_first",
        "_lines",
        "_lock",
        "_most",
        "_next",
        "_now",
        "_pieces",
        "_rest",
        "_sent",
        "_size",
        "touched",
    )

    def __init__(self, now: Callable[[], Instant], most: int = MAX_LOG_BYTES) -> None:
        self.touched = False
        """True once anything was written."""
        self._now = now
        self._most = most
        self._lock = threading.Lock()
        self._closed = False
        self._pieces: deque[tuple[Instant, Stream, str | bytes]] = deque()
        self._size = 0
        self._lines: deque[LogLine] = deque()
        self._bytes = 0
        # Line numbers: before `_sent` stored, from `_first` to `_next` waiting, between them lost.
        self._sent = self._first = self._next = 0
        self._rest: dict[Stream, str] = {}
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {}

    def write(self, stream: Stream, data: str | bytes, at: Instant | None = None) -> None:
        """Append a piece; bytes are decoded as UTF-8."""
        if not data or self._most <= 0:
            return
        at = self._now() if at is None else at
        room = _ROOM * self._most
        lost = _line_ends(data[:-room]) if len(data) > room else 0
        piece = (at, stream, data[-room:])
        with self._lock:
            if self._closed:
                return
            self.touched = True
            if lost:  # earlier pieces are older than the lost lines
                self._drop(len(self._pieces), lost)
            self._pieces.append(piece)
            self._size += len(piece[2]) + _PIECE_BYTES
            if self._size > room + _PIECE_BYTES:
                self._drop(self._too_many(room + _PIECE_BYTES))

    def skip(self, lines: int) -> None:
        """Count lines that were lost before they arrived."""
        with self._lock:
            self._drop(len(self._pieces), lines)

    def peek(self, *, last: bool = False) -> Batch:
        """Return the waiting lines, which stay until `done`; `last` ends the last line and closes the log."""
        with self._lock:
            while self._pieces:
                self._take_in(*self._pieces.popleft())
            self._size = 0
            if last:
                self._closed = True
                self._end_lines()
            while self._bytes > self._most and len(self._lines) > 1:
                self._bytes -= _cost(self._lines.popleft())
                self._first += 1
            return Batch(self._first - self._sent, tuple(self._lines), self._next)

    def done(self, batch: Batch) -> None:
        """Remove a stored batch."""
        with self._lock:
            while self._lines and self._first < batch.end:
                self._bytes -= _cost(self._lines.popleft())
                self._first += 1
            self._sent = batch.end
            self._first = max(self._first, batch.end)

    def _too_many(self, room: int) -> int:
        """Return the number of oldest pieces to drop; the newest stays."""
        size, count = self._size, 0
        for _, _, data in self._pieces:
            if size <= room or count == len(self._pieces) - 1:
                break
            size -= len(data) + _PIECE_BYTES
            count += 1
        return count

    def _drop(self, pieces: int, lost: int = 0) -> None:
        """Drop the oldest pieces and all waiting lines, which are older."""
        for _ in range(pieces):
            _, _, data = self._pieces.popleft()
            self._size -= len(data) + _PIECE_BYTES
            lost += _line_ends(data)
        self._next += lost
        self._first = self._next
        self._lines.clear()
        self._bytes = 0
        self._rest.clear()

    def _take_in(self, at: Instant, stream: Stream, data: str | bytes) -> None:
        lines, self._rest[stream] = split_lines(self._rest.get(stream, "") + self._text(stream, data))
        for each in lines:
            self._add(LogLine(at, stream, cleaned(each)))

    def _add(self, line: LogLine) -> None:
        self._lines.append(line)
        self._bytes += _cost(line)
        self._next += 1

    def _text(self, stream: Stream, data: str | bytes) -> str:
        if isinstance(data, str):
            return data
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(data)

    def _end_lines(self) -> None:
        for stream, decoder in self._decoders.items():
            self._rest[stream] = self._rest.get(stream, "") + decoder.decode(b"", final=True)
        for stream, rest in self._rest.items():
            if rest:
                self._add(LogLine(self._now(), stream, cleaned(rest)))
        self._rest.clear()


def _cost(line: LogLine) -> int:
    return len(line.text.encode()) + _LINE_BYTES


def _line_ends(data: str | bytes) -> int:
    return data.count("\n") if isinstance(data, str) else data.count(b"\n")
