"""One file of a spool: reports are added at its end, delivered from its beginning, and survive whoever wrote them.

Whoever has the lock on the file (flock) owns it. The lock goes with the process, so what is unlocked was left
behind, and may be adopted. Nothing is synced to the disk: a process that is killed loses nothing, a machine that
loses power may lose the last seconds.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from horarium.celery.spool_lines import (
    MAX_LINE,
    Destination,
    Head,
    Line,
    head_of,
    offset_text,
    read_head,
    read_lines,
    to_keep,
)

SUFFIX = ".spool"
_NEW = ".new"
_MAX_HEAD = 8_192
_READ = 1_048_576
# Delivered bytes at the beginning of a file that is never empty: so many are worth a rewriting.
_TRIMMED = 1_048_576


class Pending(NamedTuple):
    """The next lines of a file; `generation` tells whether it has been written anew since."""

    lines: list[Line]
    generation: int


class SpoolFile:
    """Usable from any thread of the process that made or adopted it."""

    def __init__(self, path: Path, descriptor: int, head: Head, end: int) -> None:
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
