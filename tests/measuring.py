"""Where coverage is measured: in tests whose own process runs a room that has a floor, and once for each line.

A traced line costs two or three plain ones. So the tracer rests in tests that run their code elsewhere, in
properties and what else has the mark `repeats`, since they go over the same lines thousands of times, and on
the second database of what does not speak SQL. It rests as well while tests are collected: what importing runs is
measured in the first process, which imports every module of the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest
from coverage import Coverage

import horarium

MEASURED = ("unit", "store", "operations", "api")
SPEAKS_SQL = ("store",)
_TESTS = Path(__file__).parent


def is_measured(folder: str, *, repeats: bool, database: str | None) -> bool:
    if folder not in MEASURED or repeats:
        return False
    return database != "postgresql" or folder in SPEAKS_SQL


class Tracer:
    """Started by pytest-cov, if anybody; changes hands only where the answer changes."""

    def __init__(self) -> None:
        self._resting: Coverage | None = None

    def rest(self) -> None:
        if self._resting is None and (running := Coverage.current()) is not None:
            running.stop()
            self._resting = running

    def go_on(self) -> None:
        if self._resting is not None:
            self._resting.start()
            self._resting = None


_TRACER = Tracer()


@pytest.hookimpl(trylast=True)  # a worker has begun to measure by then
def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and Coverage.current() is not None:
        for module in walk_packages(horarium.__path__, "horarium."):
            if module.name != "horarium.__main__":  # which runs the command
                import_module(module.name)
    _TRACER.rest()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    repeats = is_property or item.get_closest_marker("repeats") is not None
    folder = item.path.relative_to(_TESTS).parts[0]
    if is_measured(folder, repeats=repeats, database=parameters.get("dialect")):
        _TRACER.go_on()
    else:
        _TRACER.rest()
    return (yield)
