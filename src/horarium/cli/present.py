"""Print answers as tables and labelled lines, or unchanged as JSON and YAML.

Columns have the width of their content; IDs and times are never truncated. Unprintable characters are escaped, so that
text of other users cannot control the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from horarium.cli.render import Format, Json, show_json, show_yaml, talk
from horarium.instant import from_datetime, to_rfc3339

_Line: TypeAlias = Sequence[tuple[str, str | None]]

NOTHING = "-"
_GAP = "  "
_STYLES = {
    **dict.fromkeys(("active", "succeeded", "dispatch", "created", "ok", "triggered"), "green"),
    **dict.fromkeys(("failed", "broken", "timed_out", "launch_failed", "stale", "unknown", "failing"), "red"),
    **dict.fromkeys(("paused", "skip", "skipped", "held", "awaiting_approval", "buffered", "missed"), "yellow"),
}


def show(rows: list[Json], output: Format, *, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Print a list: `rows` for programs, `cells` as a table."""
    match output:
        case Format.TABLE:
            show_columns(columns, cells)
        case Format.JSON:
            show_json(rows)
        case Format.JSONL:
            for row in rows:
                show_json(row)
        case Format.YAML:
            show_yaml(rows)
        case _:
            assert_never(output)


def show_document(document: Mapping[str, Any], output: Format, lines: Iterable[tuple[str, str]]) -> None:
    """Print one object; `lines` are its labels, which may be empty, and texts for table output."""
    match output:
        case Format.TABLE:
            show_lines(lines)
        case Format.JSON | Format.JSONL:
            show_json(dict(document))
        case Format.YAML:
            show_yaml(dict(document))
        case _:
            assert_never(output)


def show_lines(lines: Iterable[tuple[str, str]]) -> None:
    kept = list(lines)
    width = max((len(label) for label, _ in kept), default=0)
    labels = [[(f"{label:<{width}}", "bold")] if width else [] for label, _ in kept]
    _print([[*label, (printable(text), None)] for label, (_, text) in zip(labels, kept, strict=True)])


def show_columns(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    below: Iterable[Sequence[str]] | None = None,
    widths: Sequence[int] | None = None,
) -> list[int]:
    """Print a table; `below` has the lines under each row. With `widths` the table continues, without headings."""
    from rich.cells import cell_len

    cells, under = [[cell(value) for value in row] for row in rows], list(below or ())
    needed = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    begun = bool(widths)
    widths = [max(pair) for pair in zip(needed, widths, strict=True)] if widths else needed

    def padded(row: Sequence[str]) -> list[str]:
        return [text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)]

    lines: list[_Line] = [] if begun else [[(text, "bold") for text in padded(columns)]]
    for number, row in enumerate(cells):
        lines.append([(text, _STYLES.get(text.strip())) for text in padded(row)])
        lines += [[("", None), (text, None)] for text in (under[number] if below is not None else ())]
    _print(lines)
    return widths


def cell(value: Any) -> str:
    """Format a value: None is a hyphen, times are RFC 3339 in UTC, objects and lists are JSON."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case datetime():
            return to_rfc3339(from_datetime(value))
        case str():
            return printable(value) or NOTHING
        case Mapping() | list() | tuple():
            return printable(compact(value)) if value else NOTHING
        case _:
            return str(value)


def named(key: str | None, name: str | None) -> str | None:
    """Return an ID with its display name, such as `nightly (Nightly report)`."""
    return f"{key} ({name})" if key is not None and name and name != key else key


def text_lines(text: str) -> list[str]:
    """Split a text such as a traceback into printable lines."""
    return [printable(line.expandtabs(4)) for line in text.rstrip().split("\n")]


def labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield lines with the label on the first one."""
    for number, text in enumerate(list(texts) or [NOTHING]):
        yield ("" if number else label), text


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def printable(text: str) -> str:
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def warn(warnings: Iterable[str]) -> None:
    """Print each warning as a line on stderr."""
    for each in warnings:
        talk(f"warning: {printable(each)}")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _print(lines: Iterable[_Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    for parts in lines:
        line = Text(_GAP).join(Text(text, style or "") for text, style in parts)
        line.rstrip()
        console.print(line)
