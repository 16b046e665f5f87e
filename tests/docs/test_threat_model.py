"""Each promise of the threat model names a test, and that test exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from docs.pages import ROOT

PAGE = (ROOT / "docs/explanation/threat-model.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
PROMISED = PAGE.partition("## What is promised\n")[2].partition("## What is not promised\n")[0]
PROMISES = re.findall(r"^\| (?!promise )(.+?) \| (.+?) \|$", PROMISED, re.MULTILINE)


@cache
def _names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, named))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda part: str(part).removeprefix("tests/"))
def test_the_named_test_exists(file: str, name: str) -> None:
    assert name in _names_in(file)


def test_every_promise_names_a_test() -> None:
    assert PROMISES
    assert [promise for promise, shown in PROMISES if "`tests/" not in shown] == []
