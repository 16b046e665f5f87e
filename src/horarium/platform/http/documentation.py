"""The start page, and the API documentation as one page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib.metadata import version
from typing import Any, NamedTuple

from fastapi import Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from horarium.features.tenants.model import Home
from horarium.platform.http.connections import base_of
from horarium.platform.http.interface import PROGRAM, UiFiles, missing_text, plain_page, policy
from horarium.platform.http.responses import Reply, prefers_page
from horarium.platform.http.routing import OPEN, Routes

# An object inside an object inside a document; what lies deeper is told as JSON.
_DEPTH = 3
# A list and the objects in it.
_ANSWER_DEPTH = 2

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre, .path, textarea, input { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--soft); padding: .6rem .8rem; overflow: auto; max-height: 30rem; border-radius: .3rem; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
details details { border: 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; }
td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
textarea { width: 100%; box-sizing: border-box; }
nav a { margin-right: 1rem; }
"""

_SCRIPT = """
"use strict";
const MOST_CHARACTERS = 200000, MOST_MILLISECONDS = 10000;
const all = (form, place) => [...form.querySelectorAll(`[data-in="${place}"]`)];
const pair = (each) => [each.name, each.value];
const given = (form, place) => all(form, place).filter((each) => each.value !== "").map(pair);

function request(form) {
  let path = form.dataset.path;
  for (const each of all(form, "path")) path = path.replace(`{${each.name}}`, encodeURIComponent(each.value));
  const query = new URLSearchParams(given(form, "query")).toString();
  const headers = Object.fromEntries([...given(form, "header"), ...given(document.getElementById("who"), "header")]);
  const token = document.getElementById("token").value.trim();
  if (token) headers["Authorization"] = `Bearer ${token}`;
  const body = form.querySelector("textarea");
  if (body) headers["Content-Type"] = "application/json";
  const url = document.body.dataset.base + path + (query ? `?${query}` : "");
  return [url, { method: form.dataset.method, headers, body: body ? body.value : undefined, credentials: "omit" }];
}

async function send(form) {
  const shown = form.querySelector("pre"), stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), MOST_MILLISECONDS);
  const [url, options] = request(form);
  let text = `${options.method} ${url}\\n`, body = "";
  shown.hidden = false;
  shown.textContent = text;
  try {
    const answer = await fetch(url, { ...options, signal: stop.signal });
    text += `${answer.status} ${answer.statusText}\\n\\n`;
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    while (body.length < MOST_CHARACTERS) {
      const { done, value } = await reader.read();
      if (done) break;
      body += decoder.decode(value, { stream: true });
      shown.textContent = text + body;
    }
    try { body = JSON.stringify(JSON.parse(body), null, 2); } catch { /* no JSON: shown as it is */ }
    shown.textContent = text + body;
  } catch (error) {
    shown.textContent = text + body + (error.name === "AbortError" ? "\\n(timed out)" : String(error));
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target.dataset.path) send(event.target);
});
"""

POLICY = policy(style=_STYLE, script=_SCRIPT, connects=True)
"""Content-Security-Policy of the page: only its own script runs, and it connects only to this service."""


class BodyField(NamedTuple):
    """`path` is where it stands in the body: `spec.timezone`."""

    path: str
    kind: str
    required: bool
    says: str


def page(schema: Mapping[str, Any], base: str) -> str:
    groups: dict[str, list[str]] = {}
    for path, verbs in schema["paths"].items():
        for verb, operation in verbs.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append("".join(_operation(verb, path, operation, schema)))
    info = schema["info"]
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in groups)
    body = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag.capitalize())}</h2>{"".join(found)}' for tag, found in groups.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f'<body data-base="{escape(base)}"><h1>{escape(info["title"])} {escape(info["version"])}</h1>'
        f"<p>{escape(info.get('summary') or '')}</p>"
        "<p>Send <code>Authorization: Bearer …</code> with every request. The same as a document: "
        f'<a href="{escape(base)}/openapi.json">openapi.json</a>.</p>{_WHO}<nav>{links}</nav>{body}'
        f"<script>{_SCRIPT}</script></body></html>"
    )


_WHO = (
    '<form id="who"><p>To try requests: token <input id="token" type="password" autocomplete="off" size="30"> '
    'namespace <input name="X-Namespace" data-in="header" placeholder="of the token" size="16"></p></form>'
)


def body_fields(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int = _DEPTH) -> list[BodyField]:
    """List the fields of a body or an answer, including those of nested objects and list elements."""
    return list(_fields(schema, components, "", depth))


def _fields(schema: Mapping[str, Any], components: Mapping[str, Any], before: str, depth: int) -> Iterator[BodyField]:
    whole = _resolved(schema, components)
    while "items" in whole:
        before = f"{before.removesuffix('.')}[]."
        whole = _resolved(whole["items"], components)
    required = set(whole.get("required", ()))
    for name, each in whole.get("properties", {}).items():
        found = _resolved(each, components)
        says = str(each.get("description") or found.get("description") or "")
        yield BodyField(before + name, _kind(each, components), name in required, says)
        if depth > 1:
            yield from _fields(found, components, f"{before}{name}.", depth - 1)


def _resolved(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema behind a reference, or the one part of a choice that is not null."""
    for part in schema.get("anyOf", ()):
        if part.get("type") != "null":
            return _resolved(part, components)
    if "$ref" in schema:
        found: Mapping[str, Any] = components[schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def _kind(schema: Mapping[str, Any], components: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(part, components) for part in schema["anyOf"])
    found = _resolved(schema, components)
    if "enum" in found:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in found["enum"])
    kind = found.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(found.get('items', {}), components)}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _operation(verb: str, path: str, operation: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    title = escape(operation.get("summary", ""))
    yield f"<details><summary><b>{verb.upper()}</b> <span class=path>{escape(path)}</span> · {title}</summary>"
    yield from (f"<p>{escape(part)}</p>" for part in operation.get("description", "").split("\n\n") if part)
    components = schema.get("components", {}).get("schemas", {})
    yield from _parameters(operation.get("parameters", []), components)
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        yield from _table("Body", content, components, _DEPTH)
    yield from _form(verb, path, operation)
    for status, answer in operation["responses"].items():
        yield f"<p><b>{escape(status)}</b> {escape(answer['description'])}</p>"
        if status.startswith("2"):
            yield from _answer(answer.get("content", {}), components)
    yield "</details>"


def _parameters(parameters: list[dict[str, Any]], components: Mapping[str, Any]) -> Iterator[str]:
    if parameters:
        yield "<table>"
        for each in parameters:
            said, kind = escape(each.get("description") or ""), escape(_kind(each.get("schema", {}), components))
            yield f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td><td>{kind}</td>"
            yield f"<td>{said}</td></tr>"
        yield "</table>"


def _answer(content: Mapping[str, Any], components: Mapping[str, Any]) -> Iterator[str]:
    if content:
        yield from _table("Response", content, components, _ANSWER_DEPTH)
    yield f"<pre>{escape(_example(content))}</pre>"


def _table(title: str, content: Mapping[str, Any], components: Mapping[str, Any], depth: int) -> Iterator[str]:
    (media,) = list(content.values())[:1]
    fields = body_fields(media.get("schema", {}), components, depth)
    if not fields:
        return
    yield f"<details><summary>{title}: {len(fields)} fields</summary><table>"
    for each in fields:
        must = ("required" if title == "Body" else "always") if each.required else ""
        yield f"<tr><td><code>{escape(each.path)}</code></td><td>{escape(each.kind)}</td><td>{must}</td>"
        yield f"<td>{escape(each.says)}</td></tr>"
    yield "</table></details>"


def _form(verb: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f'<details><summary>Try it</summary><form data-method="{verb.upper()}" data-path="{escape(path)}">'
    for each in operation.get("parameters", []):
        name, place = escape(each["name"]), escape(each["in"])
        if name != "X-Namespace":
            must = " required" if place == "path" else ""
            yield f'<p><label>{name} <input name="{name}" data-in="{place}"{must}></label></p>'
    if "requestBody" in operation:
        example = escape(_example(operation["requestBody"]["content"]))
        yield f'<p><textarea rows="10" spellcheck="false" aria-label="body">{example}</textarea></p>'
    yield "<p><button>Send</button></p><pre hidden></pre></form></details>"


def _example(content: Mapping[str, Any]) -> str:
    for media in content.values():
        if "example" in media:
            shown = media["example"]
            return shown if isinstance(shown, str) else json.dumps(shown, indent=2, ensure_ascii=False)
    return ""


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
