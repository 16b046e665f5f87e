"""The pure modules hold no call that asks the clock, draws lots, reads, writes or prints.

The import contracts see modules; this sees what needs no forbidden import, such as `datetime.now()`
and `open()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.pages import ROOT

PACKAGE = ROOT / "src" / "horarium"
PURE = ("core/**/*.py", "condition.py", "instant.py", "audience.py", "errors.py")
FILES = sorted(file for pattern in PURE for file in PACKAGE.glob(pattern))

_MODULES = {"time", "random", "secrets", "os", "logging"}
# urllib.parse is pure; the rest of urllib is the network.
_NETWORK = {"urllib.request", "urllib.response", "urllib.robotparser"}
_BUILTINS = {"open", "print", "input", "breakpoint", "exec", "eval", "__import__"}
# Methods of datetime and date that ask the machine what time it is, or in which zone it stands.
_METHODS = {"now", "utcnow", "today", "fromtimestamp", "utcfromtimestamp"}


def touches_the_world(module: str) -> bool:
    return module.partition(".")[0] in _MODULES or ".".join(module.split(".")[:2]) in _NETWORK


def impurities(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if touches_the_world(alias.name))
            case ast.ImportFrom(module=str(module), names=names, level=0):
                if any(touches_the_world(name) for name in (module, *(f"{module}.{alias.name}" for alias in names))):
                    yield module
            case ast.Call(func=ast.Name(id=name)) if name in _BUILTINS:
                yield f"{name}()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="datetime" | "date"), attr=method)) if (
                method in _METHODS
            ):
                yield f".{method}()"
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="datetime" | "date"), attr=method)) if (
                method in _METHODS
            ):
                yield f".{method}()"
            case ast.Call(func=ast.Attribute(attr="astimezone"), args=[], keywords=[]):
                yield ".astimezone() without a zone"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_pure_module_does_not_touch_the_world(file: Path) -> None:
    assert list(impurities(file.read_text("utf-8"))) == []


def test_every_pattern_finds_modules() -> None:
    assert all(any(PACKAGE.glob(pattern)) for pattern in PURE)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time", ["time"]),
        ("from random import choice", ["random"]),
        ("import os.path", ["os.path"]),
        ("import urllib.request", ["urllib.request"]),
        ("from urllib import request", ["urllib"]),
        ("from urllib.parse import urlsplit", []),
        ("datetime.now(UTC)", [".now()"]),
        ("datetime.datetime.now(UTC)", [".now()"]),
        ("date.today()", [".today()"]),
        ("moment.astimezone()", [".astimezone() without a zone"]),
        ("open('file')", ["open()"]),
        ("print(1)", ["print()"]),
        ("input()", ["input()"]),
        ("moment.astimezone(zone)", []),
        ("facts.now", []),
        ("resources.files('tzdata').joinpath('zones').open('rb')", []),
    ],
)
def test_the_walk_sees_what_it_looks_for(source: str, found: list[str]) -> None:
    assert list(impurities(source)) == found
