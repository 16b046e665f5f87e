"""Each promise of the threat model and each guarantee names a test, and that test exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from docs.pages import ROOT

PAGES = "\n".join((ROOT / f"docs/explanation/{name}.md").read_text("utf-8") for name in ("threat-model", "guarantees"))
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGES)))
# The tables whose second column names tests.
TABLES = re.findall(r"^\| (?:Promise|Guarantee) \| Tests \|\n\|.*\n((?:\|.*\n)+)", PAGES, re.MULTILINE)
PROMISES = [row for table in TABLES for row in re.findall(r"^\| (.+) \| (.+?) \|$", table, re.MULTILINE)]


@cache
def _names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, named))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda part: str(part).removeprefix("tests/"))
def test_the_named_test_exists(file: str, name: str) -> None:
    assert name in _names_in(file)


def test_every_promise_names_a_test() -> None:
    assert len(PROMISES) > 60
    assert [promise for promise, shown in PROMISES if "`tests/" not in shown] == []
