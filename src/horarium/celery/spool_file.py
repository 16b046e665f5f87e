"""One file of a spool: reports are appended, delivered from the beginning, and survive the process that wrote them.

A process owns a file while it holds the lock (flock). The lock ends with the process, so an unlocked file was left
behind and may be adopted. Nothing is synced to the disk: a killed process loses nothing, a machine that loses power
may lose the last seconds. The decisions explain why this is not a SQLite database.

The first line of a file is its destination, the second the delivered offset, and each further line one report. A
line without a newline at its end was not finished when its writer died, and is ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────


FORMAT = 1
_OFFSET_DIGITS = 20
MAX_LINE = 1_048_576
"""Upper bound of one report on disk. Results and errors are bounded before they are written."""
_FINAL, _PROGRESS = b"F", b"P"
ANY_NAMESPACE = ""
"""The namespace of reports that are authorised by the tokens of their runs, which name the namespace."""


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
        """Return None for a line that is not a report, which a full disk or another program may have left."""
        try:
            read = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        return read if isinstance(read, dict) else None


class SpoolHead(NamedTuple):
    """The first two lines: the reports begin at `size`, and those before `done` have been delivered."""

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
    """Return None for a file of another program or of another version."""
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
    """Read at most `most` lines of `raw`, which begins at `start` of the file; leave out an unfinished line."""
    lines: list[SpoolLine] = []
    begin = 0
    while len(lines) != most and (newline := raw.find(b"\n", begin)) >= 0:
        kind, text = raw[begin : begin + 1], raw[begin + 2 : newline]
        lines.append(SpoolLine(kind == _FINAL, text, start + begin, start + newline + 1))
        begin = newline + 1
    return lines


def to_keep(lines: Sequence[SpoolLine], most: int) -> list[SpoolLine]:
    """Choose lines for `most` bytes, in their order: ends before progress, and of each the newest."""
    kept: list[SpoolLine] = []
    for final in (True, False):
        kept += [line for line in reversed(lines) if line.final is final and (most := most - line.size) >= 0]
    return sorted(kept, key=lambda line: line.begin)


SUFFIX = ".spool"
_NEW = ".new"
_MAX_HEAD = 8_192
_READ = 1_048_576
# Delivered bytes at the beginning of a file that are worth rewriting it.
_TRIMMED = 1_048_576


class Pending(NamedTuple):
    """The next lines of a file; `generation` tells whether the file has been rewritten since."""

    lines: list[SpoolLine]
    generation: int


class SpoolFile:
    """A file that this process created or adopted. Its methods are thread-safe."""

    def __init__(self, path: Path, descriptor: int, head: SpoolHead, end: int) -> None:
        self.path = path
        self.destination = head.destination
        self._descriptor = descriptor
        self._head = head
        self._done = head.done
        self._end = end
        self._generation = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Undelivered bytes."""
        return self._end - self._done

    def add(self, line: bytes) -> None:
        """Append a report. Raises OSError if the disk is full, and then removes the part that was written."""
        with self._lock:
            try:
                _write(self._descriptor, line, self._end)
            except OSError:
                os.ftruncate(self._descriptor, self._end)
                raise
            self._end += len(line)

    def pending(self, most: int, most_bytes: int) -> Pending:
        """Return the oldest reports, and at least one of them, whatever its size."""
        with self._lock:
            size = min(self._end - self._done, max(most_bytes, 2 * MAX_LINE))
            found = read_lines(_read(self._descriptor, self._done, min(size, most_bytes)), self._done, most)
            if size and not found:  # the first report is larger than a batch
                found = read_lines(_read(self._descriptor, self._done, size), self._done, 1)
            if size and not found:  # the writer died in the middle of a line, or this is not a report
                self._settle(self._done + size)
            return Pending(found, self._generation)

    def delivered(self, until: int, generation: int) -> None:
        """Mark reports before `until` as delivered. After a rewrite they are sent again, which changes nothing."""
        with self._lock:
            if generation == self._generation:
                self._settle(until)

    def shrink(self, most: int) -> int:
        """Rewrite the file with at most `most` bytes of reports; return how many reports were dropped."""
        with self._lock:
            raw = _read(self._descriptor, self._done, self._end - self._done)
            lines = read_lines(raw, self._done)
            kept = to_keep(lines, most)
            if len(kept) == len(lines):
                return 0
            self._rewrite([raw[line.begin - self._done : line.end - self._done] for line in kept])
            return len(lines) - len(kept)

    @property
    def is_there(self) -> bool:
        """Tell whether other processes find the file by its name; the directory may have been emptied."""
        return _is_at(self._descriptor, self.path)

    def leave(self) -> None:
        """Release the file for adoption, but keep it open for the next report."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def hold(self) -> bool:
        """Take the lock again. Return False if another process has it, or has delivered and removed the file."""
        with self._lock, suppress(ValueError):
            if (claimed := _claim(self._descriptor, self.path)) is not None:
                self._head, self._end = claimed
                self._done = self._head.done
                return True
        return False

    def close(self) -> None:
        """Remove the file if it is empty; otherwise another process adopts it."""
        with self._lock:
            if self._done >= self._end and _is_at(self._descriptor, self.path):
                self.path.unlink(missing_ok=True)
            os.close(self._descriptor)

    def forget(self) -> None:
        """Close the descriptor that a forked child inherited; the parent keeps the lock."""
        os.close(self._descriptor)

    def _settle(self, until: int) -> None:
        until = max(until, self._done)
        if until >= self._end:
            # In this order: if the process dies in between, reports are sent again, which changes nothing.
            _write(self._descriptor, offset_text(self._head.size), self._head.offset_at)
            os.ftruncate(self._descriptor, self._head.size)
            self._done = self._end = self._head.size
            return
        if until - self._head.size > max(_TRIMMED, self._end - until):
            with suppress(OSError):  # if the disk is full, the file keeps its length
                self._rewrite([_read(self._descriptor, until, self._end - until)])
                return
        self._done = until
        _write(self._descriptor, offset_text(self._done), self._head.offset_at)

    def _rewrite(self, lines: list[bytes]) -> None:
        """Replace the file atomically."""
        made = create(self.path.parent, self.destination, b"".join(lines), at=self.path)
        os.close(self._descriptor)
        self._descriptor, self._head = made._descriptor, made._head
        self._done, self._end = made._done, made._end
        self._generation += 1


def create(directory: Path, destination: Destination, lines: bytes = b"", at: Path | None = None) -> SpoolFile:
    """Create a file under a temporary name and lock it before the rename, so that it is not adopted."""
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
    head = SpoolHead(destination, size=len(first), done=len(first))
    return SpoolFile(path, descriptor, head, len(first) + len(lines))


def adopt(path: Path) -> SpoolFile | None:
    """Adopt an abandoned file. Return None if its owner lives, or another process adopted or removed it.

    Raises ValueError for a file that is not a spool.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        claimed = _claim(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    if claimed is None:
        os.close(descriptor)
        return None
    return SpoolFile(path, descriptor, *claimed)


def _claim(descriptor: int, path: Path) -> tuple[SpoolHead, int] | None:
    """Lock a file and read its head and its end. Return None if another process has, removed or replaced it."""
    if not _lock(descriptor) or not _is_at(descriptor, path):
        return None
    head = read_head(os.pread(descriptor, _MAX_HEAD, 0))
    if head is None:
        raise ValueError(f"{path} is not a report spool")
    end = max(os.fstat(descriptor).st_size, head.size)
    if head.done > end:  # otherwise reports that are added now would count as delivered
        head = head._replace(done=head.size)
        _write(descriptor, offset_text(head.done), head.offset_at)
    return head, end


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether the name still leads to this file; another process may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
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
