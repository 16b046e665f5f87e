"""A line to the service that can be cut and mended, as that of a browser whose service is started anew."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_PIECE = 65_536


class Line:
    """Carries bytes to the service under an address of its own. While it is cut, nobody listens there."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "", parts.port or 80)
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self.port = self._open(0)
        self.url = f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            _shut(end)

    def mend(self) -> None:
        self._open(self.port)

    def _open(self, port: int) -> int:
        door = socket.socket()
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen(64)
        with self._lock:
            self._ends.append(door)
        threading.Thread(target=self._answer, args=(door,), daemon=True).start()
        taken: int = door.getsockname()[1]
        return taken

    def _answer(self, door: socket.socket) -> None:
        with suppress(OSError):  # of a door that was shut
            while True:
                near, _ = door.accept()
                far = socket.create_connection(self._to)
                with self._lock:
                    is_cut = door not in self._ends  # while this one was let in
                    if not is_cut:
                        self._ends += [near, far]
                if is_cut:
                    _shut(near)
                    _shut(far)
                    return
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_carry, args=(one, other), daemon=True).start()


def _carry(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while piece := one.recv(_PIECE):
            other.sendall(piece)
    _shut(one)
    _shut(other)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)  # wakes whoever waits in it
    end.close()


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    line = Line(url)
    try:
        yield line
    finally:
        line.cut()
