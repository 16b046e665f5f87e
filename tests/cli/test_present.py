"""How values look in columns and lines, and that long work counts on a terminal only."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from horarium.platform.cli.streams import Format, cell, counting, printable, show_columns, show_document, show_lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        ({}, "-"),
        (0, "0"),
        (False, "no"),
        (True, "yes"),
        (1.5, "1.5"),
        ("text", "text"),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00Z"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (["a"], '["a"]'),
        ({"ü": "\x1b"}, '{"ü": "\\u001b"}'),
    ],
    ids=repr,
)
def test_every_kind_of_value_has_its_text(value: Any, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢", "plain ü 漢"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
    ],
    ids=ascii,
)
def test_what_is_not_printable_is_shown_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.mark.usefixtures("plain")
def test_columns_are_as_wide_as_what_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    show_columns(("A", "Bee"), [("漢字", "[bold]x[/bold]"), ("y" * 30, ":smile:")])
    assert capsys.readouterr().out == (
        f"A{' ' * 31}Bee\n漢字{' ' * 28}[bold]x[/bold]\n{'y' * 30}  :smile:\n"
    )  # fmt: skip


@pytest.mark.usefixtures("plain")
def test_lines_without_labels_begin_at_the_margin(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines([("", "one"), ("", "two")])
    show_lines([("label", "one"), ("", "two")])
    assert capsys.readouterr().out == "one\ntwo\nlabel  one\n       two\n"


@pytest.mark.parametrize(
    ("output", "text"),
    [(Format.JSON, '{"a": {"yes": 1}}\n'), (Format.JSONL, '{"a": {"yes": 1}}\n'), (Format.YAML, 'a:\n  "yes": 1\n')],
)
def test_a_document_is_the_same_in_every_format(capsys: pytest.CaptureFixture[str], output: Format, text: str) -> None:
    show_document({"a": {"yes": 1}}, output, [])
    assert capsys.readouterr().out == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_counts_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with counting("schedules") as count:
        count(120)
    assert "120 schedules" in terminal.getvalue()


def test_long_work_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("schedules") as count:
        count(120)
    assert capsys.readouterr() == ("", "")
