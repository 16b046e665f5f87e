"""How an agent of the tests is served: on a port of its own, for as long as whoever needs it lives."""

from __future__ import annotations

import argparse
import os
import socket
import threading
import time
from typing import Any

import uvicorn


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--owner", type=int, required=True, help="ends when this process does")
    parser.add_argument("--detached", action="store_true", help="outlives whoever started it")
    parser.add_argument("--compat", action="store_true", help="speaks 0.3 as well")
    parser.add_argument("--push", action="store_true", help="offers push notifications")
    return parser.parse_args()


def listen(port: int) -> tuple[socket.socket, str]:
    """The address is known before the card is written; what comes before the server is up waits in the queue."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(200)
    return listening, f"http://127.0.0.1:{listening.getsockname()[1]}/"


def serve(application: Any, listening: socket.socket, url: str, chosen: argparse.Namespace) -> None:
    if chosen.detached and os.fork():
        os._exit(0)
    threading.Thread(target=_end_with, args=(chosen.owner,), daemon=True).start()
    print(f"ready at {url}", flush=True)
    config = uvicorn.Config(application, log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


def _end_with(owner: int) -> None:
    """At once and without a goodbye: an execution that hangs would keep the server for ever."""
    while True:
        time.sleep(0.5)
        try:
            os.kill(owner, 0)
        except ProcessLookupError:
            os._exit(0)
