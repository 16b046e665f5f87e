"""Environments apart from ours for what tests drive but we do not import: made once, and kept.

`contract` has the published Durable Workflow client, which asks for a certifi that nobody has published,
although it never imports it. `generated` has what makes clients out of /openapi.json, which wants other
versions than we do. `agents` and `agents03` have the published A2A SDK, of whose two generations only one fits
into an environment, and of what it asks for only what a server imports. `supply` has what looks at what is
shipped (`make lock audit sbom`). So their constraints name everything that they really need, with its hashes
(`make lock` writes them), and pip resolves nothing.

    python tests/environments.py contract generated agents agents03 supply
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What pip says when nobody answers, as against an answer that we do not like.
_NOBODY_ANSWERS = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "name resolution",
    "Could not fetch URL",
    "Connection refused",
    "Network is unreachable",
    "from versions: none",  # said of a registry without an answer too; each of these packages has versions
)


class RegistryUnreachable(Exception):
    """What is needed is not here, and cannot be fetched."""


@dataclass(frozen=True)
class Environment:
    name: str

    @property
    def python(self) -> Path:
        return self._home / "python" / "bin" / "python"

    @property
    def _home(self) -> Path:
        return ROOT / f".venv-{self.name}"

    @property
    def _pins(self) -> Path:
        return ROOT / f"constraints-{self.name}.txt"

    def ready(self) -> Path:
        """Its Python; whoever comes first makes it, the others wait."""
        stamp = self._home / "installed.txt"
        wanted = f"{sys.version}\n{self._pins.read_text('utf-8')}"
        self._home.mkdir(exist_ok=True)
        with (self._home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.exists() or stamp.read_text("utf-8") != wanted:
                stamp.unlink(missing_ok=True)
                venv.create(self._home / "python", with_pip=True, symlinks=True, clear=True)
                self._install()
                stamp.write_text(wanted, "utf-8")  # last, so an install that broke off is done again
            stamp.touch()  # for make, which looks at times
        return self.python

    def _install(self) -> None:
        install = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        locked = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(self._pins)]
        done = subprocess.run([*install, *locked], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said = done.stdout + done.stderr
        if any(sign in said for sign in _NOBODY_ANSWERS):
            raise RegistryUnreachable(
                f"the package registry cannot be reached, so the environment {self.name} is not there"
            )
        raise RuntimeError(f"the environment {self.name} cannot be made:\n{said}")


CONTRACT = Environment("contract")
GENERATED = Environment("generated")
AGENTS = Environment("agents")
AGENTS03 = Environment("agents03")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        try:
            Environment(each).ready()
        except RegistryUnreachable as away:
            print(f"note: {away}", file=sys.stderr)
