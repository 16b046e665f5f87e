"""The real pgbouncer in front of the PostgreSQL of the tests, where the program is installed, as its pool is strictest.

Each transaction is given whichever of two connections is free: what a session would remember is gone, or somebody
else's.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import make_url

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SERVER_CONNECTIONS = 2
_PATIENCE = 60

_CONFIG = """
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
ignore_startup_parameters = {ignored}
logfile = {folder}/log
"""


@contextmanager
def pooled(database_url: str, *, ignored: str = "extra_float_digits") -> Iterator[str]:
    """The address of the same database behind a pgbouncer, as its users would give it."""
    assert PROGRAM is not None
    direct = make_url(database_url)
    host = str(direct.query.get("host", direct.host or "127.0.0.1"))
    with tempfile.TemporaryDirectory(prefix="horarium-test-pgbouncer-") as name, _free_port() as listen:
        folder = Path(name)
        said = {"host": host, "port": direct.port or 5432, "user": direct.username, "listen": listen}
        config = folder / "pgbouncer.ini"
        config.write_text(_CONFIG.format(**said, connections=SERVER_CONNECTIONS, ignored=ignored, folder=folder))
        command = [PROGRAM, "--quiet", *_as_somebody(folder, Path(host)), str(config)]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _until_open(listen, running, folder)
            yield f"postgresql://{direct.username}@127.0.0.1:{listen}/{direct.database}?pgbouncer=true"
        finally:
            running.terminate()
            running.wait(_PATIENCE)


def _as_somebody(folder: Path, sockets: Path) -> list[str]:
    """It refuses to be root, and whoever it is must reach the sockets of PostgreSQL."""
    if os.geteuid() != 0:
        return []
    owner = sockets.stat().st_uid if sockets.is_dir() else pwd.getpwnam("nobody").pw_uid
    shutil.chown(folder, owner)
    for each in folder.iterdir():
        shutil.chown(each, owner)
    return ["-u", pwd.getpwuid(owner).pw_name]


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield port


def _until_open(port: int, running: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        log = folder / "log"
        assert running.poll() is None, log.read_text() if log.exists() else "pgbouncer did not start"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("pgbouncer does not listen")
