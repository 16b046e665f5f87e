"""The ear that every answer passes: what it finds wrong, and what it lets pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
from described import Description

PROBLEM = {"type": "object", "required": ["reason"], "properties": {"reason": {"$ref": "#/components/schemas/Reason"}}}
TEXT = {"application/json": {"schema": {"type": "object", "required": ["id"]}}}
DOCUMENT = {
    "paths": {
        "/things/{id}": {
            "get": {
                "responses": {
                    "200": {"content": TEXT},
                    "404": {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/P"}}}},
                }
            }
        },
        "/things/all": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {}}}}}}},
    },
    "components": {"schemas": {"P": PROBLEM, "Reason": {"type": "string"}}},
}
PLAIN, BAD = "application/json", "application/problem+json; charset=utf-8"


@pytest.mark.parametrize(
    ("path", "status", "media_type", "body", "complaint"),
    [
        ("/things/7", 200, PLAIN, {"id": 7}, None),
        ("/things/7", 200, PLAIN, {"name": 7}, "GET /things/{id} 200: at /: "),
        ("/things/7", 404, BAD, {"reason": "gone"}, None),
        ("/things/7", 404, BAD, {"reason": 7}, "GET /things/{id} 404: at /reason: "),
        ("/things/7", 404, PLAIN, {"reason": "gone"}, "GET /things/{id} 404: application/json is not described"),
        ("/things/7", 418, BAD, {"reason": "tea"}, "GET /things/{id} 418: a status that is not described"),
        ("/things/all", 200, PLAIN, [], None),
        ("/elsewhere", 404, BAD, {}, None),
        ("/things/7", 200, "text/event-stream", {}, None),
    ],
)
def test_an_answer_is_held_against_the_description(
    path: str, status: int, media_type: str, body: Any, complaint: str | None
) -> None:
    found = Description(DOCUMENT).complaint("GET", path, status, media_type, json.dumps(body).encode())
    assert (found is None) if complaint is None else (found or "").startswith(complaint)
