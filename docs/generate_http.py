"""The reference page of the HTTP API, generated from the OpenAPI document and the table of permissions."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from generate_text import clean, code, page, table

from horarium.platform.caller import Caller
from horarium.platform.http.routing import OPERATIONS, Open
from horarium.platform.settings import Settings
from horarium.platform.wire import Permission, Role
from horarium.serve.service import open_service


def http_page() -> str:
    document = _openapi()
    by_tag: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return page(
        "HTTP API",
        "The HTTP API uses JSON. Times are RFC 3339 in UTC. The service publishes the complete description as OpenAPI "
        "at `/openapi.json` and as a page at `/docs`.",
        "## Requests",
        "Requests need the header `Authorization: Bearer …`, unless the table lists no permission.",
        "The namespace of a request is the header `X-Namespace`, then `namespace` in the body, then the namespace of "
        "the token. A request is rejected if header and body differ, or if the token is not valid for the namespace.",
        "A write may have an `Idempotency-Key`. A repeated request with the same key and body returns the first answer "
        "and changes nothing.",
        "If a route accepts `If-Match`, send the `ETag` of an earlier answer to make the write conditional.",
        "## Roles and permissions",
        table(("role", *Permission), [_role(role) for role in Role]),
        *(part for tag, operations in by_tag.items() for part in _tag(tag, operations)),
        "## Errors",
        "An error is an `application/problem+json` document. `reason` is an error code for programs, `message` a text "
        "for people, and `errors` lists invalid fields.",
        table(("status", "meaning"), _answers(document)),
    )


def _openapi() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(data_dir=Path(directory), log_level="error")
        with open_service(settings) as service:
            return service.api.openapi()


def _role(role: Role) -> tuple[str, ...]:
    caller = Caller("x", role)
    return code(role), *("yes" if caller.may(permission) else "–" for permission in Permission)


def _tag(tag: str, operations: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    rows = [
        (code(f"{method} {path}"), _permission(method, path), _description(found)) for method, path, found in operations
    ]
    return [f"## {tag[0].upper()}{tag[1:]}", table(("request", "permission", "description"), rows)]


def _permission(method: str, path: str) -> str:
    needed = OPERATIONS[method, path].needs
    return "–" if isinstance(needed, Open) else code(needed.value)


_UNLISTED = {"X-Namespace", "Idempotency-Key"}


def _description(operation: Mapping[str, Any]) -> str:
    described = operation.get("description") or ""
    details = clean(re.sub(r"Requires the permission `\w+`\.", "", described))
    text = f"{operation['summary']}." + (f" {details}" if details else "")
    given = [each for each in operation.get("parameters", ()) if each["name"] not in _UNLISTED and each["in"] != "path"]
    parameters = [f"{code(each['name'])}{_described(each)}" for each in given]
    return "<br>".join([text, *parameters])


def _described(parameter: Mapping[str, Any]) -> str:
    if parameter["name"] == "If-Match":
        return ""
    text = clean(parameter.get("description") or "")
    return f": {text}" if text else ""


def _answers(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if not status.startswith("2"):
                    found.setdefault(status, answer["description"])
    return sorted((code(status), text) for status, text in found.items())
