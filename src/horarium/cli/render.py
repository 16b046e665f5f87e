"""How an answer looks: JSON, JSON lines, YAML or a table, always on stdout; talk goes to stderr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta, timezone
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, assert_never

import typer

from horarium.instant import SECOND, Instant, to_datetime

if TYPE_CHECKING:
    from horarium.recurrence.zone import Zone

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"


def show(rows: list[Json], output: Format, *, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """`rows` are the data for programs, `cells` the same for eyes."""
    match output:
        case Format.TABLE:
            show_table(columns, cells)
        case Format.JSON:
            show_json(rows)
        case Format.JSONL:
            for row in rows:
                show_json(row)
        case Format.YAML:
            show_yaml(rows)
        case _:
            assert_never(output)


def show_yaml(data: Json) -> None:
    from horarium.cli.yaml_text import dump_yaml  # only where it is needed: it takes a moment to load

    typer.echo(dump_yaml(data), nl=False)


def show_json(data: Json) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False))


def show_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    # Rich takes as long to import as all the rest, and only tables need it.
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in cells:
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)


def talk(text: str) -> None:
    typer.echo(text, err=True)


def local_time(instant: Instant, zone: Zone) -> str:
    """What the wall shows: `Sun 2026-03-08 03:00:00 -04:00`."""
    offset = timezone(timedelta(seconds=zone.offset_at(instant // SECOND)))
    wall = to_datetime(instant).astimezone(offset)
    return f"{wall:%a %Y-%m-%d %H:%M:%S} {wall.isoformat()[19:]}"
