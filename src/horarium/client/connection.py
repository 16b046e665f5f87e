"""Connection settings of both clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import httpx

from horarium.client.exchange import NAMESPACE, SOURCE, Retries
from horarium.client.stream import SILENCE_SECONDS
from horarium.client.trust import USUAL, Trust
from horarium.errors import InvalidDefinition

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
