"""Whether every answer is what the description says: each one that a test hears is held against /openapi.json.

One place for all: the application itself is overheard, so it makes no difference whether a test asks through
the client, through HTTP in this process or through a real socket. What does not fit fails the test that was
running. A server in a process of its own is not heard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jsonschema_rs
import pytest
from starlette.types import Message, Receive, Scope, Send

from horarium.platform.http.openapi import Api

Document = dict[str, Any]

_JSON = re.compile(r"application/(?:[a-z.+-]+\+)?json\b")
_REFERENCE = re.compile(r'"\$ref": "#/components/schemas/([^"]+)"')


class Description:
    """A document with a compiled validator for each schema, made when first needed.

    Hardly a hundred serve two thousand answers, and each holds what it refers to and nothing else: a copy of all
    components in each validator would take gigabytes.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        # A path without a name in it wins over one that would take its last word for a name.
        paths = sorted(document["paths"], key=lambda path: path.count("{"))
        self._paths = [(re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)), path) for path in paths]
        self._validator = lru_cache(maxsize=None)(self._found)
        self._compiled = lru_cache(maxsize=None)(self._compile)
        self._path = lru_cache(maxsize=1_000)(self._template)

    def complaint(self, method: str, path: str, status: int, media_type: str, body: bytes) -> str | None:
        """What is wrong with this answer; None = nothing, or nothing is said about it."""
        template = self._path(path)
        if template is None or not _JSON.match(media_type) or not body:
            return None
        where = f"{method} {template} {status}"
        validator = self._validator(method, template, status, media_type.partition(";")[0])
        if isinstance(validator, str):
            return f"{where}: {validator}"
        try:
            validator.validate(json.loads(body))
        except jsonschema_rs.ValidationError as wrong:
            return f"{where}: at /{'/'.join(map(str, wrong.instance_path))}: {wrong.message[:500]}"
        return None

    def _template(self, path: str) -> str | None:
        return next((template for pattern, template in self._paths if pattern.fullmatch(path)), None)

    def _found(self, method: str, template: str, status: int, media_type: str) -> Any:
        """A validator, or what is missing."""
        operation = self._document["paths"][template].get(method.lower())
        if operation is None or not method.isupper():
            return self._compiled("{}")  # no such method: refused by the router, for all paths alike
        said = operation["responses"].get(str(status))
        if said is None:
            return "a status that is not described"
        if media_type not in said.get("content", {}):
            return f"{media_type} is not described"
        return self._compiled(json.dumps(said["content"][media_type].get("schema", {}), sort_keys=True))

    def _compile(self, schema: str) -> jsonschema_rs.Draft202012Validator:
        named = {name: self._document["components"]["schemas"][name] for name in self._names_in(schema)}
        return jsonschema_rs.Draft202012Validator({"allOf": [json.loads(schema)], "components": {"schemas": named}})

    def _names_in(self, schema: str) -> set[str]:
        """Of all schemas that this one, written as JSON, refers to, also by way of others."""
        found: set[str] = set()
        unread = [schema]
        while unread:
            for name in set(_REFERENCE.findall(unread.pop())) - found:
                found.add(name)
                unread.append(json.dumps(self._document["components"]["schemas"][name]))
        return found


class Listener:
    """Between the application and whoever asked; hands everything on as it is."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._status, self._media_type, self._body = 0, "", bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = dict(message.get("headers", ()))
            self._media_type = headers.get(b"content-type", b"").decode("latin-1")
        elif message["type"] == "http.response.body" and _JSON.match(self._media_type):
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self._hold_against(self._scope["app"])
        await self._send(message)

    def _hold_against(self, api: Api) -> None:
        if _DESCRIPTION == []:
            _DESCRIPTION.append(Description(api.openapi()))
        if self._scope["method"] == "HEAD":
            return
        told = self._scope["method"], self._scope["path"], self._status, self._media_type, bytes(self._body)
        complaint = _DESCRIPTION[0].complaint(*told)
        if complaint is not None:
            _COMPLAINTS.append(complaint)


# The description is the same for every service, and dear to make: one for all tests of a process.
_DESCRIPTION: list[Description] = []
_COMPLAINTS: list[str] = []


def pytest_configure() -> None:
    answer = Api.__call__

    async def overheard(self: Api, scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        await answer(self, scope, receive, Listener(scope, send).send if is_http else send)

    Api.__call__ = overheard  # type: ignore[method-assign,assignment]  # the one place through which every answer goes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    if _COMPLAINTS:
        found = sorted(set(_COMPLAINTS))
        _COMPLAINTS.clear()
        pytest.fail("answers that the description does not know:\n" + "\n".join(found[:10]), pytrace=False)
