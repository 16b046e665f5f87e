"""How hard the property tests try, as written or many times harder, which tests come first, and when garbage is looked
for."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# An archive that fills at once, databases, a check of every answer, where coverage is measured, the fixtures of a
# service, and agents of the published SDK.
pytest_plugins = ["archiving", "databases", "described", "measuring", "world", "agents.running"]

# New objects before the young, middle and old ones are searched: rarer than usual, since tests make few cycles.
_GARBAGE = (10_000, 10, 10)
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
