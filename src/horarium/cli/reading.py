"""Read JSON or YAML from a file, stdin or an argument."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import typer

STDIN = "-"
_YAML_NAMES = (".yaml", ".yml")
_JSON_STARTS = (b"{", b"[", b"")


def refuse(why: str) -> NoReturn:
    """End the command with one line and exit code 2."""
    raise typer.TyperException(why)


def read_bytes(name: str, file: str) -> bytes:
    """Read a file or stdin; `name` begins the error message."""
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except (OSError, ValueError) as wrong:  # a name with a NUL is a ValueError
        refuse(f"{name}: cannot read {file!r}: {getattr(wrong, 'strerror', None) or wrong}")


def read_json(name: str, file: str) -> Any:
    """Parse JSON, or YAML by the suffix of the file or the beginning of stdin."""
    raw = read_bytes(name, file)
    is_yaml = file.endswith(_YAML_NAMES) or (file == STDIN and raw.lstrip()[:1] not in _JSON_STARTS)
    if is_yaml:
        return _parse(raw, f"{name}: {file!r} is not YAML", _parse_yaml)
    return _parse(raw, f"{name}: {file!r} is not JSON")


def read_object(name: str, file: str) -> dict[str, Any]:
    document = read_json(name, file)
    if not isinstance(document, dict):
        refuse(f"{name}: {file!r} is not an object")
    return document


def json_value(name: str, text: str) -> Any:
    """Parse JSON, or the file in `@file`."""
    return read_json(name, text[1:]) if text.startswith("@") else _parse(text, f"{name}: not JSON")


def part_value(name: str, field: str, text: str) -> Any:
    """Read a part of a definition, JSON or YAML or `@file`, with or without its field's name around it."""
    if text.startswith("@"):
        value = read_json(name, text[1:])
    elif text.lstrip().encode()[:1] in _JSON_STARTS:
        value = _parse(text, f"{name}: not JSON")
    else:
        value = _parse(text, f"{name}: neither JSON nor YAML", _parse_yaml)
    return part_of(field, value)


def part_of(field: str, value: Any) -> Any:
    return value[field] if isinstance(value, dict) and value.keys() == {field} else value


def pairs(name: str, texts: list[str]) -> dict[str, str]:
    """Parse `name=value` texts."""
    split = [text.partition("=") for text in texts]
    if any(not key or not equals for key, equals, _ in split):
        refuse(f"{name}: must be NAME=VALUE")
    return {key: value for key, _, value in split}


def _parse_json(raw: str | bytes) -> Any:
    return json.loads(raw, parse_constant=_no_constant)


def _parse_yaml(raw: str | bytes) -> Any:
    from horarium.cli.yaml_text import parse_yaml  # only where it is needed: it takes a moment to load

    return parse_yaml(raw)


def _parse(raw: str | bytes, wrong_because: str, parse: Callable[[str | bytes], Any] = _parse_json) -> Any:
    try:
        return parse(raw)
    except (ValueError, RecursionError) as wrong:
        why = "nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
        refuse(f"{wrong_because}: {why}")


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
