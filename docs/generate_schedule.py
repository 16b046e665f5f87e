"""The page about the fields of a schedule, read off the table in `horarium.schedule.fields`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from generate_text import code, codes, page, table

from horarium.schedule.aliases import other_names
from horarium.schedule.schema import schema_of

_PARTS = {
    "": "The schedule itself",
    "spec": "`spec`: when",
    "action": "`action`: what",
    "budget": "`budget`: how much in a day",
    "limits": "`limits`: how much in one run",
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
        parts += [f"## {heading}", table(("field", "holds", "default", "meaning", "also read"), rows)]
    return page(
        "The fields of a schedule",
        "A document may be nested, as here, or flat: the fields of `spec` and `action` may stand beside `schedule_id`. "
        "Names may be written in camelCase. The names in the last column are read as the field they stand beside, in "
        "their own unit and sense, and the same thing said twice must be the same. A field that is none of these is "
        "refused with a guess at what was meant. What answers carry beside the definition (`status`, `next_due` …) is "
        "ignored in a request.",
        "Only one thing is always needed: something to do, and a time to do it. A request has at most 1 MiB.",
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
        said.append("from 1")
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
