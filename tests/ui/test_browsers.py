"""The browser of the tests is one that this machine has, or one that needs nobody to be root."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chromium_here import Chromium, of_the_machine, of_the_package, running
from node_here import Node


def program(folder: Path, name: str) -> str:
    file = folder / name
    file.write_text("#!/bin/sh\n", "utf-8")
    file.chmod(0o755)
    return str(file)


def test_the_one_that_is_named_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "chromium")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HORARIUM_CHROMIUM", "/opt/mine")
    assert of_the_machine() == Chromium("/opt/mine")


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_then_that_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.delenv("HORARIUM_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of_the_machine() is None
    there = program(tmp_path, name)
    assert of_the_machine() == Chromium(there)


def test_that_of_the_package_shows_pages_and_leaves_no_event_loop_behind(node: Node) -> None:
    """It is the only one where nobody may install another, so it works here too."""
    with running(of_the_package(node)) as browser:
        page = browser.new_page()
        page.set_content("<h1>Hello</h1>")
        assert page.get_by_role("heading").inner_text() == "Hello"
    asyncio.run(asyncio.sleep(0))
