"""The page of the HTTP interface, read off its OpenAPI document and the table of permissions."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from generate_text import clean, code, page, table

from horarium.api.routing import OPERATIONS, Open
from horarium.operations.caller import Caller
from horarium.serve.service import open_service
from horarium.settings import Settings
from horarium.wire.roles import Permission, Role


def http_page() -> str:
    document = _openapi()
    by_tag: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return page(
        "The HTTP interface",
        "JSON in, JSON out, times in RFC 3339 and UTC. The service itself tells all of it as OpenAPI at "
        "`/openapi.json`, and as a page at `/docs`.",
        "Every request but the open ones carries `Authorization: Bearer …`. `X-Namespace` names the "
        "namespace. Without it, `namespace` in the body names it, if the token is valid there; else it is the token's "
        "own. A header and a body that contradict each other are refused. A write may carry an `Idempotency-Key`: "
        "repeated with the same body it has the same answer and no second effect. Where `If-Match` is listed, the "
        "`ETag` of an earlier answer makes the write conditional.",
        "## Who may do what",
        table(("role", *Permission), [_role(role) for role in Role]),
        *(part for tag, operations in by_tag.items() for part in _tag(tag, operations)),
        "## Answers",
        "What is not 2xx is `application/problem+json` with `reason`, one word for a program, `message`, one sentence "
        "for a person, and where fields are wrong `errors`.",
        table(("status", "means"), _answers(document)),
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
        (code(f"{method} {path}"), _needs(method, path), _told(operation)) for method, path, operation in operations
    ]
    return [f"## {tag[0].upper()}{tag[1:]}", table(("request", "needs", "about"), rows)]


def _needs(method: str, path: str) -> str:
    needed = OPERATIONS[method, path].needs
    return "nothing" if isinstance(needed, Open) else needed.value


_UNLISTED = {"X-Namespace", "Idempotency-Key"}


def _told(operation: Mapping[str, Any]) -> str:
    described = operation.get("description") or ""
    text = clean(re.sub(r"Needs the permission to \w+\.", "", described)) or f"{operation['summary'].capitalize()}."
    given = [each for each in operation.get("parameters", ()) if each["name"] not in _UNLISTED and each["in"] != "path"]
    parameters = [f"{code(each['name'])}{_described(each)}" for each in given]
    return text + (f" Takes {', '.join(parameters)}." if parameters else "")


def _described(parameter: Mapping[str, Any]) -> str:
    if parameter["name"] == "If-Match":
        return ""
    text = clean(parameter.get("description") or "").rstrip(".")
    return f" ({text})" if text else ""


def _answers(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if not status.startswith("2"):
                    found.setdefault(status, answer["description"])
    return sorted((code(status), text) for status, text in found.items())
