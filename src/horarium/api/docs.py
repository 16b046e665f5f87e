"""The start page at `/` and the API documentation at `/docs`."""

from __future__ import annotations

from html import escape
from importlib.metadata import version

from fastapi import Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from horarium.api.answers import Reply
from horarium.api.base_path import base_of
from horarium.api.docs_page import POLICY, page
from horarium.api.negotiation import prefers_page
from horarium.api.routing import OPEN, Routes
from horarium.api.ui import missing_text, plain_page
from horarium.api.ui_files import PROGRAM, UiFiles
from horarium.wire.service import Home

routes = Routes(tag="docs")

_SUMMARY = "Durable scheduling for workflows and agents."


def home_of(base: str) -> Home:
    """`base` is where the API is mounted; empty = at the root."""
    return Home(
        name="Horarium",
        version=version("horarium"),
        summary=_SUMMARY,
        ui=f"{base}{PROGRAM}",
        docs=f"{base}/docs",
        openapi=f"{base}/openapi.json",
        schedules=f"{base}/api/schedules",
        health=f"{base}/healthz",
        readiness=f"{base}/readyz",
        metrics=f"{base}/metrics",
    )


@routes("GET", "/", needs=OPEN, summary="Show the service and its endpoints", answer=Home, example=home_of(""))
def show_home(request: Request) -> Response:
    """Redirect browsers to the browser interface; return JSON to other clients."""
    home = home_of(base_of(request.scope))
    if not prefers_page(request.headers.get("accept", "")):
        return Reply(home, headers={"Vary": "Accept"})
    files: UiFiles = request.app.state.ui_files
    if files.built:
        return RedirectResponse(home.ui, 307, {"Vary": "Accept"})
    return plain_page(home.name, missing_text(base_of(request.scope)) + _places(home), vary=True)


@routes(
    "GET", "/docs", needs=OPEN, summary="Show the API documentation", media_type="text/html", example="<!doctype html>…"
)
def show_docs(request: Request) -> HTMLResponse:
    shown = page(request.app.openapi(), base_of(request.scope))
    return HTMLResponse(shown, headers={"Content-Security-Policy": POLICY})


def _places(home: Home) -> str:
    places = (
        (home.docs, "API documentation with a form to try each route"),
        (home.openapi, "OpenAPI document"),
        (home.readiness, "Readiness"),
        (home.metrics, "Prometheus metrics"),
    )
    items = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a>: {escape(says)}</li>' for path, says in places)
    return f"<h2>{escape(home.name)} {escape(home.version)}</h2><p>{escape(home.summary)}</p><ul>{items}</ul>"
