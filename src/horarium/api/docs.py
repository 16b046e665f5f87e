"""What a visitor finds: at `/` what this is and where to go, at `/docs` the API for people."""

from __future__ import annotations

from html import escape
from importlib.metadata import version

from fastapi import Request, Response
from starlette.responses import HTMLResponse

from horarium.api.answers import Reply
from horarium.api.docs_page import POLICY, page
from horarium.api.routing import OPEN, Routes
from horarium.api.security_headers import policy
from horarium.wire.service import Home

routes = Routes(tag="docs")

_SUMMARY = "A durable scheduler: when could it happen, whether it does, and why."
_STYLE = (
    ":root { color-scheme: light dark; } "
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }"
)
_NO_SCRIPT = policy(style=_STYLE)


def home_of(base: str) -> Home:
    """`base` is where the API is mounted; empty = at the root."""
    return Home(
        name="Horarium",
        version=version("horarium"),
        summary=_SUMMARY,
        docs=f"{base}/docs",
        openapi=f"{base}/openapi.json",
        schedules=f"{base}/api/schedules",
        health=f"{base}/healthz",
        readiness=f"{base}/readyz",
        metrics=f"{base}/metrics",
    )


@routes("GET", "/", needs=OPEN, summary="Say what this is and where to go", answer=Home, example=home_of(""))
def show_home(request: Request) -> Response:
    """A page for browsers, JSON for everybody else."""
    home = home_of(_base(request))
    if "text/html" not in request.headers.get("accept", "").lower():
        return Reply(home, headers={"Vary": "Accept"})
    return HTMLResponse(_home_page(home), headers={"Vary": "Accept", "Content-Security-Policy": _NO_SCRIPT})


@routes(
    "GET", "/docs", needs=OPEN, summary="Show the API to people", media_type="text/html", example="<!doctype html>…"
)
def show_docs(request: Request) -> HTMLResponse:
    shown = page(request.app.openapi(), _base(request))
    return HTMLResponse(shown, headers={"Content-Security-Policy": POLICY})


def _base(request: Request) -> str:
    """Where another application has mounted us."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def _home_page(home: Home) -> str:
    places = (
        (home.docs, "the HTTP interface: every route with its fields, to read and to try"),
        (home.openapi, "the same as an OpenAPI document"),
        (home.readiness, "whether it does its work"),
        (home.metrics, "what can be graphed"),
    )
    items = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a>: {escape(says)}</li>' for path, says in places)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(home.name)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"</head><body><h1>{escape(home.name)} {escape(home.version)}</h1><p>{escape(home.summary)}</p><ul>{items}</ul>"
        "<p>On the command line: <code>horarium schedule list</code>, <code>horarium --help</code>.</p></body></html>"
    )
