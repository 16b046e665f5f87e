"""Input and output of a command: documents from files and stdin, results as JSON, YAML, tables or labelled lines.

Results go to stdout, messages and progress to stderr.

Columns have the width of their content; IDs and times are never truncated. Unprintable characters are escaped, so
that text of other users cannot control the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, assert_never

import typer

from horarium.instant import SECOND, Instant, from_datetime, to_datetime, to_rfc3339

if TYPE_CHECKING:
    from horarium.core.recurrence.zone import Zone


# ── input ─────────────────────────────────────────────────────────────────────────────────────────────


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
    from horarium.platform.cli.yaml_text import parse_yaml  # only where it is needed: it takes a moment to load

    return parse_yaml(raw)


def _parse(raw: str | bytes, wrong_because: str, parse: Callable[[str | bytes], Any] = _parse_json) -> Any:
    try:
        return parse(raw)
    except (ValueError, RecursionError) as wrong:
        why = "nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
        refuse(f"{wrong_because}: {why}")


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


# ── output ────────────────────────────────────────────────────────────────────────────────────────────


Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"


def show_yaml(data: Json) -> None:
    from horarium.platform.cli.yaml_text import dump_yaml  # only where it is needed: it takes a moment to load

    typer.echo(dump_yaml(data), nl=False)


def show_json(data: Json) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False))


def talk(text: str) -> None:
    typer.echo(text, err=True)


def local_time(instant: Instant, zone: Zone) -> str:
    """Format a local time: `Sun 2026-03-08 03:00:00 -04:00`."""
    offset = timezone(timedelta(seconds=zone.offset_at(instant // SECOND)))
    wall = to_datetime(instant).astimezone(offset)
    return f"{wall:%a %Y-%m-%d %H:%M:%S} {wall.isoformat()[19:]}"


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


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show a counter with the noun `what`, such as `120 schedules`."""
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed} " + what), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done: shown.update(task, completed=done)


@contextmanager
def filling(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar such as `4,000 of 12,000 rows`."""
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.completed:,} of {task.total:,} " + what), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, completed=done)
