"""Which tests of a folder run on PostgreSQL too, beside SQLite: for the conftest of the folder.

The mark `both_databases` is for tests of races, paging, locks, and statements of which no other test has one of the
same shape. Without it a test runs on PostgreSQL in the full run only.
"""

from __future__ import annotations

from typing import Any

import archiving
import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_databases: runs on PostgreSQL too, not only in `make test-full`")


@pytest.hookimpl(tryfirst=True)  # before `archiving` says on which databases it runs
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = list(metafunc.definition.iter_markers())
    is_chosen = any(mark.name == "parametrize" and "dialect" in str(mark.args[0]) for mark in marks)
    if "dialect" not in metafunc.fixturenames or is_chosen:
        return
    names = {mark.name for mark in marks}
    is_on_both = not names.isdisjoint({"both_databases", "archived"})
    databases = ["sqlite", _ordinary("postgresql", is_on_both), _ordinary(archiving.DIALECT, "archived" in names)]
    metafunc.definition.add_marker(pytest.mark.parametrize("dialect", databases, indirect=True))


def _ordinary(database: str, is_ordinary: bool) -> Any:
    """In every run, or in the full one alone."""
    return database if is_ordinary else pytest.param(database, marks=pytest.mark.long)
