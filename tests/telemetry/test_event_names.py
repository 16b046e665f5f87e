"""Each log line of the service has a snake_case name, so that programs can match it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import horarium

SOURCE = Path(horarium.__file__).parent
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


def test_names_of_events_are_snake_case() -> None:
    names = list(_event_names())
    assert len(names) > 40
    assert [each for each in names if not _NAME.fullmatch(each[1])] == []


def _event_names() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text("utf-8")
        # Code that runs in the user's process logs sentences with the standard library.
        if path.parent.name in ("celery", "client") or "logging.getLogger(" in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                for argument in _names_of(node):
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield f"{path.relative_to(SOURCE)}:{node.lineno}", argument.value


def _names_of(call: ast.Call) -> list[ast.expr]:
    match call.func:
        case ast.Name(id="Trouble"):
            return call.args[1:3]
        case ast.Attribute(attr=level, value=receiver) if level in _LEVELS and "log" in ast.unparse(receiver).lower():
            return call.args[:1]
    return []
