"""Whoever is exempt from a check says from which one and why, on the same line."""

from __future__ import annotations

import re

import pytest
from docs.pages import ROOT

FILES = sorted(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
MARK = re.compile(r"#\s*type:\s*ignore(?P<rest>.*)")
REASONED = re.compile(r"\[[a-z, -]+\]  # \S.*")


def unreasoned(text: str) -> list[str]:
    marks = (MARK.search(line) for line in text.splitlines())
    return [mark[0] for mark in marks if mark is not None and not REASONED.fullmatch(mark["rest"])]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("x = 1", False),
        ("x = f()  # type: ignore", True),
        ("x = f()  # type: ignore[arg-type]", True),
        ("x = f()  # type: ignore[arg-type]  # wrong on purpose", False),
        ("x = f()  # type: ignore[abstract,arg-type]  # wrong on purpose", False),
    ],
)
def test_an_exemption_needs_a_code_and_a_reason(line: str, wrong: bool) -> None:
    assert bool(unreasoned(line)) is wrong


def test_every_type_that_is_ignored_says_why() -> None:
    others = (path for path in FILES if path.name != "test_exemptions.py")
    found = {path.name: unreasoned(path.read_text("utf-8")) for path in others}
    assert {name: lines for name, lines in found.items() if lines} == {}
