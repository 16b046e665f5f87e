"""What users import stays importable under its name, from a process that has imported nothing else of the package."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import ismodule

import pytest
from docs.pages import ROOT
from surfaces import PROMISED, documented, entry_points, found_at, mentioned, public_names_of

from horarium import Client, Horarium
from horarium.testing import TestService

# Written out, because a name that is gone from `__all__` too would otherwise not be missed.
NAMES = {
    "horarium": (
        "AsyncClient AsyncWorker Client ConditionError Horarium HorariumError InvalidSpec Job Worker "
        "evaluate_condition next_fires"
    ),
    "horarium.celery": "SkipEnded report_to",
    "horarium.condition": "evaluate_condition",
    "horarium.launchers.launcher": "LaunchRequest Launcher",
    "horarium.core.lifecycle.outcome": (
        "Accepted Asked Busy Finished Outcome Refused RunCancelled RunFailed RunTimedOut StillRunning Unknown "
        "Unreachable"
    ),
    "horarium.testing": (
        "Accepted Busy FakeClock Finished HistoryEvent Refused Run RunFailed TestService Unknown Unreachable service"
    ),
}
IMPORTED = sorted({*PROMISED, *documented(ROOT)})


def module_of(name: str) -> str:
    parent = name.rpartition(".")[0]
    return name if ismodule(found_at(name)) else parent


def is_member(name: str) -> bool:
    """Whether the documentation means a member of an app or of a test service, which it calls `horarium`."""
    _, first, *others = name.split(".")
    return any(hasattr(owner, first) for owner in (Horarium, TestService)) and all(
        hasattr(Client, other) for other in others
    )


@pytest.mark.parametrize("name", IMPORTED)
def test_what_the_documentation_imports_exists(name: str) -> None:
    assert found_at(name) is not None


@pytest.mark.parametrize("module", sorted({module_of(name) for name in IMPORTED}))
def test_a_public_module_needs_no_other_import_before_it(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, timeout=60)


@pytest.mark.parametrize("name", sorted(mentioned(ROOT)))
def test_what_the_documentation_mentions_exists(name: str) -> None:
    assert is_member(name) or found_at(name) is not None


@pytest.mark.parametrize("module", NAMES)
def test_a_public_module_has_its_names(module: str) -> None:
    loaded = import_module(module)
    assert set(NAMES[module].split()) - set(public_names_of(loaded)) == set()
    assert [name for name in public_names_of(loaded) if not hasattr(loaded, name)] == []


def test_the_groups_and_the_script_keep_their_names() -> None:
    found = entry_points(ROOT)
    assert (found["scripts"], found["groups"]) == (["horarium"], ["horarium.launchers"])
