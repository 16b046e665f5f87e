"""The start of a service process: the files and threads that it needs, and the lines it prints when it is ready."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from horarium.errors import HorariumError
from horarium.instant import MINUTE
from horarium.platform.http.browser_sessions import SessionCookies
from horarium.platform.http.middleware import shortage_of
from horarium.serve.data_dir import browser_address, read_privately
from horarium.serve.service import Service
from horarium.serve.sockets import RESERVE

# More than this is of no use to any setting, and costs programs that the process starts.
_MOST_FILES = 65_536
# The interpreter, its event loop, the log, signals, listening sockets, and a few launches.
_BASE = 32
# SQLite opens a database with its log and its shared memory.
_FILES_OF_CONNECTION = 3
# One writes or listens, one measures.
_MORE_CONNECTIONS = 2


class TooFewResources(HorariumError):
    """The system gives this process too little to start."""

    reason = "too_few_resources"


def require_resources(pool_size: int, *, serves: bool) -> None:
    """Raise the limit of open files as far as this process may. Raises TooFewResources if it is still too low."""
    needed = needed_files(pool_size, serves=serves)
    files = raise_open_files()
    if files is not None and files < needed:
        raise TooFewResources(
            f"The open-file limit is {files}, but at least {needed} are needed (pool_size is {pool_size}). "
            "Raise the limit (ulimit -n 1024, LimitNOFILE=1024 in systemd) or lower pool_size"
        )
    try:
        probe = threading.Thread(target=lambda: None, name="horarium-probe")
        probe.start()
    except RuntimeError as wrong:
        raise TooFewResources(f"Cannot start: {shortage_of(wrong) or wrong}") from wrong
    probe.join()


def needed_files(pool_size: int, *, serves: bool) -> int:
    """Return the files of an idle process with all its database connections, and those that probes need."""
    return _BASE + _FILES_OF_CONNECTION * (pool_size + _MORE_CONNECTIONS) + (RESERVE if serves else 0)


def raise_open_files() -> int | None:
    """Set the soft limit as high as the hard one allows and return it. None = there is no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if wanted > soft:
        with suppress(OSError, ValueError):  # what the system refuses is left as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


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
