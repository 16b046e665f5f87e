"""A service behind its real HTTP application, on SQLite; on PostgreSQL as well where that can make a difference.

The mark `both_databases` is for tests of races, paging, locks, and statements that are not the same on both. Every
other test runs on PostgreSQL in the full run only.
"""

from __future__ import annotations

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
    databases = [
        "sqlite",
        _ordinary("postgresql", if_=not names.isdisjoint({"both_databases", "archived"})),
        _ordinary(archiving.DIALECT, if_="archived" in names),
    ]
    metafunc.definition.add_marker(pytest.mark.parametrize("dialect", databases, indirect=True))


def _ordinary(database: str, *, if_: bool) -> object:
    """In every run, or in the full one alone."""
    return pytest.param(database, marks=[] if if_ else [pytest.mark.long])


@pytest.fixture
def service_url(database_url: str) -> str:
    return database_url
