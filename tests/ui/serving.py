"""A real `horarium up` in front of the fleet, with the browser interface built into it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import app_build
import httpx
import pytest
from node_here import Node, NoNode
from ui.fleet import MAIN, Fleet

TOKEN = "hor_admin_of_the_house"
_PATIENCE = 60
_STEP = 0.02
T = TypeVar("T")
_NONE: Mapping[str, str] = MappingProxyType({})


def without(reason: str) -> NoReturn:
    """A machine without a registry does without; where `CI` is set, nothing is left out."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)  # nothing was built, and nothing can be: there is no page to look at


def built() -> Node:
    """The Node that has built the interface, if it was not there already."""
    try:
        return app_build.build()
    except (app_build.RegistryUnreachable, NoNode) as away:
        without(str(away))
    except app_build.Refused as refusal:
        said = str(refusal)
    pytest.fail(said, pytrace=False)  # out of the except, where it would be said twice


@dataclass(frozen=True)
class Served:
    """`fleet` has the tokens; `ask` is the admin of the house in any namespace, or whose token is given."""

    url: str
    fleet: Fleet = field(repr=False)
    database: str
    process: subprocess.Popen[str] = field(repr=False)
    _http: httpx.Client = field(repr=False)

    def token(self, role: str = "admin", namespace: str = MAIN) -> str:
        return self.fleet.tokens[namespace, role]

    def ask(
        self, method: str, path: str, body: Any = None, *, namespace: str = MAIN, token: str = TOKEN
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "X-Namespace": namespace}
        return self._http.request(method, path, json=body, headers=headers)

    def send(self, method: str, path: str, body: Any = None, namespace: str = MAIN) -> Any:
        """What is answered to the admin; a refusal is a mistake of the test."""
        answer = self.ask(method, path, body, namespace=namespace)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None


def _client(url: str) -> httpx.Client:
    """Made once: that takes longer than most requests. A connection that was kept could end just when it is used."""
    return httpx.Client(
        base_url=url, trust_env=False, timeout=_PATIENCE, limits=httpx.Limits(max_keepalive_connections=0)
    )


@contextmanager
def up(folder: Path, fleet: Fleet, database: str, settings: Mapping[str, str] = _NONE) -> Iterator[Served]:
    """`settings` are more knobs, by name."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    told = {"TOKEN": TOKEN, "LOG_LEVEL": "error", "DATA_DIR": str(folder / "data"), "DATABASE": database, **settings}
    log = folder / "up.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "horarium", "up", "--port", "0"],
            cwd=folder,
            env={**own, **{f"HORARIUM_{name}": value for name, value in told.items()}, "PYTHONPATH": _ours()},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, f"the server did not start: {line!r} {log.read_text()}"
        with _client(found[0]) as http:
            yield Served(found[0], fleet, database, process, http)
    finally:
        process.terminate()
        process.wait(_PATIENCE)
        process.stdout.close()


def until(asked: Callable[[], T]) -> T:
    """What is answered once it is something: what the service does by itself it does a moment later."""
    for _ in range(round(_PATIENCE / _STEP)):
        if found := asked():
            return found
        time.sleep(_STEP)
    raise AssertionError("it did not come")


def _ours() -> str:
    """The package of this tree, whichever one is installed."""
    return str(app_build.ROOT / "src")
