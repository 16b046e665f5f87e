"""The API for people: one page made from its description, with nothing to load from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import Request
from starlette.responses import HTMLResponse

from horarium.api.routing import OPEN, Routes

routes = Routes(tag="docs")

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre, .path { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; border-radius: .3rem; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; }
td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
nav a { margin-right: 1rem; }
"""


@routes(
    "GET", "/docs", needs=OPEN, summary="Show the API to people", media_type="text/html", example="<!doctype html>…"
)
def show_docs(request: Request) -> HTMLResponse:
    return HTMLResponse(_page(request.app.openapi()))


def _page(schema: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, verbs in schema["paths"].items():
        for verb, operation in verbs.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append("".join(_operation(verb, path, operation)))
    info = schema["info"]
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in groups)
    body = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag.capitalize())}</h2>{"".join(found)}' for tag, found in groups.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info.get('summary') or '')}</p>"
        "<p>Send <code>Authorization: Bearer …</code> with every request. The same as a document: "
        f'<a href="/openapi.json">openapi.json</a>.</p><nav>{links}</nav>{body}</body></html>'
    )


def _operation(verb: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    title = escape(operation.get("summary", ""))
    yield f"<details><summary><b>{verb.upper()}</b> <span class=path>{escape(path)}</span> · {title}</summary>"
    yield from (f"<p>{escape(part)}</p>" for part in operation.get("description", "").split("\n\n") if part)
    yield from _parameters(operation.get("parameters", []))
    if "requestBody" in operation:
        yield "<p>Body</p>" + _example(operation["requestBody"]["content"])
    for status, answer in operation["responses"].items():
        yield f"<p><b>{escape(status)}</b> {escape(answer['description'])}</p>"
        if status.startswith("2"):
            yield _example(answer.get("content", {}))
    yield "</details>"


def _parameters(parameters: list[dict[str, Any]]) -> Iterator[str]:
    if parameters:
        yield "<table>"
        for each in parameters:
            said = escape(each.get("description") or "")
            yield f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td><td>{said}</td></tr>"
        yield "</table>"


def _example(content: dict[str, Any]) -> str:
    for media in content.values():
        if "example" in media:
            shown = media["example"]
            text = shown if isinstance(shown, str) else json.dumps(shown, indent=2, ensure_ascii=False)
            return f"<pre>{escape(text)}</pre>"
    return ""
