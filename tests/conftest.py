"""How hard the property tests try, as written or many times harder, which tests come first, and when garbage is looked
for."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# An archive that fills at once, databases, a check of every answer, where coverage is measured, the fixtures of a
# service, and agents of the published SDK.
pytest_plugins = ["archiving", "databases", "described", "measuring", "world", "agents.running"]

# New objects before the young, middle and old ones are searched: rarer than usual, since tests make few cycles.
_GARBAGE = (10_000, 10, 10)
# The collector counts objects, not bytes: a cycle of seventy objects that a refused document of 80 MB belongs to would
# stay for hundreds of tests. So growth by this many bytes since the last search is a reason for another one.
_GROWTH = 64 * 2**20
_MEMORY = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")
os.environ.setdefault("HORARIUM_CHECK_ADDRESSES", "false")  # no service under test asks a name server
_EFFORT = int(os.environ.get("HORARIUM_TEST_EFFORT", "1"))
# The attribute in which Hypothesis keeps the settings of a test; it has no public way to change them later.
_SETTINGS = "_hypothesis_internal_use_settings"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Modules and tests stay until the end. Looking for garbage among them takes half the time of a collection,
    and goes on for as long as the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        gc.enable()


@pytest.hookimpl(trylast=True)  # after the order was drawn
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A full run draws more examples and new ones each time; the ordinary run repeats the same ones."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    if _EFFORT == 1:
        return
    for test in {getattr(item, "obj", None) for item in items}:
        written = getattr(test, _SETTINGS, None)
        if isinstance(written, settings):
            harder = settings(written, max_examples=written.max_examples * _EFFORT, derandomize=False)
            setattr(getattr(test, "__func__", test), _SETTINGS, harder)


def _resident() -> int:
    """Bytes of memory that this process occupies; 0 on a machine that does not tell."""
    try:
        return int(_MEMORY.read_text().split()[1]) * _PAGE
    except OSError:
        return 0


class Collector:
    """Searches for garbage after a test with which the process has grown by much."""

    def __init__(self) -> None:
        self._after_last = _resident()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[Any]:
        done = yield
        if _resident() > self._after_last + _GROWTH:
            gc.collect()
            self._after_last = _resident()
        return done


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Collector())
