"""The environment of the published Durable Workflow client: made once, apart from ours, and kept.

Apart, because the client asks for a certifi that nobody has published, although it never imports it:
`constraints-contract.txt` names everything that it really needs, and pip is told to resolve nothing.

    python tests/contract/environment.py
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".venv-contract"
PYTHON = HOME / "python" / "bin" / "python"
PINS = ROOT / "constraints-contract.txt"

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
    """The client is not here, and cannot be fetched."""


def ready() -> Path:
    """The Python that can import the client; whoever comes first makes it, the others wait."""
    stamp = HOME / "installed.txt"
    wanted = f"{sys.version}\n{PINS.read_text('utf-8')}"
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            stamp.unlink(missing_ok=True)
            venv.create(HOME / "python", with_pip=True, symlinks=True, clear=True)
            _install()
            stamp.write_text(wanted, "utf-8")  # last, so an install that broke off is done again
        stamp.touch()  # for make, which looks at times
    return PYTHON


def _install() -> None:
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*command, "--requirement", str(PINS)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    said = done.stdout + done.stderr
    if any(sign in said for sign in _NOBODY_ANSWERS):
        raise RegistryUnreachable("the package registry cannot be reached, so the published client is not tested")
    raise RuntimeError(f"the environment of the published client cannot be made:\n{said}")


if __name__ == "__main__":
    try:
        ready()
    except RegistryUnreachable as away:
        print(f"note: {away}", file=sys.stderr)
