"""The files of the browser interface: what the build has left in the package, read once and kept in memory.

A path is looked up among the files that were found, and never on the disk, so none leads out of the folder. The page
itself is sent for every path of the application, which has routes of its own; ids in them may have dots.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

PROGRAM: Final = "/ui/"
INDEX: Final = "index.html"
_ASSETS: Final = "assets/"
_BASE: Final = re.compile(rb'<base href="/ui/"\s*/?>')
_PACKED: Final = ".gz"
_MAX_FILES: Final = 2_000
_MAX_BYTES: Final = 64_000_000
_MAX_DEPTH: Final = 8
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "wasm": "application/wasm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class UiFile:
    """`digest` is that of the body, `packed` the same by gzip; `immutable`: its name changes with what it holds."""

    body: bytes
    digest: str
    media_type: str
    packed: bytes | None = None
    immutable: bool = False


class UiFiles:
    """Files of one folder; None = the one in the package."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = folder or files("horarium").joinpath("static")
        self._lock = threading.Lock()
        self._found: Mapping[str, UiFile] | None = None

    @property
    def built(self) -> bool:
        return INDEX in self._files()

    def page(self, base: str) -> UiFile:
        """The page of the application, which finds the rest from its base; raises KeyError where it is not built."""
        index = self._files()[INDEX]
        own = f'<base href="{escape(base)}{PROGRAM}">'.encode()
        body = _BASE.sub(lambda _found: own, index.body, count=1)
        return UiFile(body, _digest(body), index.media_type)

    def find(self, path: str) -> UiFile | None:
        """None for what is no file, and for the page."""
        return None if path == INDEX else self._files().get(path)

    def _files(self) -> Mapping[str, UiFile]:
        """A folder without the page is looked at again: it may be built while we run."""
        with self._lock:
            if self._found is None and self._folder.joinpath(INDEX).is_file():
                self._found = _made(dict(_bodies(self._folder)))
            return self._found or {}


def is_of_the_app(path: str) -> bool:
    """Tell whether the page is sent for a path without a file, instead of an error.

    A path in the folder of assets, or a top-level name with an ending, can only be a file.
    """
    return path == INDEX or (not path.startswith(_ASSETS) and ("/" in path or "." not in path))


def _made(bodies: Mapping[str, bytes]) -> dict[str, UiFile]:
    return {
        path: UiFile(
            body,
            _digest(body),
            _MEDIA_TYPES.get(path.rpartition(".")[2].lower(), "application/octet-stream"),
            packed=bodies.get(path + _PACKED),
            immutable=path.startswith(_ASSETS),
        )
        for path, body in bodies.items()
        if not path.endswith(_PACKED)
    }


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()[:20]


def _bodies(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Raises RuntimeError for more than a build of ours ever is."""
    count = size = 0
    for path, each in _walked(folder, "", _MAX_DEPTH):
        body = each.read_bytes()
        count, size = count + 1, size + len(body)
        if count > _MAX_FILES or size > _MAX_BYTES:
            raise RuntimeError(f"the browser interface has more than {_MAX_FILES} files or {_MAX_BYTES} bytes")
        yield path, body


def _walked(folder: Traversable, path: str, depth: int) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir() and depth:
            yield from _walked(each, f"{path}{each.name}/", depth - 1)
        elif each.is_file():
            yield f"{path}{each.name}", each
