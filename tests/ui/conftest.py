"""A browser in front of a real service, for tests of what a person sees and does.

- `served` (session): a real `horarium up` on SQLite in front of the fleet (`ui/fleet.py`), with its `url`,
  `token(role, namespace)` and `send("POST", path, body, namespace)` as admin.
- `fresh` (test): a namespace of one's own, empty, with `tokens` by role and `send`, for tests that change things.
- `browser` (test): Chromium; one process for all tests of a session.
- `open_page` (test): opens pages, `open_page("/schedules", role="viewer", namespace="warehouse")`; also `token`, `zone`
  (Asia/Kathmandu), `theme` (dark), `width` (390). `role=None` is somebody who has not signed in.
- `page` (test): one of the admin of `default`, on nothing yet: `page.goto("./schedules")`.
- `watch` (test): what went wrong on any page of the test (errors in the console, exceptions, violations of the
  Content-Security-Policy, requests to other hosts, dialogs of the browser) fails it at its end, unless it was
  announced: `watch.expect("status of 404")`.

Paths are those of the app: `open_page("/runs")` opens `/ui/runs`, and `page.goto("./runs")` does so later. The fleet is
shared: a test that writes does so in `fresh`, or to what it has made itself. `ui/looking.py` has `assert_accessible`,
`assert_fits` and `photograph`.

In a test with a browser the thread has an event loop, so `asyncio.run` and whatever calls it do not work there.
Without a registry the tests are skipped; where `CI` is set they fail.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import pytest
from chromium_here import Chromium, of_the_machine, of_the_package, running
from node_here import Node
from playwright.sync_api import Browser, BrowserContext, Page, expect
from ui.fleet import MAIN, Fleet, build
from ui.looking import RETRIES, WIDE
from ui.serving import Served, built, up
from ui.slowness import slow_answers, slow_scripts
from ui.watching import Watch

from horarium.platform.clock import SystemClock
from horarium.platform.ids import id_text, new_id

# What a browser waits for at most: the machine may be busy with other tests.
_PATIENCE_MS = 60_000
expect.set_options(timeout=_PATIENCE_MS)


@pytest.fixture(scope="session")
def node() -> Node:
    """The app is built, and this has built it."""
    return built()


# ── the service ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with the database of the fleet; the first worker of a session makes it for all."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if hasattr(request.config, "workerinput") else own) / "fleet"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "fleet.json").exists():
            database = shutil.copy(sqlite_template, folder / "horarium.db")
            made = build(f"sqlite:///{database}", SystemClock().now())
            (folder / "fleet.json").write_text(json.dumps(_written(made)), "utf-8")
    return folder


def _written(fleet: Fleet) -> dict[str, Any]:
    return {**asdict(fleet), "tokens": [[*key, secret] for key, secret in fleet.tokens.items()]}


def fleet_of(folder: Path) -> Fleet:
    kept = json.loads((folder / "fleet.json").read_text("utf-8"))
    return Fleet(**{**kept, "tokens": {(namespace, role): secret for namespace, role, secret in kept["tokens"]}})


@pytest.fixture(scope="session")
def served(node: Node, past: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    database = shutil.copy(past / "horarium.db", folder / "horarium.db")
    with up(folder, fleet_of(past), f"sqlite:///{database}") as running_service:
        yield running_service


class Tokens(dict[str, str]):
    """Those of a namespace by role, each issued when it is first asked for."""

    def __init__(self, served: Served, namespace: str) -> None:
        super().__init__()
        self._served, self._namespace = served, namespace

    def __missing__(self, role: str) -> str:
        made = self._served.send("POST", "/api/tokens", {"name": role, "role": role}, self._namespace)
        self[role] = made["secret"]
        return self[role]


@dataclass(frozen=True)
class Fresh:
    """A namespace in which a test is alone."""

    namespace: str
    served: Served = field(repr=False)
    tokens: Tokens = field(repr=False)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        return self.served.send(method, path, body, self.namespace)


@pytest.fixture
def fresh(served: Served) -> Fresh:
    return new_namespace(served)


def new_namespace(served: Served) -> Fresh:
    namespace = f"ns-{id_text(new_id()).lower()}"
    served.send("POST", "/api/namespaces", {"namespace": namespace, "description": "of one test"})
    return Fresh(namespace, served, Tokens(served, namespace))


# ── the browser ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def chromium(node: Node) -> Chromium:
    return of_the_machine() or of_the_package(node)


@dataclass(frozen=True)
class StartedBrowser:
    """A browser, and the event loop that Playwright leaves marked as running in this thread."""

    browser: Browser
    loop: asyncio.AbstractEventLoop


@pytest.fixture(scope="session")
def started_browser(chromium: Chromium) -> Iterator[StartedBrowser]:
    with running(chromium) as browser:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield StartedBrowser(browser, loop)
        asyncio._set_running_loop(loop)
    asyncio._set_running_loop(None)


@pytest.fixture
def browser(started_browser: StartedBrowser) -> Iterator[Browser]:
    """Lend the browser of the session to a test; between such tests the thread has no event loop."""
    asyncio._set_running_loop(started_browser.loop)
    yield started_browser.browser
    asyncio._set_running_loop(None)


@pytest.fixture
def watch(served: Served) -> Iterator[Watch]:
    watching = Watch(served.url)
    yield watching
    assert watching.unexpected() == []


class OpenPage(Protocol):
    def __call__(
        self,
        path: str | None = None,
        *,
        role: str | None = "admin",
        namespace: str = MAIN,
        token: str | None = None,
        zone: str = "UTC",
        theme: Literal["light", "dark"] = "light",
        width: int = WIDE["width"],
    ) -> Page: ...


@pytest.fixture
def open_page(browser: Browser, served: Served, watch: Watch) -> Iterator[OpenPage]:
    """Each in a context of its own, as if it were another person's browser. `role=None` is nobody's."""
    contexts: list[BrowserContext] = []

    def opened(
        path: str | None = None,
        *,
        role: str | None = "admin",
        namespace: str = MAIN,
        token: str | None = None,
        zone: str = "UTC",
        theme: Literal["light", "dark"] = "light",
        width: int = WIDE["width"],
    ) -> Page:
        context = browser.new_context(
            base_url=f"{served.url}/ui/",
            timezone_id=zone,
            locale="en-GB",
            color_scheme=theme,
            reduced_motion="reduce",
            viewport={"width": width, "height": WIDE["height"]},
        )
        context.set_default_timeout(_PATIENCE_MS)
        contexts.append(context)
        slow_answers(context)
        if token is not None or role is not None:
            sign_in(context, served.url, token or served.token(role or "", namespace))
        page = context.new_page()
        watch.on(page)
        slow_scripts(page)
        if path is not None:
            page.goto(f".{path}")
        return page

    yield opened
    for context in contexts:
        context.close()


def sign_in(context: BrowserContext, origin: str, token: str) -> None:
    """As the page to sign in does it: the cookie is the context's from now on."""
    ours = {"Origin": origin, "Sec-Fetch-Site": "same-origin", "X-Horarium-Source": "ui"}
    answer = context.request.post("../api/session", data={"token": token}, headers=ours, max_retries=RETRIES)
    assert answer.ok, answer.text()


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page()
