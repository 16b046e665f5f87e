"""Something between us and an agent that hands on what we send, and loses replies when told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


@dataclass
class Between:
    """`loses` says of a method of the protocol whether its reply never comes back; `methods` are all that were called.

    `hidden` are paths at which nobody finds anything.
    """

    behind: str
    loses: Callable[[str], bool] = lambda _method: False
    methods: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    hidden: tuple[str, ...] = ()
    url: str = ""
    lost: threading.Event = field(default_factory=threading.Event)

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes] | None:
        """None: the connection is closed without a word."""
        self.headers.append({key.lower(): value for key, value in handler.headers.items()})
        if handler.path in self.hidden:
            return 404, b""
        method = str(json.loads(body).get("method")) if body else f"GET {handler.path}"
        self.methods.append(method)
        kept = {key: value for key, value in self.headers[-1].items() if key not in ("host", "content-length")}
        with httpx.Client(trust_env=False, timeout=60) as http:
            reply = http.request(handler.command, self.behind.rstrip("/") + handler.path, content=body, headers=kept)
        if self.loses(method):
            self.lost.set()
            return None
        # The card of the agent names the agent's own address.
        return reply.status_code, reply.content.replace(self.behind.encode(), self.url.encode())


@contextmanager
def between(behind: str, **given: Any) -> Iterator[Between]:
    middle = Between(behind, **given)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            found = middle.answer(self, body)
            if found is None:
                self.close_connection = True
                return
            status, raw = found
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST  # noqa: N815 - the name that the standard library looks for

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    middle.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield middle
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
