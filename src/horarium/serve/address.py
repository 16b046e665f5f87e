"""Where a server of this machine can be reached: a small file in its data directory, there while it runs.

Command lines on the same machine read it, and take the token from beside it. It is removed at the end, by the
process that wrote it: an address that is no longer ours may be somebody else's, who should not get our token.
"""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from horarium.serve.admin import make_data_dir, read_privately, write_privately
from horarium.settings import Settings
from horarium.store.errors import StoreUnavailable


def address_file(settings: Settings) -> Path:
    return settings.data_dir / "server.json"


@contextmanager
def addressed(settings: Settings, url: str) -> Iterator[None]:
    """Publish the address of the server; of several with one data directory the last one is found."""
    # Two containers with one volume may have the same url and pid.
    text = json.dumps({"url": reachable(url), "pid": os.getpid(), "instance": secrets.token_hex(8)})
    path = _written(settings, text)
    try:
        yield
    finally:
        if path is not None and read_privately(path) == text:
            with suppress(OSError):
                path.unlink()


def _written(settings: Settings, text: str) -> Path | None:
    """None where nothing can be written: such a server is asked from elsewhere, and works all the same."""
    path = address_file(settings)
    try:
        make_data_dir(settings)
        write_privately(path, text)
    except StoreUnavailable:
        return None
    return path


def browser_address(url: str, base: str, code: str | None) -> str:
    """The browser interface. A code stands behind `#`, which a browser never sends: the page exchanges it."""
    return f"{reachable(url)}{base}/ui/" + ("" if code is None else f"#token={quote(code, safe='')}")


def reachable(url: str) -> str:
    """One that listens everywhere is reached on this machine by loopback."""
    parts = urlsplit(url)
    try:
        address = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return url
    if not address.is_unspecified:
        return url
    return f"{parts.scheme}://{'127.0.0.1' if address.version == 4 else '[::1]'}:{parts.port}"
