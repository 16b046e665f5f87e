"""The spool directory: a file for each process and destination, and files that other processes left behind.

The files share `limit` bytes evenly. A report without room is dropped, progress before ends and the oldest first,
and each drop is logged as an error. Without a setting, the directory is where the platform keeps the state of a
user's programs.
"""

from __future__ import annotations

import errno
import logging
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from horarium.celery.spool_file import SUFFIX, Destination, SpoolFile, adopt, create

LIMIT_BYTES = 64 * 1_048_576
_LEAST_SHARE = 65_536
# A worker has one destination as a rule, and a few where several services share a broker.
_MOST_DESTINATIONS = 20
_ADOPTED_AT_ONCE = 50
# What is wrong with this process or this machine, and not with the file.
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOLCK, errno.EINTR, errno.ENOSPC})

log = logging.getLogger("horarium.celery")


class Spool:
    """Report spool of one process.

    `leaves`: it sends nothing, and others may adopt its files as soon as they are written.
    """

    def __init__(self, directory: Path, limit: int = LIMIT_BYTES, *, leaves: bool = False) -> None:
        self.directory = directory
        self._limit = limit
        self._leaves = leaves
        self._own: dict[Destination, SpoolFile] = {}
        self._adopted: list[SpoolFile] = []
        self._share = _LEAST_SHARE
        self._lock = threading.Lock()

    def put(self, destination: Destination, line: bytes) -> None:
        """Write a report to the file of its destination. Raises OSError if that is impossible."""
        with self._lock:
            file = self._file_for(destination)
            file.add(line)
            if file.size > self._share:
                self._make_room(file)
            if self._leaves:
                file.leave()

    @property
    def sources(self) -> list[SpoolFile]:
        """Files to deliver next: for each destination the oldest adopted file, then the process's own.

        Reports of a killed child thus come before its parent's report about it.
        """
        with self._lock:
            oldest = {file.destination: file for file in reversed(self._adopted) if file.size}
            return [*oldest.values(), *(file for file in self._own.values() if file.size)]

    def sweep(self) -> None:
        """Adopt files of ended processes, and remove adopted files that have been delivered."""
        with self._lock:
            self._own = {each: file for each, file in self._own.items() if self._keep(file)}
            for file in [each for each in self._adopted if each.size == 0]:
                self._adopted.remove(file)
                file.close()
            known = {file.path for file in (*self._adopted, *self._own.values())}
            found = self._files()
            self._share = max(_LEAST_SHARE, self._limit // max(1, len(found)))
            for path in sorted(found - known, key=_modified_at)[:_ADOPTED_AT_ONCE]:
                self._adopt(path)

    def close(self) -> None:
        """Close the files; undelivered reports stay for adoption by another process."""
        with self._lock:
            for file in (*self._adopted, *self._own.values()):
                file.close()
            self._adopted, self._own = [], {}

    def forget(self) -> None:
        """Close inherited descriptors in a forked child, where no lock is reliable."""
        for file in (*self._adopted, *self._own.values()):
            file.forget()

    def _file_for(self, destination: Destination) -> SpoolFile:
        file = self._own.get(destination)
        if file is not None and self._leaves and not file.hold():
            self._own.pop(destination).forget()
            file = None
        if file is None:
            self._bound()
            file = self._own[destination] = create(self.directory, destination)
        return file

    def _keep(self, file: SpoolFile) -> bool:
        """Tell whether other processes can find the file; otherwise it is delivered, but not written to."""
        if not file.is_there:
            self._adopted.append(file)
            return False
        return True

    def _bound(self) -> None:
        """Close an idle file of another destination, if there are too many."""
        if len(self._own) < _MOST_DESTINATIONS:
            return
        idle = next((each for each, file in self._own.items() if self._is_idle(file)), None)
        if idle is None:
            raise OSError(f"the spool already has reports for {_MOST_DESTINATIONS} services")
        self._own.pop(idle).close()

    def _is_idle(self, file: SpoolFile) -> bool:
        """Tell whether all reports are delivered; a file that this process leaves to others is then removed."""
        return file.size == 0 or (self._leaves and not file.is_there)

    def _make_room(self, file: SpoolFile) -> None:
        self._share = max(_LEAST_SHARE, self._limit // max(1, len(self._files())))
        if file.size <= self._share:
            return
        try:
            lost = file.shrink(self._share * 3 // 4)
        except OSError as wrong:
            log.error("the spool in %s is full, and cannot be made smaller: %s", self.directory, wrong)
        else:
            log.error("the spool in %s is full: %d reports for %s are lost", self.directory, lost, file.destination.url)

    def _files(self) -> set[Path]:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # it may have been removed
        with os.scandir(self.directory) as entries:
            return {Path(entry.path) for entry in entries if entry.name.endswith(SUFFIX)}

    def _adopt(self, path: Path) -> None:
        try:
            file = adopt(path)
        except (OSError, ValueError) as wrong:
            if isinstance(wrong, OSError) and wrong.errno in _PASSING:
                log.warning("a file in the spool cannot be read now: %s", wrong)
                return
            log.error("a file in the spool cannot be read, and is set aside: %s", wrong)
            with suppress(FileNotFoundError):  # another was faster
                path.rename(path.with_suffix(".broken"))
            return
        if file is not None and file.size:
            self._adopted.append(file)
        elif file is not None:
            file.close()


def _modified_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # another was faster
        return 0


SPOOL_VARIABLE = "HORARIUM_CELERY_SPOOL"


def spool_places(environ: Mapping[str, str], platform: str, user: int, temporary: Path) -> tuple[Path, ...]:
    """Return candidate directories, the best first.

    The XDG base directory specification requires that a relative `XDG_STATE_HOME` is ignored. A user without a home
    directory, as in many containers, gets a temporary directory.
    """
    said = environ.get(SPOOL_VARIABLE)
    if said:
        return (Path(said),)
    home, state = environ.get("HOME") or "", environ.get("XDG_STATE_HOME") or ""
    places = []
    if platform == "darwin":
        places += [Path(home) / "Library" / "Application Support"] if home.startswith("/") else []
    elif state.startswith("/"):
        places.append(Path(state))
    elif home.startswith("/"):
        places.append(Path(home) / ".local" / "state")
    named = [place / "horarium" / "celery-spool" for place in places]
    return (*named, temporary / f"horarium-celery-spool-{user}")


def usual_places(platform: str) -> tuple[Path, ...]:
    return spool_places(os.environ, platform, os.getuid(), Path(tempfile.gettempdir()))


def open_directory(places: Sequence[Path]) -> Path:
    """Return the first directory that this user owns or can create. Only the owner may read it: it has run tokens.

    Raises OSError with the reason for each candidate.
    """
    wrong = []
    for place in places:
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if place.stat().st_uid != os.getuid():
                raise PermissionError(f"{place} belongs to another user")
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(f"{place} is not writable")
            return place
        except OSError as error:
            wrong.append(str(error))
    raise OSError("; ".join(wrong))
