"""The lock by which one `up` owns its data directory."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from horarium.errors import HorariumError
from horarium.platform.database.errors import StoreUnavailable
from horarium.serve.admin import make_data_dir
from horarium.settings import Settings

LOCK_FILE = "up.lock"
# An owner writes its pid at once; until then the file is empty or names a process that is gone.
_READS, _READ_AGAIN_SECONDS = 5, 0.02
_HELD = frozenset({errno.EACCES, errno.EAGAIN})


class DataDirInUse(HorariumError):
    """Another `up` owns the data directory."""

    reason = "data_dir_in_use"


@contextmanager
def owned(settings: Settings) -> Iterator[None]:
    """Hold the data directory until the block is left; raises DataDirInUse.

    The system ends a POSIX lock with its process, however that ends, and a child that outlives it does not inherit
    the lock. The pid in the file is only shown: a reused one refuses nothing. The file stays, because another process
    may be about to lock it.
    """
    descriptor = _locked(settings)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(settings: Settings) -> int | None:
    """None where nothing can be written or locked, as on a read-only file system: the service works without."""
    path = settings.data_dir / LOCK_FILE
    try:
        make_data_dir(settings)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (OSError, StoreUnavailable):
        return None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as wrong:
        os.close(descriptor)
        if wrong.errno in _HELD:
            raise DataDirInUse(_refusal(settings, path)) from None
        return None
    return descriptor


def _refusal(settings: Settings, path: Path) -> str:
    for _ in range(_READS):
        if (pid := _living(path)) is not None:
            break
        time.sleep(_READ_AGAIN_SECONDS)
    who = "another process" if pid is None else f"process {pid}"
    return f"The data directory {settings.data_dir} is in use by {who}. Stop it, or choose another --data-dir"


def _living(path: Path) -> int | None:
    """None where the owner has not written its pid yet, or runs where this process cannot see it, as in a container."""
    try:
        pid = int(path.read_text("ascii"))
        os.kill(pid, 0)
    except PermissionError:  # alive, and another user's
        return pid
    except (OSError, ValueError, OverflowError):
        return None
    return pid
