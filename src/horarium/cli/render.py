"""Print results on stdout as JSON or YAML, and messages on stderr."""

from __future__ import annotations

import json
from datetime import timedelta, timezone
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

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


def show_yaml(data: Json) -> None:
    from horarium.cli.yaml_text import dump_yaml  # only where it is needed: it takes a moment to load

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
