"""What a page must never do: log an error, raise one, break its own Content-Security-Policy, or ask another host."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request


@dataclass
class Watch:
    """Of all pages of a test. What a test brings about on purpose it announces with `expect`."""

    origin: str
    seen: list[str] = field(default_factory=list)
    _expected: list[re.Pattern[str]] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """Such as `status of 404`, of a page that is asked for something that is not there."""
        self._expected.append(re.compile(pattern))

    def on(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", self._raised)
        page.on("request", self._asked)
        page.on("dialog", lambda dialog: self._opened(dialog.message))

    def unexpected(self) -> list[str]:
        return [line for line in self.seen if not any(each.search(line) for each in self._expected)]

    def _console(self, message: ConsoleMessage) -> None:
        # A violation of the Content-Security-Policy is an error in the console, too.
        if message.type == "error":
            self.seen.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _raised(self, error: Error) -> None:
        self.seen.append(f"raised: {error.stack or error.message}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.seen.append(f"another host: {request.url}")

    def _opened(self, message: str) -> None:
        self.seen.append(f"a dialog of the browser: {message}")
