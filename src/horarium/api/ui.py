"""Serve the browser interface, which is open to all because it contains no data."""

from __future__ import annotations

from html import escape
from typing import Final

from fastapi import Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from horarium.api.base_path import base_of
from horarium.api.negotiation import takes_gzip
from horarium.api.problems import problem
from horarium.api.routing import OPEN, Routes
from horarium.api.security_headers import APP_POLICY, policy
from horarium.api.ui_files import PROGRAM, UiFile, UiFiles, is_of_the_app

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
