"""The description of the API: what FastAPI reads off the routes, completed with what it cannot know.

Bodies, examples, the problem document, every status that a route may answer with, and who may call it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from horarium.api.examples import EXAMPLES, Example
from horarium.api.permissions import Open, permission_for
from horarium.api.problems import MEDIA_TYPE
from horarium.schedule.schema import schema_of

_JSON = "application/json"
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_SCHEDULE = {"$ref": "#/components/schemas/Schedule"}
# Their bodies are schedules, or parts of one.
_SCHEDULES = frozenset(
    {
        ("POST", "/api/schedules"),
        ("POST", "/api/schedules/upsert"),
        ("PUT", "/api/schedules/{schedule_id}"),
        ("POST", "/schedules/upsert"),
    }
)
_VERBS = ("get", "put", "post", "patch", "delete")

_REASONS = {
    400: "The body, a cursor or a filter cannot be read.",
    401: "There is no token, or it is unknown, revoked or expired.",
    403: "The role of the caller may not do this.",
    404: "There is no such thing in this namespace, or no such namespace.",
    409: "Something stands in the way: it exists already, is in use, or is being written at this moment.",
    412: "The version in If-Match is not the present one.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "A field or a parameter is wrong; `errors` says which, and why.",
    429: "Too many requests with this token; Retry-After says when to go on.",
    500: "A defect of ours; the request id is in the message.",
    503: "The database does not answer now; Retry-After says when to ask again.",
}
_ALWAYS = (401, 403, 404, 422, 429, 500, 503)
_WRITES = (400, 409, 413, 415)

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457, with `message` and `reason` for programs and `errors` for forms.",
    "required": ["type", "title", "status", "detail", "message", "reason"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "message": {"type": "string", "description": "One sentence for a person."},
        "reason": {"type": "string", "description": "One word for a program."},
        "errors": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    },
    "additionalProperties": True,
}
_NAMESPACE_PARAMETER = {
    "name": "X-Namespace",
    "in": "header",
    "required": False,
    "description": "The namespace to speak for; without it, that of the token.",
    "schema": {"type": "string"},
}


class Api(FastAPI):
    """An application that describes itself in full."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _described(self)
        return self.openapi_schema


def _described(api: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=api.title, version=api.version, summary=api.summary, openapi_version="3.1.0", routes=api.routes
    )
    components = schema.setdefault("components", {})
    components["schemas"] = {"Problem": PROBLEM_SCHEMA, "Schedule": schema_of(api.state.resources.kinds)}
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token of ours, or a signed JWT."}
    }
    schema["security"] = [{"bearer": []}]
    for path, verbs in schema["paths"].items():
        for verb in _VERBS:
            if verb in verbs:
                _complete(verbs[verb], verb.upper(), path)
    return schema


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    needed = permission_for(method, path)
    example = EXAMPLES[method, path]
    if isinstance(needed, Open):
        operation["security"] = []
    else:
        operation.setdefault("parameters", []).append(_NAMESPACE_PARAMETER)
        role = f"Needs the permission to {needed.value}."
        operation["description"] = f"{operation.get('description', '')}\n\n{role}".strip()
    if example.body is not None:
        schema = _SCHEDULE if (method, path) in _SCHEDULES else {"type": "object"}
        operation["requestBody"] = {
            "required": True,
            "content": {_JSON: {"schema": schema, "example": example.body}},
        }
    operation["responses"] = _answers(operation, method, example, is_open=isinstance(needed, Open))


def _answers(operation: dict[str, Any], method: str, example: Example, *, is_open: bool) -> dict[str, Any]:
    usual = [int(status) for status in operation["responses"] if status.startswith("2")]
    kind = "object" if isinstance(example.answer, dict) else "array" if isinstance(example.answer, list) else "string"
    content = {example.media_type: {"schema": {"type": kind}, "example": example.answer}}
    good = {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted({*usual, *example.also})
    }
    bad: dict[str, Any] = {
        str(status): {"description": _REASONS[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
        for status in _refusals(operation, method, is_open=is_open)
    }
    return {**bad, **good}


def _refusals(operation: dict[str, Any], method: str, *, is_open: bool) -> list[int]:
    if is_open:
        return [500]
    statuses = {*_ALWAYS, *((400,) if method == "GET" else _WRITES)}
    if any(each["name"] == "If-Match" for each in operation.get("parameters", ())):
        statuses.add(412)
    return sorted(statuses)
