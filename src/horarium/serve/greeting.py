"""The lines that a service prints when it is ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from horarium.instant import MINUTE
from horarium.platform.http.browser_sessions import SessionCookies
from horarium.serve.address import browser_address
from horarium.serve.admin import read_privately
from horarium.serve.service import Service

# The printed address may be opened a little later than that of a command which opens it by itself.
_CODE_MINUTES = 15

Say = Callable[[str], None]


def greet(say: Say, service: Service, url: str, token: Path | None, *, to_terminal: bool) -> None:
    say(_ready_line(service, url, token))
    if url and to_terminal:
        code = None if token is None else _sign_in_code(service, token)
        hint = (
            ""
            if code is None
            else f" (one-time sign-in link, valid for {_CODE_MINUTES} minutes; for a new one run `horarium ui`)"
        )
        say(f"Browser: {browser_address(url, service.settings.base_path, code)}{hint}")


def _sign_in_code(service: Service, token: Path) -> str | None:
    """A terminal keeps what it shows, and so do logs of it: the token itself would be good for as long as they are."""
    secret = read_privately(token)
    if secret is None:
        return None
    sessions: SessionCookies = service.api.state.sessions
    return sessions.seal_code(secret, service.clock.now() + _CODE_MINUTES * MINUTE)


def _ready_line(service: Service, url: str, token: Path | None) -> str:
    if not url:
        return f"Horarium uses {service.database.url}"
    where = "" if token is None else f" · admin token in {token}"
    return f"Horarium is ready at {url}{where}"
