"""The OpenAPI document, and the JSON Schema of all wire types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from horarium.core.document.places import COMMON
from horarium.core.document.reader import Kinds, schema_of
from horarium.features.schedules.model import Schedule
from horarium.platform.bodies import Body
from horarium.platform.http.responses import MEDIA_TYPE
from horarium.platform.http.routing import JSON, OPERATIONS, Open, Route, ScheduleDocument
from horarium.platform.wire import ROWS, TYPES, Answer, Problem, UnreadableRow

DOCUMENT = "ScheduleDocument"
SHOWN_ACTION = "ShownAction"
_REFERENCE = "#/components/schemas/{name}"


def reference(name: str) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(name=name)}


def schemas(types: Iterable[type[Answer] | type[Body]], kinds: Kinds) -> dict[str, Any]:
    """By the name of the type, with all that they refer to, and the document of a schedule.

    `kinds` are those of actions that are installed.
    """
    _, found = msgspec.json.schema_components([Schedule, UnreadableRow, *types], ref_template=_REFERENCE)
    plain = {name: _plain(schema) for name, schema in found.items()}
    parts = _definition(kinds)
    plain[Schedule.__name__]["properties"] = _shown(parts[DOCUMENT], plain[Schedule.__name__])
    return plain | parts | {SHOWN_ACTION: _shown_action(parts["Action"])}


def _definition(kinds: Kinds) -> dict[str, Any]:
    """The document of a schedule, and each object in it under a name of its own."""
    document = _plain(schema_of(kinds))
    found: dict[str, Any] = {}
    for name, schema in document["properties"].items():
        if "properties" in schema:
            title = "".join(word.capitalize() for word in name.split("_"))
            found[title] = {"title": title, **schema}
            document["properties"][name] = reference(title)
    return {**found, DOCUMENT: {"title": DOCUMENT, **document}}


def _shown(document: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Combine properties; those of the answer win, unless they only say that a field is an object."""
    own = {name: each for name, each in answer["properties"].items() if each != {"type": "object"}}
    return {**document["properties"], "action": reference(SHOWN_ACTION), **own}


def _shown_action(action: dict[str, Any]) -> dict[str, Any]:
    """Schema of a stored action: its kind may be of a missing or newer package, so only common fields are certain."""
    fields = {
        name: each if name in COMMON else {"description": each["description"]}
        for name, each in action["properties"].items()
    }
    fields["kind"] = {name: each for name, each in fields["kind"].items() if name != "enum"}
    return {**action, "title": SHOWN_ACTION, "properties": fields, "additionalProperties": True}


def _plain(schema: Any) -> Any:
    """As generators of clients want it: an enumeration has a type, an array has items, a default is JSON."""
    if isinstance(schema, list | tuple):
        return [_plain(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {name: _plain(each) for name, each in schema.items()}
    if TYPES in plain:
        plain["type"] = plain.pop(TYPES)
    if plain.pop(ROWS, False):
        plain["items"] = {"anyOf": [plain["items"], reference(UnreadableRow.__name__)]}
    if "enum" in plain:
        plain.setdefault("type", "string")
    types = plain.get("type")
    if types == "array" or (isinstance(types, list) and "array" in types):
        plain.setdefault("items", {})
    return plain


# Not described: the description itself and the way to it, and the files of the browser interface.
HIDDEN: Final = frozenset({"/", "/docs", "/ui", "/ui/{path}"})

_REASONS: Final = {
    400: "The body, a cursor or a filter is malformed.",
    401: "The token is missing, unknown, revoked or expired.",
    403: "The role of the caller does not have the required permission.",
    404: "The resource or the namespace does not exist.",
    408: "The request was not received in time.",
    409: "The request conflicts with the current state: the resource already exists, is in use, or is being written.",
    410: "The deadline has passed.",
    412: "The version in `If-Match` is not the current one, or the inputs have changed.",
    413: "The body is too large.",
    414: "Path and query are too long.",
    415: "The body is not JSON.",
    421: "The Host header does not name this service.",
    422: "A field or parameter is invalid. `errors` lists them.",
    429: "Too many requests with this token. Wait as long as `Retry-After` says.",
    431: "The headers are too many or too large.",
    500: "Internal error. The message contains the request ID.",
    503: "The database is unavailable. Wait as long as `Retry-After` says.",
}
_ALWAYS = (401, 403, 404, 408, 414, 421, 422, 429, 431, 500, 503)
_WRITES = (400, 409, 413, 415)

_NAMESPACE_PARAMETER: Final = {
    "name": "X-Namespace",
    "in": "header",
    "required": False,
    "description": "Namespace of the request. Default: `namespace` in the body, then the namespace of the token.",
    "schema": {"type": "string"},
}

# For parameters that have the same meaning in all routes and no description of their own.
_PARAMETERS: Final = {
    "agent_id": "ID of the agent.",
    "approval_id": "ID of the approval request.",
    "assignment_id": "ID of the assignment.",
    "bundle": "Only those created by this bundle.",
    "gate": "Only approval requests for this gate.",
    "name": "Name of the calendar.",
    "namespace": "Name of the namespace.",
    "next_page_token": "`next_page_token` of the previous page.",
    "owner": "Only those of this owner.",
    "page_size": "Page size, 1 to 200.",
    "principal": "Only actions of this principal.",
    "queue": "Name of the queue.",
    "run_id": "ID of the run.",
    "schedule_id": "ID of the schedule.",
    "secret_name": "Name of the secret.",
    "source": "Only schedules of this source: template or runtime.",
    "standing_id": "ID of the standing approval.",
    "subscription_id": "ID or name of the subscription.",
    "team_id": "ID of the team.",
    "token_id": "ID of the token.",
    "workflow_id": "ID of the workflow.",
    "workflow_type": "Workflow type.",
    "workspace_id": "ID of the workspace, which is an agent ID.",
    "workspace_schedule_id": "ID of the schedule.",
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
    shown = [operation for operation in OPERATIONS.values() if operation.path not in HIDDEN]
    kinds: set[type[Answer] | type[Body]] = {Problem}
    for operation in shown:
        if operation.answer is not None:
            kinds.add(operation.answer)
        if operation.body is not None and not issubclass(operation.body, ScheduleDocument):
            kinds.add(operation.body)
    # Words that only a parameter knows.
    words = {name: each for name, each in schema.get("components", {}).get("schemas", {}).items() if "enum" in each}
    schema["components"] = {
        "schemas": {**words, **schemas(sorted(kinds, key=lambda kind: kind.__name__), api.state.resources.kinds)},
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "An API token or a signed JWT."}
        },
    }
    schema["security"] = [{"bearer": []}]
    schema["paths"] = {path: verbs for path, verbs in schema["paths"].items() if path not in HIDDEN}
    for operation in shown:
        _complete(schema["paths"][operation.path][operation.method.lower()], operation)
    return schema


def _complete(described: dict[str, Any], operation: Route) -> None:
    if isinstance(operation.needs, Open):
        described["security"] = []
    else:
        described.setdefault("parameters", []).append(_NAMESPACE_PARAMETER)
        role = f"Requires the permission `{operation.needs.value}`."
        described["description"] = f"{described.get('description', '')}\n\n{role}".strip()
    for each in described.get("parameters", ()):
        if not each.get("description") and each["name"] in _PARAMETERS:
            each["description"] = _PARAMETERS[each["name"]]
    if operation.body is not None:
        name = DOCUMENT if issubclass(operation.body, ScheduleDocument) else operation.body.__name__
        content = {"schema": reference(name), "example": operation.example.body}
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    described["responses"] = {**_refusals(described, operation), **_answers(operation)}


def _answers(operation: Route) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if operation.answer is not None:
        one = reference(operation.answer.__name__)
        schema = {"type": "array", "items": one} if operation.many else one
    content = {operation.media_type: {"schema": schema, "example": msgspec.to_builtins(operation.example.answer)}}
    return {str(status): _answer(status, content) for status in operation.statuses}


def _answer(status: int, content: dict[str, Any]) -> dict[str, Any]:
    described = {"description": HTTPStatus(status).phrase}
    return described if status == HTTPStatus.NO_CONTENT else {**described, "content": content}


def _refusals(described: dict[str, Any], operation: Route) -> dict[str, Any]:
    statuses = {500}
    if not isinstance(operation.needs, Open) or operation.method != "GET":
        statuses |= {*_ALWAYS, *((400, 409) if operation.method == "GET" else _WRITES)}
        if any(each["name"] == "If-Match" for each in described.get("parameters", ())):
            statuses.add(412)
        if operation.body is not None and issubclass(operation.body, Body):
            statuses |= {*operation.body.REFUSALS}
    content = {MEDIA_TYPE: {"schema": reference(Problem.__name__)}}
    return {str(status): {"description": _REASONS[status], "content": content} for status in sorted(statuses)}
