"""The reference page of schedule fields, generated from the table in `horarium.core.document.fields`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from generate_text import code, codes, page, table

from horarium.core.document.places import other_names
from horarium.core.document.reader import schema_of

_PARTS = {
    "": "Schedule",
    "spec": "`spec`",
    "action": "`action`",
    "budget": "`budget`: daily limits",
    "limits": "`limits`: limits of a run",
    "retry_policy": "`retry_policy`",
    "failure_policy": "`failure_policy`",
    "approval_policy": "`approval_policy`",
}
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "array": "array", "object": "object"}


def schedule_page() -> str:
    parts: list[str] = []
    whole = schema_of()["properties"]
    for part, heading in _PARTS.items():
        own = {name: each for name, each in whole.items() if name not in _PARTS}
        inside = whole[part]["properties"] if part else own
        rows = [
            (
                code(name),
                _holds(schema),
                _default(schema),
                schema["description"],
                _others(f"{part}.{name}" if part else name),
            )
            for name, schema in inside.items()
        ]
        parts += [f"## {heading}", table(("field", "type", "default", "description", "other names"), rows)]
    return page(
        "Schedule fields",
        "A schedule needs an action and a time: a field of `action`, and a cron expression, interval or one-time run "
        "in `spec`. All other fields are optional. A request has at most 1 MiB.",
        "A document may be nested, as shown here, or flat: the fields of `spec` and `action` may be at the top level. "
        "Field names may be camelCase. The last column lists other names of a field, in their own unit. If a "
        "document sets a field under two names, the values must be equal.",
        "Unknown fields are rejected with a suggestion. Computed fields of answers (such as `status`) are "
        "ignored in requests.",
        *parts,
    )


def _holds(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return codes(schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_holds(each) for each in schema["anyOf"])
    kinds = schema.get("type", "anything")
    words = " or ".join(_WORDS.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
    if schema.get("format") == "date-time":
        return "time, RFC 3339"
    inner = schema.get("items") or schema.get("additionalProperties")
    if inner and "properties" not in schema:
        words += f" of {_holds(inner)}"
    return words + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    said = []
    if least is not None and most not in (None, 2**31 - 1):
        said.append(f"{least} to {most:,}")
    elif least == 1:
        said.append("at least 1")
    for name, word in (("maxLength", "characters"), ("maxItems", "entries")):
        if name in schema:
            said.append(f"at most {schema[name]:,} {word}")
    return f", {', '.join(said)}" if said else ""


def _default(schema: Mapping[str, Any]) -> str:
    if "default" not in schema:
        return ""
    default = schema["default"]
    return code(default) if isinstance(default, str) and default else code(json.dumps(default))


def _others(place: str) -> str:
    return codes(other_names(place))
