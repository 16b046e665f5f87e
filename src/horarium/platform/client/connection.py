"""Connection settings of both clients: given values, then the environment, then the data directory of a local `up`.

| setting       | argument    | environment                       | data directory         | else              |
|---------------|-------------|-----------------------------------|------------------------|-------------------|
| server URL    | `server`    | `HORARIUM_SERVER`, `HORARIUM_URL` | `url` in `server.json` | loopback          |
| token         | `token`     | `HORARIUM_TOKEN`                  | `admin.token`          | none              |
| namespace     | `namespace` | `HORARIUM_NAMESPACE`              |                        | that of the token |
| certificates  | `trust`     | `HORARIUM_CA_FILE`, …             |                        | system defaults   |

On loopback it is `HORARIUM_PORT` or 8765. `up --demo` has its own data directory, `demo` in the default one. Of two
servers, the one that started last is used.

A token is sent only to its own server. The token of the data directory belongs to the server of the data directory,
and `HORARIUM_TOKEN` to `HORARIUM_SERVER`, if both are set. The working directory may belong to another user, so any
other token is sent to the URL in it only if that URL is on this machine. A link that leads out of the directory is
not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx

from horarium.errors import InvalidDefinition
from horarium.platform.client.exchange import NAMESPACE, SILENCE_SECONDS, SOURCE, Retries
from horarium.platform.client.trust import USUAL, Trust, on_this_machine, same_server, trust_of

DEFAULT_URL = "http://127.0.0.1:8765"
DEFAULT_TIMEOUT_SECONDS = 30.0
DEFAULT_RETRIES = Retries()
DEFAULT_SOURCE = "client"


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection settings. `namespace` None: the namespace of the token. Printing hides the token.

    `source` (`cli`, `ui` or `client`) is recorded in history and audit log.
    """

    base_url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    namespace: str | None = None
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS
    retries: Retries = DEFAULT_RETRIES
    trust: Trust = USUAL
    source: str = DEFAULT_SOURCE

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.base_url)
        except (httpx.InvalidURL, TypeError) as wrong:
            raise InvalidDefinition({"base_url": [f"is not a valid URL: {str(wrong)[:200]}"]}) from None
        if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
            raise InvalidDefinition(
                {"base_url": ["must begin with http:// or https://, name a host and have no query"]}
            )

    @property
    def options(self) -> dict[str, Any]:
        """Options of an httpx client. Redirects are not followed: the token would be sent to another server."""
        context = self.trust.context()
        return {
            "base_url": self.base_url,
            "headers": self._headers(),
            "timeout": self.timeout,
            "follow_redirects": False,
            "verify": True if context is None else context,
        }

    @property
    def stream_timeout(self) -> httpx.Timeout:
        return httpx.Timeout(self.timeout, read=SILENCE_SECONDS)

    def _headers(self) -> dict[str, str]:
        headers = {
            "User-Agent": f"horarium-python/{version('horarium')}",
            SOURCE: _printable("source", self.source),
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {_printable('token', self.token)}"
        if self.namespace is not None:
            headers[NAMESPACE] = _printable("namespace", self.namespace)
        return headers


def _printable(name: str, value: str) -> str:
    """A line end would begin another header."""
    if not value.isascii() or not value.isprintable():
        raise InvalidDefinition({name: ["must be printable ASCII"]})
    return value


TOKEN_FILE = "admin.token"
SERVER_FILE = "server.json"
DEFAULT_DATA_DIR = ".horarium"
DEMO_DIR = "demo"
_MAX_FILE = 65_536


def discover(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    server: str | None = None,
    token: str | None = None,
    namespace: str | None = None,
    trust: Trust = USUAL,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """Find the connection settings. Reads at most two small files and sends no request.

    Missing and unreadable files are ignored. Raises InvalidDefinition if the only known token belongs to another
    server.
    """
    said = os.environ if environ is None else environ
    named = data_dir or said.get("HORARIUM_DATA_DIR") or None
    directory = _of_a_server(Path(named or DEFAULT_DATA_DIR))
    usual = said.get("HORARIUM_SERVER") or said.get("HORARIUM_URL") or None
    found = _url(directory / SERVER_FILE)
    base_url = server or usual or found or _local(said.get("HORARIUM_PORT"))
    token = token or None
    if token is None:
        token = said.get("HORARIUM_TOKEN") or None
        if token is not None and server and usual and not same_server(server, usual):
            raise _misdirected(f"HORARIUM_TOKEN is for {usual} and is not sent to {server}")
    if token is None:
        is_found = found is not None and same_server(base_url, found)
        if (is_found or not (server or usual)) and (named or _lies_inside(directory / TOKEN_FILE)):
            token = _text(directory / TOKEN_FILE)
    elif not (server or usual or named) and found is not None and not on_this_machine(found):
        raise _misdirected(f"{directory / SERVER_FILE} names {found}, which is on another machine and not trusted")
    return Connection(
        base_url, token, namespace or said.get("HORARIUM_NAMESPACE") or None, trust=trust.over(trust_of(said))
    )


def _misdirected(why: str) -> InvalidDefinition:
    return InvalidDefinition({"token": [f"{why}; set both the server and its token"]})


def connect(
    server: str | None, token: str | None, namespace: str | None, timeout: float | None, retries: Retries, trust: Trust
) -> Connection:
    """Return the connection of a client: given values, and discovered ones for the rest."""
    found = discover(server=server, token=token, namespace=namespace, trust=trust)
    return replace(found, timeout=timeout, retries=retries)


def _of_a_server(directory: Path) -> Path:
    """Directory of the newest server: this one or the demonstration's inside it; this one where no server runs."""
    return max((directory, directory / DEMO_DIR), key=_modified_at)


def _modified_at(directory: Path) -> float:
    try:
        return (directory / SERVER_FILE).stat().st_mtime
    except (OSError, ValueError):
        return 0.0


def _local(port: str | None) -> str:
    return f"http://127.0.0.1:{port}" if port and port.isascii() and port.isdigit() else DEFAULT_URL


def _url(path: Path) -> str | None:
    try:
        written = json.loads(_text(path) or "null")
    except (ValueError, RecursionError):
        return None
    url = written.get("url") if isinstance(written, dict) else None
    return url if isinstance(url, str) and url else None


def _lies_inside(path: Path) -> bool:
    """Tell whether it is a file in its own directory, and no link to one with another purpose."""
    try:
        real = path.resolve()
        return real.is_file() and real.is_relative_to(path.parent.resolve())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        return False


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(_MAX_FILE).strip() or None
    except (OSError, UnicodeError):
        return None
