"""The layout of `--help`: sections of options, each flag written in full however narrow the terminal is."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_EXAMPLE = "Example:"
_FLAG_WIDTH = 34
# Contexts of the command line are made by Typer's own copy of Click, which has no public name.
_Context = Any
_Formatter = Any


class _Layout:
    """The layout of this module for a command or a group."""

    def format_help(self, ctx: _Context, formatter: _Formatter) -> None:
        _write_help(self, ctx, formatter)

    def get_help(self, ctx: _Context) -> str:
        """Escape what the terminal cannot show: Click would print UTF-8 even to a terminal that reads ASCII."""
        encoding = sys.stdout.encoding or "utf-8"
        return str(super().get_help(ctx)).encode(encoding, "backslashreplace").decode(encoding)  # type: ignore[misc]  # it is mixed into Typer's classes


class Command(_Layout, TyperCommand):
    """A command whose help is laid out by this module."""


class Group(_Layout, TyperGroup):
    """A group of commands whose help is laid out by this module."""


def _write_help(command: Any, ctx: _Context, formatter: _Formatter) -> None:
    text, example = _split(command.help)
    epilog, example_below = _split(command.epilog)
    command.format_usage(ctx, formatter)
    _write_text(formatter, text)
    for title, rows in _option_sections(command, ctx).items():
        _write_section(formatter, title, rows)
    for title, rows in _command_sections(command).items():
        _write_section(formatter, title, rows)
    _write_text(formatter, epilog)
    for line in filter(None, (example, example_below)):
        formatter.write_paragraph()
        formatter.write(f"{_EXAMPLE}\n  {line}\n")


def _split(text: str | None) -> tuple[str, str]:
    """Split the prose from the example, which stays on one line so that it can be copied."""
    prose, _, example = inspect.cleandoc(text or "").partition(_EXAMPLE)
    return prose.strip(), " ".join(example.split())


def _write_text(formatter: _Formatter, text: str) -> None:
    if text:
        formatter.write_paragraph()
        formatter.write_text(text)


def _write_section(formatter: _Formatter, title: str, rows: Iterable[tuple[str, str]]) -> None:
    formatter.write_paragraph()
    formatter.write(typer.style(title, bold=True) + "\n")
    with formatter.indentation():
        formatter.write_dl(list(rows), col_max=_FLAG_WIDTH)


def _option_sections(command: Any, ctx: _Context) -> Mapping[str, list[tuple[str, str]]]:
    """Arguments first, then options without a section of their own, then the sections in the order of their flags."""
    found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx)
        if row is not None:
            own = "Arguments" if param.param_type_name == "argument" else "Options"
            flag, meaning = row
            # Typer sets a default that is described in words in round brackets.
            meaning = re.sub(r"\[default: \((.*?)\)([];])", r"[default: \1\2", meaning)
            found.setdefault(getattr(param, "rich_help_panel", None) or own, []).append((flag, meaning))
    return {title: rows for title, rows in found.items() if rows}


def _command_sections(command: Any) -> Mapping[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            title = child.rich_help_panel or "Commands"
            found.setdefault(title, []).append((name, _first_paragraph(child)))
    return found


def _first_paragraph(command: Any) -> str:
    text, _ = _split(command.short_help or command.help)
    return " ".join(text.partition("\n\n")[0].split())
