"""The lock of a data directory: one `up` at a time, and no trace of a dead one stands in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from horarium.platform.settings import Settings
from horarium.serve.data_dir import LOCK_FILE, DataDirInUse, owned

_HOLD = """
import os, sys, time
from pathlib import Path
from horarium.serve.data_dir import owned
from horarium.platform.settings import Settings
with owned(Settings(data_dir=Path(sys.argv[1]))):
    child = os.fork() if sys.argv[2] == "fork" else 1
    if child != 0:
        print(child, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def _holder(settings: Settings, how: str) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-c", _HOLD, str(settings.data_dir), how]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_the_refusal_names_the_process_that_owns_the_directory(settings: Settings) -> None:
    holder, _ = _holder(settings, "alone")
    with holder:
        try:
            with pytest.raises(DataDirInUse, match=rf"in use by process {holder.pid}\."), owned(settings):
                pass
            (settings.data_dir / LOCK_FILE).write_text("")  # not written yet, or damaged
            with pytest.raises(DataDirInUse, match=r"in use by another process\."), owned(settings):
                pass
        finally:
            holder.kill()


def test_a_killed_owner_and_the_child_that_it_left_block_nobody(settings: Settings) -> None:
    holder, child = _holder(settings, "fork")
    with holder:
        holder.kill()
        holder.wait()
        try:
            with owned(settings):
                assert (settings.data_dir / LOCK_FILE).read_text().strip() == str(os.getpid())
        finally:
            os.kill(child, signal.SIGKILL)


def test_the_pid_of_a_living_stranger_in_the_file_blocks_nobody(settings: Settings) -> None:
    settings.data_dir.mkdir()
    (settings.data_dir / LOCK_FILE).write_text(f"{os.getppid()}\n")
    with owned(settings):
        pass


def test_a_directory_in_which_nothing_can_be_written_is_used_without_a_lock(settings: Settings) -> None:
    (settings.data_dir / LOCK_FILE).mkdir(parents=True)
    with owned(settings):
        pass


def test_a_directory_that_cannot_be_created_is_used_without_a_lock(tmp_path: Path) -> None:
    """A service on PostgreSQL with its token and keys in the environment keeps nothing there."""
    (tmp_path / "file").touch()
    with owned(Settings(data_dir=tmp_path / "file" / "data")):
        pass


def test_the_refusal_names_no_earlier_owner(settings: Settings) -> None:
    """The file of a killed process names it until the next one, which has the lock already, has written its pid."""
    holder, _ = _holder(settings, "alone")
    with holder:
        try:
            dead = subprocess.Popen([sys.executable, "-c", ""])
            dead.wait()
            (settings.data_dir / LOCK_FILE).write_text(f"{dead.pid}\n")
            with pytest.raises(DataDirInUse, match=r"in use by another process\."), owned(settings):
                pass
        finally:
            holder.kill()
