"""Serve the files of the browser interface, which are open to all because they contain no data. Security headers."""

from __future__ import annotations

import re
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from horarium.platform.http.connections import base_of
from horarium.platform.http.responses import problem, takes_gzip
from horarium.platform.http.routing import OPEN, Routes

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


RawHeaders = list[tuple[bytes, bytes]]

_POLICY = b"content-security-policy"
_CACHING = b"cache-control"
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_ALWAYS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


APP_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Of the browser interface: files of this server, and no script or style inside a page."""


def policy(*, style: str = "", script: str = "", connects: bool = False) -> str:
    """The Content-Security-Policy of a page with these texts in it, and no others; `connects`: it may ask us."""
    parts = [_NOTHING]
    parts += [f"style-src {_hash(style)}"] * bool(style)
    parts += [f"script-src {_hash(script)}"] * bool(script)
    parts += ["connect-src 'self'"] * connects
    return "; ".join(parts)


def with_security(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Add security headers; a response with a policy keeps that."""
    given = [*headers]
    if all(name.lower() != _POLICY for name, _ in given):
        given.append((_POLICY, _NOTHING.encode()))
    return [*given, *_ALWAYS]


def uncached(headers: RawHeaders) -> RawHeaders:
    """Forbid caching, unless the response sets its own rule."""
    if any(name.lower() == _CACHING for name, _ in headers):
        return headers
    return [*headers, (_CACHING, b"no-store")]


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


routes = Routes(tag="docs")

_A_YEAR: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"
_STYLE = (
    ":root { color-scheme: light dark; } "
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }"
)
_NO_SCRIPT = policy(style=_STYLE)


@routes("GET", "/ui", needs=OPEN, summary="Redirect to the browser interface", media_type="text/html", example="")
async def lead_to_ui(request: Request) -> Response:
    return RedirectResponse(f"{base_of(request.scope)}{PROGRAM}", 307)


@routes(
    "GET",
    "/ui/{path:path}",
    needs=OPEN,
    summary="Serve the browser interface",
    media_type="text/html",
    example="<!doctype html>…",
)
async def serve_ui(request: Request, path: str) -> Response:
    files: UiFiles = request.app.state.ui_files
    found = files.find(path)
    if found is not None:
        return _sent(request, found)
    if not is_of_the_app(path):
        return problem(404, "not_found", "The file does not exist.")
    if not files.built:
        return plain_page("Horarium", missing_text(base_of(request.scope)), status=404)
    return _sent(request, files.page(base_of(request.scope)))


def plain_page(title: str, body: str, *, status: int = 200, vary: bool = False) -> HTMLResponse:
    """`body` is HTML."""
    headers = {"Content-Security-Policy": _NO_SCRIPT, **({"Vary": "Accept"} if vary else {})}
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>{body}</body></html>'
    )
    return HTMLResponse(text, status, headers)


def missing_text(base: str) -> str:
    docs = escape(f"{base}/docs")
    return (
        "<h1>The browser interface is not built</h1>"
        "<p>This copy of Horarium was installed from source. Run <code>make ui</code> in the source directory and "
        "reload this page. The command needs access to an npm registry. Released wheels contain the interface.</p>"
        f'<p>The <a href="{docs}">HTTP API</a> and the command line (<code>horarium --help</code>) work without it.</p>'
    )


def _sent(request: Request, file: UiFile) -> Response:
    headers = {
        "Cache-Control": _A_YEAR if file.immutable else _ASK_AGAIN,
        "Content-Security-Policy": APP_POLICY,
        "ETag": f'"{file.digest}"',
    }
    body = file.body
    if file.packed is not None:
        headers["Vary"] = "Accept-Encoding"
        if takes_gzip(request.headers.get("accept-encoding", "")):
            # Another sequence of bytes, so another tag (RFC 9110, section 8.8.3).
            body, headers["ETag"] = file.packed, f'"{file.digest}-gz"'
            headers["Content-Encoding"] = "gzip"
    asked = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")[:20]}
    if headers["ETag"] in asked:
        headers.pop("Content-Encoding", None)
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=file.media_type)
