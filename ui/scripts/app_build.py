"""Builds the browser app into the Python package, where it is not built already: what `make ui` runs.

    python ui/scripts/app_build.py

Packages as they are locked, types out of the OpenAPI document of this tree, a check of the types, the bundle, the
notices of what is inside it, and a compressed copy of each file. A step is done again when what it is made from has
changed: times of files say nothing after a checkout, so contents are compared.

Exit codes: 0 it is built, 1 it cannot be, 3 a package is missing and no registry could be reached.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app_notices import NoLicence, write_notices
from node_here import Node, NoNode, node_here

UI = Path(__file__).resolve().parents[1]
ROOT = UI.parent
STATIC = ROOT / "src" / "horarium" / "static"
MODULES = UI / "node_modules"
TYPES = UI / "src" / "api" / "schema.d.ts"
# Goes when the packages go: whatever they made is made again.
MADE = MODULES / ".horarium"
BUILT, BROKEN, NOT_REACHED = 0, 1, 3

# What npm says when nobody answers, as against an answer that we do not like.
_NOBODY_ANSWERS = (
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTCACHED",
    "ENOTFOUND",
    "ERR_SOCKET_TIMEOUT",
    "ETIMEDOUT",
)
# A registry that is not there is noticed after seconds, not after the minutes that npm would try.
_PATIENCE = ("--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000")


class RegistryUnreachable(Exception):
    """What the app is built with is not here, and cannot be fetched."""


class Refused(Exception):
    """A step failed; its words say why."""


# ── what has changed ─────────────────────────────────────────────────────────────────────────────────


def digest(files: Iterable[Path], *more: str) -> str:
    """Of names and contents."""
    found = hashlib.sha256("\n".join(more).encode())
    for file in sorted(files):
        content = file.read_bytes()
        found.update(f"{file.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def sources(folder: Path, *, without: tuple[str, ...] = ()) -> Iterator[Path]:
    for each in sorted(folder.iterdir()):
        if each.name in without or each.name == "__pycache__":
            continue
        if each.is_dir():
            yield from sources(each, without=without)
        else:
            yield each


def is_made(step: str, from_what: str) -> bool:
    stamp = MADE / step
    return stamp.exists() and stamp.read_text("utf-8") == from_what


def mark(step: str, from_what: str) -> None:
    """Last of all, so that a step which broke off is done again."""
    MADE.mkdir(exist_ok=True)
    (MADE / step).write_text(from_what, "utf-8")


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────


def install(node: Node) -> None:
    from_what = digest(UI / name for name in ("package.json", "package-lock.json", ".npmrc"))
    if is_made("packages", from_what):
        return
    # Nothing that is fetched gets to run anything here before it is asked to.
    words = ("ci", "--ignore-scripts", "--prefer-offline", "--no-progress", "--loglevel=error", *_PATIENCE)
    done = subprocess.run(
        [*node.npm, *words], cwd=UI, env=node.environment(), capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    if done.returncode != 0 and any(sign in said for sign in _NOBODY_ANSWERS):
        raise RegistryUnreachable(
            "the browser interface is not built, since the npm registry cannot be reached; "
            "the service runs without it, and `make ui` builds it later"
        )
    if done.returncode != 0:
        raise Refused(f"the packages of the browser interface cannot be installed:\n{said}")
    mark("packages", from_what)


def write_types(node: Node) -> None:
    package = sources(ROOT / "src" / "horarium", without=("static",))
    scripts = (UI / "scripts" / name for name in ("openapi.py", "types.mjs"))
    from_what = digest([*package, *scripts, ROOT / "constraints.txt"])
    if TYPES.exists() and is_made("types", from_what):
        return
    # This tree's package, whichever one is installed in the environment that several trees share.
    environment = {**node.environment(), "PYTHONPATH": str(ROOT / "src")}
    document = _run([sys.executable, "scripts/openapi.py"], environment)
    TYPES.parent.mkdir(exist_ok=True)
    _run([str(node.program), "scripts/types.mjs"], environment, given=document)
    mark("types", from_what)


def bundle(node: Node) -> None:
    from_what = digest(sources(UI, without=("node_modules", ".lock")))
    if (STATIC / "index.html").exists() and is_made("bundle", from_what):
        return
    environment = {**node.environment(), "NODE_ENV": "production"}
    _run([str(node.program), "node_modules/typescript/bin/tsc", "--noEmit"], environment)
    _run([str(node.program), "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"], environment)
    write_notices(UI, STATIC / "licenses.txt")
    compress(STATIC)
    mark("bundle", from_what)


def compress(folder: Path) -> None:
    """A copy of each file for whoever takes gzip; the same bytes from the same content."""
    for file in [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".gz"]:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))


def _run(command: list[str], environment: dict[str, str], given: str | None = None) -> str:
    done = subprocess.run(command, cwd=UI, env=environment, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        step = Path(next(word for word in command[1:] if not word.startswith("-"))).name
        raise Refused(f"the browser interface cannot be built, {step} says:\n{done.stdout}{done.stderr}")
    return done.stdout


# ── together ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _alone() -> Iterator[None]:
    """Several processes of a test run may ask at once: the first builds, the others wait."""
    with (UI / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def packages() -> Node:
    """Node, with the packages installed."""
    node = node_here()
    with _alone():
        install(node)
    return node


def build() -> Node:
    node = node_here()
    with _alone():
        install(node)
        write_types(node)
        bundle(node)
    return node


def main() -> int:
    try:
        build()
    except (RegistryUnreachable, NoNode) as away:
        print(f"note: {away}", file=sys.stderr)
        return NOT_REACHED
    except (Refused, NoLicence) as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return BROKEN
    return BUILT


if __name__ == "__main__":
    sys.exit(main())
