"""One file of a spool: reports are appended, delivered from the beginning, and survive the process that wrote them.

A process owns a file while it holds the lock (flock). The lock ends with the process, so an unlocked file was left
behind and may be adopted. Nothing is synced to the disk: a killed process loses nothing, a machine that loses power
may lose the last seconds.

The first line of a file is its destination, the second the delivered offset, and each further line one report. A
line without a newline at its end was not finished when its writer died, and is ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────


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


class SpoolLine(NamedTuple):
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


class SpoolHead(NamedTuple):
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


def read_head(raw: bytes) -> SpoolHead | None:
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
    return SpoolHead(destination, size, max(done, size)) if len(digits) == _OFFSET_DIGITS else None


def read_lines(raw: bytes, start: int, most: int | None = None) -> list[SpoolLine]:
    """The first lines in `raw`, which begins at `start` of the file; one that is not finished is left out."""
    lines: list[SpoolLine] = []
    begin = 0
    while len(lines) != most and (newline := raw.find(b"\n", begin)) >= 0:
        kind, text = raw[begin : begin + 1], raw[begin + 2 : newline]
        lines.append(SpoolLine(kind == _FINAL, text, start + begin, start + newline + 1))
        begin = newline + 1
    return lines


def to_keep(lines: Sequence[SpoolLine], most: int) -> list[SpoolLine]:
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


def _newest(lines: Sequence[SpoolLine], *, final: bool) -> Iterable[int]:
    return (place for place in reversed(range(len(lines))) if lines[place].final is final)


SUFFIX = ".spool"
_NEW = ".new"
_MAX_HEAD = 8_192
_READ = 1_048_576
# Delivered bytes at the beginning of a file that is never empty: so many are worth a rewriting.
_TRIMMED = 1_048_576


class Pending(NamedTuple):
    """The next lines of a file; `generation` tells whether it has been written anew since."""

    lines: list[SpoolLine]
    generation: int


class SpoolFile:
    """Usable from any thread of the process that made or adopted it."""

    def __init__(self, path: Path, descriptor: int, head: SpoolHead, end: int) -> None:
        self.path = path
        self.destination = head.destination
        self._descriptor = descriptor
        self._head = head
        self._done = head.done if head.done <= end else head.size
        self._end = max(end, head.size)
        self._generation = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that are still to be delivered."""
        return self._end - self._done

    def add(self, line: bytes) -> None:
        """Raises OSError where there is no room on the disk; then nothing of it is left."""
        with self._lock:
            try:
                _write(self._descriptor, line, self._end)
            except OSError:
                os.ftruncate(self._descriptor, self._end)
                raise
            self._end += len(line)

    def pending(self, most: int, most_bytes: int) -> Pending:
        """The oldest ones; one at least, however large it is."""
        with self._lock:
            size = min(self._end - self._done, max(most_bytes, 2 * MAX_LINE))
            found = read_lines(self._read_at(min(size, most_bytes)), self._done, most)
            if size and not found:  # one that is larger than all that may go together
                found = read_lines(self._read_at(size), self._done, 1)
            if size and not found:  # its writer died in the midst of a line, or it is none
                self._settle(self._done + size)
            return Pending(found, self._generation)

    def _read_at(self, size: int) -> bytes:
        return os.pread(self._descriptor, size, self._done) if size else b""

    def delivered(self, until: int, generation: int) -> None:
        """Mark reports before `until` as delivered; after a rewriting they are sent again, which is harmless."""
        with self._lock:
            if generation == self._generation:
                self._settle(until)

    def shrink(self, most: int) -> int:
        """Written anew with `most` bytes at most; how many reports were given up."""
        with self._lock:
            raw = _read(self._descriptor, self._done, self._end - self._done)
            lines = read_lines(raw, self._done)
            kept = to_keep(lines, most)
            if len(kept) == len(lines):
                return 0
            self._rewrite([raw[line.begin - self._done : line.end - self._done] for line in kept])
            return len(lines) - len(kept)

    def hold(self) -> bool:
        """Take the lock again; False where somebody else has it, or has delivered and removed the file."""
        if not _lock(self._descriptor) or not _is_at(self._descriptor, self.path):
            return False
        with self._lock:
            found = read_head(os.pread(self._descriptor, _MAX_HEAD, 0))
            self._end = max(os.fstat(self._descriptor).st_size, self._head.size)
            said = self._head.size if found is None else found.done
            self._done = said if said <= self._end else self._head.size
            if said != self._done:  # what is added now must not be taken for delivered
                _write(self._descriptor, offset_text(self._done), self._head.offset_at)
        return True

    @property
    def is_there(self) -> bool:
        """Tell whether other processes would find the file; the directory may have been emptied."""
        return _is_at(self._descriptor, self.path)

    def leave(self) -> None:
        """Anybody may have it now; it stays open, for the next report."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """An empty file goes; the rest of another waits for whoever adopts it."""
        with self._lock:
            if self._done >= self._end and _is_at(self._descriptor, self.path):
                self.path.unlink(missing_ok=True)
            os.close(self._descriptor)

    def forget(self) -> None:
        """In the child of a fork: the lock stays the parent's."""
        os.close(self._descriptor)

    def _settle(self, until: int) -> None:
        until = max(until, self._done)
        if until >= self._end:
            # In this order: a process that dies in between leaves what is sent once more, which does no harm.
            _write(self._descriptor, offset_text(self._head.size), self._head.offset_at)
            os.ftruncate(self._descriptor, self._head.size)
            self._done = self._end = self._head.size
            return
        if until - self._head.size > max(_TRIMMED, self._end - until):
            with suppress(OSError):  # the disk may be full; the file stays as long as it is, then
                self._rewrite([_read(self._descriptor, until, self._end - until)])
                return
        self._done = until
        _write(self._descriptor, offset_text(self._done), self._head.offset_at)

    def _rewrite(self, lines: list[bytes]) -> None:
        """A new file takes the place of the old one at once, so that no moment has neither."""
        made = create(self.path.parent, self.destination, b"".join(lines), at=self.path)
        os.close(self._descriptor)
        self._descriptor, self._head = made._descriptor, made._head
        self._done, self._end = made._done, made._end
        self._generation += 1


def create(directory: Path, destination: Destination, lines: bytes = b"", at: Path | None = None) -> SpoolFile:
    """It is locked before it has its name, so that nobody takes it for left behind."""
    name = uuid4().hex
    path = directory / f"{name}{SUFFIX}" if at is None else at
    fresh = directory / f"{name}{_NEW}"
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        first = head_of(destination)
        _write(descriptor, first + lines, 0)
        fresh.rename(path)
    except BaseException:
        os.close(descriptor)
        fresh.unlink(missing_ok=True)
        raise
    head = read_head(first)
    assert head is not None  # it was written just now
    return SpoolFile(path, descriptor, head, len(first) + len(lines))


def adopt(path: Path) -> SpoolFile | None:
    """Adopt an abandoned file; None where its owner lives, or another was faster.

    Raises ValueError for a file that is no spool.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        if not _lock(descriptor) or not _is_at(descriptor, path):
            os.close(descriptor)
            return None
        head = read_head(os.pread(descriptor, _MAX_HEAD, 0))
        if head is None:
            raise ValueError(f"{path} is not a report spool")
        return SpoolFile(path, descriptor, head, os.fstat(descriptor).st_size)
    except BaseException:
        os.close(descriptor)
        raise


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether the name still leads to this file: another process may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _write(descriptor: int, raw: bytes, offset: int) -> None:
    while raw:
        written = os.pwrite(descriptor, raw, offset)
        raw, offset = raw[written:], offset + written


def _read(descriptor: int, offset: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.pread(descriptor, min(size, _READ), offset)):
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return b"".join(parts)
