"""Which fields a body has, as the page for people lists them."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.platform.http.documentation import BodyField, body_fields

COMPONENTS: dict[str, Any] = {
    "Spec": {"properties": {"at": {"type": "array", "items": {"type": "string"}}}, "required": ["at"]},
    "Loop": {"properties": {"inner": {"$ref": "#/components/schemas/Loop"}}},
}


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        ({}, []),
        (
            {"properties": {"name": {"type": "string", "description": "whose"}}, "required": ["name"]},
            [BodyField("name", "string", True, "whose")],
        ),
        ({"properties": {"n": {"type": ["integer", "null"]}}}, [BodyField("n", "integer or null", False, "")]),
        ({"properties": {"p": {"enum": ["a", None]}}}, [BodyField("p", '"a" | null', False, "")]),
        (
            {"properties": {"spec": {"anyOf": [{"$ref": "#/components/schemas/Spec"}, {"type": "null"}]}}},
            [BodyField("spec", "anything or null", False, ""), BodyField("spec.at", "list of string", True, "")],
        ),
        (
            {"properties": {"rows": {"type": "array", "items": {"$ref": "#/components/schemas/Spec"}}}},
            [
                BodyField("rows", "list of anything", False, ""),
                BodyField("rows[].at", "list of string", True, ""),
            ],
        ),
        (
            {"type": "array", "items": {"$ref": "#/components/schemas/Spec"}},
            [BodyField("[].at", "list of string", True, "")],
        ),
        (
            {"$ref": "#/components/schemas/Loop"},
            [BodyField(name, "anything", False, "") for name in ("inner", "inner.inner", "inner.inner.inner")],
        ),
    ],
    ids=["nothing", "plain", "nullable", "words", "object", "list", "a list of all", "without-end"],
)
def test_the_fields_of_a_body(schema: dict[str, Any], fields: list[BodyField]) -> None:
    assert body_fields(schema, COMPONENTS) == fields
